import asyncio
import logging
from pathlib import Path

import httpx
import pytest

from kpi.store import KpiStore, StoreLimits
from service import lifecycle, loading
from service.app import create_app
from service.container import Phase
from service.errors import StartupError
from service.loading import describe, load_model, open_store, warm_up_windows
from service.settings import Settings
from service.sources.directory import DirectorySource, PollResult
from tests.service.fakes import FakeClock, RepeatLast, forecast_request, serving, small_catalogue

pytestmark = pytest.mark.anyio


async def run_until_started(app):
    """Run the lifespan up to the end of the start, and then to its end."""
    async with app.router.lifespan_context(app):
        await app.state.lifecycle.started()
        return app.state.services.phase, app.state.services.reason


async def test_the_service_answers_while_it_starts():
    model = RepeatLast()
    model.gate.clear()
    app = create_app(Settings(), predictor=model, clock=FakeClock())
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as http,
    ):
        assert await asyncio.to_thread(model.entered.acquire, timeout=30)
        ready = await http.get("/readyz")
        assert ready.status_code == 503
        assert ready.json()["status"] == "starting"
        assert "\nrancast_ready 0.0\n" in (await http.get("/metrics")).text
        assert (await http.get("/healthz")).status_code == 200
        refused = await http.post("/v1/forecast", json=forecast_request())
        assert refused.status_code == 503
        model.gate.set()
        await app.state.lifecycle.started()
        assert (await http.get("/readyz")).status_code == 200
        assert "\nrancast_ready 1.0\n" in (await http.get("/metrics")).text


async def test_a_start_that_fails_is_neither_ready_nor_alive_and_says_why(tmp_path):
    failures: list[StartupError] = []
    journal = tmp_path / "journal.sqlite"
    journal.write_bytes(b"no journal" * 1000)
    app = create_app(
        Settings(journal_path=journal), predictor=RepeatLast(), on_failure=failures.append
    )
    phase, reason = await run_until_started(app)
    assert phase is Phase.FAILED
    assert "journal.sqlite" in reason
    assert str(failures[0]) == reason


async def test_a_start_that_fails_by_a_bug_is_told_with_its_traceback(caplog, monkeypatch):
    def broken(*_):
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(lifecycle, "open_store", broken)
    with caplog.at_level(logging.ERROR):
        phase, reason = await run_until_started(create_app(Settings(), predictor=RepeatLast()))
    assert phase is Phase.FAILED
    assert reason == "ZeroDivisionError: oops"
    assert any(record.exc_info for record in caplog.records)


async def test_stopping_answers_what_was_accepted_and_closes_the_store():
    closed = []

    class Store(KpiStore):
        def close(self):
            closed.append(True)
            super().close()

    model = RepeatLast()
    async with serving(predictor=model, store=Store(StoreLimits(), small_catalogue())) as client:
        model.forget_warm_up()
        model.gate.clear()
        answer = asyncio.create_task(client.post("/v1/forecast", forecast_request()))
        assert await asyncio.to_thread(model.entered.acquire, timeout=30)
        ending = asyncio.create_task(client.app.state.lifecycle.end())
        await asyncio.sleep(0)
        assert client.services.phase is Phase.DRAINING
        assert not closed
        model.gate.set()
        await ending
        assert (await answer).status_code == 200
        assert closed


async def test_stopping_in_the_middle_of_the_start_ends_it():
    model = RepeatLast()
    model.gate.clear()
    app = create_app(Settings(), predictor=model, clock=FakeClock())
    async with app.router.lifespan_context(app):
        assert await asyncio.to_thread(model.entered.acquire, timeout=30)
    model.gate.set()
    assert app.state.services.running is None


async def test_files_of_the_watched_directory_are_served(tmp_path):
    (tmp_path / "a.csv").write_text(
        "timestamp,cell,RRU.PrbTotDl\n2026-11-01T10:00:00Z,a,1\n2026-11-01T10:15:00Z,a,2\n"
    )
    looked = asyncio.Event()
    loop = asyncio.get_running_loop()
    settings = Settings(ingest_directory=tmp_path, ingest_poll_seconds=0.01)

    class Store(KpiStore):
        def merge(self, batch):
            result = super().merge(batch)
            loop.call_soon_threadsafe(looked.set)
            return result

    async with serving(
        settings,
        store=Store(StoreLimits(), small_catalogue()),
        clock=FakeClock(now_ms=4_000_000_000_000),
    ) as client:
        await asyncio.wait_for(looked.wait(), 30)
        answer = await client.get("/v1/cells/a/samples")
    assert answer.json()["kpis"] == {"RRU.PrbTotDl": [1, 2]}


async def test_a_journal_inside_the_watched_directory_is_not_read_as_a_file_of_the_network(
    tmp_path, monkeypatch
):
    (tmp_path / "a.csv").write_text(
        "timestamp,cell,RRU.PrbTotDl\n2026-11-01T10:00:00Z,a,1\n2026-11-01T10:15:00Z,a,2\n"
    )
    results = []
    looked = asyncio.Event()
    loop = asyncio.get_running_loop()
    poll = DirectorySource.poll

    def noted(source):
        results.append(poll(source))
        if len(results) == 2:
            loop.call_soon_threadsafe(looked.set)
        return results[-1]

    monkeypatch.setattr(DirectorySource, "poll", noted)
    settings = Settings(
        ingest_directory=tmp_path,
        ingest_poll_seconds=0.01,
        journal_path=tmp_path / "journal.sqlite",
    )
    async with serving(settings, clock=FakeClock(now_ms=4_000_000_000_000)):
        await asyncio.wait_for(looked.wait(), 30)
        assert len(list(tmp_path.iterdir())) > 3
    assert results[:2] == [PollResult(files=1, samples=2), PollResult()]


async def test_the_cost_of_the_store_is_said_at_the_start(caplog):
    with caplog.at_level(logging.INFO):
        async with serving(Settings(max_cells=7)):
            pass
    (record,) = [r for r in caplog.records if r.message == "store_open"]
    fields = record.rancast_fields
    assert fields["most_bytes"] == 7 * fields["bytes_per_cell"] > 0


def test_a_catalogue_that_cannot_be_used_stops_the_application(tmp_path):
    with pytest.raises(StartupError, match=r"missing\.toml") as caught:
        create_app(Settings(catalogue_files=(tmp_path / "missing.toml",)))
    assert caught.value.exit_code == 2


async def test_the_shipped_checkpoint_is_served_where_no_model_is_named():
    app = create_app(Settings(profile="non-rt"))
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as http,
    ):
        await app.state.lifecycle.started()
        card = (await http.get("/v1/model")).json()
        answer = await http.post("/v1/forecast", json=forecast_request())
    assert card["training"]
    assert answer.json()["model"] == {key: card[key] for key in ("name", "version", "digest")}
    quantiles = answer.json()["forecasts"][0]["kpis"]["RRU.PrbTotDl"]
    assert list(quantiles) == ["0.1", "0.5", "0.9"]
    assert all(0 <= value <= 100 for values in quantiles.values() for value in values)


@pytest.mark.parametrize("content", [None, b"", b"not a checkpoint at all"])
def test_a_checkpoint_that_is_missing_or_foreign_says_so(tmp_path, content):
    path: Path = tmp_path / "model.safetensors"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(StartupError, match=r"model\.safetensors"):
        load_model(path, Settings(), small_catalogue())


def test_a_store_without_a_journal_is_empty():
    store = open_store(Settings(), small_catalogue())
    assert len(store) == 0
    store.close()


def test_the_stores_limits_are_those_of_the_settings():
    settings = Settings(max_cells=3, history_steps=5, max_kpis=2, keep_suspect=True)
    limits = open_store(settings, small_catalogue()).limits
    assert (limits.max_cells, limits.history_steps, limits.max_kpis_per_cell) == (3, 5, 2)
    assert limits.keep_suspect


def test_a_journal_where_none_can_be_stops_the_start(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StartupError, match="store cannot be opened"):
        open_store(Settings(journal_path=tmp_path / "file" / "journal.sqlite"), small_catalogue())


def test_the_warm_up_has_windows_of_one_kpi_and_of_several():
    windows = warm_up_windows(100)
    assert [len(window.kpis) for window in windows] == [1, 2]
    for window in windows:
        assert window.steps == 100
        assert window.missing_ratio == 0
    assert loading.describe(RepeatLast()) == describe(RepeatLast())


async def test_a_model_that_does_not_come_back_ends_the_service():
    model = RepeatLast()
    failures: list[StartupError] = []
    async with serving(predictor=model) as client:
        client.app.state.lifecycle._on_failure = failures.append
        model.forget_warm_up()
        model.gate.clear()
        body = forecast_request(budget_ms=60_000)
        answer = asyncio.create_task(client.post("/v1/forecast", body))
        assert await asyncio.to_thread(model.entered.acquire, timeout=30)
        client.clock.advance(60)
        assert (await answer).status_code in (503, 504)
        assert (await client.get("/readyz")).status_code == 503
        assert "did not come back" in str(failures[0])
        model.gate.set()
