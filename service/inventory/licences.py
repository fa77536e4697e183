"""Licences as SPDX expressions: read from what a package says, and evaluated.

Packages say it in one of three ways: an expression (PEP 639), a few words, or a classifier of the
package index. The grammar is that of annex D of the SPDX specification 2.3.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from importlib.metadata import PackageMetadata
from types import MappingProxyType

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from service.inventory.errors import LicenceError

WORDS = MappingProxyType(
    {
        "Apache 2.0": "Apache-2.0",
        "Apache License 2.0": "Apache-2.0",
        "Apache Software License": "Apache-2.0",
        "BSD": "BSD-3-Clause",
        "BSD License": "BSD-3-Clause",
        "ISC License": "ISC",
        "ISC License (ISCL)": "ISC",
        "MIT License": "MIT",
        "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
        "Python Software Foundation License": "PSF-2.0",
    }
)
"""What packages write instead of an expression. Those that write BSD only bear the text of three
clauses: a test compares their files."""

_CLASSIFIER = re.compile(r"License :: (?:OSI Approved :: )?(?P<words>.+)")
_TOKENS = re.compile(r"[()]|[^\s()]+")


def package_licence(metadata: PackageMetadata) -> str:
    """The expression of a Python package, by its metadata.

    Several classifiers without further words mean that one may choose: so the packages that do so
    explain it.

    Raises:
        LicenceError: It states none, or none that can be understood.
    """
    stated = [
        *(metadata.get_all("License-Expression") or ()),
        *(metadata.get_all("License") or ()),
    ]
    classified = " OR ".join(
        WORDS.get(match["words"], match["words"])
        for line in metadata.get_all("Classifier") or ()
        if (match := _CLASSIFIER.fullmatch(line))
    )
    for words in (*stated, classified):
        if words and (found := expression(words)) is not None:
            return found
    heard = [words for words in (*stated, classified) if words]
    raise LicenceError(
        f"{metadata['Name']}: expected an SPDX expression as licence, got {heard or 'nothing'};"
        " what its words mean is to be added to service/inventory/licences.py"
    )


def expression(words: str) -> str | None:
    """Words as an SPDX expression in its canonical form, or None where they are none."""
    known = WORDS.get(words.strip(), words.strip())
    try:
        # How crates of Rust wrote OR until 2018.
        return str(canonicalize_license_expression(known.replace("/", " OR ")))
    except InvalidLicenseExpression:
        return None


def satisfied(licence: str, accepted: Callable[[str], bool]) -> bool:
    """Whether an expression can be kept by keeping accepted licences only.

    Args:
        licence: A canonical expression. One side of each OR has to be accepted, all of each AND.
        accepted: Of one licence, with its exception where it has one (`A WITH B`).
    """
    words = _TOKENS.findall(licence.replace(" WITH ", "\0WITH\0"))
    answer, rest = _any(words, accepted)
    if rest:
        raise LicenceError(f"expected an SPDX expression, got {licence!r}")
    return answer


def _any(words: Sequence[str], accepted: Callable[[str], bool]) -> tuple[bool, Sequence[str]]:
    answer, words = _all(words, accepted)
    while words and words[0] == "OR":
        other, words = _all(words[1:], accepted)
        answer = answer or other
    return answer, words


def _all(words: Sequence[str], accepted: Callable[[str], bool]) -> tuple[bool, Sequence[str]]:
    answer, words = _one(words, accepted)
    while words and words[0] == "AND":
        other, words = _one(words[1:], accepted)
        answer = answer and other
    return answer, words


def _one(words: Sequence[str], accepted: Callable[[str], bool]) -> tuple[bool, Sequence[str]]:
    if not words:
        raise LicenceError("expected a licence, got the end of an SPDX expression")
    first, *rest = words
    if first != "(":
        return accepted(first.replace("\0", " ")), rest
    answer, after = _any(rest, accepted)
    if not after or after[0] != ")":
        raise LicenceError("expected a closing bracket in an SPDX expression")
    return answer, after[1:]
