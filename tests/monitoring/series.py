"""What may be asked of Prometheus: the series that the service exports, and their labels.

Everything is read from the registry of a running application, so that a rule that names a family
or a label that is not there fails a test instead of never firing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric

Series = Mapping[str, frozenset[str]]

TARGET = frozenset({"job", "instance", "namespace", "pod"})
"""Labels that the scrape adds: `job` and `instance` always, the others in Kubernetes."""


@dataclass(frozen=True)
class Exported:
    """What the service exports.

    Attributes:
        labels: The labels of each series name, those of the target among them.
        buckets: Values of `le` of each histogram.
    """

    labels: Series
    buckets: Mapping[str, frozenset[str]] = field(default_factory=dict)


def exported_by(registry: CollectorRegistry) -> Exported:
    """All series that a registry can ever have."""
    labels: dict[str, frozenset[str]] = {"up": TARGET}
    buckets: dict[str, frozenset[str]] = {}
    for collector in list(registry._collector_to_names):
        for family, own in _families(collector):
            names = frozenset(own) | TARGET
            match family.type:
                case "counter":
                    labels[f"{family.name}_total"] = names
                case "histogram":
                    labels[f"{family.name}_bucket"] = names | {"le"}
                    labels[f"{family.name}_sum"] = names
                    labels[f"{family.name}_count"] = names
                    bounds = collector._upper_bounds  # type: ignore[attr-defined]
                    buckets[f"{family.name}_bucket"] = frozenset(
                        "+Inf" if bound == float("inf") else str(float(bound)) for bound in bounds
                    )
                case _:
                    labels[family.name] = names
    return Exported(labels, buckets)


def _families(collector: object) -> Iterator[tuple[Metric, tuple[str, ...]]]:
    own = getattr(collector, "_labelnames", None)
    for family in collector.collect():  # type: ignore[attr-defined]
        if own is not None:
            yield family, own
        else:
            stated = getattr(family, "_labelnames", ())
            sampled = {label for sample in family.samples for label in sample.labels}
            yield family, (*stated, *sampled)
