"""What jobs in a cluster have in common, whichever object stands for them.

The object's conditions say whether a run has ended; pods and events say why, and logs only how far
it was. All of it is asked for anew each time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from kubernetes import client
from kubernetes.client.exceptions import ApiException

from training.jobs.backend import POLL_SECONDS, LogLine, Submission
from training.jobs.cluster import diagnosis
from training.jobs.cluster.conditions import (
    DEADLINE_EXCEEDED,
    FAILED,
    Snapshot,
    ending_problem,
    phase_of,
    suspended_problem,
)
from training.jobs.cluster.connection import Cluster, asking
from training.jobs.cluster.events import unstarted_problem
from training.jobs.cluster.follower import LogFollower
from training.jobs.cluster.pod import OURS
from training.jobs.cluster.pods import Pods, created, find_pods, index_of, name_of, run_of, seen
from training.jobs.cluster.pods import phase_of as pod_phase
from training.jobs.errors import BackendError, JobConflictError, JobError, JobNotFoundError
from training.jobs.names import check_run_id, object_name
from training.jobs.progress import last_words, progress_of
from training.jobs.spec import JobSpec
from training.jobs.status import Cause, JobStatus, Phase, Problem

SELECTOR = ",".join(f"{key}={value}" for key, value in OURS.items())
"""Finds our jobs, whoever submitted them."""

TAIL_LINES = 200
CONFLICT = 409


class ClusterBackend(ABC):
    """Jobs in a namespace of a cluster."""

    name: str
    kind: str
    container: str

    def __init__(self, cluster: Cluster, *, poll_seconds: float = POLL_SECONDS) -> None:
        """Use a cluster.

        Args:
            cluster: Where jobs run.
            poll_seconds: Between two looks at a job whose logs are followed.
        """
        self.cluster = cluster
        self.poll_seconds = poll_seconds

    @abstractmethod
    def manifests(self, spec: JobSpec) -> list[dict[str, Any]]:
        """The objects that a submit would make.

        Raises:
            JobSpecError: This backend cannot run such a job.
        """

    @abstractmethod
    def _create(self, spec: JobSpec) -> None:
        """Make the object that stands for a run; raises ApiException as the client does.

        Raises:
            BackendError: The server dropped what the run cannot do without; nothing is left there.
        """

    @abstractmethod
    def _accompany(self, spec: JobSpec, uid: str) -> None:
        """Make what a run needs besides, where it is not there yet.

        Raises ApiException as the client does, and JobConflictError where that belongs to another.
        """

    @abstractmethod
    def _read(self, name: str) -> Snapshot:
        """The object of a name; raises ApiException as the client does."""

    @abstractmethod
    def _list(self) -> Sequence[Snapshot]:
        """All objects that `SELECTOR` finds; raises ApiException as the client does."""

    @abstractmethod
    def _delete(self, name: str) -> None:
        """Remove an object after its pods; raises ApiException as the client does."""

    def _digest(self, spec: JobSpec) -> str:
        """Of everything that the object is made of but its run id."""
        return spec.digest

    def submit(self, spec: JobSpec) -> Submission:
        """See `TrainingBackend.submit`."""
        fresh = True
        with asking(f"submit {spec.run_id}"):
            try:
                self._create(spec)
            except ApiException as error:
                if error.status != CONFLICT:
                    raise
                fresh = False
        snapshot = self._snapshot(spec.run_id)
        if not fresh:
            _check_same(snapshot, spec.run_id, self._digest(spec))
        if phase_of(snapshot, ()) not in (Phase.SUCCEEDED, Phase.FAILED):
            self._complete(spec, snapshot, fresh=fresh)
        pods = self._pods(spec.run_id).found()
        return Submission(self._status(snapshot, pods, told=not fresh), fresh)

    def list(self) -> tuple[JobStatus, ...]:
        """See `TrainingBackend.list`."""
        with asking(f"list {self.kind}s"):
            found = self._list()
        pods: dict[str, list[client.V1Pod]] = {}
        for pod in find_pods(self.cluster, SELECTOR):
            pods.setdefault(run_of(pod), []).append(pod)
        jobs = [self._status(each, pods.get(each.run_id, ()), told=False) for each in found]
        return tuple(sorted(jobs, key=lambda job: job.created_at, reverse=True))

    def status(self, run_id: str) -> JobStatus:
        """See `TrainingBackend.status`."""
        snapshot = self._snapshot(run_id)
        return self._status(snapshot, self._pods(run_id).found(), told=True)

    @contextmanager
    def logs(self, run_id: str, *, follow: bool = False) -> Iterator[Iterator[LogLine]]:
        """See `TrainingBackend.logs`."""
        self._snapshot(run_id)
        follower = LogFollower(
            self._pods(run_id),
            lambda: self._over(run_id),
            follow=follow,
            poll_seconds=self.poll_seconds,
        )
        with closing(follower):
            yield iter(follower)

    def cancel(self, run_id: str) -> None:
        """See `TrainingBackend.cancel`."""
        name = object_name(check_run_id(run_id))
        with suppress(JobNotFoundError), asking(f"cancel {run_id}", missing=name):
            self._delete(name)

    def _complete(self, spec: JobSpec, snapshot: Snapshot, *, fresh: bool) -> None:
        """Make what a run needs besides its object.

        Also of a job that was there: whoever submitted it may have been killed half way.
        """
        try:
            with asking(f"submit {spec.run_id}"):
                self._accompany(spec, snapshot.uid)
        except JobError as error:
            if not fresh:
                # It may have what it needs, and days of work behind it.
                raise type(error)(f"{error}; the job that was there goes on as it was") from error
            # Without it the nodes would wait for each other until the deadline.
            with suppress(BackendError):
                self.cancel(spec.run_id)
            raise

    def _snapshot(self, run_id: str) -> Snapshot:
        name = object_name(check_run_id(run_id))
        missing = f"no job is called {run_id} in the namespace {self.cluster.namespace}"
        with asking(f"read the {self.kind} {name}", missing=missing):
            return self._read(name)

    def _over(self, run_id: str) -> bool:
        try:
            snapshot = self._snapshot(run_id)
        except JobNotFoundError:
            return True
        return phase_of(snapshot, ()) in (Phase.SUCCEEDED, Phase.FAILED)

    def _pods(self, run_id: str) -> Pods:
        return Pods(self.cluster, run_id, self.container)

    def _status(self, snapshot: Snapshot, pods: Sequence[client.V1Pod], *, told: bool) -> JobStatus:
        phase = phase_of(snapshot, [pod_phase(pod) for pod in pods])
        tail = self._tail(pods) if told else []
        return JobStatus(
            run_id=snapshot.run_id,
            backend=self.name,
            phase=phase,
            created_at=snapshot.created_at,
            started_at=snapshot.started_at,
            finished_at=snapshot.finished_at,
            failed_attempts=max(
                snapshot.failed_pods, sum(pod_phase(pod) == "Failed" for pod in pods)
            ),
            problem=self._problem(snapshot, phase, pods, tail, told=told),
            progress=progress_of(tail) if told else None,
        )

    def _problem(
        self,
        snapshot: Snapshot,
        phase: Phase,
        pods: Sequence[client.V1Pod],
        tail: Sequence[str],
        *,
        told: bool,
    ) -> Problem | None:
        if phase in (Phase.SUCCEEDED, Phase.STOPPING):
            return None
        failures = diagnosis.latest_failures(pods, self.container)
        failed = snapshot.condition(FAILED)
        if failed is not None:
            why = _in_own_words(diagnosis.worst(failures), tail)
            waited = self._waiting(pods)
            if failed.reason == DEADLINE_EXCEEDED and waited is None and told:
                waited = self._waited_in_vain(snapshot)
            return ending_problem(failed, snapshot.failed_pods, why, waited)
        if held := suspended_problem(snapshot):
            return held
        if not pods:
            name = object_name(snapshot.run_id)
            return diagnosis.not_created_problem(self._warnings(self.kind, name))
        now = datetime.now(UTC)
        leaving = [gone for pod in pods if (gone := diagnosis.leaving_problem(pod, now))]
        if stuck := diagnosis.worst(leaving) or self._waiting(pods):
            return stuck
        # The run goes on, or waits for its next turn, after an attempt that failed.
        return replace(failures[-1], lasting=False) if failures else None

    def _waiting(self, pods: Sequence[client.V1Pod]) -> Problem | None:
        now = datetime.now(UTC)
        found = [
            diagnosis.waiting_problem(pod, self.container, self._warnings("Pod", name_of(pod)), now)
            for pod in pods
            if pod_phase(pod) == "Pending"
        ]
        return diagnosis.worst([problem for problem in found if problem])

    def _waited_in_vain(self, snapshot: Snapshot) -> Problem | None:
        """What a job's pods waited for that the controller has deleted since."""
        found = list(self._warnings(self.kind, object_name(snapshot.run_id)))
        # Where events may not be read, less is told.
        with suppress(BackendError):
            found += self._pods(snapshot.run_id).past(snapshot.pod_names, snapshot.created_at)
        lately = [event for event in found if seen(event) >= snapshot.created_at]
        return unstarted_problem(lately, snapshot.finished_at)

    def _warnings(self, kind: str, name: str) -> Sequence[client.CoreV1Event]:
        # Where events may not be read, less is told.
        with suppress(BackendError):
            return self._pods(name).warnings(kind, name)
        return ()

    def _tail(self, pods: Sequence[client.V1Pod]) -> Sequence[str]:
        # Of several nodes the first tells how far they are.
        for pod in sorted(pods, key=_is_first, reverse=True):
            if pod_phase(pod) != "Pending":
                with suppress(BackendError, JobNotFoundError):
                    return self._pods("").tail(name_of(pod), TAIL_LINES)
        return []


def _is_first(pod: client.V1Pod) -> tuple[bool, bool, datetime]:
    """Sorts the newest pod of a job's first node behind all others."""
    first = index_of(pod) == "0"
    return pod_phase(pod) != "Pending" and first, first, created(pod)


def _check_same(snapshot: Snapshot, run_id: str, digest: str) -> None:
    if snapshot.deleting:
        raise JobConflictError(
            f"{run_id} is being removed; submit it again once `rancast job list` has lost it"
        )
    if snapshot.digest != digest:
        raise JobConflictError(
            f"another job is called {run_id}; give this one another --run-id, or remove that "
            f"one: rancast job cancel {run_id}"
        )


def _in_own_words(problem: Problem | None, tail: Sequence[str]) -> Problem | None:
    """A failed process's problem with its last words from the log where its pod kept none."""
    if problem is None or problem.cause not in (Cause.BAD_DATA, Cause.ERROR):
        return problem
    words = last_words(tail)
    if words is None or words in problem.message:
        return problem
    return Problem(problem.cause, f"{words} ({problem.message})")
