import json
import os

import pytest

from service.container import Phase
from tests.service.fakes import serving

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def outside_of_a_pod(monkeypatch):
    for name in ("CONFIG_FILE", "XAPP_DESCRIPTOR_PATH"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def mounted(tmp_path, monkeypatch):
    """A descriptor as a ConfigMap mounts it: a link to a folder that is swapped."""
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "config-file.json").write_text('{"name": "cast", "version": "1.0.0"}')
    (tmp_path / "now").symlink_to(tmp_path / "first")
    monkeypatch.setenv("CONFIG_FILE", str(tmp_path / "now" / "config-file.json"))
    return tmp_path


def as_the_application_manager_reads_it(answer):
    """Name and configuration: the first entry, whose `config` it prints and parses again."""
    first = answer.json()[0]
    assert isinstance(first["config"], str)
    return first["metadata"]["xappName"], json.loads(first["config"])


async def test_probes_get_what_frameworks_answer():
    async with serving() as client:
        alive = await client.get("/ric/v1/health/alive")
        ready = await client.get("/ric/v1/health/ready")
    assert (alive.status_code, alive.json()) == (200, {"status": "alive"})
    assert (ready.status_code, ready.json()) == (200, {"status": "ready"})


async def test_a_stopping_xapp_lives_and_is_not_ready():
    async with serving() as client:
        client.services.move_to(Phase.DRAINING, "stopping after SIGTERM")
        assert (await client.get("/ric/v1/health/alive")).status_code == 200
        ready = await client.get("/ric/v1/health/ready")
    assert ready.status_code == 503
    assert ready.json() == {"status": "draining", "reason": "stopping after SIGTERM"}


async def test_an_xapp_whose_engine_died_does_not_live():
    async with serving() as client:
        await client.services.require().engine.drain(0)
        assert (await client.get("/ric/v1/health/alive")).status_code == 503


async def test_metrics_are_those_of_the_usual_path():
    async with serving() as client:
        answer = await client.get("/ric/v1/metrics")
        usual = await client.get("/metrics")
    assert answer.headers["content-type"] == usual.headers["content-type"]
    assert "rancast_store_cells 0.0" in answer.text


@pytest.mark.usefixtures("mounted")
async def test_the_descriptor_comes_in_the_form_that_the_application_manager_can_use():
    async with serving() as client:
        answer = await client.get("/ric/v1/config")
    assert answer.status_code == 200
    assert [set(entry) for entry in answer.json()] == [{"metadata", "config"}]
    assert answer.json()[0]["metadata"] == {"xappName": "cast", "configType": "json"}
    name, fields = as_the_application_manager_reads_it(answer)
    assert (name, fields) == ("cast", {"name": "cast", "version": "1.0.0"})


async def test_a_swapped_descriptor_is_read_at_the_next_request(mounted):
    async with serving() as client:
        await client.get("/ric/v1/config")
        (mounted / "second").mkdir()
        (mounted / "second" / "config-file.json").write_text('{"name": "cast", "version": "2.0.0"}')
        (mounted / "new").symlink_to(mounted / "second")
        os.replace(mounted / "new", mounted / "now")
        _, fields = as_the_application_manager_reads_it(await client.get("/ric/v1/config"))
    assert fields["version"] == "2.0.0"


async def test_a_damaged_descriptor_is_told_and_asked_for_again(mounted):
    file = mounted / "first" / "config-file.json"
    async with serving() as client:
        file.write_text('{"name": ')
        answer = await client.get("/ric/v1/config")
        assert answer.status_code == 503
        assert answer.headers["content-type"] == "application/problem+json"
        assert "config-file.json" in answer.json()["detail"]
        assert await client.metric("rancast_requests_rejected_total", reason="descriptor") == 1
        file.write_text('{"name": "cast"}')
        assert (await client.get("/ric/v1/config")).status_code == 200


async def test_without_a_descriptor_the_answer_claims_nothing():
    async with serving() as client:
        answer = await client.get("/ric/v1/config")
        version = client.app.version
    name, fields = as_the_application_manager_reads_it(answer)
    assert name == "rancast"
    assert fields == {"name": "rancast", "version": version, "messaging": {"ports": []}}
