"""What is looked for in the objects that the chart renders."""

from __future__ import annotations

from typing import Any


def of_kind(objects: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    found = [each for each in objects if each["kind"] == kind]
    assert len(found) == 1, [each["kind"] for each in objects]
    return found[0]


def pod(objects: list[dict[str, Any]]) -> Any:
    return of_kind(objects, "Deployment")["spec"]["template"]["spec"]


def container(objects: list[dict[str, Any]]) -> Any:
    """The service's, whatever stands beside it."""
    (own,) = (each for each in pod(objects)["containers"] if each["name"] == "rancast")
    return own


def gibibytes(quantity: str) -> float:
    """Bytes of a quantity as the chart's values write them."""
    assert quantity.endswith("Gi")
    return float(quantity.removesuffix("Gi")) * 2**30


def environment(objects: list[dict[str, Any]]) -> dict[str, str]:
    return variables(container(objects))


def variables(one: dict[str, Any]) -> dict[str, str]:
    """Environment of one container, as far as it is written there."""
    return {each["name"]: each["value"] for each in one["env"] if "value" in each}


def mounts(one: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Mounts of one container, by path."""
    return {each["mountPath"]: each for each in one["volumeMounts"]}


def volumes(spec: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Volumes of a pod, by name."""
    return {each["name"]: each for each in spec["volumes"]}


def named(objects: list[dict[str, Any]], kind: str, name: str) -> dict[str, Any]:
    """The object of that kind and name."""
    (found,) = (
        each for each in objects if (each["kind"], each["metadata"]["name"]) == (kind, name)
    )
    return found
