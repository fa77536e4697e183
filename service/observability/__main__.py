"""Writes Prometheus rules and Grafana dashboards: `python -m service.observability [--check]`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from service.observability.artefacts import CHART, differences, texts, write
from service.observability.rule import RUNBOOK
from service.observability.thresholds import ThresholdError, Thresholds


def main(arguments: list[str] | None = None) -> int:
    """Write, or compare, the generated files; 1 where they differ, 2 for a bad threshold."""
    parser = argparse.ArgumentParser(prog="python -m service.observability", description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing, say what is stale")
    parser.add_argument(
        "--output",
        type=Path,
        default=CHART,
        help="folder with rules/ and dashboards/, which hold nothing else; default: the chart's",
    )
    parser.add_argument(
        "--threshold",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="another limit; docs/monitoring.md lists them",
    )
    parser.add_argument(
        "--runbook", default=RUNBOOK, help=f"where {RUNBOOK} can be read; default: that path"
    )
    options = parser.parse_args(arguments)
    try:
        thresholds = Thresholds().changed(options.threshold)
    except ThresholdError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    wanted = texts(thresholds, options.runbook)
    changed = (
        differences(wanted, options.output) if options.check else write(wanted, options.output)
    )
    for path in changed:
        sys.stdout.write(f"{'stale' if options.check else 'written'}: {path}\n")
    return 1 if options.check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
