from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from service.packaging.errors import PackageError
from service.packaging.ignore import ignore_rules


@pytest.mark.parametrize(
    ("line", "path", "folder", "out"),
    [
        ("*.bak", "a.bak", False, True),
        ("*.bak", "deep/a.bak", False, True),
        ("*.bak", "a.bak.yaml", False, False),
        ("ci", "ci", True, True),
        ("ci/", "ci", True, True),
        ("ci/", "ci", False, False),
        ("a/*.txt", "a/b.txt", False, True),
        ("a/*.txt", "a/b/c.txt", False, False),
        ("/only.txt", "only.txt", False, True),
        ("?.md", "a.md", False, True),
        ("?.md", "ab.md", False, False),
        ("[ab].md", "a.md", False, True),
        ("[^ab].md", "a.md", False, False),
        ("\\*.md", "*.md", False, True),
        ("\\*.md", "a.md", False, False),
        ("a.c", "abc", False, False),
        ("!keep.md", "other.md", False, True),
        ("!keep.md", "keep.md", False, False),
        ("# a comment", "# a comment", False, False),
        ("", "templates/.hidden", False, True),
        ("", "templates/shown", False, False),
    ],
)
def test_a_line_means_what_helm_makes_of_it(line, path, folder, out):
    rules = ignore_rules([line])
    assert rules.leaves_out(PurePosixPath(path), is_folder=folder) is out


@pytest.mark.parametrize("line", ["a/**", "[b-a]"])
def test_a_pattern_that_helm_cannot_read_is_refused(line):
    with pytest.raises(PackageError, match="helmignore"):
        ignore_rules([line])
