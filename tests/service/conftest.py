import pytest


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings of whoever runs the tests must not change them."""
    import os

    for name in list(os.environ):
        if name.upper().startswith("RANCAST_"):
            monkeypatch.delenv(name)
