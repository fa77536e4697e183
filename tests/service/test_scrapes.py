import asyncio
import threading

import pytest

from service.scrapes import Scrapes
from tests.service.fakes import forecast_request, serving

pytestmark = pytest.mark.anyio


async def test_whoever_asks_while_a_text_is_made_shares_the_next_one():
    made: list[int] = []
    gate, entered = threading.Event(), threading.Event()

    def exposition():
        entered.set()
        assert gate.wait(30)
        made.append(len(made))
        return b"%d" % made[-1]

    scrapes = Scrapes(exposition)
    first = asyncio.create_task(scrapes.text())
    assert await asyncio.to_thread(entered.wait, 30)
    others = [asyncio.create_task(scrapes.text()) for _ in range(50)]
    gate.set()
    assert await first == b"0"
    assert await asyncio.gather(*others) == [b"1"] * 50
    assert await scrapes.text() == b"2"


async def test_a_client_that_leaves_takes_the_text_from_nobody():
    gate = threading.Event()
    scrapes = Scrapes(lambda: b"text" if gate.wait(30) else b"")
    leaving, staying = (asyncio.create_task(scrapes.text()) for _ in range(2))
    await asyncio.sleep(0)
    leaving.cancel()
    gate.set()
    assert await staying == b"text"


async def test_a_text_that_fails_fails_alone():
    answers = [b"well", None]

    def exposition():
        answer = answers.pop()
        if answer is None:
            raise RuntimeError("a collector's bug")
        return answer

    scrapes = Scrapes(exposition)
    with pytest.raises(RuntimeError):
        await scrapes.text()
    assert await scrapes.text() == b"well"


async def test_scrapes_of_a_busy_ledger_keep_nobody_from_forecasts():
    one = {"series": forecast_request()["series"]}
    async with serving() as client:
        assert (await client.post("/v1/observations", one)).status_code == 200
        cell = "/v1/cells/ManagedElement%3D1%2CNRCellDU%3D32/forecast"
        assert (await client.get(cell)).status_code == 200
        gate = threading.Event()
        client.services.require().accuracy._thread.submit(gate.wait, 60)
        try:
            waiting = [
                asyncio.create_task(client.get(path))
                for path in ("/metrics", "/v1/accuracy", "/ric/v1/metrics")
                for _ in range(40)
            ]
            async with asyncio.timeout(20):
                assert (await client.get(cell)).status_code == 200
                # Scrapes show what was known last; the accuracy is promised to be complete.
                assert (await waiting[0]).status_code == 200
            assert not waiting[40].done()
        finally:
            gate.set()
        answers = await asyncio.gather(*waiting)
        assert {answer.status_code for answer in answers} == {200}
        assert (await client.get("/metrics")).text.count("rancast_kept_forecasts 1.0") == 1
