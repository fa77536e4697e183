"""A small chart of the shape that packages need, and real Helm to hold it to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helm import conftest as helm_conftest
from tests.helm.conftest import CHART

helm = helm_conftest.helm
each_helm = helm_conftest.each_helm

CHART_YAML = """\
# A comment that stays.
apiVersion: v2
name: cast
description: A chart
type: application
version: 1.2.3  # by hand
appVersion: "1.0.0"
"""
VALUES_YAML = """\
profile: near-rt
environment:
  appId: ""
  smeDiscoveryEndpoint: ""
fullnameOverride: ""
image: {registry: "", repository: cast, tag: "", digest: ""}
service: {port: 8080}
settings: {}
replicaCount: 1
"""
TEMPLATE = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Values.fullnameOverride | default .Release.Name }}
data:
  profile: {{ .Values.profile | quote }}
  app: {{ .Values.environment.appId | quote }}
  image: {{ with .Values.image }}{{ printf "%s/%s:%s" .registry .repository .tag | quote }}{{ end }}
  version: {{ .Chart.Version | quote }}
"""


@pytest.fixture
def our_chart() -> Path:
    """Our own chart, where it can be an xApp and an rApp."""
    return CHART


@pytest.fixture
def make_chart(tmp_path: Path) -> Callable[..., Path]:
    """Writes a chart, with more or other files by path, and returns its folder."""

    def write(files: dict[str, str] | None = None) -> Path:
        folder = tmp_path / "chart"
        content = {
            "Chart.yaml": CHART_YAML,
            "values.yaml": VALUES_YAML,
            "templates/map.yaml": TEMPLATE,
        }
        for name, text in (content | (files or {})).items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return folder

    return write
