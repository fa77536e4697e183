import pytest

from model.code_cache import ISA_VARIABLE
from model.shared_library import find_compiler
from service.codecs.native import library
from service.codecs.native.__main__ import build


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


@pytest.fixture(scope="session")
def built_reader() -> library.Library:
    """The reader of samples, built where it is missing."""
    if find_compiler() is None:
        pytest.skip("there is no C++ compiler")
    with pytest.MonkeyPatch.context() as patched:
        patched.delenv(ISA_VARIABLE, raising=False)
        assert build() is None
        library.load.cache_clear()
        library._load_once.cache_clear()
        return library.load()
