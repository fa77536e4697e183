"""Whether what a pod writes outlives it: in a store, or on a volume that it may write to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from training.jobs.errors import JobSpecError
from training.jobs.pod_settings import Mount

_STORE = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://")


def check_kept(out: str, mounts: Sequence[Mount]) -> None:
    """See that a checkpoint's place is not gone with the pod, and can be written.

    Args:
        out: Path or URL that the command in the pod is given.
        mounts: Of the pod.

    Raises:
        JobSpecError: The place is the pod's own or read-only, or the mount itself.
    """
    if out.lower().startswith("file://"):
        out = unquote(urlsplit(out).path)
    elif _STORE.match(out):
        return
    path = PurePosixPath(out)
    above = [mount for mount in mounts if PurePosixPath(mount.path) in path.parents]
    hint = "--mount CLAIM:PATH and a path below it, or a URL (s3://BUCKET/KEY)"
    if not path.is_absolute() or ".." in path.parts or not above:
        raise JobSpecError(
            f"expected a place that outlives the pod for --out: {hint}; {out} would be in the pod "
            "itself"
        )
    # The innermost volume is the one that is written to.
    mount = max(above, key=lambda each: len(PurePosixPath(each.path).parts))
    if mount.read_only:
        raise JobSpecError(
            f"expected a place that can be written for --out: {hint}; {out} is below "
            f"{mount.path}, which is mounted to be read only"
        )
