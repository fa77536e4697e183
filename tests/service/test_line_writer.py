import io
import logging
import os
import subprocess
import sys
import threading

import pytest

from service.access_log import LOGGER_NAME
from service.line_handler import LineHandler, written_elsewhere
from service.line_writer import LineWriter
from tests.service.live import live
from tests.service.test_connections import status

LINE = "x" * 999


@pytest.fixture
def pipe():
    """A stream that nobody reads, and what reads it."""
    read, write = os.pipe()
    with os.fdopen(read, "rb", buffering=0) as reader, os.fdopen(write, "w") as stream:
        yield reader, stream


def test_whoever_logs_to_a_stream_that_nobody_reads_goes_on(pipe):
    reader, stream = pipe
    dropped: list[int] = []
    writer = LineWriter(stream, most_bytes=500_000, on_dropped=dropped.append)
    for _ in range(2000):
        writer.put(LINE)
    assert writer.waiting_bytes <= 500_000
    # What waits and what fits into the pipe is there, the rest is counted.
    kept = 2000 - sum(dropped)
    assert 500 <= kept <= 700
    assert not writer.close(0)
    writer.put("too late")
    assert sum(dropped) == 2001 - kept
    content = b""
    while content.count(b"\n") < kept:
        content += reader.read(65536)
    assert content == (LINE + "\n").encode() * kept
    assert writer.close(30)


def test_lines_come_whole_and_in_order_from_any_thread(pipe):
    reader, stream = pipe
    writer = LineWriter(stream)

    def write(thread: int) -> None:
        for i in range(500):
            writer.put(f"{thread} {i}")

    threads = [threading.Thread(target=write, args=(t,)) for t in range(4)]
    for thread in threads:
        thread.start()
    content = b""
    while content.count(b"\n") < 2000:
        content += reader.read(65536)
    assert writer.close(30)
    rows = [tuple(map(int, line.split())) for line in content.decode().splitlines()]
    for t in range(4):
        assert [i for thread, i in rows if thread == t] == list(range(500))


def test_a_reader_that_has_gone_costs_lines_only():
    read, write = os.pipe()
    dropped: list[int] = []
    with os.fdopen(write, "w") as stream:
        os.close(read)
        writer = LineWriter(stream, on_dropped=dropped.append)
        writer.put("to nobody")
        assert writer.close(30)
    assert dropped == [1]


def test_a_pipe_that_does_not_block_is_waited_for(pipe):
    reader, stream = pipe
    os.set_blocking(stream.fileno(), False)
    writer = LineWriter(stream)
    for _ in range(500):
        writer.put(LINE)
    content = b""
    while len(content) < 500_000:
        content += reader.read(65536)
    assert writer.close(30)


def test_all_lines_are_written_at_the_end_and_later_ones_straight():
    stream = io.StringIO()
    logger = logging.Logger("test")
    logger.addHandler(LineHandler(stream))
    with written_elsewhere({"events": logger}, lambda *_: None):
        for number in range(1000):
            logger.info("%d", number)
    logger.info("last")
    assert stream.getvalue().split() == [*map(str, range(1000)), "last"]


def test_a_handler_of_someone_else_is_left_alone():
    stream = io.StringIO()
    logger = logging.Logger("test")
    logger.addHandler(logging.StreamHandler(stream))
    with written_elsewhere({"events": logger}, lambda *_: None):
        logger.info("at once")
        assert stream.getvalue() == "at once\n"


def test_a_process_whose_output_nobody_reads_ends_all_the_same():
    script = """
import logging, service.line_handler as lines
lines._PATIENCE_S = 0.1
handler = lines.LineHandler(__import__("sys").stdout)
logger = logging.getLogger()
logger.handlers, logger.level = [handler], logging.INFO
dropped = []
with lines.written_elsewhere({"events": logger}, lambda name, n: dropped.append(n)):
    for _ in range(20_000):
        logger.info("x" * 999)
logger.info("after the end")
assert sum(dropped) > 10_000
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    try:
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.communicate()


def test_a_service_whose_access_log_nobody_reads_answers_and_ends(monkeypatch, pipe):
    _, stream = pipe
    logger = logging.getLogger(LOGGER_NAME)
    monkeypatch.setattr(logger, "handlers", [LineHandler(stream)])
    monkeypatch.setattr(logger, "level", logging.INFO)
    monkeypatch.setattr("service.line_handler._PATIENCE_S", 0.1)
    ask = b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\nhost: x\r\n\r\n"
    with live() as one, one.connect() as connection:
        for _ in range(20):
            connection.sendall(ask)
            assert status(connection) == 404
