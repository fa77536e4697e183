"""Write what is generated in the chart: the table of its README, the settings in its schema.

python -m tests.helm.write_chart
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.helm.chart_readme import filled
from tests.helm.settings_schema import settings_schema

CHART = Path(__file__).resolve().parents[2] / "helm" / "rancast"


def written() -> dict[Path, str]:
    """Every generated file and what it has to hold."""
    readme, schema, values = (
        CHART / name for name in ("README.md", "values.schema.json", "values.yaml")
    )
    content = json.loads(schema.read_text(encoding="utf-8"))
    content["properties"]["settings"]["properties"] = settings_schema()
    return {
        readme: filled(readme.read_text(encoding="utf-8"), values.read_text(encoding="utf-8")),
        schema: json.dumps(content, indent=2, ensure_ascii=False) + "\n",
    }


if __name__ == "__main__":
    for path, text in written().items():
        path.write_text(text, encoding="utf-8")
