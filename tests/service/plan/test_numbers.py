"""Numbers have three digits or so, and a unit that fits them."""

from __future__ import annotations

import pytest

from service.plan.numbers import digits, duration


@pytest.mark.parametrize(
    ("value", "said"),
    [
        *((0.0, "0"), (0.01234, "0.0123"), (9.996, "10"), (99.94, "99.9"), (99.96, "100")),
        *((1_234.5, "1,234"), (1_000_000.0, "1,000,000")),
    ],
)
def test_numbers_have_no_exponent(value, said):
    assert digits(value) == said


@pytest.mark.parametrize(
    ("milliseconds", "said"),
    [(0.5, "0.5 ms"), (999.0, "999 ms"), (1_000.0, "1 s"), (48_900, "48.9 s")],
)
def test_times_from_a_second_on_are_in_seconds(milliseconds, said):
    assert duration(milliseconds) == said
