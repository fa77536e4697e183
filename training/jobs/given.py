"""Options of a submit that were given and mean nothing where the job is to run.

What comes from the environment may be there for other jobs of the shell, so only what stands on the
command line is refused.
"""

from __future__ import annotations

from collections.abc import Collection

from training.jobs.choice import LOCAL, TRAINJOB
from training.jobs.errors import JobSpecError

OF_PODS = (
    "image",
    "image_pull_secret",
    "image_pull_policy",
    "python",
    "memory",
    "gpus",
    "scratch",
    "mount",
    "secret",
    "service_account",
    "user_id",
    "label",
    "annotation",
    "node_selector",
    "toleration",
    "runtime",
    "kubeconfig",
    "context",
    "namespace",
    "dry_run",
)
"""Parameters that only a job in a cluster has a use for."""


def check_given(given: Collection[str], backend: str) -> None:
    """See that every option that was given has a meaning.

    Args:
        given: Parameters that stand on the command line.
        backend: Where the job is to run.

    Raises:
        JobSpecError: One has none.
    """
    if backend == LOCAL and (vain := [name for name in OF_PODS if name in given]):
        raise JobSpecError(
            f"expected a cluster (--backend kubernetes, or trainjob) for {_options(vain)}; a local "
            "job uses this machine's files, memory and variables"
        )
    if backend not in (LOCAL, TRAINJOB) and "runtime" in given:
        raise JobSpecError(f"expected --backend trainjob for --runtime, got {backend}")


def _options(names: Collection[str]) -> str:
    return ", ".join(f"--{name.replace('_', '-')}" for name in names)
