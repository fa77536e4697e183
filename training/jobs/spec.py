"""What a training job is to do, and in what kind of pod.

A spec is complete and has a digest, so that submitting twice is submitting once: the run id is the
digest's where none is given, and a run id that is in use with another digest is a conflict.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass, replace

from training.jobs.errors import JobSpecError
from training.jobs.names import check_run_id
from training.jobs.pod_settings import PodSettings

LEAST_KEEP_SECONDS = 600
"""A finished job that goes sooner takes its logs and its reason along before anyone reads them."""

MOST = 2**31 - 1
"""The API keeps seconds and numbers of attempts as 32-bit integers."""

_URL_WITH_PASSWORD = re.compile(r"[a-z][a-z0-9+.-]*://[^/@\s]*:[^/@\s]*@", re.IGNORECASE)
_SECRET_NAME = re.compile(
    r"SECRET|PASSWORD|PASSWD|PASSPHRASE|TOKEN(?!I)|CREDENTIAL|CONNECTION_STRING|"
    r"(ACCESS|ACCOUNT|API|PRIVATE|STORAGE)_?KEY|^KEY$"
)
_SECRETS_PLACE = re.compile(
    r"_(FILE|PATH|DIR)$|(CREDENTIALS|TOKEN)(_[A-Z]+)*_(URI|URL|ENDPOINT)$|"
    r"^GOOGLE_APPLICATION_CREDENTIALS$"
)
"""Names of variables that say where a secret lies, and are none."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class JobSpec:
    """A training job.

    Attributes:
        run_id: Its name for people; deterministic, so that a repeated submit finds it.
        arguments: Of `rancast`: the command and its options.
        environment: Variables as (name, value); never secrets.
        directory: Working directory, of local jobs only.
        nodes: Machines that train together.
        processes: Processes a node; more than one in all run under torchrun.
        retries: How often a job that failed is started again; bad data never is.
        deadline_seconds: Longest time from the start to the end, all retries included.
        keep_seconds: How long a finished job can be asked for.
        pod: Where it runs in a cluster; None for a local job.
    """

    run_id: str
    arguments: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()
    directory: str | None = None
    nodes: int = 1
    processes: int = 1
    retries: int = 1
    deadline_seconds: int = 86_400
    keep_seconds: int = 86_400
    pod: PodSettings | None = None

    def __post_init__(self) -> None:
        check_run_id(self.run_id)
        if not self.arguments:
            raise JobSpecError("expected a command of rancast to run, such as train, got none")
        for name in ("nodes", "processes", "deadline_seconds"):
            if getattr(self, name) < 1:
                raise JobSpecError(f"expected {name} of at least 1, got {getattr(self, name)}")
        for name in ("retries", "deadline_seconds", "keep_seconds"):
            if getattr(self, name) > MOST:
                raise JobSpecError(f"expected {name} of at most {MOST}, got {getattr(self, name)}")
        if self.retries < 0:
            raise JobSpecError(f"expected retries of at least 0, got {self.retries}")
        if self.keep_seconds < LEAST_KEEP_SECONDS:
            raise JobSpecError(
                f"expected keep_seconds of at least {LEAST_KEEP_SECONDS}, because a job that is "
                f"removed sooner takes its logs along unread; got {self.keep_seconds}"
            )
        self._check_environment()
        notes = self.pod.annotations if self.pod is not None else ()
        for text in (*self.arguments, *(value for _, value in (*self.environment, *notes))):
            if _URL_WITH_PASSWORD.search(text):
                raise JobSpecError(
                    "expected a URL without user and password, because anyone who may read the "
                    "job would read them; put them into a Secret and name it (--secret)"
                )

    def _check_environment(self) -> None:
        names = [name for name, _ in self.environment]
        for name in names:
            if not _VARIABLE.fullmatch(name):
                raise JobSpecError(f"expected the name of an environment variable, got {name!r}")
            upper = name.upper()
            if _SECRET_NAME.search(upper) and not _SECRETS_PLACE.search(upper):
                raise JobSpecError(
                    f"expected {name} from a Secret (--secret), not as a variable of the job, "
                    "because anyone who may read the job would read it"
                )
            if names.count(name) > 1:
                raise JobSpecError(f"expected each variable once, got {name} more often")

    @property
    def digest(self) -> str:
        """SHA-256 of everything but the run id, as 64 hexadecimal digits."""
        content = {key: value for key, value in asdict(self).items() if key != "run_id"}
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def with_own_run_id(spec: JobSpec) -> JobSpec:
    """The same job under the name that its content gives: COMMAND-DIGEST."""
    command = re.sub(r"[^a-z0-9]", "", spec.arguments[0].lower()) or "job"
    return replace(spec, run_id=f"{command[:20]}-{spec.digest[:10]}")
