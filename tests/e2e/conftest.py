import os
from pathlib import Path

import pytest


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A pipe: whoever opens it to read waits until someone opens it to write."""
    path = tmp_path / "gate"
    os.mkfifo(path)
    return path
