"""Panels of a dashboard as values, and the JSON that Grafana reads.

Only what the dashboards need: time series, single figures, heat maps and tables of PromQL. The
JSON is that of Grafana 10 and newer; a test reads it with Grafana's own SDK.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
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
    """

    expression: str
    legend: str = ""


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
    signed: bool = False
    most: float | None = None

    def document(self, number: int, x: int, y: int) -> dict[str, Any]:
        """The panel as Grafana's JSON.

        Args:
            number: Its id in the dashboard.
            x: Column of its left edge.
            y: Row of its upper edge.
        """
        return {
            "id": number,
            "type": self.kind.value,
            "title": self.title,
            "description": self.description,
            "datasource": DATASOURCE,
            "gridPos": {"h": self.height, "w": self.width, "x": x, "y": y},
            "targets": [self._target(index, query) for index, query in enumerate(self.queries)],
            "fieldConfig": {"defaults": self._defaults(), "overrides": []},
            "options": self._options(),
        }

    def _target(self, index: int, query: Query) -> dict[str, Any]:
        target: dict[str, Any] = {
            "refId": chr(ord("A") + index),
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
        if self.limits is not None:
            yellow, red = self.limits
            defaults["thresholds"] = {
                "mode": "absolute",
                "steps": [
                    {"value": None, "color": "green"},
                    {"value": yellow, "color": "yellow"},
                    {"value": red, "color": "red"},
                ],
            }
        if self.kind is PanelKind.TIME_SERIES:
            custom: dict[str, Any] = {"fillOpacity": 60 if self.stacked else 5, "lineWidth": 1}
            if self.stacked:
                custom["stacking"] = {"mode": "normal", "group": "A"}
            if self.limits is not None:
                custom["thresholdsStyle"] = {"mode": "line"}
            defaults["custom"] = custom
        return defaults

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
