"""The pods of a job as the cluster shows them: which, what they said, what befell them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime

from kubernetes import client
from urllib3.exceptions import MaxRetryError, ReadTimeoutError

from training.jobs.cluster.connection import TIMEOUT_SECONDS, Cluster, asking
from training.jobs.cluster.pod import RUN_ID_LABEL
from training.jobs.errors import SilentLogError

ENDED = ("Succeeded", "Failed")
INDEX_NOTE = "batch.kubernetes.io/job-completion-index"
"""Which pod of an Indexed Job it is: an annotation, and since 1.28 a label."""

LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Pods:
    """The pods of one run.

    Attributes:
        cluster: Where they are.
        run_id: Of the run.
        container: Which of their containers trains.
    """

    cluster: Cluster
    run_id: str
    container: str

    def found(self) -> tuple[client.V1Pod, ...]:
        """All of them, the oldest first.

        Raises:
            BackendError: The server refuses or cannot be reached.
        """
        return find_pods(self.cluster, f"{RUN_ID_LABEL}={self.run_id}")

    def warnings(self, kind: str, name: str) -> tuple[client.CoreV1Event, ...]:
        """What the cluster warned of an object, the last warning last.

        Raises:
            BackendError: The server refuses or cannot be reached.
        """
        return self._events(f"involvedObject.kind={kind},involvedObject.name={name},type=Warning")

    def past(self, names: str, since: datetime) -> tuple[client.CoreV1Event, ...]:
        """What the cluster said of pods, whether they are still there or not; the last of it last.

        Args:
            names: Regular expression of their names.
            since: Nothing that was said before.

        Raises:
            BackendError: The server refuses or cannot be reached.
        """
        found = self._events("involvedObject.kind=Pod")
        called = re.compile(names)
        return tuple(
            event
            for event in found
            if seen(event) >= since and called.fullmatch(event.involved_object.name or "")
        )

    def _events(self, about: str) -> tuple[client.CoreV1Event, ...]:
        with asking("list events"):
            found = self.cluster.core.list_namespaced_event(
                self.cluster.namespace, field_selector=about, _request_timeout=TIMEOUT_SECONDS
            )
            return tuple(sorted(found.items, key=seen))

    def tail(self, name: str, lines: int) -> list[str]:
        """The last lines of a pod; none where it has not begun or is gone.

        Raises:
            BackendError: The server refuses for another reason, or cannot be reached.
        """
        with asking(f"read the log of {name}", missing=name), self._log(name, lines=lines) as all_:
            return b"".join(all_).decode("utf-8", errors="replace").splitlines()

    def chunks(self, name: str, *, follow: bool, since_seconds: int | None) -> Iterator[bytes]:
        """A pod's log in pieces as they come, each line with its time stamp before it.

        Raises:
            SilentLogError: Nothing came for a while from a log that is followed.
            BackendError: The server refuses, cannot be reached, or the stream broke.
        """
        with asking(f"read the log of {name}"):
            try:
                with self._log(
                    name, follow=follow, stamped=True, since_seconds=since_seconds
                ) as pieces:
                    yield from pieces
            except (ReadTimeoutError, MaxRetryError) as error:
                # Without a line there is not even a head of the answer, and it is asked for again.
                cause = error.reason if isinstance(error, MaxRetryError) else error
                if follow and isinstance(cause, ReadTimeoutError):
                    raise SilentLogError(f"{name} says nothing") from error
                raise

    def _log(
        self,
        name: str,
        *,
        follow: bool = False,
        stamped: bool = False,
        lines: int | None = None,
        since_seconds: int | None = None,
    ) -> closing[_Pieces]:
        answer = self.cluster.core.read_namespaced_pod_log(
            name,
            self.cluster.namespace,
            container=self.container,
            follow=follow,
            timestamps=stamped,
            tail_lines=lines,
            since_seconds=since_seconds,
            _preload_content=False,
            _request_timeout=TIMEOUT_SECONDS,
        )
        return closing(_Pieces(answer))


class _Pieces:
    """A response that is read as it comes, and whose connection is given back at the end."""

    def __init__(self, response: object) -> None:
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        yield from self._response.stream(amt=None, decode_content=False)  # type: ignore[attr-defined]

    def close(self) -> None:
        """Close the connection: what it may still bring is not wanted."""
        self._response.close()  # type: ignore[attr-defined]
        self._response.release_conn()  # type: ignore[attr-defined]


def find_pods(cluster: Cluster, selector: str) -> tuple[client.V1Pod, ...]:
    """The pods that a label selector finds, the oldest first.

    Raises:
        BackendError: The server refuses or cannot be reached.
    """
    with asking("list pods"):
        found = cluster.core.list_namespaced_pod(
            cluster.namespace, label_selector=selector, _request_timeout=TIMEOUT_SECONDS
        )
        return tuple(sorted(found.items, key=lambda pod: (created(pod), name_of(pod))))


def run_of(pod: client.V1Pod) -> str:
    """The run id that a pod bears."""
    return ((pod.metadata.labels if pod.metadata else None) or {}).get(RUN_ID_LABEL, "")


def name_of(pod: client.V1Pod) -> str:
    """A pod's name."""
    return (pod.metadata.name if pod.metadata else None) or ""


def created(pod: client.V1Pod) -> datetime:
    """When a pod was made."""
    stamp = pod.metadata.creation_timestamp if pod.metadata else None
    return stamp or LONG_AGO


def phase_of(pod: client.V1Pod) -> str:
    """A pod's phase, Pending where it has none yet."""
    return (pod.status.phase if pod.status else None) or "Pending"


def index_of(pod: client.V1Pod) -> str:
    """Which pod of its job it is; "0" in jobs of one."""
    about = pod.metadata or client.V1ObjectMeta()
    notes = {**(about.annotations or {}), **(about.labels or {})}
    return str(notes.get(INDEX_NOTE, "0"))


def seen(event: client.CoreV1Event) -> datetime:
    """When an event was last seen; one that repeats may say so in a series."""
    about = event.metadata.creation_timestamp if event.metadata else None
    series = event.series.last_observed_time if event.series else None
    return series or event.last_timestamp or event.event_time or about or LONG_AGO
