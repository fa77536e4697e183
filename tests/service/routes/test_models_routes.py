"""Models are listed, routed, loaded and unloaded over HTTP, and answer by name."""

from __future__ import annotations

import asyncio
import hashlib
import os
from contextlib import asynccontextmanager

import httpx
import pytest
import torch

from kpi.catalogue import load_catalogue
from model.checkpoint import Checkpoint, save_checkpoint
from model.config import COPY_CANDIDATES, ForecasterConfig
from model.forecaster import Forecaster
from service.app import create_app
from service.container import Phase
from service.settings import Compiled, Settings
from tests.service.fakes import FakeClock, forecast_request, serving

pytestmark = pytest.mark.anyio

CONFIG = ForecasterConfig(
    width=16,
    layers=1,
    heads=2,
    feedforward=16,
    context_patches=8,
    horizon_patches=3,
    copies=COPY_CANDIDATES,
)


def make_checkpoint(version, seed=0, **changes):
    torch.manual_seed(seed)
    weights = Forecaster(CONFIG).state_dict()
    weights = {name: x + 0.2 * torch.randn_like(x) for name, x in weights.items()}
    told = {"catalogue_version": load_catalogue().version, **changes}
    return Checkpoint("tiny", version, CONFIG, weights, **told)


class Served:
    """A client of a started application, and its repository."""

    def __init__(self, http, app):
        self.get, self.post, self.put = http.get, http.post, http.put
        self.services = app.state.services
        self.repository = app.state.services.running.repository


class Folder:
    """A directory of models, of which `base` is the one that the settings name."""

    def __init__(self, path):
        self.path = path
        self.base = path / "base.safetensors"
        self.put("base", "1", seed=1)

    def put(self, name, version, seed, **changes):
        """Write a checkpoint in one step; its digest."""
        return save_checkpoint(
            make_checkpoint(version, seed, **changes), self.path / f"{name}.safetensors"
        )

    @asynccontextmanager
    async def serving(self, **settings):
        settings = {"model_path": self.base, "models_directory": self.path, **settings}
        app = create_app(
            Settings(compiled=Compiled.OFF, profile="non-rt", **settings), clock=FakeClock()
        )
        async with app.router.lifespan_context(app):
            await app.state.lifecycle.started()
            assert app.state.services.phase is Phase.READY, app.state.services.reason
            transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as http:
                yield Served(http, app)


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


async def settle(http):
    await http.repository.look()
    await http.repository.look()


async def versions(http):
    listed = (await http.get("/v1/models")).json()
    return {model["version"]: model["role"] for model in listed["served"]}


async def refusal(http):
    (entry,) = (await http.get("/v1/models")).json()["not_served"]
    return entry["reason"]


async def test_models_are_listed_with_their_files_roles_and_refusals(folder):
    folder.put("next", "2", seed=2)
    (folder.path / "half.safetensors").write_bytes(b"half")
    async with folder.serving(canary_model="tiny@2", canary_share=0.25) as http:
        listed = (await http.get("/v1/models")).json()
    assert listed["models"] == ["tiny"]
    assert listed["routing"] == {"default": None, "canary": "tiny@2", "canary_share": 0.25}
    shown = [(m["version"], m["role"], m["path"], m["file"]) for m in listed["served"]]
    assert shown == [
        ("1", "default", "eager", str(folder.base)),
        ("2", "canary", "eager", str(folder.path / "next.safetensors")),
    ]
    assert listed["served"][0]["loaded"] == "2026-11-01T12:00:00Z"
    (half,) = listed["not_served"]
    assert half["state"] == "refused"
    assert half["name"] is None
    assert "half.safetensors" in half["reason"]


async def test_no_models_are_listed_while_the_service_starts():
    app = create_app(Settings(), clock=FakeClock())
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as http:
        assert (await http.get("/v1/models")).json()["models"] == []


@pytest.mark.parametrize("asked", ["tiny@1", "tiny@2"])
async def test_a_request_is_answered_by_the_model_that_it_names(folder, asked):
    folder.put("next", "2", seed=2)
    async with folder.serving() as http:
        answer = await http.post("/v1/forecast", json=forecast_request(model=asked))
    assert answer.json()["model"]["version"] == asked[-1]


async def test_a_stored_cell_is_forecast_by_the_model_that_the_query_names(folder):
    folder.put("next", "2", seed=2)
    async with folder.serving() as http:
        sent = {"series": forecast_request()["series"]}
        assert (await http.post("/v1/observations", json=sent)).status_code == 200
        cell = "/v1/cells/ManagedElement=1,NRCellDU=32/forecast"
        for version in "12":
            answer = await http.get(cell, params={"model": f"tiny@{version}", "horizon": 2})
            assert answer.json()["model"]["version"] == version, answer.text
        wrong = await http.get(cell, params={"model": "tiny@"})
    assert wrong.json()["path"] == "query:model"


@pytest.mark.parametrize(
    ("asked", "status", "said"),
    [
        ("other", 404, "no model is called 'other'"),
        ("tiny@7", 404, "served: 1.2.3"),
        ("@", 422, "NAME"),
    ],
)
async def test_a_model_that_is_not_served_or_no_name_is_an_error(asked, status, said):
    async with serving() as client:
        asked = asked.replace("tiny", "fake")
        answer = await client.post("/v1/forecast", forecast_request(model=asked))
        assert answer.status_code == status
        assert said in answer.json()["detail"]


async def test_the_default_and_the_canary_change_without_a_restart(folder):
    folder.put("next", "2", seed=2)
    async with folder.serving() as http:
        changed = {"default": "tiny@2", "canary": "tiny@1", "canary_share": 0.0}
        assert (await http.put("/v1/routing", json=changed)).json() == changed
        assert (await http.get("/v1/routing")).json() == changed
        answer = await http.post("/v1/forecast", json=forecast_request())
        assert answer.json()["model"]["version"] == "2"
        assert (await http.get("/v1/model")).json()["version"] == "2"
        await http.put("/v1/routing", json={**changed, "canary_share": 1.0})
        answer = await http.post("/v1/forecast", json=forecast_request())
        assert answer.json()["model"]["version"] == "1"


@pytest.mark.parametrize(
    ("body", "status", "path"),
    [
        ({"default": "tiny@7"}, 404, None),
        ({"canary": "tiny@7", "canary_share": 0.1}, 404, None),
        ({"canary_share": 0.1}, 422, "/canary"),
        ({"canary": "@", "canary_share": 0.1}, 422, "/canary"),
        ({"canary": "tiny@1", "canary_share": 1.1}, 422, "/canary_share"),
        ({"share": 1}, 422, "/share"),
    ],
)
async def test_a_routing_that_makes_no_sense_changes_nothing(folder, body, status, path):
    async with folder.serving() as http:
        answer = await http.put("/v1/routing", json=body)
        assert answer.status_code == status, answer.text
        assert answer.json().get("path") == path
        assert await versions(http) == {"1": "default"}


async def test_a_model_is_unloaded_and_loaded_by_the_repository_extension(folder):
    folder.put("next", "2", seed=2)
    async with folder.serving() as http:
        base = "/v2/repository/models/tiny"
        gone = await http.post(f"{base}/versions/2/unload")
        assert gone.json() == {"name": "tiny", "unload": True}
        assert await versions(http) == {"1": "default"}
        index = (await http.post("/v2/repository/index")).json()
        assert [(entry["version"], entry["state"]) for entry in index] == [
            ("1", "READY"),
            ("2", "UNAVAILABLE"),
        ]
        back = await http.post(f"{base}/load")
        assert back.json() == {"name": "tiny", "load": True}
        assert await versions(http) == {"1": "default", "2": "named"}
        refused = await http.post(f"{base}/unload")
        assert refused.status_code == 409
        assert "PUT /v1/routing" in refused.json()["error"]
        assert (await http.post("/v2/repository/models/no/load")).status_code == 404
        assert (await http.post("/v2/repository/models/no/unload")).status_code == 404


async def test_bytes_other_than_the_stated_ones_are_refused(folder):
    async with folder.serving() as http:
        before = folder.base.read_bytes()
        folder.put("next", "2", seed=2)
        stated = folder.path / "next.safetensors.sha256"
        stated.write_text(f"{hashlib.sha256(before).hexdigest()}  next.safetensors\n")
        await settle(http)
        assert "SHA-256" in await refusal(http)
        content = (folder.path / "next.safetensors").read_bytes()
        stated.write_text(hashlib.sha256(content).hexdigest())
        await settle(http)
        assert await versions(http) == {"1": "default", "2": "named"}


async def test_a_checkpoint_of_another_catalogue_is_refused(folder):
    async with folder.serving() as http:
        folder.put("base", "2", seed=2, catalogue_version="0")
        await settle(http)
        assert "'0' of the KPI catalogue" in await refusal(http)
        assert await versions(http) == {"1": "default"}


async def test_a_default_that_is_not_there_ends_the_start(folder):
    app = create_app(
        Settings(model_path=folder.base, default_model="tiny@7", compiled=Compiled.OFF)
    )
    async with app.router.lifespan_context(app):
        await app.state.lifecycle.started()
    assert app.state.services.phase is Phase.FAILED
    assert "RANCAST_DEFAULT_MODEL=tiny@7" in app.state.services.reason


async def test_under_load_a_changed_file_drops_no_request_and_mixes_no_answer(folder):
    digests = {"1": (await asyncio.to_thread(folder.put, "base", "1", 1))}
    request = forecast_request(horizon=3)
    request["series"] *= 40  # more than one call of the model each
    async with folder.serving() as http:
        answers = []
        over = asyncio.Event()

        async def ask():
            while not over.is_set():
                answers.append(await http.post("/v1/forecast", json=request))

        clients = [asyncio.create_task(ask()) for _ in range(4)]
        for version in "234":
            digests[version] = await asyncio.to_thread(folder.put, "base", version, int(version))
            await settle(http)
            assert await versions(http) == {version: "default"}
            before = len(answers)
            while len(answers) < before + 8:  # those that were in work, and then new ones
                await asyncio.sleep(0)
        over.set()
        await asyncio.gather(*clients)
        assert {answer.status_code for answer in answers} == {200}
        seen: dict[str, set[str]] = {}
        for answer in answers:
            body = answer.json()
            assert body["model"]["digest"] == digests[body["model"]["version"]]
            kpis = {str(forecast["kpis"]) for forecast in body["forecasts"]}
            assert len(kpis) == 1  # all of one model
            seen.setdefault(body["model"]["version"], set()).update(kpis)
        assert sorted(seen) == ["1", "2", "3", "4"]
        assert all(len(kpis) == 1 for kpis in seen.values())
        assert len(set.union(*seen.values())) == 4


async def test_a_model_that_is_served_no_more_leaves_no_memory_behind(folder):
    import gc
    import weakref

    folder.put("next", "2", seed=2)
    async with folder.serving() as http:
        models = http.services.running.models
        gone = weakref.ref(models.served[1].ladder.predictor)
        answer = await http.post("/v1/forecast", json=forecast_request(model="tiny@2"))
        assert answer.status_code == 200
        os.unlink(folder.path / "next.safetensors")
        await http.repository.look()
        http.services.clock.advance(0)  # forgets its cancelled timers
        gc.collect()
        assert gone() is None
