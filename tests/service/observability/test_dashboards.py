"""Dashboards are ones to Grafana's own SDK, which drops every field that it does not know."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard as GrafanaDashboard

from service.observability.artefacts import dashboards
from service.observability.panel import COLUMNS
from service.observability.thresholds import Thresholds

BOARDS = dashboards(Thresholds())


@pytest.fixture(scope="module", autouse=True)
def panels_of_grafana() -> None:
    register_default_plugins()


def lost(sent: Any, kept: Any, path: str = "") -> Iterator[str]:
    """Paths of what Grafana does not know, or takes for something else."""
    if isinstance(sent, dict) and isinstance(kept, dict):
        for name, value in sent.items():
            if name in kept:
                yield from lost(value, kept[name], f"{path}.{name}")
            else:
                yield f"{path}.{name}"
    elif isinstance(sent, list) and isinstance(kept, list) and len(sent) == len(kept):
        for index, (each, other) in enumerate(zip(sent, kept, strict=True)):
            yield from lost(each, other, f"{path}[{index}]")
    elif sent != kept:
        yield path


def unknown_to_grafana(document: dict[str, Any]) -> list[str]:
    read = GrafanaDashboard.from_json(copy.deepcopy(document))
    return list(lost(document, json.loads(json.dumps(read, cls=JSONEncoder))))


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.uid)
def test_grafana_knows_every_field(board):
    assert unknown_to_grafana(board.document()) == []


@pytest.mark.parametrize("part", ["options", "fieldConfig", "gridPos"])
def test_a_misspelt_field_would_be_seen(part):
    document = BOARDS[0].document()
    document["panels"][1][part]["misspelt"] = 1
    assert unknown_to_grafana(document) == [f".panels[1].{part}.misspelt"]


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.uid)
def test_panels_fill_rows_and_do_not_overlap(board):
    taken: set[tuple[int, int]] = set()
    panels = board.document()["panels"]
    assert [each["id"] for each in panels] == list(range(1, len(panels) + 1))
    for each in panels:
        place = each["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken
        assert place["x"] + place["w"] <= COLUMNS
        taken |= cells
    assert all(a["gridPos"]["y"] <= b["gridPos"]["y"] for a, b in pairwise(panels))


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.uid)
def test_every_panel_says_how_to_read_it_and_takes_the_chosen_data_source(board):
    for each in board.document()["panels"]:
        if each["type"] == "row":
            continue
        assert each["title"]
        assert each["description"].endswith(".")
        assert each["targets"]
        for target in (each, *each["targets"]):
            assert target["datasource"] == {"type": "prometheus", "uid": "${datasource}"}


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.uid)
def test_the_first_variable_is_the_data_source_and_the_others_choose_replicas(board):
    first, *others = board.document()["templating"]["list"]
    assert (first["name"], first["type"]) == ("datasource", "datasource")
    assert [each["name"] for each in others] == ["namespace", "job", "pod"]
    assert all(each["allValue"] == ".*" and each["multi"] for each in others)


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.uid)
def test_titles_of_a_dashboard_differ(board):
    titles = [each["title"] for each in board.document()["panels"]]
    assert len(titles) == len(set(titles))
