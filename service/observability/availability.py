"""Is the service there? Down, not ready, not scraped, restarting, failing.

An instance that is down exports nothing, so it is known by what it exported within the last day. A
service may be down by another instance than the one that was known: a new pod that never starts.
"""

from __future__ import annotations

from service.metric_families import READY, REJECTED
from service.observability.promql import INSTANCE, SERVICE, has_risen, names, number, select, total
from service.observability.rule import Alert, RuleFile, RuleGroup, Severity
from service.observability.thresholds import Thresholds


def availability_rules(thresholds: Thresholds) -> RuleFile:
    """Alerts on instances that are not there, not ready, or fail."""
    known = f"last_over_time({READY.name}[1d])"
    was_ours = f"on ({names(INSTANCE)}) {known}"
    alerts = [
        Alert(
            "RancastUnavailable",
            f"(\n  {total(READY.name)}\n"
            f"  or {total(f'last_over_time({READY.name}[1h])')} * 0\n"
            f"  or {total(f'up == 0 and on ({names(SERVICE)}) {known}')}\n) == 0",
            Severity.CRITICAL,
            "No replica of the service takes requests",
            "No replica of {{ $labels.job }} is ready; every request fails.",
            "5m",
        ),
        Alert(
            "RancastDown",
            f"up == 0\nand {was_ours}",
            Severity.WARNING,
            "A replica cannot be scraped",
            "Prometheus gets no answer from {{ $labels.instance }} of {{ $labels.job }}.",
            "5m",
        ),
        Alert(
            "RancastNotReady",
            f"{READY.name} == 0",
            Severity.WARNING,
            "A replica answers, but takes no requests",
            "{{ $labels.instance }} of {{ $labels.job }} is not ready: it still starts, or its "
            "engine has stopped. GET /readyz says why.",
            "10m",
        ),
        Alert(
            "RancastNotScraped",
            f"absent({READY.name})",
            Severity.WARNING,
            "Prometheus scrapes no instance of rancast",
            "These rules are loaded, and no instance of rancast is scraped: nothing that they "
            "watch can be seen.",
            "15m",
        ),
        Alert(
            "RancastRestarting",
            f"changes(process_start_time_seconds[1h]) >= {number(thresholds.restarts)}\n"
            f"and {was_ours}",
            Severity.WARNING,
            "A replica starts again and again",
            "{{ $labels.instance }} of {{ $labels.job }} has started {{ $value }} times within an "
            "hour.",
        ),
        Alert(
            "RancastInternalErrors",
            has_risen(select(REJECTED, 'reason=~"bug|inference"'), "15m", (*INSTANCE, "reason")),
            Severity.WARNING,
            "Requests fail inside the service",
            "{{ $labels.instance }} of {{ $labels.job }} answered well-formed requests with 500 "
            "({{ $labels.reason }}) within the last 15 minutes.",
        ),
        Alert(
            "RancastJournalFailing",
            has_risen(select(REJECTED, 'reason="storage"'), "15m", INSTANCE),
            Severity.CRITICAL,
            "Observations cannot be stored",
            "{{ $labels.instance }} of {{ $labels.job }} cannot write its journal and answers "
            "observations with 503.",
        ),
    ]
    return RuleFile("availability", [RuleGroup("rancast-availability", alerts)])
