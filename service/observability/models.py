"""Are the right models in service, and run the fast way?"""

from __future__ import annotations

from service.metric_families import COMPILATIONS, INFERENCE_INFO, RELOADS
from service.observability.promql import INSTANCE, has_risen, names, select
from service.observability.rule import Alert, RuleFile, RuleGroup, Severity
from service.observability.thresholds import Thresholds


def models_rules(_: Thresholds) -> RuleFile:
    """Alerts on files that cannot be used, and on missing machine code."""
    eager = select(INFERENCE_INFO, 'path="eager"')
    alerts = [
        Alert(
            "RancastModelRefused",
            has_risen(select(RELOADS, 'kind="models",result="failed"'), "1h", INSTANCE),
            Severity.WARNING,
            "A checkpoint cannot be used",
            "{{ $labels.instance }} of {{ $labels.job }} refused a checkpoint within the last "
            "hour; what was in service before still answers.",
        ),
        Alert(
            "RancastReloadFailed",
            has_risen(select(RELOADS, 'kind!="models",result="failed"'), "1h", (*INSTANCE, "kind")),
            Severity.WARNING,
            "A changed file of tokens or certificates cannot be used",
            "{{ $labels.instance }} of {{ $labels.job }} could not read its {{ $labels.kind }} "
            "again within the last hour; the old ones hold.",
        ),
        Alert(
            "RancastCompiledCodeMissing",
            f"max by ({names((*INSTANCE, 'model', 'version'))}) ({eager})",
            Severity.INFO,
            "A model runs without compiled code",
            "{{ $labels.instance }} of {{ $labels.job }} runs {{ $labels.model }} "
            "{{ $labels.version }} operator by operator, which takes about twice as long.",
            "30m",
        ),
        Alert(
            "RancastCompilationFailed",
            has_risen(select(COMPILATIONS, 'result="failed"'), "1h", INSTANCE),
            Severity.WARNING,
            "A model could not be compiled",
            "{{ $labels.instance }} of {{ $labels.job }} tried to compile a model within the last "
            "hour, and failed.",
        ),
    ]
    return RuleFile("models", [RuleGroup("rancast-models", alerts)])
