"""Panels of a dashboard as values, and the JSON that Grafana reads.

Only what the dashboards need: time series, single figures, heat maps and tables of PromQL. The
JSON is that of Grafana 10 and newer; a test reads it with Grafana's own SDK.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from string import ascii_uppercase
from typing import Any

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
COLUMNS = 24
"""Width of a dashboard in Grafana's own unit."""


class PanelKind(StrEnum):
    """How a panel draws."""

    TIME_SERIES = "timeseries"
    STAT = "stat"
    HEATMAP = "heatmap"
    TABLE = "table"


class Unit(StrEnum):
    """Units, as Grafana calls them."""

    SECONDS = "s"
    SHARE = "percentunit"
    NUMBER = "short"
    PER_SECOND = "ops"
    BYTES = "bytes"


@dataclass(frozen=True, slots=True)
class Query:
    """One expression of a panel.

    Attributes:
        expression: PromQL; may hold Grafana's variables.
        legend: Name of each series, `{{rung}}` for example.
        dashed: Whether it is what others are to be held against.
    """

    expression: str
    legend: str = ""
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel.

    Attributes:
        title: What it shows.
        description: How to read it.
        queries: What is drawn.
        unit: Of all of it.
        kind: How it is drawn.
        width: Of the 24 columns.
        height: In Grafana's rows of about 30 pixels.
        stacked: Whether series are parts of a whole.
        limits: Ascending values from where on a figure is yellow, then red.
        floors: Descending values below which a figure is yellow, then red.
        number_title: Heading of a table's column of numbers.
        signed: Whether figures may be negative.
        most: Upper end of the axis, None where it follows the data.
    """

    title: str
    description: str
    queries: Sequence[Query]
    unit: Unit = Unit.NUMBER
    kind: PanelKind = PanelKind.TIME_SERIES
    width: int = 8
    height: int = 8
    stacked: bool = False
    limits: tuple[float, float] | None = None
    floors: tuple[float, float] | None = None
    number_title: str = "Number"
    signed: bool = False
    most: float | None = None

    def document(self, number: int, x: int, y: int) -> dict[str, Any]:
        """The panel as Grafana's JSON.

        Args:
            number: Its id in the dashboard.
            x: Column of its left edge.
            y: Row of its upper edge.
        """
        document = {
            "id": number,
            "type": self.kind.value,
            "title": self.title,
            "description": self.description,
            "datasource": DATASOURCE,
            "gridPos": {"h": self.height, "w": self.width, "x": x, "y": y},
            "targets": [
                self._target(name, query)
                for name, query in zip(ascii_uppercase, self.queries, strict=False)
            ],
            "fieldConfig": {"defaults": self._defaults(), "overrides": list(self._overrides())},
            "options": self._options(),
        }
        if self.kind is PanelKind.TABLE:
            # All rows are of one instant, and the column of their numbers has no name of its own.
            names = {"Value": self.number_title}
            shown = {"excludeByName": {"Time": True}, "indexByName": {}, "renameByName": names}
            document["transformations"] = [{"id": "organize", "options": shown}]
        return document

    def _target(self, name: str, query: Query) -> dict[str, Any]:
        target: dict[str, Any] = {
            "refId": name,
            "datasource": DATASOURCE,
            "expr": query.expression,
            "legendFormat": query.legend,
        }
        if self.kind is PanelKind.HEATMAP:
            target["format"] = "heatmap"
        elif self.kind in (PanelKind.TABLE, PanelKind.STAT):
            # What holds now, not how it came about.
            target |= {"instant": True, "range": False}
        if self.kind is PanelKind.TABLE:
            target["format"] = "table"
        return target

    def _defaults(self) -> dict[str, Any]:
        defaults: dict[str, Any] = {"unit": self.unit.value}
        if not self.signed:
            defaults["min"] = 0
        if self.most is not None:
            defaults["max"] = self.most
        if steps := self._steps():
            defaults["thresholds"] = {"mode": "absolute", "steps": steps}
        if self.kind is PanelKind.TIME_SERIES:
            custom: dict[str, Any] = {"fillOpacity": 60 if self.stacked else 5, "lineWidth": 1}
            if self.stacked:
                custom["stacking"] = {"mode": "normal", "group": "A"}
            if steps:
                custom["thresholdsStyle"] = {"mode": "line"}
            defaults["custom"] = custom
        return defaults

    def _overrides(self) -> Iterator[dict[str, Any]]:
        for name, query in zip(ascii_uppercase, self.queries, strict=False):
            if query.dashed:
                style = {"id": "custom.lineStyle", "value": {"fill": "dash", "dash": [8, 8]}}
                yield {
                    "matcher": {"id": "byFrameRefID", "options": name},
                    "properties": [style],
                }

    def _steps(self) -> list[dict[str, Any]]:
        """Colours, each from a value on."""
        if self.limits is not None:
            yellow, red = self.limits
            colours: list[tuple[float | None, str]] = [
                (None, "green"),
                (yellow, "yellow"),
                (red, "red"),
            ]
        elif self.floors is not None:
            yellow, red = self.floors
            colours = [(None, "red"), (red, "yellow"), (yellow, "green")]
        elif self.kind is PanelKind.STAT:
            # Without any, Grafana shows whatever is over 80 in red.
            colours = [(None, "text")]
        else:
            return []
        return [{"value": value, "color": colour} for value, colour in colours]

    def _options(self) -> dict[str, Any]:
        match self.kind:
            case PanelKind.TIME_SERIES:
                legend = {"displayMode": "table", "placement": "bottom", "showLegend": True}
                return {
                    "legend": {**legend, "calcs": ["mean", "max", "lastNotNull"]},
                    "tooltip": {"mode": "multi", "sort": "desc"},
                }
            case PanelKind.STAT:
                reduced = {"calcs": ["lastNotNull"], "fields": "", "values": False}
                return {"reduceOptions": reduced, "colorMode": "value", "graphMode": "none"}
            case PanelKind.HEATMAP:
                return {
                    "calculate": False,
                    "yAxis": {"unit": self.unit.value},
                    "color": {"mode": "scheme", "scheme": "Oranges", "steps": 64},
                }
            case PanelKind.TABLE:
                return {"showHeader": True}
