import asyncio
import logging
import threading

import numpy as np
import pytest

from kpi.catalogue import Catalogue
from kpi.errors import JournalError
from kpi.store import KpiStore, StoreLimits
from service.settings import Settings
from tests.service.fakes import series, serving, small_catalogue

pytestmark = pytest.mark.anyio


def store(**limits) -> KpiStore:
    return KpiStore(StoreLimits(**limits), small_catalogue())


async def test_samples_are_kept_and_counted():
    kept = store()
    async with serving(store=kept) as client:
        answer = await client.post("/v1/observations", {"series": [series()]})
        assert answer.status_code == 200
        assert answer.json() == {"accepted": 6, "merged": 0, "late": 0, "rejected": []}
        assert await client.metric("rancast_observations_total", outcome="accepted") == 6
        assert await client.metric("rancast_store_cells") == 1
        assert await client.metric("rancast_store_bytes") == kept.stated_bytes_per_cell(2)
        window = kept.window("ManagedElement=1,NRCellDU=32", kpis=["RRU.PrbTotDl"])
    np.testing.assert_array_equal(window.values[0], [12, np.nan, 15.5])


async def test_sending_again_changes_nothing_and_a_later_value_wins():
    kept = store()
    one = series(kpis={"RRU.PrbTotDl": [1, 2]})
    async with serving(store=kept) as client:
        await client.post("/v1/observations", {"series": [one]})
        again = await client.post("/v1/observations", {"series": [one]})
        assert again.json()["merged"] == 2
        changed = {**one, "kpis": {"pmPrbUsedDl": [9, 2]}}
        await client.post("/v1/observations", {"series": [changed]})
        window = kept.window("ManagedElement=1,NRCellDU=32")
    assert window.values.tolist() == [[9, 2]]


async def test_what_the_store_refuses_is_named_by_its_place_in_the_request():
    many = [series(cell="a"), series(cell="b", kpis={"RRU.PrbTotDl": [1]}), series(cell="c")]
    async with serving(store=store(max_cells=1)) as client:
        answer = await client.post("/v1/observations", {"series": many})
        (rejected,) = answer.json()["rejected"]
        assert rejected["path"] == "/series/1"
        assert "7 samples" in rejected["reason"]
        assert await client.metric("rancast_observations_total", outcome="rejected") == 7


async def test_samples_before_the_kept_history_are_named():
    new = series(kpis={"RRU.PrbTotDl": [1]})
    old = {**new, "start": "2026-10-01T00:00:00Z"}
    async with serving(store=store(history_steps=4)) as client:
        await client.post("/v1/observations", {"series": [new]})
        answer = (await client.post("/v1/observations", {"series": [old]})).json()
        assert answer["accepted"] == 0
        assert "older than the history" in answer["rejected"][0]["reason"]
        assert await client.metric("rancast_observations_total", outcome="expired") == 1


async def test_unknown_kpis_are_named_in_the_log_once(caplog):
    body = {"series": [series(kpis={"vendor.New": [1], "vendor.Newer": [1]})]}
    with caplog.at_level(logging.INFO):
        async with serving() as client:
            await client.post("/v1/observations", body)
            await client.post("/v1/observations", body)
    (record,) = [r for r in caplog.records if r.message == "unknown_kpis"]
    assert record.rancast_fields == {"count": 2, "first": "vendor.New"}


async def test_unknown_kpis_are_kept_and_counted_once_a_request():
    kept = store()
    async with serving(store=kept) as client:
        body = {"series": [series(kpis={"vendor.New": [1, 2]}), series(kpis={"vendor.New": [1]})]}
        await client.post("/v1/observations", body)
        assert await client.metric("rancast_unknown_kpi_total") == 1
    assert kept.window("ManagedElement=1,NRCellDU=32").kpis == ("vendor.New",)


async def test_bad_input_is_refused_as_on_the_forecast_route():
    async with serving() as client:
        answer = await client.post("/v1/observations", {"series": [series(step_seconds=-1)]})
        assert answer.status_code == 422
        assert answer.json()["path"] == "/series/0/step_seconds"
        answer = await client.http.post("/v1/observations", content=b"{}")
        assert answer.status_code == 415


class SlowDisk(KpiStore):
    def __init__(self) -> None:
        super().__init__(StoreLimits(), small_catalogue())
        self.entered = threading.Semaphore(0)
        self.gate = threading.Event()

    def merge(self, batch):
        self.entered.release()
        assert self.gate.wait(30)
        return super().merge(batch)


async def test_more_requests_than_may_wait_for_a_slow_disk_are_refused():
    disk = SlowDisk()
    async with serving(Settings(queue_limit=2), store=disk) as client:
        body = {"series": [series()]}
        first = asyncio.create_task(client.post("/v1/observations", body))
        assert await asyncio.to_thread(disk.entered.acquire, timeout=30)
        others = [asyncio.create_task(client.post("/v1/observations", body)) for _ in range(2)]
        done, _ = await asyncio.wait(others, return_when=asyncio.FIRST_COMPLETED)
        (refused,) = done
        assert refused.result().status_code == 429
        assert refused.result().headers["retry-after"] == "1"
        disk.gate.set()
        answers = await asyncio.gather(first, *others)
    assert sorted(answer.status_code for answer in answers) == [200, 200, 429]


class FullDisk(KpiStore):
    def __init__(self, catalogue: Catalogue) -> None:
        super().__init__(StoreLimits(), catalogue)

    def merge(self, batch):  # noqa: ARG002
        raise JournalError("the journal cannot be written: disk full")


async def test_a_full_disk_answers_503_and_asks_for_the_request_again():
    async with serving(store=FullDisk(small_catalogue())) as client:
        answer = await client.post("/v1/observations", {"series": [series()]})
        assert answer.status_code == 503
        assert "disk full" in answer.json()["detail"]
        assert "send the request again" in answer.json()["detail"]
        assert await client.metric("rancast_observations_total", outcome="accepted") == 0


async def test_what_was_acknowledged_is_there_after_a_restart(tmp_path):
    settings = Settings(journal_path=tmp_path / "new" / "journal.sqlite")
    async with serving(settings) as client:
        await client.post("/v1/observations", {"series": [series()]})
    async with serving(settings) as client:
        answer = await client.get("/v1/cells")
    assert [entry["cell"] for entry in answer.json()["cells"]] == ["ManagedElement=1,NRCellDU=32"]
