from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.codecs.negotiation import preferred_type
from service.errors import NotAcceptableError

JSON, ARROW = "application/json", "application/vnd.apache.arrow.stream"
OFFERED = (JSON, ARROW)


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        (None, JSON),
        ("  ", JSON),
        ("*/*", JSON),
        ("application/*", JSON),
        (ARROW, ARROW),
        (ARROW.upper() + " ; q=0.5", ARROW),
        (f"{ARROW}, {JSON}", JSON),
        (f"{ARROW}, {JSON};q=0.9", ARROW),
        (f"{JSON};q=0.2, */*;q=0.1", JSON),
        (f"{JSON};q=0, */*", ARROW),
        (f"*/*;q=0.5, application/*;q=0, {ARROW};q=0.001", ARROW),
        (f"text/html, {ARROW};level=1;q=0.3", ARROW),
        (f"{ARROW};q=1.000, {JSON};q=0.999", ARROW),
    ],
)
def test_the_most_specific_range_decides_and_json_wins_ties(accept, chosen):
    assert preferred_type(accept, OFFERED) == chosen


@pytest.mark.parametrize(
    "accept", ["text/html", f"{JSON};q=0", "*/*;q=0", f"{JSON};q=much", f"{JSON};q=2", ";", ","]
)
def test_where_nothing_fits_it_says_what_there_is(accept):
    with pytest.raises(NotAcceptableError, match=f"{JSON} or {ARROW}"):
        preferred_type(accept, OFFERED)


@given(st.text(max_size=60) | st.text("q=;,*/.01 application", max_size=60))
def test_any_header_is_answered_or_refused(accept):
    with suppress(NotAcceptableError):
        assert preferred_type(accept, OFFERED) in OFFERED
