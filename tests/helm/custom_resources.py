"""What the chart may say in objects whose kinds Kubernetes itself does not know.

The schemas hold the fields that the chart uses or lets its users set, as the Prometheus operator's
API (monitoring.coreos.com/v1) and the Gateway API (gateway.networking.k8s.io/v1) define them, and
no others: a field that is misspelt is refused, which the operators' own models let pass.
"""

from __future__ import annotations

from typing import Any

import jsonschema_rs

_DURATION = (
    r"^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$"
)
_TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
_NAMES = {"type": "array", "items": {"type": "string", "minLength": 1}}


def _closed(required: tuple[str, ...], **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "required": list(required),
        "properties": properties,
        "additionalProperties": False,
    }


def _list(items: Any, least: int = 1) -> dict[str, Any]:
    return {"type": "array", "minItems": least, "items": items}


_DURATION_TEXT = {"type": "string", "pattern": _DURATION}
_RELABELLING = _closed(
    (),
    action={
        "enum": [
            *("replace", "keep", "drop", "hashmod", "labelmap", "labeldrop", "labelkeep"),
            *("lowercase", "uppercase", "keepequal", "dropequal"),
        ]
    },
    sourceLabels=_NAMES,
    targetLabel={"type": "string"},
    regex={"type": "string"},
    replacement={"type": "string"},
    separator={"type": "string"},
    modulus={"type": "integer"},
)
_SERVICE_MONITOR = _closed(
    ("selector", "endpoints"),
    selector=_closed((), matchLabels=_TEXTS),
    namespaceSelector=_closed((), matchNames=_NAMES, any={"type": "boolean"}),
    jobLabel={"type": "string"},
    targetLabels=_NAMES,
    endpoints=_list(
        _closed(
            ("port",),
            # A name: the number of a port belongs under targetPort.
            port={"type": "string", "minLength": 1},
            path={"type": "string", "pattern": "^/"},
            scheme={"enum": ["http", "https"]},
            tlsConfig={"type": "object"},
            authorization=_closed(
                ("credentials",),
                type={"type": "string"},
                credentials=_closed(
                    ("key",),
                    name={"type": "string"},
                    key={"type": "string"},
                    optional={"type": "boolean"},
                ),
            ),
            interval=_DURATION_TEXT,
            scrapeTimeout=_DURATION_TEXT,
            honorLabels={"type": "boolean"},
            relabelings=_list(_RELABELLING),
            metricRelabelings=_list(_RELABELLING),
        )
    ),
)
_RULE = {
    "oneOf": [
        _closed(
            ("record", "expr"), record={"type": "string"}, expr={"type": "string"}, labels=_TEXTS
        ),
        _closed(
            ("alert", "expr"),
            alert={"type": "string"},
            expr={"type": "string"},
            labels=_TEXTS,
            annotations=_TEXTS,
            **{"for": _DURATION_TEXT, "keep_firing_for": _DURATION_TEXT},
        ),
    ]
}
_PROMETHEUS_RULE = _closed(
    ("groups",),
    groups=_list(
        _closed(
            ("name", "rules"),
            name={"type": "string", "minLength": 1},
            interval=_DURATION_TEXT,
            limit={"type": "integer"},
            rules=_list(_RULE),
        )
    ),
)
_PARENT = _closed(
    ("name",),
    name={"type": "string"},
    namespace={"type": "string"},
    group={"type": "string"},
    kind={"type": "string"},
    sectionName={"type": "string"},
    port={"type": "integer"},
)
_ROUTE_RULE = _closed(
    ("backendRefs",),
    backendRefs=_list(_closed(("name", "port"), name={"type": "string"}, port={"type": "integer"})),
    matches=_list(
        _closed(
            (),
            path=_closed(
                ("type", "value"),
                type={"enum": ["Exact", "PathPrefix", "RegularExpression"]},
                value={"type": "string"},
            ),
            headers={"type": "array"},
            queryParams={"type": "array"},
            method={"type": "string"},
        )
    ),
    filters=_list({"type": "object", "required": ["type"]}),
    timeouts=_closed((), request=_DURATION_TEXT, backendRequest=_DURATION_TEXT),
)
_HTTP_ROUTE = _closed(
    ("parentRefs", "rules"),
    parentRefs=_list(_PARENT),
    hostnames=_NAMES,
    rules=_list(_ROUTE_RULE),
)

# Every kind that Kubernetes' own schemas may lack, and what its spec may hold.
SPECS = {
    ("monitoring.coreos.com/v1", "ServiceMonitor"): _SERVICE_MONITOR,
    ("monitoring.coreos.com/v1", "PrometheusRule"): _PROMETHEUS_RULE,
    ("gateway.networking.k8s.io/v1", "HTTPRoute"): _HTTP_ROUTE,
}


def is_custom(item: dict[str, Any]) -> bool:
    """Whether the object is of one of these kinds."""
    return (item["apiVersion"], item["kind"]) in SPECS


def faults(item: dict[str, Any]) -> list[str]:
    """What is wrong with such an object."""
    schema = _closed(
        ("apiVersion", "kind", "metadata", "spec"),
        apiVersion={"type": "string"},
        kind={"type": "string"},
        metadata=_closed(
            ("name", "namespace", "labels"),
            name={"type": "string"},
            namespace={"type": "string"},
            labels=_TEXTS,
            annotations=_TEXTS,
        ),
        spec=SPECS[item["apiVersion"], item["kind"]],
    )
    validator = jsonschema_rs.validator_for(schema)
    return [f"{each.instance_path}: {each.message}" for each in validator.iter_errors(item)]
