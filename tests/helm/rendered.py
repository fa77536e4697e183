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
    (only,) = pod(objects)["containers"]
    return only


def gibibytes(quantity: str) -> float:
    """Bytes of a quantity as the chart's values write them."""
    assert quantity.endswith("Gi")
    return float(quantity.removesuffix("Gi")) * 2**30


def environment(objects: list[dict[str, Any]]) -> dict[str, str]:
    return variables(container(objects))


def variables(one: dict[str, Any]) -> dict[str, str]:
    """Environment of one container."""
    return {each["name"]: each["value"] for each in one["env"]}
