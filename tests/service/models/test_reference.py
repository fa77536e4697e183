import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.models.reference import ModelReference, parse_reference, version_order

NUMBERS = st.lists(st.integers(0, 10**6), min_size=1, max_size=4)


@pytest.mark.parametrize(
    ("text", "name", "version"),
    [
        ("rancast-small", "rancast-small", None),
        ("rancast-small@1.0.0", "rancast-small", "1.0.0"),
        (" a@b@c ", "a", "b@c"),
    ],
)
def test_a_reference_is_a_name_and_perhaps_a_version(text, name, version):
    reference = parse_reference(text)
    assert reference == ModelReference(name, version)
    assert str(reference) == text.strip()


@pytest.mark.parametrize("text", ["", " ", "@1", "name@"])
def test_a_reference_without_a_name_or_with_an_empty_version_is_refused(text):
    with pytest.raises(ValueError, match="NAME or NAME@VERSION"):
        parse_reference(text)


@given(NUMBERS, NUMBERS)
def test_versions_of_numbers_are_in_the_order_of_their_numbers(one, other):
    spelt = [".".join(map(str, numbers)) for numbers in (one, other)]
    assert (version_order(spelt[0]) < version_order(spelt[1])) == (one < other)


def test_versions_are_in_the_order_of_semantic_versioning():
    ordered = ["0", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-rc1", "1.0.0", "1.0.1", "1.9", "1.10"]
    assert sorted(ordered, key=version_order) == ordered


@given(st.lists(st.text(max_size=8)))
def test_any_texts_can_be_ordered(versions):
    sorted(versions, key=version_order)
