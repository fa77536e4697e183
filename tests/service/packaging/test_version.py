from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.packaging.errors import PackageError
from service.packaging.version import SEMVER, content_digest, content_version

FILES = st.dictionaries(st.text(max_size=5), st.binary(max_size=9), max_size=4)


@given(FILES)
def test_the_version_of_any_content_is_semantic_and_has_no_build_metadata(files):
    version = content_version("0.1.0", files)
    assert SEMVER.fullmatch(version)
    assert "+" not in version
    assert version.startswith("0.1.0-c")


@given(FILES, FILES)
def test_other_content_has_another_digest(first, second):
    assert (content_digest(first) == content_digest(second)) is (first == second)


def test_what_moves_from_one_file_to_the_next_changes_the_digest():
    assert content_digest({"a": b"bc", "d": b""}) != content_digest({"a": b"", "bcd": b""})
    assert content_digest({"a": b"b", "c": b"d"}) != content_digest({"a": b"bcd"})


def test_a_pre_release_goes_on():
    assert content_version("1.0.0-rc.1", {}).startswith("1.0.0-rc.1.c")


@pytest.mark.parametrize("base", ["1.0", "v1.0.0", "1.0.0+build", "1.0.0-01", "01.0.0", ""])
def test_a_version_that_cannot_be_continued_is_refused(base):
    with pytest.raises(PackageError, match="semantic version without build metadata"):
        content_version(base, {})
