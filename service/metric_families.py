"""Metric families as the operator sees them: names, units, buckets and labels in one table.

No label carries a cell's name: with 100,000 cells it would make as many series of each family.
"""

from __future__ import annotations

from dataclasses import dataclass

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
    "Share of its latency budget that an accepted request used; above 1 it was late. What was "
    "refused or failed is not in it; what was given up (504) is, as late.",
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
    "rancast_forecasts_total",
    "counter",
    ("model", "version", "rung"),
    "Series forecast, by the model and the rung that answered.",
)
REJECTED = Family(
    "rancast_requests_rejected_total",
    "counter",
    ("route", "reason"),
    "Requests that got an error, by route (unmatched: refused before one was looked for) and "
    "reason.",
)
BATCH_SIZE = Family(
    "rancast_batch_size", "histogram", (), "Windows in one call of the model.", BATCH_BUCKETS
)
QUEUE_DEPTH = Family(
    "rancast_queue_depth", "gauge", (), "Windows that wait for the model or are in it."
)
READY = Family(
    "rancast_ready",
    "gauge",
    (),
    "Whether requests are taken: 1, or 0 before the start is over and once the service stops or "
    "cannot go on.",
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
    ("model", "version", "rung", "per"),
    "What inference is expected to take, by model and rung: per call, and per thousand samples in "
    "it.",
)
MODEL_INFO = Family(
    "rancast_model_info",
    "gauge",
    ("name", "version", "digest"),
    "Models that are served; always 1.",
)
MODEL_SHARE = Family(
    "rancast_model_share_ratio",
    "gauge",
    ("model", "version"),
    "Share of the requests that name no model which a model answers: the default's and the "
    "canary's.",
)
INFERENCE_INFO = Family(
    "rancast_inference_info",
    "gauge",
    ("model", "version", "path", "precision", "attention"),
    "How a model is run: path (eager, compiled), precision of its products, and the attention "
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
    "Files that were read while the service ran, by kind (tokens, certificates, models) and result "
    "(ok, failed).",
)
CONNECTIONS_CLOSED = Family(
    "rancast_connections_closed_total",
    "counter",
    ("reason",),
    "Connections that the service closed by itself: full (too many), slow (no whole handshake, "
    "head or rest of a request in time), unread (answers not taken in time), head_too_large (or "
    "trailers), pipelined (too many requests at once).",
)
LOG_LINES_DROPPED = Family(
    "rancast_log_lines_dropped_total",
    "counter",
    ("log",),
    "Lines that nobody took in time, by log: access (standard output), events (standard error).",
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
    READY,
    DATA_AGE,
    RUNG_COST,
    MODEL_INFO,
    MODEL_SHARE,
    INFERENCE_INFO,
    COMPILATIONS,
    INGESTED_FILES,
    OBSERVATIONS,
    UNKNOWN_KPIS,
    RELOADS,
    CONNECTIONS_CLOSED,
    LOG_LINES_DROPPED,
    STORE_CELLS,
    STORE_BYTES,
)
