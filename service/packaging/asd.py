"""The application service descriptor: what the rApp is, and which chart it brings.

Written in TOSCA. The rApp manager reads the node template `applicationServiceDescriptor` and
nothing else of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

ENTRY_FILE = "Definitions/asd.yaml"
TYPES_FILE = "Definitions/asd_types.yaml"
TEMPLATE = "applicationServiceDescriptor"
SCHEMA_VERSION = "2.0"
ARTIFACT_TYPE = "tosca.artifacts.asd.deploymentItem"
HELM_CHART = "helm_chart"
CHART_MUSEUM = "chartmuseum"
REQUIRED = (
    "descriptor_id",
    "descriptor_invariant_id",
    "descriptor_version",
    "schema_version",
    "provider",
    "application_name",
    "application_version",
)
_TOSCA = "tosca_simple_yaml_1_2"
_DESCRIPTIONS = {
    "descriptor_id": "UUID of this descriptor (RFC 9562)",
    "descriptor_invariant_id": "UUID that all versions of this descriptor share",
    "descriptor_version": "Version of this descriptor",
    "schema_version": "Version of the schema that this descriptor follows",
    "function_description": "What the application does",
    "provider": "Who provides the application",
    "application_name": "Name of the application",
    "application_version": "Version of the application",
}


@dataclass(frozen=True, slots=True)
class ServiceDescriptor:
    """What an rApp is to the rApp manager.

    Attributes:
        descriptor_id: UUID of this very content.
        invariant_id: UUID of the rApp, whatever its version.
        name: Name of the rApp.
        version: Version of what is packaged.
        description: What it does.
        provider: Who provides it.
        chart_file: Path of its chart in the package.
        push_uri: Where the manager sends the chart.
    """

    descriptor_id: str
    invariant_id: str
    name: str
    version: str
    description: str
    provider: str
    chart_file: str
    push_uri: str

    def definition(self) -> bytes:
        """The file `Definitions/asd.yaml`."""
        properties = {
            "descriptor_id": self.descriptor_id,
            "descriptor_invariant_id": self.invariant_id,
            "descriptor_version": self.version,
            "schema_version": SCHEMA_VERSION,
            "function_description": self.description,
            "provider": self.provider,
            "application_name": self.name,
            "application_version": self.version,
        }
        artifact = {
            "type": ARTIFACT_TYPE,
            "file": self.chart_file,
            "properties": {
                "artifact_type": HELM_CHART,
                "target_server": CHART_MUSEUM,
                "target_server_uri": self.push_uri,
                "item_id": "1",
            },
        }
        template = {
            "type": "tosca.nodes.asd",
            "description": self.description,
            "properties": properties,
            "artifacts": {self.name: artifact},
        }
        return _yaml(
            {
                "tosca_definitions_version": _TOSCA,
                "description": f"rApp {self.name}",
                "imports": [TYPES_FILE.rpartition("/")[2]],
                "topology_template": {"node_templates": {TEMPLATE: template}},
            }
        )


def types() -> bytes:
    """The file `Definitions/asd_types.yaml`, which declares what a descriptor is made of."""
    node = {
        name: {"type": "string", "required": name in REQUIRED, "description": words}
        for name, words in _DESCRIPTIONS.items()
    }
    artifact = {
        "item_id": _required("Number of this item"),
        "artifact_type": _required("Kind of the file", HELM_CHART),
        "target_server": _required("Kind of the server that takes it", CHART_MUSEUM),
        "target_server_uri": _required("Where that server takes it"),
    }
    return _yaml(
        {
            "tosca_definitions_version": _TOSCA,
            "description": "Types of an application service descriptor",
            "node_types": {
                "tosca.nodes.asd": {
                    "derived_from": "tosca.nodes.Root",
                    "description": "An application service",
                    "version": "0.1",
                    "properties": node,
                }
            },
            "artifact_types": {
                ARTIFACT_TYPE: {
                    "derived_from": "tosca.artifacts.Root",
                    "description": "What is installed",
                    "version": "0.1",
                    "properties": artifact,
                }
            },
        }
    )


def _required(words: str, only: str | None = None) -> dict[str, Any]:
    stated: dict[str, Any] = {"type": "string", "required": True, "description": words}
    if only is not None:
        stated["constraints"] = [{"valid_values": [only]}]
    return stated


def _yaml(document: dict[str, Any]) -> bytes:
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100).encode("utf-8")
