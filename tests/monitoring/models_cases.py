"""Cases of the rules on models and files that are read again."""

from __future__ import annotations

from tests.monitoring.rule_case import (
    POD_LABELS,
    WATCHED,
    Case,
    Firing,
    Series,
    Silent,
    Told,
    series,
)

WARNING = {**POD_LABELS, "severity": "warning"}


def reloads(kind: str, result: str, values: str = "_x65 1x60") -> list[Series]:
    return [WATCHED, series("rancast_reloads_total", values, f'kind="{kind}",result="{result}"')]


def compilations(result: str) -> list[Series]:
    return [WATCHED, series("rancast_compilations_total", "_x65 1x60", f'result="{result}"')]


def run_by(path: str) -> list[Series]:
    labels = 'model="rancast-small",version="1.0.0",precision="float32",attention="native"'
    return [series("rancast_inference_info", "1x60", f'{labels},path="{path}"')]


MODELS: tuple[Case, ...] = (
    Firing(
        "RancastModelRefused",
        "a checkpoint is half a file",
        reloads("models", "failed"),
        "68m",
        [
            Told(
                WARNING,
                "10.0.0.1:8080 of rancast refused a checkpoint within the last hour; what was in "
                "service before still answers.",
            )
        ],
    ),
    Silent("RancastModelRefused", "it was loaded", reloads("models", "ok"), "68m"),
    Silent("RancastModelRefused", "the tokens were", reloads("tokens", "failed"), "68m"),
    Firing(
        "RancastReloadFailed",
        "the token file has a bad line",
        reloads("tokens", "failed"),
        "68m",
        [
            Told(
                {**WARNING, "kind": "tokens"},
                "10.0.0.1:8080 of rancast could not read its tokens again within the last hour; "
                "the old ones hold.",
            )
        ],
    ),
    Silent("RancastReloadFailed", "a model was refused", reloads("models", "failed"), "68m"),
    Silent("RancastReloadFailed", "it was mended", reloads("tokens", "failed", "1x150"), "130m"),
    Firing(
        "RancastCompiledCodeMissing",
        "half an hour after the start it still runs as it is",
        run_by("eager"),
        "40m",
        [
            Told(
                {
                    **POD_LABELS,
                    "model": "rancast-small",
                    "version": "1.0.0",
                    "severity": "info",
                },
                "10.0.0.1:8080 of rancast runs rancast-small 1.0.0 operator by operator, which "
                "takes about twice as long.",
            )
        ],
    ),
    Silent("RancastCompiledCodeMissing", "it is being compiled", run_by("eager"), "20m"),
    Silent("RancastCompiledCodeMissing", "it is there", run_by("compiled"), "40m"),
    Firing(
        "RancastCompilationFailed",
        "the compiler was killed",
        compilations("failed"),
        "68m",
        [
            Told(
                WARNING,
                "10.0.0.1:8080 of rancast tried to compile a model within the last hour, and "
                "failed.",
            )
        ],
    ),
    Silent("RancastCompilationFailed", "there is no compiler", compilations("unavailable"), "68m"),
)
