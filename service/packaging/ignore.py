"""`.helmignore`: which files of a chart's folder stay out of its package.

The rules are Helm's own (https://helm.sh/docs/chart_template_guide/helm_ignore_file/), which are
not git's: `*` does not cross a slash, `**` does not exist, a pattern without a slash is compared
with the last part of a path, and a negated pattern leaves out everything that it does not match.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from service.packaging.errors import PackageError

FILE_NAME = ".helmignore"
# Helm leaves these out whatever the file says.
_ALWAYS = "templates/.?*"


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    """One line.

    Attributes:
        pattern: What to compare with.
        whole_path: Whether it is compared with the whole path, and not with its last part.
        folders_only: Whether it holds for folders alone.
        negated: Whether what it does not match is left out.
    """

    pattern: re.Pattern[str]
    whole_path: bool
    folders_only: bool
    negated: bool

    def leaves_out(self, path: PurePosixPath, *, is_folder: bool) -> bool:
        """Whether this line leaves out a file or a folder."""
        if self.folders_only and not is_folder:
            return self.negated
        compared = str(path) if self.whole_path else path.name
        return (self.pattern.fullmatch(compared) is None) is self.negated


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """All lines of a `.helmignore`, and what Helm adds."""

    rules: tuple[IgnoreRule, ...]

    def leaves_out(self, path: PurePosixPath, *, is_folder: bool = False) -> bool:
        """Whether a path, relative to the chart's folder, stays out of the package."""
        return any(rule.leaves_out(path, is_folder=is_folder) for rule in self.rules)


def ignore_rules(lines: Iterable[str]) -> IgnoreRules:
    """The rules that some lines state.

    Raises:
        PackageError: A line that Helm cannot read either.
    """
    found = [_rule(line.strip()) for line in (*lines, _ALWAYS) if _states_something(line)]
    return IgnoreRules(tuple(found))


def _states_something(line: str) -> bool:
    return bool(line.strip()) and not line.strip().startswith("#")


def _rule(line: str) -> IgnoreRule:
    if "**" in line:
        raise PackageError(
            f"expected patterns without ** in {FILE_NAME}, got {line!r}; Helm knows no such "
            "pattern, write one line for each level"
        )
    negated = line.startswith("!")
    text = line.removeprefix("!")
    folders_only = text.endswith("/")
    text = text.removesuffix("/")
    return IgnoreRule(_pattern(text.removeprefix("/"), line), "/" in text, folders_only, negated)


def _pattern(glob: str, line: str) -> re.Pattern[str]:
    """A shell pattern as Go reads it (`path/filepath.Match`)."""
    translated = re.sub(
        r"\\(?P<escaped>.)|(?P<star>\*)|(?P<any>\?)|(?P<set>\[\^?(?:\\.|[^\]\\])+\])|(?P<plain>.)",
        _translate,
        glob,
    )
    try:
        return re.compile(translated)
    except re.error as error:
        raise PackageError(f"expected a pattern in {FILE_NAME}, got {line!r}: {error}") from error


def _translate(found: re.Match[str]) -> str:
    if found["star"]:
        return "[^/]*"
    if found["any"]:
        return "[^/]"
    return found["set"] or re.escape(found["escaped"] or found["plain"])
