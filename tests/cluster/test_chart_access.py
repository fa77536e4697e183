"""What the chart's own service account may do, asked of the real authorizer with its own token."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cluster.api import Api, ApiError, Object, at
from tests.cluster.cluster import Cluster, unavailable
from tests.cluster.release import Release, copy_chart, find_helm

pytestmark = pytest.mark.cluster

WITH_JOBS: Object = {"access": {"open": True}, "jobs": {"enabled": True}}

# What launching, following and cancelling a training job takes.
ALLOWED = [
    *(("batch", "jobs", verb) for verb in ("create", "get", "list", "delete")),
    ("batch", "jobs/status", "get"),
    *(("", "pods", verb) for verb in ("get", "list")),
    ("", "pods/log", "get"),
    ("", "events", "list"),
]
REFUSED = [
    *(("batch", "jobs", verb) for verb in ("update", "patch", "deletecollection")),
    ("batch", "jobs/status", "update"),
    *(("", "pods", verb) for verb in ("create", "update", "patch", "delete")),
    *(("", part, "create") for part in ("pods/exec", "pods/attach", "pods/portforward")),
    *(("", "secrets", verb) for verb in ("get", "list", "watch", "create")),
    *(("", "configmaps", verb) for verb in ("get", "list", "create")),
    *(("", "serviceaccounts", verb) for verb in ("get", "impersonate")),
    ("", "serviceaccounts/token", "create"),
    ("", "services", "create"),
    ("", "persistentvolumeclaims", "create"),
    ("apps", "deployments", "get"),
    ("rbac.authorization.k8s.io", "roles", "create"),
    ("rbac.authorization.k8s.io", "rolebindings", "create"),
]


@dataclass(frozen=True)
class Account:
    """The service account of a release.

    Attributes:
        api: A connection with its token.
        namespace: Where it may act.
        elsewhere: Another namespace.
    """

    api: Api
    namespace: str
    elsewhere: str

    def may(self, group: str, resource: str, verb: str, namespace: str | None = None) -> bool:
        """What the API server's authorizer says of the bearer of the token."""
        kind, _, part = resource.partition("/")
        attributes = {
            "namespace": self.namespace if namespace is None else namespace,
            "group": group,
            "resource": kind,
            "subresource": part,
            "verb": verb,
        }
        review = self.api.create(
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectAccessReview",
                "spec": {"resourceAttributes": attributes},
            },
        )
        return bool(review["status"]["allowed"])


@pytest.fixture(scope="module")
def account(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    """Of a release whose service may launch training jobs; its pod need not run."""
    helm = find_helm("helm")
    if helm is None:
        unavailable("no helm beside Python or on PATH; `make tools` fetches it")
    folder: Path = tmp_path_factory.mktemp("access")
    chart = copy_chart(folder / "rancast", for_old_server=cluster.plane is not None)
    name = f"r-{secrets.token_hex(3)}"
    release = Release(cluster, helm, chart, cluster.namespace(), name, folder)
    release.install(WITH_JOBS, wait=False)
    (found,) = release.objects("v1", "serviceaccounts")
    token = cluster.token(release.namespace, found["metadata"]["name"])
    api = cluster.api.with_token(token)
    yield Account(api, release.namespace, cluster.namespace())
    api.close()
    release.uninstall()


@pytest.mark.parametrize(("group", "resource", "verb"), ALLOWED)
def test_what_training_jobs_take_is_allowed(
    account: Account, group: str, resource: str, verb: str
) -> None:
    assert account.may(group, resource, verb)


@pytest.mark.parametrize(("group", "resource", "verb"), ALLOWED)
def test_nothing_is_allowed_in_another_namespace(
    account: Account, group: str, resource: str, verb: str
) -> None:
    assert not account.may(group, resource, verb, account.elsewhere)


@pytest.mark.parametrize(("group", "resource", "verb"), REFUSED)
def test_what_training_jobs_do_not_take_is_refused(
    account: Account, group: str, resource: str, verb: str
) -> None:
    assert not account.may(group, resource, verb)


def test_job_is_created_read_and_deleted_with_the_token(account: Account) -> None:
    container = {"name": "train", "image": "example/none:1", "command": ["true"]}
    job = {
        "metadata": {"name": "own"},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    }
    jobs = at("batch/v1", "jobs", account.namespace)
    account.api.create(jobs, job)
    assert account.api.get(f"{jobs}/own")["metadata"]["name"] == "own"
    with pytest.raises(ApiError, match=r"^403 Forbidden"):
        account.api.merge(f"{jobs}/own", {"spec": {"parallelism": 0}})
    account.api.delete(f"{jobs}/own", propagationPolicy="Background")


def test_jobs_of_a_namespace_of_their_own_are_allowed_there_alone(
    cluster: Cluster, tmp_path: Path
) -> None:
    helm = find_helm("helm")
    if helm is None:
        unavailable("no helm beside Python or on PATH; `make tools` fetches it")
    chart = copy_chart(tmp_path / "rancast", for_old_server=cluster.plane is not None)
    training = cluster.namespace()
    name = f"r-{secrets.token_hex(3)}"
    release = Release(cluster, helm, chart, cluster.namespace(), name, tmp_path)
    jobs = {"enabled": True, "namespace": training, "multiNode": True, "trainJobs": True}
    release.install({**WITH_JOBS, "jobs": jobs}, wait=False)
    (found,) = release.objects("v1", "serviceaccounts")
    api = cluster.api.with_token(cluster.token(release.namespace, found["metadata"]["name"]))
    account = Account(api, training, release.namespace)
    for group, resource in (
        *(("batch", "jobs"), ("", "services")),
        ("trainer.kubeflow.org", "trainjobs"),
    ):
        assert account.may(group, resource, "create")
        assert not account.may(group, resource, "create", account.elsewhere)
    assert not account.may("", "services", "delete")
    assert not account.may("", "secrets", "get")
    api.close()
    release.uninstall()


def test_secrets_are_closed_to_the_token(account: Account) -> None:
    with pytest.raises(ApiError, match=r"^403 Forbidden"):
        account.api.list(at("v1", "secrets", account.namespace))
