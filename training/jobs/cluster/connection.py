"""The way to a cluster's API server, and its errors in our words."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from kubernetes.config.config_exception import ConfigException
from urllib3.exceptions import HTTPError

from training.jobs.errors import BackendError, JobError, JobNotFoundError, NotAllowedError

TIMEOUT_SECONDS = (3.0, 30.0)
"""To connect, and between two reads."""

# What the client raises where the server's answer is not of the shape that it expects: no JSON,
# null in the place of an object, a number in the place of a text.
_UNREADABLE = (ValueError, TypeError, AttributeError, KeyError)

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True)
class Cluster:
    """A namespace of a cluster.

    Attributes:
        api: Client of its API server; safe to use from several threads.
        namespace: Where jobs are.
    """

    api: client.ApiClient
    namespace: str

    @cached_property
    def batch(self) -> client.BatchV1Api:
        """Jobs."""
        return client.BatchV1Api(self.api)

    @cached_property
    def core(self) -> client.CoreV1Api:
        """Pods, events, Services."""
        return client.CoreV1Api(self.api)

    @cached_property
    def custom(self) -> client.CustomObjectsApi:
        """Objects that the cluster was taught, such as TrainJobs."""
        return client.CustomObjectsApi(self.api)


def connect(
    kubeconfig: Path | None = None, context: str | None = None, namespace: str | None = None
) -> Cluster:
    """The cluster that is stated, else that of the pod we run in, else the user's usual one.

    Args:
        kubeconfig: File with the way to the cluster; None for `KUBECONFIG` or the usual place.
        context: Which one of that file; None for its current one.
        namespace: Where jobs are; None for that of the context or of the pod.

    Raises:
        BackendError: There is no usable configuration.
    """
    try:
        stated = kubeconfig is not None or context is not None or "KUBECONFIG" in os.environ
        if not stated and (_ACCOUNT / "token").exists():
            inside = client.Configuration()
            config.load_incluster_config(client_configuration=inside)
            own = (_ACCOUNT / "namespace").read_text(encoding="utf-8").strip()
            return Cluster(client.ApiClient(inside), namespace or own)
        file = None if kubeconfig is None else str(kubeconfig)
        contexts, current = config.list_kube_config_contexts(config_file=file)
        chosen = current if context is None else _named(contexts, context)
        api = config.new_client_from_config(config_file=file, context=chosen["name"])
    except (ConfigException, yaml.YAMLError, OSError, *_UNREADABLE) as error:
        said = " ".join(str(error).split())
        raise BackendError(
            f"expected the way to a cluster (--kubeconfig, KUBECONFIG, or a pod's own account), "
            f"got none that works: {said or type(error).__name__}"
        ) from error
    return Cluster(api, namespace or chosen["context"].get("namespace") or "default")


def _named(contexts: list[dict[str, Any]], name: str) -> dict[str, Any]:
    for each in contexts:
        if each["name"] == name:
            return each
    raise ConfigException(f"no context is called {name}")


@contextmanager
def asking(what: str, missing: str | None = None) -> Iterator[None]:
    """Turn what can go wrong with a request into our errors.

    Args:
        what: What was asked for, as in "list jobs".
        missing: What to say where it is not there; None to treat that as a failure like others.

    Raises:
        JobNotFoundError: It is not there.
        NotAllowedError: The server does not know who asks, or does not let him.
        BackendError: The server refuses, cannot be reached, or answers what is no answer.
    """
    try:
        yield
    except JobError:
        raise
    except ApiException as error:
        if error.status == 404 and missing is not None:
            raise JobNotFoundError(missing) from error
        refused = NotAllowedError if error.status in (401, 403) else BackendError
        raise refused(_refusal(what, error)) from error
    except HTTPError as error:
        raise BackendError(f"{what}: the API server cannot be reached: {error}") from error
    except _UNREADABLE as error:
        raise BackendError(f"{what}: the server's answer cannot be read: {error}") from error


def _refusal(what: str, error: ApiException) -> str:
    said = server_message(error)
    match error.status:
        case 401:
            return f"{what}: the API server does not know who asks; log in again ({said})"
        case 403:
            return f"{what}: not allowed; the role it takes is in docs/training-jobs.md ({said})"
        case 404:
            return f"{what}: the API server knows no such kind of object, or namespace ({said})"
    return f"{what}: the API server refuses with status {error.status}: {said}"


def server_message(error: ApiException) -> str:
    """What the server said, from its Status object where it sent one."""
    body = error.body
    if isinstance(body, bytes):
        body = body.decode("utf-8", errors="replace")
    try:
        told = json.loads(body or "")
    except ValueError:
        told = None
    if isinstance(told, dict) and isinstance(told.get("message"), str):
        return str(told["message"])
    return str(body or error.reason or "no reason given").strip()[:500]
