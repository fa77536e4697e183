"""The documentation is true: commands exist, options exist, examples load."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer

import rancast
from kpi.catalogue import KpiKind, load_catalogue

REPOSITORY = Path(__file__).resolve().parent.parent
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
CALL = re.compile(r"(?:^|/)rancast (\w+)(.*)$", re.MULTILINE)


def blocks(page: Path, language: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return [body for found, body in BLOCK.findall(text) if found == language]


def commands() -> dict[str, set[str]]:
    group = typer.main.get_command(rancast.app)
    return {
        name: {option for parameter in command.params for option in parameter.opts}
        for name, command in group.commands.items()  # type: ignore[attr-defined]
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_and_option_in_a_page_exists(page):
    known = commands()
    for block in blocks(page, "sh"):
        for command, rest in CALL.findall(block.replace("\\\n", " ")):
            assert command in known, f"rancast {command}"
            unknown = set(re.findall(r"--[a-z-]+", rest)) - known[command]
            assert not unknown, f"rancast {command} has no {unknown}"


def test_the_readme_lists_every_command():
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    assert {f"`rancast {name}`" for name in commands()} <= set(re.findall(r"`rancast \w+`", text))


def test_the_example_catalogue_loads(tmp_path):
    (example,) = blocks(REPOSITORY / "docs" / "files.md", "toml")
    path = tmp_path / "mine.toml"
    path.write_text(example, encoding="utf-8")
    catalogue = load_catalogue([path])
    assert catalogue.resolve("bh_mbps").name == "Site.Backhaul"
    assert catalogue.resolve("bh_mbps").kind is KpiKind.RATE
    assert "DRB.MeanHoldTime" in {rule.name for rule in catalogue.derivations}
