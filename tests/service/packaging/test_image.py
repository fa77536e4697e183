from __future__ import annotations

import pytest

from service.packaging.errors import PackageError
from service.packaging.image import ImageReference, image_reference

DIGEST = "sha256:" + "ab" * 32


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rancast:1", ImageReference("", "rancast", "1", "")),
        ("ran/rancast:1", ImageReference("", "ran/rancast", "1", "")),
        ("localhost/rancast:1", ImageReference("localhost", "rancast", "1", "")),
        ("host:5000/rancast:1", ImageReference("host:5000", "rancast", "1", "")),
        ("ghcr.io/a/b:1.0-x_y", ImageReference("ghcr.io", "a/b", "1.0-x_y", "")),
        (f"ghcr.io/a/b@{DIGEST}", ImageReference("ghcr.io", "a/b", "", DIGEST)),
        (f"ghcr.io/a/b:1@{DIGEST}", ImageReference("ghcr.io", "a/b", "1", DIGEST)),
    ],
)
def test_parts_are_those_that_a_container_runtime_sees(text, expected):
    assert image_reference(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", "rancast", "ghcr.io/a", "Rancast:1", "a:", "a:1@sha256:ab", "a b:1", "a:1:2"),
        *("a b.c/r:1", ":/r:1", "a.b:port/r:1", "-a.b/r:1", "a.b/r:1\u00e9", "http://a.b/r:1"),
    ],
)
def test_what_no_runtime_could_pull_for_sure_is_refused(text):
    with pytest.raises(PackageError, match="with a tag or a digest"):
        image_reference(text)
