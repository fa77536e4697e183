import pytest

from model.shared_library import find_compiler
from service.codecs.native import library
from service.codecs.native.__main__ import build


@pytest.fixture(scope="session")
def built_reader() -> library.Library:
    """The reader of samples, built where it is missing."""
    if find_compiler() is None:
        pytest.skip("there is no C++ compiler")
    assert build() is None
    library.load.cache_clear()
    library._load_once.cache_clear()
    return library.load()
