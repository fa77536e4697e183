from __future__ import annotations

import pytest

from service.packaging.document import read_json, read_yaml, shown
from service.packaging.errors import PackageError

BOMB = "\n".join(
    ["a: &a [x, x, x, x, x, x, x, x, x]"]
    + [f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]" for a, b in zip("abcdefg", "bcdefgh", strict=True)]
)


@pytest.mark.parametrize(
    "content", [b"{", b"\xff", b'{"a": NaN}', "{}".encode("utf-16"), b"[" * 99_999]
)
def test_what_is_no_json_is_refused(content):
    with pytest.raises(PackageError, match="expected JSON"):
        read_json(content)


def test_a_byte_order_mark_is_refused_as_the_platforms_tools_do():
    with pytest.raises(PackageError, match="byte order mark"):
        read_json(b"\xef\xbb\xbf{}")


@pytest.mark.parametrize(
    "content", [b"a: [", b"\xff", b"a: 2026-02-30", b"a: " + b"[" * 1_000, b"a: &a [*a]"]
)
def test_what_is_no_yaml_is_refused(content):
    with pytest.raises(PackageError, match="expected YAML"):
        read_yaml(content)


def test_a_bomb_of_aliases_is_refused():
    with pytest.raises(PackageError, match="once aliases are put in"):
        read_yaml(BOMB.encode())


def test_an_alias_is_taken():
    assert read_yaml(b"a: &a [1]\nb: *a\n") == {"a": [1], "b": [1]}


def test_a_long_value_is_shown_by_its_beginning():
    assert shown([1, 2]) == "[1, 2]"
    assert len(shown("a" * 1_000)) == 201
