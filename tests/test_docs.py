"""The documentation is true: commands exist, options exist, examples load."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

import rancast
from kpi.catalogue import KpiKind, load_catalogue

REPOSITORY = Path(__file__).resolve().parent.parent
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
CALL = re.compile(r"(?:^|bin/)rancast (\w+)(?: (\w+))?(.*)$", re.MULTILINE)


def blocks(page: Path, language: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return [body for found, body in BLOCK.findall(text) if found == language]


def manifests(page: Path, kind: str | None = None) -> list[dict[str, Any]]:
    """Objects of Kubernetes that a page shows, or those of a kind."""
    found = [each for body in blocks(page, "yaml") for each in yaml.safe_load_all(body)]
    return [each for each in found if kind is None or each["kind"] == kind]


def commands() -> dict[str, set[str]]:
    """Options of each command by its name; of a command in a group by both names."""
    found = {}
    group = typer.main.get_command(rancast.app)
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        found[name] = options(command)
        inner = getattr(command, "commands", {})
        found |= {f"{name} {each}": options(inner[each]) for each in inner}
    return found


def options(command: Any) -> set[str]:
    return {
        option
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    }


def calls(block: str) -> Iterator[tuple[str, str, str]]:
    """Commands of a block, the word after each, and the rest; a job runs a command of its own."""
    for command, word, after in CALL.findall(block.replace("\\\n", " ")):
        own, _, inner = after.partition(" -- ")
        yield command, word, own
        if inner:
            name, _, rest = inner.strip().partition(" ")
            yield name, "", rest


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_and_option_in_a_page_exists(page):
    known = commands()
    for block in blocks(page, "sh"):
        for command, word, rest in calls(block):
            assert command in known, f"rancast {command}"
            in_group = any(name.startswith(f"{command} ") for name in known)
            called = f"{command} {word}" if in_group else command
            assert called in known, f"rancast {called}"
            unknown = set(re.findall(r"--[a-z-]+", rest)) - known[called]
            assert not unknown, f"rancast {called} has no {unknown}"


def test_the_readme_lists_every_command():
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"`rancast \w+`", text))
    assert {f"`rancast {name.partition(' ')[0]}`" for name in commands()} <= listed


def test_the_example_catalogue_loads(tmp_path):
    (example,) = blocks(REPOSITORY / "docs" / "files.md", "toml")
    path = tmp_path / "mine.toml"
    path.write_text(example, encoding="utf-8")
    catalogue = load_catalogue([path])
    assert catalogue.resolve("bh_mbps").name == "Site.Backhaul"
    assert catalogue.resolve("bh_mbps").kind is KpiKind.RATE
    assert "DRB.MeanHoldTime" in {rule.name for rule in catalogue.derivations}
