"""The chart, installed in a real cluster: its pod starts, answers, is replaced and goes."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from tests.cluster.api import Object, at, wait_for
from tests.cluster.cluster import Cluster, unavailable
from tests.cluster.release import Release, copy_chart, find_helm

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

# Compiling would take the processors for minutes.
SMALL: Object = {"access": {"open": True}, "settings": {"threads": 1, "compiled": "off"}}
SERIES = {
    "cell": "NRCellDU=1",
    "start": "2026-11-01T00:00:00Z",
    "step_seconds": 900,
    "kpis": {"RRU.PrbTotDl": [12.0, None, 15.5, 18.0, 21.5, 20.0, 19.0, 22.0]},
}
REQUEST = {"series": [SERIES], "horizon": 4, "quantiles": [0.1, 0.5, 0.9], "budget_ms": 1000}


@pytest.fixture(scope="module")
def chart(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("chart") / "rancast"
    return copy_chart(folder, for_old_server=cluster.plane is not None)


@pytest.fixture
def release(cluster: Cluster, chart: Path, tmp_path: Path) -> Callable[[str], Release]:
    """Names a release in a namespace of its own, for the helm that is asked for."""

    def make(name: str) -> Release:
        helm = find_helm(name)
        if helm is None:
            unavailable(f"no {name} beside Python or on PATH; `make tools` fetches it")
        cluster.process_node()
        own = f"r-{secrets.token_hex(3)}"
        return Release(cluster, helm, chart, cluster.namespace(), own, tmp_path)

    return make


def with_values(values: Object, **more: object) -> Object:
    return {**values, **more}


def medians(address: str, **headers: str) -> list[float]:
    answer = httpx.post(
        f"{address}/v1/forecast", json=REQUEST, headers=headers, timeout=60, trust_env=False
    )
    assert answer.status_code == 200, answer.text
    found: list[float] = answer.json()["forecasts"][0]["kpis"]["RRU.PrbTotDl"]["0.5"]
    return found


@pytest.mark.parametrize("name", ["helm", "helm3"])
def test_release_is_installed_answers_is_upgraded_and_goes(
    release: Callable[[str], Release], name: str
) -> None:
    ours = release(name)
    ours.install(SMALL)
    first = ours.pod()
    assert len(medians(ours.address())) == 4

    ours.upgrade(with_values(SMALL, podAnnotations={"example.org/second": "yes"}))
    second = ours.pod()
    assert second["metadata"]["annotations"]["example.org/second"] == "yes"
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    assert len(medians(ours.address())) == 4

    address = ours.address()
    ours.uninstall()
    wait_for("end of its objects", lambda: not any(everything(ours)))
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{address}/healthz", trust_env=False)


def everything(ours: Release) -> list[Object]:
    """What is left of a release, in all kinds that the chart may bring."""
    kinds = {
        "v1": ["pods", "services", "configmaps", "persistentvolumeclaims", "serviceaccounts"],
        "apps/v1": ["deployments", "replicasets"],
        "rbac": ["roles", "rolebindings"],
    }
    return [each for group in kinds for kind in kinds[group] for each in ours.objects(group, kind)]


def test_service_leads_to_the_pod_while_it_is_ready(release: Callable[[str], Release]) -> None:
    ours = release("helm")
    ours.install(SMALL)
    pod = ours.pod()
    service = next(
        each
        for each in ours.objects("v1", "services")
        if any(port["name"] == "http" for port in each["spec"]["ports"])
    )
    path = at("v1", "endpoints", ours.namespace, service["metadata"]["name"])

    def addresses() -> list[str]:
        subsets = ours.cluster.api.get(path).get("subsets") or []
        return [each["ip"] for subset in subsets for each in subset.get("addresses") or []]

    wait_for("address", lambda: addresses() == [pod["status"]["podIP"]])
    ours.uninstall()


def test_journal_on_a_claim_outlives_its_pod(release: Callable[[str], Release]) -> None:
    ours = release("helm")
    values = with_values(SMALL, persistence={"enabled": True, "size": "1Gi"})
    ours.install(values)
    sent = httpx.post(
        f"{ours.address()}/v1/observations", json={"series": [SERIES]}, timeout=60, trust_env=False
    )
    assert sent.is_success, sent.text
    before = ours.pod()["metadata"]["uid"]
    ours.upgrade(with_values(values, podAnnotations={"example.org/second": "yes"}))
    assert ours.pod()["metadata"]["uid"] != before
    cells = httpx.get(f"{ours.address()}/v1/cells", timeout=60, trust_env=False)
    assert "NRCellDU=1" in cells.text
    ours.uninstall()


@pytest.mark.parametrize("name", ["helm", "helm3"])
def test_an_upgrade_turns_the_journals_claim_on_and_off(
    release: Callable[[str], Release], name: str
) -> None:
    # What is replaced by the way: a rolling update by one that ends the old pod first.
    ours = release(name)
    asleep = with_values(SMALL, replicaCount=0)

    def strategy() -> str:
        (deployment,) = ours.objects("apps/v1", "deployments")
        found: str = deployment["spec"]["strategy"]["type"]
        return found

    ours.install(asleep, wait=False)
    assert strategy() == "RollingUpdate"
    ours.upgrade(with_values(asleep, persistence={"enabled": True, "size": "1Gi"}), wait=False)
    assert strategy() == "Recreate"
    ours.upgrade(asleep, wait=False)
    assert strategy() == "RollingUpdate"
    ours.uninstall()


@pytest.mark.parametrize("name", ["helm", "helm3"])
def test_a_claim_that_is_retained_is_taken_up_again(
    release: Callable[[str], Release], name: str
) -> None:
    ours = release(name)
    asleep = with_values(SMALL, replicaCount=0)
    kept = with_values(asleep, persistence={"enabled": True, "size": "1Gi", "retain": True})

    def claim() -> str:
        (found,) = ours.objects("v1", "persistentvolumeclaims")
        uid: str = found["metadata"]["uid"]
        return uid

    ours.install(kept, wait=False)
    first = claim()
    ours.upgrade(asleep, wait=False)
    ours.upgrade(kept, wait=False)
    assert claim() == first
    ours.uninstall()
    ours.install(kept, wait=False)
    assert claim() == first
    ours.uninstall()


def test_helm_4_takes_a_release_of_helm_3_over(release: Callable[[str], Release]) -> None:
    older = release("helm3")
    asleep = with_values(SMALL, replicaCount=0)
    older.install(asleep, wait=False)
    newer = replace(older, helm=release("helm").helm)
    newer.upgrade(with_values(asleep, persistence={"enabled": True, "size": "1Gi"}), wait=False)
    newer.run("upgrade", newer.name, str(newer.chart), "--server-side=true", values=asleep)
    older.run("rollback", older.name, "1")
    older.uninstall()


def test_what_selects_the_pods_cannot_be_changed_in_place(
    release: Callable[[str], Release],
) -> None:
    ours = release("helm")
    asleep = with_values(SMALL, replicaCount=0)
    ours.install(asleep, wait=False)
    same_name = f"{ours.name}-rancast"
    values = with_values(asleep, nameOverride="other", fullnameOverride=same_name)
    answer = ours.try_run("upgrade", ours.name, str(ours.chart), values=values)
    assert "immutable" in answer.stderr
    ours.uninstall()


def test_tokens_of_a_secret_lock_the_door(release: Callable[[str], Release]) -> None:
    ours = release("helm")
    token = secrets.token_urlsafe(32)
    ours.cluster.api.create(
        at("v1", "secrets", ours.namespace),
        {"metadata": {"name": "callers"}, "stringData": {"tokens": f"tester read {token}\n"}},
    )
    ours.install(with_values(SMALL, access={"open": False, "tokenSecret": "callers"}))
    address = ours.address()
    refused = httpx.post(f"{address}/v1/forecast", json=REQUEST, timeout=60, trust_env=False)
    assert refused.status_code == 401
    assert len(medians(address, Authorization=f"Bearer {token}")) == 4
    ours.uninstall()
