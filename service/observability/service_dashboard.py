"""The dashboard of the service: is it in time, by which rung, and what stands in the way?"""

from __future__ import annotations

from service.metric_families import (
    BATCH_SIZE,
    BUDGET_EXCEEDED,
    BUDGET_USED,
    COMPILATIONS,
    CONNECTIONS_CLOSED,
    FORECASTS,
    INFERENCE_INFO,
    LOG_LINES_DROPPED,
    MODEL_INFO,
    MODEL_SHARE,
    QUEUE_DEPTH,
    READY,
    REJECTED,
    RELOADS,
    REQUEST_DURATION,
    RUNG_COST,
    STAGE_DURATION,
    STORE_BYTES,
    Family,
)
from service.observability.capacity import BUSY, CALLS, DEGRADED
from service.observability.dashboard import (
    INTERVAL,
    SELECTED,
    SELECTED_SERVICE,
    Dashboard,
    Row,
    chosen,
    recorded,
)
from service.observability.objectives import objectives
from service.observability.panel import Panel, PanelKind, Query, Unit
from service.observability.promql import INSTANCE, names, number
from service.observability.thresholds import Thresholds

_CALLS = chosen(REQUEST_DURATION, CALLS, part="_count")


def service_dashboard(thresholds: Thresholds) -> Dashboard:
    """Budget, rungs, queue, batches, stages, refusals and cost."""
    return Dashboard(
        uid="rancast-service",
        title="rancast / service",
        description="Is the service in time, by which rung, and what stands in the way?",
        rows=(
            Row("Overview", _overview(thresholds)),
            Row("Latency budget", _budget(thresholds)),
            Row("Rungs and cost", _rungs()),
            Row("Queue, batches and stages", _stages()),
            Row("Refusals", _refusals()),
            Row("Models and process", _process()),
        ),
    )


def _per_second(family: Family, labels: str, matchers: str = "", *, part: str = "") -> str:
    selector = chosen(family, matchers, part=part)
    return f"sum by ({labels}) (rate({selector}[{INTERVAL}]))"


def _quantile(level: float, family: Family, labels: str = "") -> str:
    by = f"le, {labels}" if labels else "le"
    return f"histogram_quantile({level}, {_per_second(family, by, part='_bucket')})"


def _mean(family: Family, labels: str) -> str:
    summed, counted = (_per_second(family, labels, part=part) for part in ("_sum", "_count"))
    return f"{summed}\n/ {counted}"


def _overview(thresholds: Thresholds) -> tuple[Panel, ...]:
    in_time, answered = objectives(thresholds)
    shares = [
        Panel(
            title,
            f"Share over the last hour; the objective is {number(100 * each.ratio)} %. Red where "
            "what it leaves is spent over 6 times too fast.",
            [Query(f"1 - {recorded(each.ratio_series('1h'))}", "{{job}}")],
            Unit.SHARE,
            PanelKind.STAT,
            width=4,
            height=5,
            floors=(each.ratio, 1 - 6 * (1 - each.ratio)),
            most=1,
        )
        for title, each in (("In time", in_time), ("Answered", answered))
    ]
    return (
        Panel(
            "Ready replicas",
            "Replicas that take requests.",
            [Query(f"sum by (job) ({chosen(READY)})", "{{job}}")],
            kind=PanelKind.STAT,
            width=4,
            height=5,
            floors=(1, 0.5),
        ),
        Panel(
            "Requests",
            "Calls of the API a second; probes and pages are not counted.",
            [Query(f"sum by (job) (rate({_CALLS}[{INTERVAL}]))", "{{job}}")],
            Unit.PER_SECOND,
            PanelKind.STAT,
            width=4,
            height=5,
        ),
        *shares,
        Panel(
            "Alerts",
            "Alerts of rancast that fire; docs/monitoring.md says what to do.",
            [
                Query(
                    "count by (severity, alertname) "
                    f'(ALERTS{{alertname=~"Rancast.+",alertstate="firing",{SELECTED_SERVICE}}})'
                )
            ],
            kind=PanelKind.TABLE,
            height=5,
            number_title="Firing",
        ),
    )


def _budget(thresholds: Thresholds) -> tuple[Panel, ...]:
    burn = [
        Query(
            f"{recorded(each.ratio_series(window))} / {number(1 - each.ratio)}",
            f"{each.name.replace('_', ' ')}, {window}",
        )
        for each in objectives(thresholds)
        for window in ("1h", "6h")
    ]
    return (
        Panel(
            "Share of the budget used",
            "Of all requests that were accepted; above 1 a request was late.",
            [
                Query(_quantile(level, BUDGET_USED), f"p{level * 100:g}")
                for level in (0.5, 0.95, 0.99)
            ],
            Unit.SHARE,
            limits=(0.8, 1),
        ),
        Panel(
            "Distribution of the share used",
            "Accepted requests a second by the share of their budget that they used.",
            [Query(_per_second(BUDGET_USED, "le", part="_bucket"), "{{le}}")],
            Unit.SHARE,
            PanelKind.HEATMAP,
        ),
        Panel(
            "Burn rate",
            "How fast the errors that the objectives leave are spent; 1 can be kept up, over "
            "14.4 in an hour or over 6 in six hours somebody is called.",
            burn,
            limits=(6, 14.4),
        ),
        Panel(
            "Budgets that ran out",
            "Requests a second with 504, by the stage that they were in.",
            [Query(_per_second(BUDGET_EXCEEDED, "stage"), "{{stage}}")],
            Unit.PER_SECOND,
            stacked=True,
        ),
        Panel(
            "Time of a request, p99",
            "By route, from arrival to the last byte.",
            [Query(_quantile(0.99, REQUEST_DURATION, "route"), "{{route}}")],
            Unit.SECONDS,
        ),
        Panel(
            "Requests by route",
            "Calls of the API a second; unmatched are refused before a route is looked for.",
            [Query(f"sum by (route) (rate({_CALLS}[{INTERVAL}]))", "{{route}}")],
            Unit.PER_SECOND,
            stacked=True,
        ),
    )


def _rungs() -> tuple[Panel, ...]:
    costs = [
        Panel(
            f"Expected cost {words}",
            f"What inference is expected to take {words}, by model and rung; the slowest replica.",
            [
                Query(
                    f"max by (model, version, rung) ({chosen(RUNG_COST, per)})",
                    "{{model}} {{version}} {{rung}}",
                )
            ],
            Unit.SECONDS,
        )
        for per, words in (
            ('per="call"', "of a call"),
            ('per="kilosample"', "of a thousand samples"),
        )
    ]
    return (
        Panel(
            "Forecasts by rung",
            "Series forecast a second, by the amount of work.",
            [Query(_per_second(FORECASTS, "rung"), "{{rung}}")],
            Unit.PER_SECOND,
            stacked=True,
        ),
        Panel(
            "Degraded forecasts",
            "Share that is not of the rung full.",
            [Query(recorded(DEGRADED), "{{job}}")],
            Unit.SHARE,
            most=1,
        ),
        Panel(
            "Forecasts by model",
            "Series forecast a second.",
            [Query(_per_second(FORECASTS, "model, version"), "{{model}} {{version}}")],
            Unit.PER_SECOND,
            stacked=True,
        ),
        *costs,
        Panel(
            "Time in the model",
            "Share of the time in which a replica's model threads work; 70 % is what can be "
            "planned with.",
            [Query(recorded(BUSY, 'pod=~"$pod"'), "{{pod}} {{instance}}")],
            Unit.SHARE,
            limits=(0.7, 0.85),
        ),
    )


def _stages() -> tuple[Panel, ...]:
    return (
        Panel(
            "Queue",
            "Windows that wait for the model or are in it.",
            [Query(f"max by (pod, instance) ({chosen(QUEUE_DEPTH)})", "{{pod}} {{instance}}")],
        ),
        Panel(
            "Windows in a call",
            "Mean size of a batch; 32 is the most.",
            [Query(_mean(BATCH_SIZE, "pod, instance"), "{{pod}} {{instance}}")],
            most=32,
        ),
        Panel(
            "Distribution of batch sizes",
            "Calls of the model a second, by the windows in them.",
            [Query(_per_second(BATCH_SIZE, "le", part="_bucket"), "{{le}}")],
            kind=PanelKind.HEATMAP,
        ),
        Panel(
            "Time in a stage, mean",
            "Of a request; stage infer: of a batch.",
            [Query(_mean(STAGE_DURATION, "stage"), "{{stage}}")],
            Unit.SECONDS,
            width=12,
            stacked=True,
        ),
        Panel(
            "Time in a stage, p99",
            "Of a request; stage infer: of a batch.",
            [Query(_quantile(0.99, STAGE_DURATION, "stage"), "{{stage}}")],
            Unit.SECONDS,
            width=12,
        ),
    )


def _refusals() -> tuple[Panel, ...]:
    return (
        Panel(
            "Errors by reason",
            "Requests a second that got an error; budget and full are refusals at the door.",
            [Query(_per_second(REJECTED, "reason"), "{{reason}}")],
            Unit.PER_SECOND,
            width=12,
            stacked=True,
        ),
        Panel(
            "Connections closed",
            "By the service itself, a second.",
            [Query(_per_second(CONNECTIONS_CLOSED, "reason"), "{{reason}}")],
            Unit.PER_SECOND,
            width=6,
        ),
        Panel(
            "Log lines dropped",
            "That nobody took in time, a second.",
            [Query(_per_second(LOG_LINES_DROPPED, "log"), "{{log}}")],
            Unit.PER_SECOND,
            width=6,
        ),
    )


def _process() -> tuple[Panel, ...]:
    def ours(expression: str) -> str:
        """Of these processes only; every exporter has figures of these names."""
        return f"{expression}\nand on ({names(INSTANCE)}) {chosen(READY)}"

    events = [
        Query(f"sum by (result) (increase({chosen(COMPILATIONS)}[1h]))", "compilation {{result}}"),
        Query(f"sum by (kind, result) (increase({chosen(RELOADS)}[1h]))", "{{kind}} {{result}}"),
    ]
    cpu = f"rate(process_cpu_seconds_total{{{SELECTED}}}[{INTERVAL}])"
    resident = f"process_resident_memory_bytes{{{SELECTED}}}"
    return (
        Panel(
            "Models in service",
            "Name, version, digest, on how many replicas.",
            [Query(f"count by (name, version, digest) ({chosen(MODEL_INFO)})")],
            kind=PanelKind.TABLE,
            width=12,
            number_title="Replicas",
        ),
        Panel(
            "How models are run",
            "Path (compiled or eager), precision and attention kernel, on how many replicas.",
            [
                Query(
                    "count by (model, version, path, precision, attention) "
                    f"({chosen(INFERENCE_INFO)})"
                )
            ],
            kind=PanelKind.TABLE,
            width=12,
            number_title="Replicas",
        ),
        Panel(
            "Who answers requests that name no model",
            "Share of the default and of the canary, over all replicas.",
            [Query(f"avg by (model, version) ({chosen(MODEL_SHARE)})", "{{model}} {{version}}")],
            Unit.SHARE,
            width=6,
            most=1,
        ),
        Panel("Compilations and reloads", "Within an hour.", events, width=6),
        Panel(
            "Processor",
            "Cores in use by a replica.",
            [Query(ours(cpu), "{{pod}} {{instance}}")],
            width=6,
        ),
        Panel(
            "Memory",
            "Resident memory of a replica, and what its store holds.",
            [
                Query(ours(resident), "{{pod}} {{instance}}"),
                Query(chosen(STORE_BYTES), "store {{pod}} {{instance}}"),
            ],
            Unit.BYTES,
            width=6,
        ),
    )
