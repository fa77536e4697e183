"""The way to an API server, and every answer of its that is none, in words of ours."""

from __future__ import annotations

import pytest

from training.jobs.cluster.connection import connect
from training.jobs.cluster.kubernetes import KubernetesBackend
from training.jobs.cluster.trainjob import TrainJobBackend
from training.jobs.errors import BackendError, NotAllowedError


@pytest.fixture
def backend(connected):
    return KubernetesBackend(connected(), poll_seconds=0.02)


def test_an_account_that_the_server_does_not_know_is_told(api, tmp_path, pod_job):
    cluster = connect(api.write_kubeconfig(tmp_path / "other", token="wrong"))
    with pytest.raises(NotAllowedError, match="does not know who asks"):
        KubernetesBackend(cluster).submit(pod_job)
    cluster.api.rest_client.pool_manager.clear()


def test_a_server_that_is_not_there_is_told(api, connected):
    backend = KubernetesBackend(connected())
    backend.cluster.api.configuration.retries = False
    api.close()
    with pytest.raises(BackendError, match="cannot be reached"):
        backend.list()


@pytest.mark.parametrize(
    "answer", [b'{"metadata": 3}', b'{"spec": {"template": "x"}}', b"null", b"<html>proxy</html>"]
)
def test_an_answer_that_is_none_is_an_error_of_ours(cluster, api, backend, pod_job, answer):
    cluster.idle = True
    backend.submit(pod_job)
    api.answer_instead["/apis/batch/v1/namespaces/training/jobs/rancast-one"] = answer
    with pytest.raises(BackendError, match="cannot be read"):
        backend.status("one")


@pytest.mark.parametrize("answer", [b"null", b"{}", b"[]", b"<html>proxy</html>"])
@pytest.mark.parametrize("plural", ["jobs", "pods"])
def test_a_list_that_is_none_is_an_error_of_ours(api, backend, plural, answer):
    group = "/apis/batch/v1" if plural == "jobs" else "/api/v1"
    api.answer_instead[f"{group}/namespaces/training/{plural}"] = answer
    with pytest.raises(BackendError, match="cannot be read"):
        backend.list()


@pytest.mark.parametrize("answer", [b"null", b"{}", b'{"items": [3]}', b"<html>proxy</html>"])
def test_a_list_of_trainjobs_that_is_none_is_an_error_of_ours(api, connected, answer):
    api.answer_instead["/apis/trainer.kubeflow.org/v1alpha1/namespaces/training/trainjobs"] = answer
    with pytest.raises(BackendError, match="cannot be read"):
        TrainJobBackend(connected()).list()


def test_a_kubeconfig_that_is_missing_or_lacks_the_context_is_told(api, tmp_path):
    with pytest.raises(BackendError, match="way to a cluster"):
        connect(tmp_path / "none")
    with pytest.raises(BackendError, match="no context is called other"):
        connect(api.write_kubeconfig(tmp_path / "kubeconfig"), "other")


def test_the_namespace_is_the_contexts_or_the_one_that_is_named(connected):
    assert connected().namespace == "training"
    assert connected(namespace="other").namespace == "other"


@pytest.mark.parametrize(
    "text", ["clusters: [", "", "3", "- a", "contexts: 3", "{contexts: [{name: 1}], clusters: 7}"]
)
def test_a_kubeconfig_that_is_none_is_told_in_one_line(tmp_path, text):
    file = tmp_path / "kubeconfig"
    file.write_text(text)
    with pytest.raises(BackendError, match="way to a cluster") as caught:
        connect(file)
    assert "\n" not in str(caught.value)
