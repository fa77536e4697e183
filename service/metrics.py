"""What the service counts.

Other modules call verbs (`observe_stage("queue", seconds)`) and never touch a counter, so that a
name or a bucket changes in one place, `service.metric_families`.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Awaitable, Callable, Iterable, Mapping
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
from service.metric_families import (
    BATCH_SIZE,
    BUDGET_EXCEEDED,
    BUDGET_USED,
    COMPILATIONS,
    CONNECTIONS_CLOSED,
    DATA_AGE,
    FORECASTS,
    INFERENCE_INFO,
    INGESTED_FILES,
    LOG_LINES_DROPPED,
    MODEL_INFO,
    MODEL_SHARE,
    OBSERVATIONS,
    QUEUE_DEPTH,
    READY,
    REJECTED,
    RELOADS,
    REQUEST_DURATION,
    RUNG_COST,
    STAGE_DURATION,
    STORE_BYTES,
    STORE_CELLS,
    UNKNOWN_KPIS,
    Family,
)
from service.scrapes import Scrapes
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
        stages = _histogram(STAGE_DURATION, registry)
        # Found once: finding takes longer than counting, and each request is in five stages.
        self._stage_duration = {stage: stages.labels(stage.value) for stage in Stage}
        self._duration_by_route: dict[str, Histogram] = {}
        self._used_by_route: dict[str, Histogram] = {}
        self._forecasts = _counter(FORECASTS, registry)
        self._rejected = _counter(REJECTED, registry)
        self._rejected_by: dict[tuple[str, str], Counter] = {}
        self._batch_size = _histogram(BATCH_SIZE, registry)
        self._queue_depth = _gauge(QUEUE_DEPTH, registry)
        self._ready = _gauge(READY, registry)
        self._rung_cost = _gauge(RUNG_COST, registry)
        self._model_info = _gauge(MODEL_INFO, registry)
        self._model_share = _gauge(MODEL_SHARE, registry)
        self._inference_info = _gauge(INFERENCE_INFO, registry)
        self._compilations = _counter(COMPILATIONS, registry)
        self._ingested_files = _counter(INGESTED_FILES, registry)
        self._observations = _counter(OBSERVATIONS, registry)
        self._unknown_kpis = _counter(UNKNOWN_KPIS, registry)
        self._reloads = _counter(RELOADS, registry)
        self._connections_closed = _counter(CONNECTIONS_CLOSED, registry)
        self._log_lines_dropped = _counter(LOG_LINES_DROPPED, registry)
        self._scrapes = Scrapes(self.exposition)
        # The process's own figures (CPU time, memory, descriptors) under their usual names.
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        GCCollector(registry=registry)

    def observe_request(self, route: str, duration_s: float, budget_used: float | None) -> None:
        """One request was answered.

        Args:
            route: Template of its path.
            duration_s: From its arrival to the last byte of the answer.
            budget_used: Share of its latency budget, above 1 where it was late; None where it has
                none, was refused or failed.
        """
        duration = self._duration_by_route.get(route)
        if duration is None:
            duration = self._request_duration.labels(route, self._profile)
            self._duration_by_route[route] = duration
        duration.observe(duration_s)
        if budget_used is None:
            return
        used = self._used_by_route.get(route)
        if used is None:
            used = self._used_by_route[route] = self._budget_used.labels(route, self._profile)
        used.observe(budget_used)

    def observe_stage(self, stage: Stage, duration_s: float) -> None:
        """A request, or a batch, spent this long in a stage."""
        self._stage_duration[stage].observe(duration_s)

    def count_exceeded(self, stage: str) -> None:
        """A budget ran out in this stage."""
        self._budget_exceeded.labels(self._profile, stage).inc()

    def count_forecasts(self, model: ModelIdentity, rungs: Iterable[Rung]) -> None:
        """Series were forecast by these rungs of a model."""
        for rung, number in Tally(rungs).items():
            self._forecasts.labels(model.name, model.version, rung.value).inc(number)

    def count_rejected(self, route: str, reason: str) -> None:
        """A request got an error; `reason` comes from the closed list in `service.errors`."""
        rejected = self._rejected_by.get((route, reason))
        if rejected is None:
            rejected = self._rejected_by[route, reason] = self._rejected.labels(route, reason)
        rejected.inc()

    def observe_batch(self, windows: int) -> None:
        """The model was called with this many windows."""
        self._batch_size.observe(windows)

    def set_queue_depth(self, windows: int) -> None:
        """This many windows wait for the model or are in it."""
        self._queue_depth.set(windows)

    def show_cost(self, model: ModelIdentity, rung: Rung, *, call_s: float, work_s: float) -> None:
        """A rung of a model is expected to take this long."""
        labels = (model.name, model.version, rung.value)
        self._rung_cost.labels(*labels, "call").set(call_s)
        self._rung_cost.labels(*labels, "kilosample").set(work_s)

    def show_model(self, identity: ModelIdentity) -> None:
        """This model is served from now on."""
        self._model_info.labels(identity.name, identity.version, identity.digest).set(1)

    def show_shares(self, shares: Mapping[ModelIdentity, float]) -> None:
        """These models answer these shares of the requests that name none."""
        self._model_share.clear()
        for identity, share in shares.items():
            self._model_share.labels(identity.name, identity.version).set(share)

    def show_inference(self, model: ModelIdentity, path: InferencePath) -> None:
        """A model is run this way from now on."""
        labels = {"model": model.name, "version": model.version}
        self._inference_info.remove_by_labels(labels)
        self._inference_info.labels(
            *labels.values(), path.kind.value, path.precision, path.attention
        ).set(1)

    def hide_model(self, identity: ModelIdentity) -> None:
        """This model is served no more; what it has answered stays counted."""
        labels = {"model": identity.name, "version": identity.version}
        self._model_info.remove(identity.name, identity.version, identity.digest)
        for family in (self._rung_cost, self._inference_info):
            family.remove_by_labels(labels)

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
        """Files of this kind changed and were read, or could not be used."""
        self._reloads.labels(kind, "ok" if usable else "failed").inc()

    def count_closed(self, reason: str) -> None:
        """A connection was closed by the service, for a reason that its family lists."""
        self._connections_closed.labels(reason).inc()

    def count_dropped_lines(self, log: str, lines: int) -> None:
        """Lines of this log found no reader: `access` or `events`."""
        self._log_lines_dropped.labels(log).inc(lines)

    def watch_readiness(self, is_ready: Callable[[], bool]) -> None:
        """Ask at every scrape from now on whether requests are taken."""
        self._ready.set_function(lambda: float(is_ready()))

    def watch_store(self, figures: Callable[[], StoreFigures]) -> None:
        """Read the store's figures at every scrape from now on."""
        self._registry.register(_StoreCollector(figures, self._clock))

    def watch(self, collector: Collector, refresh: Callable[[], Awaitable[None]]) -> None:
        """Read this collector's figures at every scrape from now on.

        Args:
            collector: Reads what is there, without waiting.
            refresh: Awaited before.
        """
        self._registry.register(collector)
        self._scrapes.before(refresh)

    async def scrape(self) -> bytes:
        """As `exposition`, from the event loop, once for all who ask at a time."""
        return await self._scrapes.text()

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
