from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.pod_environment import Places, expand, quantity, resource

PLACES = Places(
    {"/data": Path("/h/1"), "/data/in": Path("/h/2"), "/tmp/": Path("/h/3")}, "127.9.0.1"
)


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("/data", "/h/1"),
        ("/data/x.csv", "/h/1/x.csv"),
        ("/data/in/x.csv", "/h/2/x.csv"),
        ("/data/input", "/h/1/input"),
        ("--out=/data/m", "--out=/h/1/m"),
        ("/data:/tmp/a", "/h/1:/h/3/a"),
        ("touch /tmp/a && ls /data", "touch /h/3/a && ls /h/1"),
        ("/database", "/database"),
        ("/data.csv", "/data.csv"),
        ("/var/data", "/var/data"),
        ("./data", "./data"),
        ("0.0.0.0:80", "127.9.0.1:80"),
        ("10.0.0.0.0", "10.0.0.0.0"),
    ],
)
def test_paths_and_address_become_those_of_the_machine(text: str, seen: str) -> None:
    assert PLACES.rewrite(text) == seen


def test_replaced_path_is_not_replaced_again() -> None:
    places = Places({"/tmp": Path("/tmp/pod/tmp"), "/tmp/pod": Path("/x")}, "127.9.0.1")
    assert places.rewrite("/tmp/a") == "/tmp/pod/tmp/a"


@pytest.mark.parametrize(
    ("text", "seen"),
    [("$(A)-$(B)", "1-$(B)"), ("$$(A)", "$(A)"), ("$A ${A}", "$A ${A}"), ("$$$(A)", "$1")],
)
def test_variables_are_put_in_as_kubernetes_does(text: str, seen: str) -> None:
    assert expand(text, {"A": "1"}) == seen


@pytest.mark.parametrize(
    ("text", "amount"), [("2", 2.0), ("250m", 0.25), ("1.5Gi", 1.5 * 2**30), ("4k", 4000.0)]
)
def test_amounts_are_read(text: str, amount: float) -> None:
    assert quantity(text) == pytest.approx(amount)


def test_what_is_no_amount_is_refused() -> None:
    with pytest.raises(ValueError, match="250m or 2Gi"):
        quantity("many")


def test_limits_are_told_in_units_of_the_divisor_rounded_up() -> None:
    container = {"resources": {"limits": {"cpu": "1500m", "memory": "1Gi"}}}
    assert resource(container, "limits.cpu", "1") == "2"
    assert resource(container, "limits.memory", "1Mi") == "1024"
    assert resource(container, "requests.cpu", "1") == "0"
