from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.api import at
from tests.cluster.cluster import Cluster, open_cluster, unavailable


def test_what_cannot_be_had_is_skipped_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no moon"):
        unavailable("no moon")


def test_what_cannot_be_had_is_a_failure_where_all_is_to_be_tested(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match=r"no moon.*CI=true"):
        unavailable("no moon")


def test_missing_control_plane_says_how_it_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CI", "KUBECONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CONTROL_PLANE_CACHE", str(tmp_path))
    with (
        pytest.raises(pytest.skip.Exception, match=r"build_control_plane.*KUBECONFIG"),
        open_cluster(),
    ):
        pass


@pytest.mark.cluster
def test_users_own_cluster_is_used_and_our_namespaces_leave_it(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    monkeypatch.delenv("CI", raising=False)
    with open_cluster() as theirs:
        name = theirs.namespace()
        assert theirs.version == cluster.version
        with pytest.raises(pytest.skip.Exception, match="source tree"):
            theirs.process_node()
    left = cluster.api.find(at("v1", "namespaces", name=name))
    assert left is None or left["status"]["phase"] == "Terminating"


@pytest.mark.cluster
def test_each_namespace_is_a_new_one_with_an_account(cluster: Cluster) -> None:
    names = [cluster.namespace() for _ in range(2)]
    assert len(set(names)) == 2
    for name in names:
        assert cluster.token(name, "default")
