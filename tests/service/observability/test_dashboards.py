"""Dashboards are ones to Grafana's own SDK, which drops every field that it does not know."""

from __future__ import annotations

import copy
import json
import re
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
    # Figures of two services in one sum would be those of neither.
    *service, pod = others
    assert not any(each["multi"] or each["includeAll"] for each in service)
    assert (pod["multi"], pod["includeAll"], pod["allValue"]) == (True, True, ".*")


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.uid)
def test_every_query_is_of_the_chosen_service_alone(board):
    for panel in board.document()["panels"]:
        for target in panel.get("targets", ()):
            selectors = re.findall(r"\{([^{}]*=[^{}]*)\}", target["expr"])
            assert selectors
            assert all('namespace="$namespace",job="$job"' in each for each in selectors)


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.uid)
def test_a_figure_is_coloured_by_limits_of_ours_and_not_by_those_that_grafana_makes_up(board):
    stats = [each for each in board.document()["panels"] if each["type"] == "stat"]
    assert stats
    for each in stats:
        steps = each["fieldConfig"]["defaults"]["thresholds"]["steps"]
        values = [step["value"] for step in steps]
        assert values[0] is None
        assert values[1:] == sorted(values[1:])
        # Without steps Grafana shows 81 cells in red.
        assert len(steps) == 3 or steps[0]["color"] == "text"


def test_losses_of_kinds_with_other_units_are_not_summed():
    for panel in BOARDS[1].document()["panels"]:
        for target in panel.get("targets", ()):
            if "quantile_loss_total" in target["expr"]:
                groups = re.findall(r"sum by \(([^)]*)\)", target["expr"])
                assert groups
                assert all("kpi_kind" in each for each in groups)


def test_the_first_figure_of_the_forecasts_says_whether_they_are_as_sure_as_they_should_be():
    first = BOARDS[1].document()["panels"][1]
    assert first["gridPos"] == {"h": 4, "w": 4, "x": 0, "y": 1}
    steps = first["fieldConfig"]["defaults"]["thresholds"]["steps"]
    assert steps[2] == {"value": Thresholds().coverage_difference, "color": "red"}


def test_what_should_be_is_dashed():
    panels = BOARDS[1].document()["panels"]
    (panel,) = [each for each in panels if each["title"] == "Coverage of a day"]
    (override,) = panel["fieldConfig"]["overrides"]
    (name,) = [each["refId"] for each in panel["targets"] if "nominal" in each["legendFormat"]]
    assert override["matcher"] == {"id": "byFrameRefID", "options": name}
    assert override["properties"][0]["value"]["fill"] == "dash"


def test_a_share_below_its_objective_is_no_green():
    (in_time,) = [each for each in BOARDS[0].document()["panels"] if each["title"] == "In time"]
    steps = in_time["fieldConfig"]["defaults"]["thresholds"]["steps"]
    assert [step["color"] for step in steps] == ["red", "yellow", "green"]
    assert steps[2]["value"] == Thresholds().in_time_ratio
    assert steps[1]["value"] == pytest.approx(0.97)


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.uid)
def test_every_series_has_a_name_and_every_column_of_numbers_a_heading(board):
    for panel in board.document()["panels"]:
        if panel["type"] == "table":
            (organized,) = panel["transformations"]
            assert organized["options"]["excludeByName"] == {"Time": True}
            assert organized["options"]["renameByName"]["Value"]
        else:
            assert all(target["legendFormat"] for target in panel.get("targets", ()))


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.uid)
def test_titles_of_a_dashboard_differ(board):
    titles = [each["title"] for each in board.document()["panels"]]
    assert len(titles) == len(set(titles))
