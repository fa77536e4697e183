"""Bodies that are good, for every route that reads one: where a fuzzer begins."""

from __future__ import annotations

import gzip
import json
import struct
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from service.codecs.arrow_stream import ARROW_MEDIA_TYPE
from service.kserve.tensors import BINARY_MEDIA_TYPE, LENGTH_HEADER
from tests.service.codecs.arrow_bodies import EVENTS, ROWS, arrow_body, arrow_table
from tests.service.fakes import forecast_request, series

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_EVENT = {"start": "2026-11-01T09:00:00Z", "end": "2026-11-01T12:00:00Z", "kind": "match"}
_WHOLE = series(time_zone="Europe/Madrid", country="ES-CT", events=[_EVENT])

FORECAST = forecast_request(
    series=[_WHOLE, series(cell='"\\é/~')], quantiles=[0.1, 0.5], budget_ms=5000, priority="batch"
)
OBSERVATIONS = {"series": [_WHOLE, series(step_seconds=0.5)]}
# With spaces, tabs and line ends wherever JSON lets them be, and numbers of all spellings.
PADDED = (
    json.dumps(FORECAST, indent="\t").replace("12.0", "-1.25e+1 ").replace("4,", "4 \r\n,").encode()
)
_PARAMETERS = {"horizon": 2, "quantiles": [0.1, 0.9], "step_seconds": 900, "time_zone": "UTC"}
PREDICT = [
    {"instances": [[[1, 2], [3, None]]], "parameters": {**_PARAMETERS, "kpis": ["a", "b"]}},
    {"signature_name": "serving_default", "instances": [[1, None, 3], _WHOLE, [[1.5]]]},
]
INFER = {
    "id": "42",
    "parameters": {"horizon": 2, "quantiles": "0.1,0.9", "binary_data_output": False},
    "inputs": [
        {"name": "values", "datatype": "FP32", "shape": [1, 2, 2], "data": [[[1, None], [2, 3.5]]]},
        {"name": "start_ms", "datatype": "INT64", "shape": [1], "data": [1_793_534_400_000]},
        {"name": "step_seconds", "datatype": "FP64", "shape": [1], "data": [900]},
        {"name": "cell", "datatype": "BYTES", "shape": [1], "data": ["c"]},
        {"name": "kpi", "datatype": "BYTES", "shape": [2], "data": ["a", "b"]},
    ],
    "outputs": [{"name": "forecast", "parameters": {"binary_data": True}}, {"name": "kpi"}],
}
TIMESERIES = {
    "model": "fake",
    "inputs": [
        {
            "type": "univariate_time_series",
            "name": "RRU.PrbTotDl",
            "series": [12.0, None, 15.5],
            "frequency": "minute",
            "frequency_multiplier": 15,
            "start_timestamp": "2026-11-01T00:00:00Z",
            "time_zone": "Europe/Rome",
        },
        {
            "type": "multivariate_time_series",
            "name": "cell-1",
            "series": [[1, 2], [3, None]],
            "frequency": "H",
            "kpis": ["A", "B"],
            "cell": "c",
        },
    ],
    "options": {"horizon": 2, "quantiles": [0.1, 0.5], "budget_ms": 5000},
}


def _binary() -> tuple[bytes, int]:
    """Tensors as bytes behind their JSON, and the length of that."""
    raw = {
        "values": ("FP32", [1, 2, 2], struct.pack("<4f", 1, float("nan"), 2, 3)),
        "start_ms": ("INT64", [1], struct.pack("<q", 1_793_534_400_000)),
        "kpi": ("BYTES", [2], struct.pack("<I1sI2s", 1, b"a", 2, "é".encode())),
    }
    inputs = [
        {
            "name": name,
            "datatype": kind,
            "shape": shape,
            "parameters": {"binary_data_size": len(it)},
        }
        for name, (kind, shape, it) in raw.items()
    ]
    text = json.dumps({"inputs": inputs, "parameters": {"horizon": 1}}).encode()
    return text + b"".join(data for _, _, data in raw.values()), len(text)


_TABLE = arrow_table(
    [*ROWS, ("b", "A", [1.0])],
    cell=pa.array(["a", "a", "b"]).dictionary_encode(),
    time_zone=[None, "UTC", "UTC"],
    country=["ES", None, None],
    events=pa.array([[{"start": 1, "end": 2, "kind": "x"}], None, []], EVENTS),
)
_TEXT = json.dumps(FORECAST).encode()
# Large once it is unpacked: it goes other ways than a small one.
_LARGE = _TEXT[:-1] + b" " * 500_000 + b"}"


@dataclass(frozen=True)
class Target:
    """A decoder, as a client reaches it.

    Attributes:
        name: For people.
        path: The route.
        headers: Of every request.
        bodies: Good bodies.
        trees: Good bodies as JSON values, where they are JSON.
    """

    name: str
    path: str
    headers: Mapping[str, str]
    bodies: Sequence[bytes] = field(repr=False)
    trees: Sequence[Any] = field(default=(), repr=False)

    @property
    def is_binary(self) -> bool:
        """Whether its bodies are more than a text."""
        return not self.trees


def _json(name: str, path: str, *trees: Any, padded: Sequence[bytes] = ()) -> Target:
    bodies = [*(json.dumps(tree).encode() for tree in trees), *padded]
    return Target(name, path, {"content-type": "application/json"}, bodies, trees)


_ARROW = {"content-type": ARROW_MEDIA_TYPE}
_TENSORS, _TENSORS_LENGTH = _binary()
TARGETS = (
    _json("forecast", "/v1/forecast", FORECAST, padded=[PADDED]),
    _json("observations", "/v1/observations", OBSERVATIONS),
    _json("predict", "/v1/models/fake:predict", *PREDICT),
    _json("infer", "/v2/models/fake/infer", INFER),
    _json("timeseries", "/v1/timeseries/forecast", TIMESERIES),
    Target(
        "tensors",
        "/v2/models/fake/infer",
        {"content-type": BINARY_MEDIA_TYPE, LENGTH_HEADER: str(_TENSORS_LENGTH)},
        [_TENSORS],
    ),
    Target(
        "arrow_forecast",
        "/v1/forecast",
        _ARROW,
        [arrow_body(_TABLE, horizon=2), arrow_body(arrow_table(), horizon=1)],
    ),
    Target("arrow_observations", "/v1/observations", _ARROW, [arrow_body(_TABLE)]),
    *(
        Target(
            coding,
            "/v1/forecast",
            {"content-type": "application/json", "content-encoding": coding},
            [compress(_TEXT), compress(_TEXT[:99]) + compress(_TEXT[99:]), compress(_LARGE)],
        )
        for coding, compress in (("gzip", gzip.compress), ("zstd", zstd.compress))
    ),
)
