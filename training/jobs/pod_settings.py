"""In what kind of pod a job runs: its image, its room, its volumes, its place in the cluster."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from training.jobs.errors import JobSpecError
from training.jobs.labels import check_annotations, check_labels, check_not_own

PULL_POLICIES = ("Always", "IfNotPresent", "Never")
PLATFORMS = "none"
"""In the place of a user id: the platform, or the image, says which user it is."""
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
MOST_USER_ID = 2**31 - 1
OWN_PATHS = ("/tmp", "/dev/shm")
"""Where every pod has a writable folder of its own."""

_FACTORS = {
    "m": 1e-3,
    **{letter: 1e3**power for power, letter in enumerate(("", "k", "M", "G", "T", "P", "E"))},
    **{f"{letter}i": 1024.0**power for power, letter in enumerate("KMGTPE", start=1)},
}
_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?)(m|k|[KMGTPE]i|[MGTPE])?")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


def _check_name(what: str, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise JobSpecError(
            f"expected the name of a {what} (lower-case letters, digits, '-', '.'), got {name!r}"
        )


def amount(what: str, quantity: str) -> float:
    """What a quantity of Kubernetes comes to: 0.5 of 500m, 4294967296 of 4Gi.

    Raises:
        JobSpecError: It is none.
    """
    match = _QUANTITY.fullmatch(quantity)
    if match is None:
        raise JobSpecError(
            f"expected {what} as a quantity of Kubernetes, such as 2, 500m or 4Gi, got {quantity!r}"
        )
    return float(match[1]) * _FACTORS[match[2] or ""]


def parse_user_id(text: str) -> int | None:
    """A user id, or None where the platform is to choose.

    Raises:
        JobSpecError: It is neither.
    """
    if text == PLATFORMS:
        return None
    if not re.fullmatch(r"[0-9]{1,10}", text):
        raise JobSpecError(f"expected the number of a user, or {PLATFORMS}, got {text!r}")
    return int(text)


@dataclass(frozen=True)
class Mount:
    """A PersistentVolumeClaim at a path of the pod."""

    claim: str
    path: str
    read_only: bool = False

    def __post_init__(self) -> None:
        _check_name("PersistentVolumeClaim", self.claim)
        path = PurePosixPath(self.path)
        if not path.is_absolute() or ".." in path.parts or len(path.parts) < 2:
            raise JobSpecError(f"expected an absolute path to mount at, got {self.path!r}")
        if str(path) in OWN_PATHS:
            raise JobSpecError(f"expected another path, {path} is the pod's own")

    @classmethod
    def parse(cls, text: str) -> Mount:
        """From CLAIM:PATH or CLAIM:PATH:ro.

        Raises:
            JobSpecError: It is neither.
        """
        match text.split(":"):
            case [claim, path]:
                return cls(claim, path)
            case [claim, path, "ro" | "rw" as mode]:
                return cls(claim, path, mode == "ro")
        raise JobSpecError(f"expected CLAIM:PATH or CLAIM:PATH:ro, got {text!r}")


@dataclass(frozen=True)
class Toleration:
    """A taint that the pod's node may bear; without a value any value, without an effect any."""

    key: str
    value: str | None = None
    effect: str | None = None

    @classmethod
    def parse(cls, text: str) -> Toleration:
        """From KEY, KEY=VALUE, KEY:EFFECT or KEY=VALUE:EFFECT, as in `kubectl taint`.

        Raises:
            JobSpecError: It is none of them.
        """
        taint, _, effect = text.partition(":")
        key, equals, value = taint.partition("=")
        if not key or (effect and effect not in EFFECTS) or text.endswith(":"):
            raise JobSpecError(
                f"expected KEY, KEY=VALUE or either with :EFFECT ({', '.join(EFFECTS)}), "
                f"got {text!r}"
            )
        return cls(key, value if equals else None, effect or None)


@dataclass(frozen=True)
class PodSettings:
    """The pods of a job.

    Attributes:
        image: Container image with rancast in it.
        image_pull_policy: One of `PULL_POLICIES`; None for the default of Kubernetes.
        image_pull_secrets: Secrets to pull the image with.
        python: Python of the image.
        service_account: Whose pods they are; its token is not mounted.
        user_id: User and group that the process runs as, and that mounted volumes belong to; None
            where the platform chooses (OpenShift), or the image's own user is meant.
        cpu: Cores, requested and at most.
        memory: Bytes, requested and at most, as in 4Gi.
        gpus: Accelerators of NVIDIA; training itself computes on the CPU.
        scratch: Bytes of the node's disk, requested and at most, as in 20Gi: logs, and what the
            process keeps in its own folder, as copies of data from a store. None to ask for none.
        mounts: Claims and where they are mounted.
        secrets: Secrets whose keys become variables, as the credentials of an object store.
        node_selector: Labels that the node has to bear.
        tolerations: Taints that it may bear.
        labels: Of the job's objects and pods, besides those by which they are found again.
        annotations: The same.
    """

    image: str
    image_pull_policy: str | None = None
    image_pull_secrets: tuple[str, ...] = ()
    python: str = "python3"
    service_account: str | None = None
    user_id: int | None = 10001
    cpu: str = "1"
    memory: str = "4Gi"
    gpus: int = 0
    scratch: str | None = None
    mounts: tuple[Mount, ...] = ()
    secrets: tuple[str, ...] = ()
    node_selector: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if not self.image or self.image != self.image.strip():
            raise JobSpecError(f"expected the name of an image (--image), got {self.image!r}")
        if self.image_pull_policy not in (None, *PULL_POLICIES):
            raise JobSpecError(
                f"expected an image pull policy of {', '.join(PULL_POLICIES)}, "
                f"got {self.image_pull_policy!r}"
            )
        for name, quantity in (("cpu", self.cpu), ("memory", self.memory)):
            amount(name, quantity)
        if self.scratch is not None:
            amount("scratch", self.scratch)
        if self.gpus < 0:
            raise JobSpecError(f"expected gpus of at least 0, got {self.gpus}")
        if self.user_id is not None and not 1 <= self.user_id <= MOST_USER_ID:
            raise JobSpecError(
                f"expected a user other than root, from 1 to {MOST_USER_ID}, got user_id "
                f"{self.user_id}"
            )
        for name in (*self.secrets, *self.image_pull_secrets):
            _check_name("Secret", name)
        paths = [mount.path for mount in self.mounts]
        if len(set(paths)) < len(paths):
            raise JobSpecError(f"expected every mount at a path of its own, got {paths}")
        check_labels("--node-selector", self.node_selector)
        check_labels("--label", self.labels)
        check_annotations("--annotation", self.annotations)
        check_not_own("--label", self.labels)
        check_not_own("--annotation", self.annotations)
