"""SIGTERM while clients send: what was accepted is answered whole, what comes is turned away."""

from __future__ import annotations

import json
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.e2e.raw_client import RawClient, post_head
from tests.e2e.service_process import Service, running
from tests.service.fakes import forecast_request, series

PATH = "/v1/forecast"
CLIENTS = 8
DRAIN_SECONDS = 20


def request_of(cell: str) -> dict:
    return forecast_request(series=[series(cell=cell)], budget_ms=30_000)


def forecast_cells(service: Service) -> set[str]:
    """Cells of which the model has made forecasts."""
    mark = "event=forecast cell="
    return {line.split(mark)[1].strip() for line in service.log if mark in line}


def ended(service: Service) -> int:
    """The exit code, once all of the log is read."""
    code = service.process.wait(DRAIN_SECONDS + 10)
    service.wait_for("event=end_of_log")
    return code


def test_requests_in_the_queue_are_answered_and_their_connections_closed(gate: Path) -> None:
    with running(GATE=str(gate), RANCAST_PROFILE="non-rt") as service:
        clients = [RawClient(service.address) for _ in range(CLIENTS)]
        for number, client in enumerate(clients):
            client.post(PATH, request_of("slow" if number == 0 else f"cell-{number}"))
            if number == 0:
                service.wait_for("event=inferring")
        with RawClient(service.address) as observer:
            # The depth of the queue says when the service has taken all of them.
            depth = 0.0
            while depth < CLIENTS:
                observer.send(b"GET /metrics HTTP/1.1\r\nhost: test\r\n\r\n")
                answer = observer.receive()
                assert answer is not None
                (line,) = (
                    line
                    for line in answer.body.decode().splitlines()
                    if line.startswith("rancast_queue_depth ")
                )
                depth = float(line.split(" ")[1])
            service.process.send_signal(signal.SIGTERM)
            service.wait_for("Shutting down")
            # An idle connection is closed, in order.
            assert observer.receive() is None
        with pytest.raises(ConnectionRefusedError):
            RawClient(service.address)
        gate.write_text("go on")
        for client in clients:
            with client:
                answer = client.receive()
                assert answer is not None
                assert answer.status == 200
                assert answer.closes
                assert len(json.loads(answer.body)["forecasts"]) == 1
                assert client.receive() is None
        assert ended(service) == 0


def test_a_body_that_is_on_its_way_is_answered(gate: Path) -> None:
    text = json.dumps(request_of("late")).encode()
    with (
        running(GATE=str(gate), RANCAST_PROFILE="non-rt") as service,
        RawClient(service.address) as client,
    ):
        client.send(post_head(PATH, len(text), expect="100-continue"))
        invited = client.receive()
        assert invited is not None
        assert invited.status == 100
        client.send(text[:10])
        service.process.send_signal(signal.SIGTERM)
        service.wait_for("Shutting down")
        client.send(text[10:])
        answer = client.receive()
        assert answer is not None
        assert answer.status == 200
        assert answer.closes
        assert ended(service) == 0


@dataclass
class Load:
    """What clients saw that send one request after another for as long as they can.

    Attributes:
        answered: Cells of which a whole answer came, whatever it said.
        odd: Answers that are neither a forecast nor a refusal that closes the connection.
        enough: Set once each client has had its first answers.
    """

    answered: set[str] = field(default_factory=set)
    odd: list[str] = field(default_factory=list)
    enough: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def send(self, service: Service, name: str) -> None:
        try:
            self._send_all(service, name)
        except OSError:
            return  # refused: the service is gone

    def _send_all(self, service: Service, name: str) -> None:
        count = 0
        while True:
            with RawClient(service.address) as client:
                is_open = True
                while is_open:
                    cell = f"{name}-{count}"
                    count += 1
                    client.post(PATH, request_of(cell))
                    answer = client.receive()
                    if answer is None:
                        break  # closed while it was idle; nothing of it was answered
                    self.answered.add(cell)
                    if answer.status != 200 and not (answer.status == 503 and answer.closes):
                        self.odd.append(f"{answer.status} {answer.headers} {answer.body!r}")
                    is_open = not answer.closes
                    if count == 20:
                        self.enough.release()


def test_whatever_the_model_worked_on_under_load_is_answered_whole() -> None:
    load = Load()
    with (
        running(RANCAST_PROFILE="non-rt", RANCAST_ACCESS_LOG="false") as service,
        ThreadPoolExecutor(CLIENTS) as pool,
    ):
        senders = [pool.submit(load.send, service, f"client-{number}") for number in range(CLIENTS)]
        for _ in senders:
            assert load.enough.acquire(timeout=60)
        service.process.send_signal(signal.SIGTERM)
        code = ended(service)
        for sender in senders:
            sender.result(60)  # raises where an answer was broken off
        worked_on = {cell for cell in forecast_cells(service) if cell.startswith("client-")}
    assert code == 0
    assert len(worked_on) >= 20 * CLIENTS
    assert worked_on - load.answered == set()
    assert load.odd == []
