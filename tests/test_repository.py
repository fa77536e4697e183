"""The tree as a newcomer meets it: pins, front page, tasks and links all hold."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

REPOSITORY = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PIN = re.compile(r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>[A-Za-z0-9.]+)")
TEXT = {"", ".md", ".py", ".toml", ".txt", ".yaml", ".yml", ".json", ".tpl", ".html", ".js", ".css"}


def tracked_files() -> list[Path]:
    """Files that git knows, and that are there."""
    if shutil.which("git") is None or not (REPOSITORY / ".git").exists():
        pytest.skip("not a git checkout")
    answer = subprocess.run(
        ["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    paths = (REPOSITORY / name for name in answer.stdout.split("\0") if name)
    return [path for path in paths if path.is_file()]


def tracked_texts() -> Iterator[tuple[str, str]]:
    """Name and content of every tracked file that people write."""
    for path in tracked_files():
        if path.suffix in TEXT:
            yield (
                path.relative_to(REPOSITORY).as_posix(),
                path.read_text(encoding="utf-8", errors="replace"),
            )


def pins() -> dict[str, Version]:
    lines = (REPOSITORY / "constraints.txt").read_text(encoding="utf-8").splitlines()
    found: dict[str, Version] = {}
    for line in lines:
        if not line or line.startswith("#"):
            continue
        match = PIN.fullmatch(line)
        assert match, f"not NAME==VERSION: {line!r}"
        name = canonicalize_name(match["name"])
        assert name not in found, f"{name} is pinned twice"
        found[name] = Version(match["version"])
    return found


def direct_requirements() -> list[Requirement]:
    extras = PROJECT["optional-dependencies"].values()
    lines = [*PROJECT["dependencies"], *(line for extra in extras for line in extra)]
    return [Requirement(line) for line in lines]


def test_constraints_pin_every_direct_dependency_within_its_range() -> None:
    pinned = pins()
    for requirement in direct_requirements():
        version = pinned.get(canonicalize_name(requirement.name))
        assert version is not None, f"{requirement.name} is not pinned"
        assert requirement.specifier.contains(version), f"{requirement} excludes {version}"


def test_constraints_pin_what_the_dependencies_need_in_turn() -> None:
    waiting = [(requirement.name, requirement.extras) for requirement in direct_requirements()]
    seen: set[str] = set()
    while waiting:
        name, extras = waiting.pop()
        key = f"{canonicalize_name(name)}{sorted(extras)}"
        if key in seen:
            continue
        seen.add(key)
        try:
            needs: Iterable[str] = metadata.requires(name) or ()
        except metadata.PackageNotFoundError:
            continue  # an extra that is not installed here
        for need in map(Requirement, needs):
            marked = need.marker is None or any(
                need.marker.evaluate({"extra": extra}) for extra in ("", *extras)
            )
            if marked:
                waiting.append((need.name, need.extras))
    names = {key.partition("[")[0] for key in seen}
    assert sorted(names - set(pins())) == []


def test_constraints_ask_for_torch_without_a_local_version() -> None:
    # "+cpu" would make the pin unusable wherever torch comes from another index.
    assert pins()["torch"] == Version("2.13.0")


def readme() -> str:
    return (REPOSITORY / "README.md").read_text(encoding="utf-8")


def test_front_page_starts_with_the_two_commands() -> None:
    blocks = re.findall(r"^```[a-z]*\n(.*?)^```", readme(), flags=re.M | re.S)
    assert blocks, "README.md has no code block"
    commands = [line.split("#")[0].strip() for line in blocks[0].splitlines()]
    assert {"make demo", "make test"} <= set(commands)


def test_front_page_goes_on_with_a_request_that_can_be_pasted() -> None:
    blocks = re.findall(r"^```[a-z]*\n(.*?)^```", readme(), flags=re.M | re.S)
    requests = [number for number, block in enumerate(blocks) if "curl " in block]
    assert requests, "README.md shows no curl"
    assert requests[0] <= 2
    assert "127.0.0.1" in blocks[requests[0]]


def targets() -> list[str]:
    lines = (REPOSITORY / "Makefile").read_text(encoding="utf-8").splitlines()
    phony = next(line for line in lines if line.startswith(".PHONY:"))
    return phony.removeprefix(".PHONY:").split()


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not here")
def test_help_tells_every_target_in_a_line() -> None:
    answer = subprocess.run(
        ["make", "--no-print-directory", "help"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    told = re.findall(r"^  (\S+) +\S.*$", answer.stdout, flags=re.M)
    assert sorted(told) == sorted(targets())


def test_every_target_without_a_file_is_phony() -> None:
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^([a-z][a-z-]*):(?!=)", makefile, flags=re.M)) == sorted(targets())


def test_ci_runs_both_suites() -> None:
    script = REPOSITORY / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    lines = script.read_text(encoding="utf-8").splitlines()
    assert "make test" in lines
    assert "make test-cluster" in lines


def test_no_file_names_a_place_on_somebodys_machine() -> None:
    places = r"(?<![\w.$}>/~-])/(?:root|home/\w+|Users/\w+)/"
    here = [str(REPOSITORY)]
    if len(REPOSITORY.parts) > 2:
        here.append(f"{REPOSITORY.parent}/")
    pattern = re.compile("|".join([places, *map(re.escape, here)]))
    found = [
        f"{name}: {match.group()}"
        for name, text in tracked_texts()
        for match in pattern.finditer(text)
    ]
    assert found == []


def anchors(text: str) -> set[str]:
    """Anchors that headings get where Markdown is shown."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    headings = re.findall(r"^#{1,6} +(.+?) *#*$", prose, flags=re.M)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", each).lower() for each in headings)
    return {re.sub(r"[^\w\- ]", "", each).replace(" ", "-") for each in plain}


def broken_links(name: str, text: str) -> Iterator[str]:
    """Relative links of a Markdown file that lead nowhere."""
    prose = re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.M | re.S)
    for target in re.findall(r"\]\(<?([^)\s>]+)>?(?: +\"[^\"]*\")?\)", prose):
        if re.match(r"[a-z][a-z0-9+.-]*:", target):
            continue
        place, _, anchor = target.partition("#")
        path = (REPOSITORY / name).parent / place if place else REPOSITORY / name
        lost = not path.exists()
        if anchor and path.suffix == ".md" and not lost:
            lost = anchor not in anchors(path.read_text(encoding="utf-8"))
        if lost:
            yield f"{name}: {target}"


def test_links_between_documents_lead_somewhere() -> None:
    found = [
        link
        for name, text in tracked_texts()
        if name.endswith(".md")
        for link in broken_links(name, text)
    ]
    assert found == []


def test_a_broken_link_is_seen() -> None:
    text = "# One `two`, three\n[a](#one-two-three) [b](#four) [c](no.md) [d](https://a.example)"
    assert anchors(text) == {"one-two-three"}
    assert "README.md: no.md" in list(broken_links("README.md", text))
