"""How the rApp manager has the chart installed: ONAP's automation composition (policy-clamp).

A composition (in TOSCA, as JSON) declares the element that installs charts; an instance of it names
our chart, where it is pulled from, and the values that are set over its own.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from service.packaging.chart import Chart
from service.packaging.tokens import COMPOSITION_ID

COMPOSITION_FILE = "Files/Acm/definition/compositions.json"
INSTANCES = "Files/Acm/instances/"
ELEMENT = "onap.policy.clamp.ac.element.K8S_StarterAutomationCompositionElement"
ELEMENT_VERSION = "1.2.3"
_IDENTIFIER = "onap.datatypes.ToscaConceptIdentifier"
_ACM = "org.onap.policy.clamp.acm"
_TIMEOUT_S = 60
# Loading the image and the model.
_START_S = 300
_POLL_S = 30


@dataclass(frozen=True, slots=True)
class Release:
    """One installation of the chart.

    Attributes:
        name: Name of the Helm release.
        namespace: Where it goes.
        pull_uri: Chart repository that the Kubernetes participant pulls from.
        overrides: Values over the chart's own, by dotted name, as `helm --set` takes them.
    """

    name: str
    namespace: str
    pull_uri: str
    overrides: Mapping[str, str]


def composition() -> dict[str, Any]:
    """The definition: a participant that installs charts, and one element of it."""
    return {
        "tosca_definitions_version": "tosca_simple_yaml_1_3",
        "data_types": {
            _IDENTIFIER: {
                "derived_from": "tosca.datatypes.Root",
                "properties": {"name": _property("string"), "version": _property("string")},
            }
        },
        "node_types": _node_types(),
        "topology_template": {"node_templates": _node_templates()},
    }


def instance(chart: Chart, release: Release) -> dict[str, Any]:
    """The instance that installs a packaged chart."""
    # Its own for each release, and the same whenever the package is made again.
    element_id = str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{release.namespace}.{release.name}.element"))
    return {
        "name": f"{release.name}-instance",
        "version": "1.0.1",
        "compositionId": COMPOSITION_ID,
        "description": f"{chart.name} {chart.version} in {release.namespace}",
        "elements": {
            element_id: {
                "id": element_id,
                "definition": {"name": ELEMENT, "version": ELEMENT_VERSION},
                "description": f"Release {release.name} of the chart {chart.name}",
                "properties": {
                    "chart": {
                        "chartId": {"name": chart.name, "version": chart.version},
                        "namespace": release.namespace,
                        "releaseName": release.name,
                        "podName": release.name,
                        "repository": {"repoName": "local", "address": release.pull_uri},
                        "overrideParams": dict(release.overrides),
                    }
                },
            }
        },
    }


def _property(kind: str, *, required: bool = True, **more: Any) -> dict[str, Any]:
    return {"type": kind, "required": required, **more}


def _common(kind: str, *, required: bool = False, **more: Any) -> dict[str, Any]:
    """A property that all instances of a composition have in common."""
    return _property(kind, required=required, metadata={"common": True}, **more)


def _node_types() -> dict[str, Any]:
    provider = _property("string", required=False)
    at_least_zero = [{"greater_or_equal": 0}]
    timeout = _common("integer", constraints=at_least_zero, default=_TIMEOUT_S)
    return {
        f"{_ACM}.Participant": _node_type("tosca.nodetypes.Root", "1.0.1", provider=provider),
        f"{_ACM}.AutomationCompositionElement": _node_type(
            "tosca.nodetypes.Root",
            "1.0.1",
            provider=provider,
            participantType=_property(_IDENTIFIER),
            startPhase=_common("integer", constraints=at_least_zero),
            passiveToRunningTimeout=timeout,
            runningToPassiveTimeout=timeout,
            passiveToUninitializedTimeout=timeout,
        ),
        f"{_ACM}.AutomationComposition": _node_type(
            "tosca.nodetypes.Root",
            "1.0.1",
            provider=_common("string"),
            elements=_common("list", required=True, entry_schema={"type": _IDENTIFIER}),
        ),
        f"{_ACM}.K8SMicroserviceAutomationCompositionElement": _node_type(
            f"{_ACM}.AutomationCompositionElement",
            "1.0.0",
            chart=_property("string"),
            configs=_property("list", required=False),
            requirements=_property("string", required=False),
            templates=_property("list", required=False, entry_schema=None),
            values=_property("string"),
        ),
    }


def _node_type(base: str, version: str, **properties: Any) -> dict[str, Any]:
    return {"version": version, "derived_from": base, "properties": properties}


def _node_templates() -> dict[str, Any]:
    return {
        "org.onap.k8s.acm.K8SAutomationCompositionParticipant": {
            "version": "2.3.4",
            "type": f"{_ACM}.Participant",
            "type_version": "1.0.1",
            "description": "Installs charts",
            "properties": {"provider": "ONAP"},
        },
        ELEMENT: {
            "version": ELEMENT_VERSION,
            "type": f"{_ACM}.K8SMicroserviceAutomationCompositionElement",
            "type_version": "1.0.0",
            "description": "The chart of the rApp",
            "properties": {
                "provider": "ONAP",
                "startPhase": 0,
                "uninitializedToPassiveTimeout": _START_S,
                "podStatusCheckInterval": _POLL_S,
            },
        },
        "onap.policy.clamp.ac.element.AutomationCompositionDefinition": {
            "version": ELEMENT_VERSION,
            "type": f"{_ACM}.AutomationComposition",
            "type_version": "1.0.1",
            "description": "The rApp",
            "properties": {
                "provider": "ONAP",
                "elements": [{"name": ELEMENT, "version": ELEMENT_VERSION}],
            },
        },
    }
