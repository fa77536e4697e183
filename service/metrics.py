"""Every metric of the service: names, units, buckets and labels in one table.

Other modules call verbs (`observe_stage("queue", seconds)`) and never touch a counter, so that a
name or a bucket changes in one place. No label carries a cell's name: with 100,000 cells it would
make as many series of each family.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from model.inference_path import InferencePath
from model.predictor import ModelIdentity, Rung
from service.clock import Clock
from service.timestamps import age_seconds


class Stage(StrEnum):
    """Where a request spends its time."""

    DECODE = "decode"
    WINDOW = "window"
    QUEUE = "queue"
    INFER = "infer"
    ENCODE = "encode"


class Outcome(StrEnum):
    """What became of an observation.

    Accepted, expired and rejected ones are all that arrived; merged and late ones are counted
    besides.
    """

    ACCEPTED = "accepted"
    MERGED = "merged"
    LATE = "late"
    EXPIRED = "expired"
    REJECTED = "rejected"


class CompilationResult(StrEnum):
    """How an attempt to have compiled code ended."""

    CACHED = "cached"
    BUILT = "built"
    UNAVAILABLE = "unavailable"
    FAILED = "failed"


# Powers of two from half a millisecond: near-RT loops (10 ms to 1 s) get seven buckets, and a bulk
# request of the non-RT profile still has one.
SECONDS_BUCKETS = tuple(0.0005 * 2**i for i in range(16))
# Dense around 1, where a budget is met or missed.
RATIO_BUCKETS = (
    0.05,
    0.1,
    0.2,
    0.35,
    0.5,
    0.7,
    0.8,
    0.9,
    0.95,
    1.0,
    1.05,
    1.1,
    1.25,
    1.5,
    2.0,
    4.0,
)
BATCH_BUCKETS = (1, 2, 4, 8, 16, 24, 32)


@dataclass(frozen=True, slots=True)
class Family:
    """One metric family as the operator sees it."""

    name: str
    kind: str
    labels: tuple[str, ...]
    text: str
    buckets: tuple[float, ...] = ()


REQUEST_DURATION = Family(
    "rancast_request_duration_seconds",
    "histogram",
    ("route", "profile"),
    "Time from a request's arrival to the last byte of its answer.",
    SECONDS_BUCKETS,
)
BUDGET_USED = Family(
    "rancast_latency_budget_used_ratio",
    "histogram",
    ("route", "profile"),
    "Share of its latency budget that a request used; above 1 it was late.",
    RATIO_BUCKETS,
)
BUDGET_EXCEEDED = Family(
    "rancast_latency_budget_exceeded_total",
    "counter",
    ("profile", "stage"),
    "Requests whose budget ran out, by the stage they were in.",
)
STAGE_DURATION = Family(
    "rancast_stage_duration_seconds",
    "histogram",
    ("stage",),
    "Time spent in one stage of a request; stage infer counts once a batch.",
    SECONDS_BUCKETS,
)
FORECASTS = Family(
    "rancast_forecasts_total", "counter", ("rung",), "Series forecast, by the rung that answered."
)
REJECTED = Family(
    "rancast_requests_rejected_total",
    "counter",
    ("reason",),
    "Requests that got an error, by reason.",
)
BATCH_SIZE = Family(
    "rancast_batch_size", "histogram", (), "Windows in one call of the model.", BATCH_BUCKETS
)
QUEUE_DEPTH = Family(
    "rancast_queue_depth", "gauge", (), "Windows that wait for the model or are in it."
)
DATA_AGE = Family(
    "rancast_data_age_seconds",
    "gauge",
    (),
    "Time since the newest stored sample ended; absent while the store is empty.",
)
RUNG_COST = Family(
    "rancast_inference_cost_seconds",
    "gauge",
    ("rung", "per"),
    "What inference is expected to take, by rung: per call, and per thousand samples in it.",
)
MODEL_INFO = Family(
    "rancast_model_info",
    "gauge",
    ("name", "version", "digest"),
    "The model that answers; always 1.",
)
INFERENCE_INFO = Family(
    "rancast_inference_info",
    "gauge",
    ("path", "precision", "attention"),
    "How the model is run: path (eager, compiled), precision of its products, and the attention "
    "kernel; always 1.",
)
COMPILATIONS = Family(
    "rancast_compilations_total",
    "counter",
    ("result",),
    "Attempts to have compiled code, by result (cached, built, unavailable, failed).",
)
INGESTED_FILES = Family(
    "rancast_ingested_files_total",
    "counter",
    ("result",),
    "Files of the watched directory, by result (ok, failed).",
)
OBSERVATIONS = Family(
    "rancast_observations_total",
    "counter",
    ("outcome",),
    "Observations that arrived: accepted, expired (older than the history) or rejected; merged "
    "(replaced a value) and late (older than the newest) are counted besides.",
)
UNKNOWN_KPIS = Family(
    "rancast_unknown_kpi_total",
    "counter",
    (),
    "KPI names that the catalogue does not hold, once per arriving batch and name.",
)
RELOADS = Family(
    "rancast_reloads_total",
    "counter",
    ("kind", "result"),
    "Files of tokens or certificates that were read again, by kind and result (ok, failed).",
)
CONNECTIONS_CLOSED = Family(
    "rancast_connections_closed_total",
    "counter",
    ("reason",),
    "Connections that the service closed by itself: full (too many), slow (no whole head in "
    "time), head_too_large.",
)
STORE_CELLS = Family("rancast_store_cells", "gauge", (), "Cells that the store holds.")
STORE_BYTES = Family(
    "rancast_store_bytes",
    "gauge",
    (),
    "Memory of the cells, period lengths and KPIs that the store holds, by its stated sizes.",
)

FAMILIES: tuple[Family, ...] = (
    REQUEST_DURATION,
    BUDGET_USED,
    BUDGET_EXCEEDED,
    STAGE_DURATION,
    FORECASTS,
    REJECTED,
    BATCH_SIZE,
    QUEUE_DEPTH,
    DATA_AGE,
    RUNG_COST,
    MODEL_INFO,
    INFERENCE_INFO,
    COMPILATIONS,
    INGESTED_FILES,
    OBSERVATIONS,
    UNKNOWN_KPIS,
    RELOADS,
    CONNECTIONS_CLOSED,
    STORE_CELLS,
    STORE_BYTES,
)


@dataclass(frozen=True, slots=True)
class StoreFigures:
    """What the metrics show of the store."""

    cells: int
    stored_bytes: int
    newest_ms: int | None


class Metrics:
    """The service's metrics in one registry.

    Args:
        registry: Where the families are registered; one a process, a fresh one a test.
        clock: Times the stages.
        profile: Value of the label `profile`.
    """

    def __init__(self, registry: CollectorRegistry, clock: Clock, profile: str) -> None:
        self._registry = registry
        self._clock = clock
        self._profile = profile
        self._request_duration = _histogram(REQUEST_DURATION, registry)
        self._budget_used = _histogram(BUDGET_USED, registry)
        self._budget_exceeded = _counter(BUDGET_EXCEEDED, registry)
        self._stage_duration = _histogram(STAGE_DURATION, registry)
        self._forecasts = _counter(FORECASTS, registry)
        self._rejected = _counter(REJECTED, registry)
        self._batch_size = _histogram(BATCH_SIZE, registry)
        self._queue_depth = _gauge(QUEUE_DEPTH, registry)
        self._rung_cost = _gauge(RUNG_COST, registry)
        self._model_info = _gauge(MODEL_INFO, registry)
        self._inference_info = _gauge(INFERENCE_INFO, registry)
        self._compilations = _counter(COMPILATIONS, registry)
        self._ingested_files = _counter(INGESTED_FILES, registry)
        self._observations = _counter(OBSERVATIONS, registry)
        self._unknown_kpis = _counter(UNKNOWN_KPIS, registry)
        self._reloads = _counter(RELOADS, registry)
        self._connections_closed = _counter(CONNECTIONS_CLOSED, registry)
        # The process's own figures (CPU time, memory, descriptors) under their usual names.
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        GCCollector(registry=registry)

    def observe_request(self, route: str, duration_s: float, budget_ms: float | None) -> None:
        """One request was answered; its budget is None on routes that have none."""
        self._request_duration.labels(route, self._profile).observe(duration_s)
        if budget_ms is not None:
            self._budget_used.labels(route, self._profile).observe(duration_s * 1000 / budget_ms)

    def observe_stage(self, stage: Stage, duration_s: float) -> None:
        """A request, or a batch, spent this long in a stage."""
        self._stage_duration.labels(stage.value).observe(duration_s)

    def count_exceeded(self, stage: str) -> None:
        """A budget ran out in this stage."""
        self._budget_exceeded.labels(self._profile, stage).inc()

    def count_forecasts(self, rungs: Iterable[Rung]) -> None:
        """Series were forecast by these rungs."""
        for rung, number in Tally(rungs).items():
            self._forecasts.labels(rung.value).inc(number)

    def count_rejected(self, reason: str) -> None:
        """A request got an error; `reason` comes from the closed list in `service.errors`."""
        self._rejected.labels(reason).inc()

    def observe_batch(self, windows: int) -> None:
        """The model was called with this many windows."""
        self._batch_size.observe(windows)

    def set_queue_depth(self, windows: int) -> None:
        """This many windows wait for the model or are in it."""
        self._queue_depth.set(windows)

    def show_cost(self, rung: Rung, *, call_s: float, work_s: float) -> None:
        """A rung is expected to take this long."""
        self._rung_cost.labels(rung.value, "call").set(call_s)
        self._rung_cost.labels(rung.value, "kilosample").set(work_s)

    def show_model(self, identity: ModelIdentity) -> None:
        """This model answers from now on."""
        self._model_info.clear()
        self._model_info.labels(identity.name, identity.version, identity.digest).set(1)

    def show_inference(self, path: InferencePath) -> None:
        """The model is run this way from now on."""
        self._inference_info.clear()
        self._inference_info.labels(path.kind.value, path.precision, path.attention).set(1)

    def count_compilation(self, result: CompilationResult) -> None:
        """An attempt to have compiled code ended."""
        self._compilations.labels(result.value).inc()

    def count_file(self, *, readable: bool) -> None:
        """A file of the watched directory was read, or could not be."""
        self._ingested_files.labels("ok" if readable else "failed").inc()

    def count_observations(self, outcome: Outcome, number: int) -> None:
        """This many observations had this outcome."""
        self._observations.labels(outcome.value).inc(number)

    def count_unknown_kpis(self, number: int) -> None:
        """A batch held this many KPI names that the catalogue does not."""
        self._unknown_kpis.inc(number)

    def count_reload(self, kind: str, *, usable: bool) -> None:
        """Files of tokens or certificates changed and were read, or could not be used."""
        self._reloads.labels(kind, "ok" if usable else "failed").inc()

    def count_closed(self, reason: str) -> None:
        """A connection was closed by the service: `full`, `slow` or `head_too_large`."""
        self._connections_closed.labels(reason).inc()

    def watch_store(self, figures: Callable[[], StoreFigures]) -> None:
        """Read the store's figures at every scrape from now on."""
        self._registry.register(_StoreCollector(figures, self._clock))

    def watch(self, collector: Collector) -> None:
        """Read this collector's figures at every scrape from now on."""
        self._registry.register(collector)

    def exposition(self) -> bytes:
        """All families in Prometheus' text format."""
        return generate_latest(self._registry)


class _StoreCollector(Collector):
    """Figures that are read, not kept: they cannot drift from the store."""

    def __init__(self, figures: Callable[[], StoreFigures], clock: Clock) -> None:
        self._figures = figures
        self._clock = clock

    def collect(self) -> Iterable[Metric]:
        figures = self._figures()
        yield GaugeMetricFamily(STORE_CELLS.name, STORE_CELLS.text, figures.cells)
        yield GaugeMetricFamily(STORE_BYTES.name, STORE_BYTES.text, figures.stored_bytes)
        if figures.newest_ms is not None:
            age_s = age_seconds(figures.newest_ms, self._clock.now_ms())
            yield GaugeMetricFamily(DATA_AGE.name, DATA_AGE.text, age_s)


def _counter(family: Family, registry: CollectorRegistry) -> Counter:
    return Counter(family.name, family.text, family.labels, registry=registry)


def _gauge(family: Family, registry: CollectorRegistry) -> Gauge:
    return Gauge(family.name, family.text, family.labels, registry=registry)


def _histogram(family: Family, registry: CollectorRegistry) -> Histogram:
    return Histogram(
        family.name, family.text, family.labels, registry=registry, buckets=family.buckets
    )
