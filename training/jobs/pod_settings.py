"""In what kind of pod a job runs: its image, its room, its volumes, its place in the cluster."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from training.jobs.errors import JobSpecError

PullPolicy = Literal["Always", "IfNotPresent", "Never"]
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
OWN_PATHS = ("/tmp", "/dev/shm")
"""Where every pod has a writable folder of its own."""

_QUANTITY = re.compile(r"[0-9]+(\.[0-9]+)?(m|[kMGTPE]i?)?")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


def _check_name(what: str, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise JobSpecError(
            f"expected the name of a {what} (lower-case letters, digits, '-', '.'), got {name!r}"
        )


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
        image_pull_policy: As Kubernetes has it; None for its default.
        image_pull_secrets: Secrets to pull the image with.
        python: Python of the image.
        service_account: Whose pods they are; its token is not mounted.
        user_id: User and group that the process runs as, and that mounted volumes belong to.
        cpu: Cores, requested and at most.
        memory: Bytes, requested and at most, as in 4Gi.
        gpus: Accelerators of NVIDIA.
        mounts: Claims and where they are mounted.
        secrets: Secrets whose keys become variables, as the credentials of an object store.
        node_selector: Labels that the node has to bear.
        tolerations: Taints that it may bear.
    """

    image: str
    image_pull_policy: PullPolicy | None = None
    image_pull_secrets: tuple[str, ...] = ()
    python: str = "python3"
    service_account: str | None = None
    user_id: int = 10001
    cpu: str = "1"
    memory: str = "4Gi"
    gpus: int = 0
    mounts: tuple[Mount, ...] = ()
    secrets: tuple[str, ...] = ()
    node_selector: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[Toleration, ...] = ()

    def __post_init__(self) -> None:
        if not self.image or self.image != self.image.strip():
            raise JobSpecError(f"expected the name of an image (--image), got {self.image!r}")
        for name in ("cpu", "memory"):
            if not _QUANTITY.fullmatch(getattr(self, name)):
                raise JobSpecError(
                    f"expected {name} as a quantity of Kubernetes, such as 2, 500m or 4Gi, "
                    f"got {getattr(self, name)!r}"
                )
        if self.gpus < 0:
            raise JobSpecError(f"expected gpus of at least 0, got {self.gpus}")
        if self.user_id < 1:
            raise JobSpecError(f"expected a user other than root, got user_id {self.user_id}")
        for name in (*self.secrets, *self.image_pull_secrets):
            _check_name("Secret", name)
        paths = [mount.path for mount in self.mounts]
        if len(set(paths)) < len(paths):
            raise JobSpecError(f"expected every mount at a path of its own, got {paths}")
