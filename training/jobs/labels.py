"""Labels and annotations that users give to a job's objects, as the API server takes them.

The rules are those of `k8s.io/apimachinery/pkg/util/validation` and of object metadata: a key is
[PREFIX/]NAME, the prefix a DNS subdomain, the name and a label's value at most 63 characters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from training.jobs.errors import JobSpecError

OWN_PREFIX = "rancast/"
OWN_LABELS = (
    "app.kubernetes.io/name",
    "app.kubernetes.io/component",
    "app.kubernetes.io/managed-by",
)
"""By these, and by what bears the prefix, jobs and their pods are found again."""

MOST_ANNOTATION_BYTES = 262_144
"""Of all annotations of an object together, keys included."""

_PREFIX = re.compile(
    r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
)
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")

Pairs = Sequence[tuple[str, str]]


def check_labels(option: str, labels: Pairs) -> None:
    """See that these are labels, each key once.

    Args:
        option: Which gave them, as users write it.
        labels: As (key, value).

    Raises:
        JobSpecError: One is none, or is there twice.
    """
    _check_keys(option, labels)
    for key, value in labels:
        if value and not _NAME.fullmatch(value):
            raise JobSpecError(
                f"expected after {option} {key}= at most 63 letters, digits, '-', '_' and '.', "
                f"the first and the last a letter or digit, got {value!r}"
            )


def check_annotations(option: str, annotations: Pairs) -> None:
    """See that these are annotations, each key once.

    Args:
        option: Which gave them, as users write it.
        annotations: As (key, value).

    Raises:
        JobSpecError: One is none, or is there twice, or they are too long together.
    """
    _check_keys(option, annotations)
    size = sum(len(text.encode()) for pair in annotations for text in pair)
    if size > MOST_ANNOTATION_BYTES:
        raise JobSpecError(
            f"expected at most {MOST_ANNOTATION_BYTES} bytes after {option} together, got {size}"
        )


def check_not_own(option: str, pairs: Pairs) -> None:
    """See that no key is one of those by which jobs are found again.

    Raises:
        JobSpecError: One is.
    """
    for key, _ in pairs:
        if key in OWN_LABELS or key.startswith(OWN_PREFIX):
            raise JobSpecError(f"expected another key after {option}, rancast itself sets {key}")


def _check_keys(option: str, pairs: Pairs) -> None:
    keys = [key for key, _ in pairs]
    for key in keys:
        prefix, slash, name = key.rpartition("/")
        if not _NAME.fullmatch(name) or (slash and not _PREFIX.fullmatch(prefix)):
            raise JobSpecError(
                f"expected KEY=VALUE after {option}, KEY as in team or example.org/team, "
                f"got {key!r}"
            )
        if keys.count(key) > 1:
            raise JobSpecError(f"expected {key} once after {option}, got it more often")
