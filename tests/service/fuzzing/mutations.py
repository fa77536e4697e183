"""Bodies that were good once: what a fuzzer makes of them, with an eye for their structure.

Bytes are overwritten, cut, doubled and put in elsewhere, with words that mean something to the
decoder; in JSON, values are exchanged where they stand in the tree, so that what comes is mostly
JSON and reaches the code behind the parser.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

# A long repetition is what outgrows a buffer.
MOST_BYTES = 400_000
_MOST_EDITS = 5

JSON_WORDS = (
    *(bytes([letter]) for letter in b'[]{},:"\\-0.e'),
    *(b"null", b"true", b"NaN", b"1e308", b"-1e-308", b"3.5e38", b"12345678901234567890"),
    b"[1]",
    b'"":[1],',
    b"\\ud800",
    b"\x00",
    b"\xff\xfe",
    b"9" * 400,
    b"[" * 200,
    b'{"a":' * 200,
)
BINARY_WORDS = tuple(
    struct.pack(form, number)
    for form, numbers in (
        ("<i", (0, 1, -1, 2**31 - 1, -(2**31), 4096)),
        ("<q", (0, 1, -1, 2**31, 2**40, 2**62, 2**63 - 1, -(2**63))),
        ("<d", (float("nan"), float("inf"), 1e308, -0.0)),
    )
    for number in numbers
)

ODD_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, -1, 1, 2**31, 2**63, 2**64, -(2**63), 10**30, 10**400]),
    st.floats(),
    st.sampled_from(
        [
            "",
            "a" * 2000,
            "\x00",
            "\ud800",
            "é\U0001f4e1",
            "NaN",
            "1e999",
            "0001-01-01T00:00:00+14:00",
            "9999-12-31T23:59:59Z",
            "2026-11-01T00:00:00Z",
            "2026-11-01",
            "../../etc/localtime",
        ]
    ),
    st.sampled_from([[], {}, [[]], [None], [0.5], [[1.0], [2.0, 3.0]], {"": None}, {"a": [1]}]),
    st.integers(1, 60).map(lambda depth: json.loads("[" * depth + "]" * depth)),
)


@st.composite
def damaged(draw: st.DrawFn, bodies: Sequence[bytes], words: Sequence[bytes] = JSON_WORDS) -> bytes:
    """One of the bodies after a few edits of its bytes."""
    body = draw(st.sampled_from(bodies))
    for _ in range(draw(st.integers(1, _MOST_EDITS))):
        body = _edited(draw, body, bodies, words)[:MOST_BYTES]
    return body


def _edited(draw: st.DrawFn, body: bytes, bodies: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    at = draw(st.integers(0, len(body)))
    end = min(len(body), at + draw(st.integers(0, 16) | st.integers(0, 512)))
    match draw(st.sampled_from(["bytes", "word", "over", "cut", "double", "graft", "end"])):
        case "bytes":
            return body[:at] + draw(st.binary(max_size=8)) + body[end:]
        case "word":
            return body[:at] + draw(st.sampled_from(words)) + body[at:]
        case "over":
            word = draw(st.sampled_from(words))
            return body[:at] + word + body[at + len(word) :]
        case "cut":
            return body[:at] + body[end:]
        case "double":
            times = draw(st.sampled_from([2, 3, 40, 100_000]))
            return body[:at] + body[at:end] * min(times, MOST_BYTES // max(1, end - at)) + body[at:]
        case "graft":
            other = draw(st.sampled_from(bodies))
            return body[:at] + other[draw(st.integers(0, len(other))) :]
        case _:
            return body[:at]


@st.composite
def exchanged(draw: st.DrawFn, trees: Sequence[Any]) -> bytes:
    """One of the JSON values, with other values at a few of its places, as a text."""
    tree = json.loads(json.dumps(draw(st.sampled_from(trees))))
    for _ in range(draw(st.integers(1, 3))):
        tree = _exchanged(draw, tree)
    # Lone surrogates stay escaped, as a client's library would write them.
    return json.dumps(tree).encode()


def _exchanged(draw: st.DrawFn, tree: Any) -> Any:
    if not isinstance(tree, dict | list) or not tree or draw(st.integers(0, 5)) == 0:
        return draw(ODD_VALUES)
    if isinstance(tree, list):
        at = draw(st.integers(0, len(tree) - 1))
        if draw(st.integers(0, 4)) == 0:
            return [*tree[:at], *([tree[at]] * draw(st.sampled_from([0, 2, 40]))), *tree[at + 1 :]]
        return [*tree[:at], _exchanged(draw, tree[at]), *tree[at + 1 :]]
    key = draw(st.sampled_from(sorted(tree)))
    match draw(st.integers(0, 9)):
        case 0:
            return {name: value for name, value in tree.items() if name != key}
        case 1:
            other = draw(st.sampled_from(["", "x" * 1025, "a/~b", "\ud800", "kpi"]))
            return {**tree, other: tree[key]}
        case _:
            return {**tree, key: _exchanged(draw, tree[key])}
