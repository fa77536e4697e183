import io
import logging

import pytest

from service.logs import KeyValueFormatter, configure_logging, log_event, log_failure


@pytest.fixture
def lines():
    """A logger that writes into a list of lines, and leaves the root logger as it was."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(KeyValueFormatter())
    logger = logging.Logger("test", logging.DEBUG)
    logger.addHandler(handler)

    def read():
        return stream.getvalue().splitlines()

    return logger, read


def test_an_event_is_one_line_of_pairs(lines):
    logger, read = lines
    log_event(logger, logging.INFO, "ready", model="m", seconds=0.25, journal=None)
    (line,) = read()
    assert line.startswith("ts=")
    assert line.endswith("level=info logger=test event=ready model=m seconds=0.25 journal=null")


def test_a_value_cannot_forge_a_line_or_a_pair(lines):
    logger, read = lines
    log_event(logger, logging.INFO, "x", cell='a b="c"\nlevel=error', empty="")
    (line,) = read()
    assert r'cell="a b=\"c\"\nlevel=error"' in line
    assert line.endswith('empty=""')


@pytest.mark.parametrize("mark", ["\n", "\r", "\x1b", "\x7f", "\x85", "\x9b", "\u2028", "\u202e"])
def test_what_does_not_print_is_escaped_in_values_and_in_lines_of_pairs(lines, mark):
    logger, read = lines
    log_event(logger, logging.INFO, "x", cell=f"a{mark}level=error")
    logger.warning("event=odd file=%s", f"a{mark}level=error")
    value, pairs = read()
    assert value.isprintable()
    assert pairs.isprintable()


def test_a_line_of_pairs_is_not_quoted_again(lines):
    logger, read = lines
    logger.warning("event=odd file=%s", "a\nlevel=error")
    (line,) = read()
    assert line.endswith(r"logger=test event=odd file=a\nlevel=error")


def test_a_failure_carries_its_traceback_on_the_same_line(lines):
    logger, read = lines
    log_failure(logger, "broken", ValueError("bad"), file="f")
    (line,) = read()
    assert "level=error" in line
    assert "ValueError: bad" in line


def test_configured_logging_reaches_every_logger_at_its_level():
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    stream = io.StringIO()
    try:
        configure_logging("warning", stream)
        logging.getLogger("other").info("quiet")
        logging.getLogger("other").warning("loud")
    finally:
        root.handlers, root.level = handlers, level
    assert "event=loud" in stream.getvalue()
    assert "quiet" not in stream.getvalue()
