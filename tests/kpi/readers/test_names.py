"""One object, one name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpi.readers.names import compose, object_name


@pytest.mark.parametrize(
    ("entity", "path", "expected"),
    [
        (
            "ManagedElement=7",
            "GNBDUFunction=1,NRCellDU=1",
            "ManagedElement=7,GNBDUFunction=1,NRCellDU=1",
        ),
        ("ManagedElement=7", "ManagedElement=7,NRCellDU=1", "ManagedElement=7,NRCellDU=1"),
        (
            "SubNetwork=1,ManagedElement=7",
            "ManagedElement=7,Cell=1",
            "SubNetwork=1,ManagedElement=7,Cell=1",
        ),
        (
            "SubNetwork=1,ManagedElement=7",
            "SubNetwork=1,ManagedElement=7",
            "SubNetwork=1,ManagedElement=7",
        ),
        ("node7", "ManagedElement=node7,NRCellDU=32", "ManagedElement=node7,NRCellDU=32"),
        ("node7", "ManagedElement=node70,NRCellDU=32", "node7,ManagedElement=node70,NRCellDU=32"),
        (
            "ManagedElement=7",
            "ManagedElement=70,Cell=1",
            "ManagedElement=7,ManagedElement=70,Cell=1",
        ),
        ("node7", "", "node7"),
        ("", "Cell=1", "Cell=1"),
        ("", "", ""),
        (
            "NE",
            "NE/Cell:eNodeB Function Name=a, Local Cell ID=1, Cell Name=b, c",
            "NE,NE/Cell:eNodeB Function Name=a, Local Cell ID=1, Cell Name=b, c",
        ),
    ],
)
def test_element_is_not_repeated_and_paths_stay_whole(
    entity: str, path: str, expected: str
) -> None:
    assert compose(entity, path) == expected


def test_prefix_goes_in_front_once() -> None:
    assert object_name("SubNetwork=1,ManagedElement=7", "Cell=1", "SubNetwork=1") == (
        "SubNetwork=1,ManagedElement=7,Cell=1"
    )
    assert object_name("node7", "Cell=1", "SubNetwork=G3") == "SubNetwork=G3,node7,Cell=1"


RDN = st.builds(
    "{}={}".format, st.sampled_from(["A", "ManagedElement", "Cell"]), st.text("ab 1,", max_size=4)
).map(str.strip)
DN = st.lists(RDN, max_size=3).map(",".join)


@given(DN | st.text("ab1", max_size=3), DN)
def test_composing_again_changes_nothing(entity: str, path: str) -> None:
    once = compose(entity, path)
    assert compose(entity, once) == once


@given(DN, DN)
def test_no_path_is_lost(entity: str, path: str) -> None:
    assert compose(entity, path).endswith(path.strip())
