"""What packages say about their licences is understood, or refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, PathDistribution, distribution
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from license_expression import get_spdx_licensing  # type: ignore[import-untyped]

from service.inventory.errors import LicenceError
from service.inventory.licences import WORDS, expression, package_licence, satisfied

NAMES = ("MIT", "ISC", "Zlib", "GPL-3.0-or-later WITH GCC-exception-3.1")


def stated(make_package: Callable[..., Path], *lines: str) -> str:
    folder = make_package("thing", lines=lines)
    return package_licence(PathDistribution(folder / "thing-1.0.dist-info").metadata)


def test_expression_goes_before_words_and_classifiers(make_package) -> None:
    lines = (
        "License-Expression: mit and apache-2.0",
        "License: BSD",
        "Classifier: License :: OSI Approved :: ISC License (ISCL)",
    )
    assert stated(make_package, *lines) == "MIT AND Apache-2.0"


def test_words_that_mean_nothing_leave_it_to_the_classifiers(make_package) -> None:
    lines = (
        "License: Dual License",
        "Classifier: License :: OSI Approved :: BSD License",
        "Classifier: Topic :: Internet",
    )
    assert stated(make_package, *lines) == "BSD-3-Clause"


def test_several_classifiers_are_a_choice(make_package) -> None:
    names = ("BSD License", "Apache Software License")
    lines = [f"Classifier: License :: OSI Approved :: {name}" for name in names]
    assert stated(make_package, *lines) == "BSD-3-Clause OR Apache-2.0"


@pytest.mark.parametrize(
    "lines", [(), ("License: Commercial",), ("Classifier: License :: Other/Proprietary License",)]
)
def test_package_without_an_intelligible_licence_is_refused_by_name(make_package, lines) -> None:
    with pytest.raises(LicenceError, match="thing: expected an SPDX expression"):
        stated(make_package, *lines)


def test_old_form_of_crates_is_a_choice() -> None:
    assert expression("MIT/Apache-2.0") == "MIT OR Apache-2.0"


def test_what_words_mean_are_expressions() -> None:
    assert all(expression(meaning) == meaning for meaning in WORDS.values())


@pytest.mark.parametrize("name", ["jinja2", "mpmath", "sympy"])
def test_packages_that_say_bsd_only_have_three_clauses(name: str) -> None:
    try:
        found = distribution(name)
    except PackageNotFoundError:
        pytest.skip(f"torch does not bring {name} here")
    texts = [
        Path(str(found.locate_file(file))).read_text(encoding="utf-8", errors="replace")
        for file in found.files or ()
        if "LICENSE" in file.name.upper() and "info" in file.parts[0]
    ]
    assert any(re.search(r"endorse\s+or\s+promote", text) for text in texts)


expressions = st.recursive(
    st.sampled_from(NAMES),
    lambda inner: st.builds("({} {} {})".format, inner, st.sampled_from(["AND", "OR"]), inner),
    max_leaves=8,
)


@given(expressions, st.sets(st.sampled_from(NAMES)))
def test_expressions_are_evaluated_as_another_library_reads_them(text, accepted) -> None:
    licensing = get_spdx_licensing()
    parsed = licensing.parse(text)
    values = {
        symbol: licensing.TRUE if str(symbol.render()) in accepted else licensing.FALSE
        for symbol in licensing.license_symbols(parsed, unique=True, decompose=False)
    }
    expected = parsed.subs(values).simplify() == licensing.TRUE
    assert satisfied(text, accepted.__contains__) is bool(expected)


@pytest.mark.parametrize("text", ["MIT AND", "(MIT", "MIT ISC", ""])
def test_what_is_no_expression_is_refused(text: str) -> None:
    with pytest.raises(LicenceError):
        satisfied(text, lambda _: True)


def test_and_binds_tighter_than_or() -> None:
    assert satisfied("MIT OR ISC AND Zlib", {"MIT"}.__contains__)
    assert not satisfied("(MIT OR ISC) AND Zlib", {"MIT"}.__contains__)
