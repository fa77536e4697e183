"""What ends a training command is reported, and SIGTERM is no worse than Ctrl-C."""

from __future__ import annotations

import json
import os
import signal

import pytest

from training.session import session


def test_sigterm_stops_a_run_as_a_user_would() -> None:
    with pytest.raises(KeyboardInterrupt), session(json_lines=False):
        os.kill(os.getpid(), signal.SIGTERM)


def test_what_ends_a_run_is_its_last_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="no samples"), session(json_lines=True):
        raise ValueError("no samples")
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (last["event"], last["reason"]) == ("error", "no samples")
