"""A dashboard: rows of panels, and variables that say which service is looked at.

The data source is a variable, so that a dashboard works wherever it is provisioned; inputs that
only the import dialogue asks for (`${DS_PROMETHEUS}`) would leave it blank there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from service.metric_families import READY, Family
from service.observability.panel import COLUMNS, DATASOURCE, Panel

SCHEMA_VERSION = 39
"""Of Grafana 10.4; newer ones migrate it by themselves."""

SELECTED_SERVICE = 'namespace="$namespace",job="$job"'
"""Matchers of the service that is looked at, for recorded series of all its replicas together."""

SELECTED = f'{SELECTED_SERVICE},pod=~"$pod"'
"""Matchers of the replicas that are looked at."""

INTERVAL = "$__rate_interval"


def chosen(family: Family, matchers: str = "", *, part: str = "") -> str:
    """A selector of the chosen replicas' series of a family; arguments as `promql.select`."""
    others = f",{matchers}" if matchers else ""
    return f"{family.name}{part}{{{SELECTED}{others}}}"


def recorded(name: str, matchers: str = "") -> str:
    """A selector of a recorded series of the chosen service."""
    others = f",{matchers}" if matchers else ""
    return f"{name}{{{SELECTED_SERVICE}{others}}}"


@dataclass(frozen=True, slots=True)
class Row:
    """Panels under a heading; they wrap where the width is used up."""

    title: str
    panels: Sequence[Panel]


@dataclass(frozen=True, slots=True)
class Dashboard:
    """One dashboard.

    Attributes:
        uid: Its identity in Grafana, never to be changed: links hold it.
        title: Its title.
        description: What it is for.
        rows: What is on it.
        since: Begin of the shown time, as in `now-6h`.
    """

    uid: str
    title: str
    description: str
    rows: Sequence[Row]
    since: str = "now-6h"

    def document(self) -> dict[str, Any]:
        """The dashboard as Grafana's JSON."""
        return {
            "uid": self.uid,
            "title": self.title,
            "description": self.description,
            "tags": ["rancast"],
            "schemaVersion": SCHEMA_VERSION,
            "editable": True,
            "graphTooltip": 1,
            "refresh": "1m",
            "time": {"from": self.since, "to": "now"},
            "timezone": "browser",
            "templating": {"list": list(_variables())},
            "links": [
                {
                    "title": "rancast",
                    "type": "dashboards",
                    "tags": ["rancast"],
                    "asDropdown": False,
                    "keepTime": True,
                    "includeVars": True,
                    "targetBlank": False,
                    "icon": "external link",
                    "tooltip": "",
                    "url": "",
                }
            ],
            "panels": list(self._panels()),
        }

    def text(self) -> str:
        """The dashboard as the file that is provisioned."""
        return json.dumps(self.document(), indent=2, ensure_ascii=False) + "\n"

    def _panels(self) -> Iterator[dict[str, Any]]:
        number, y = 1, 0
        for row in self.rows:
            yield {
                "id": number,
                "type": "row",
                "title": row.title,
                "collapsed": False,
                "gridPos": {"h": 1, "w": COLUMNS, "x": 0, "y": y},
                "panels": [],
            }
            number, x, y, height = number + 1, 0, y + 1, 0
            for panel in row.panels:
                if x + panel.width > COLUMNS:
                    x, y, height = 0, y + height, 0
                yield panel.document(number, x, y)
                number, x, height = number + 1, x + panel.width, max(height, panel.height)
            y += height


def _variables() -> Iterator[dict[str, Any]]:
    yield {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
    }
    # One service at a time: sums and quantiles of two would be those of neither. Outside Kubernetes
    # there is no namespace; the variable is empty then, and so matches series without one.
    yield _variable("namespace", "")
    yield _variable("job", 'namespace="$namespace"')
    yield _variable("pod", SELECTED_SERVICE) | {
        "includeAll": True,
        "multi": True,
        # Outside Kubernetes there is no pod either: all has to match none as well.
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all", "selected": True},
    }


def _variable(name: str, matchers: str) -> dict[str, Any]:
    query = f"label_values({READY.name}{{{matchers}}}, {name})"
    return {
        "name": name,
        "label": name.capitalize(),
        "type": "query",
        "datasource": DATASOURCE,
        "query": {"query": query, "refId": name},
        "includeAll": False,
        "multi": False,
        "refresh": 2,
        "sort": 1,
    }
