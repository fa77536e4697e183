"""The command line of a job's process: rancast, under torchrun where there are several."""

from __future__ import annotations

from training.jobs.spec import JobSpec

RENDEZVOUS_PORT = 29500
PROCESS = "training.jobs.process"


def alone(python: str, spec: JobSpec) -> list[str]:
    """The command of a job of one process.

    -P: what is imported is the package as installed, never files of the working directory.
    """
    return [python, "-P", "-m", PROCESS, *spec.arguments]


def on_one_node(python: str, spec: JobSpec) -> list[str]:
    """The command of a job on one node: under torchrun where it has several processes."""
    if spec.processes == 1:
        return alone(python, spec)
    return _torchrun(python, spec, "--standalone", f"--nproc-per-node={spec.processes}")


def on_many_nodes(python: str, spec: JobSpec, first_host: str) -> list[str]:
    """The command of every node of a job; they meet at the first.

    A node that comes back joins the others again, as often as the job may be retried.
    """
    return _torchrun(
        python,
        spec,
        f"--nnodes={spec.nodes}",
        f"--nproc-per-node={spec.processes}",
        f"--max-restarts={spec.retries}",
        "--rdzv-backend=c10d",
        f"--rdzv-endpoint={first_host}:{RENDEZVOUS_PORT}",
        f"--rdzv-id={spec.run_id}",
    )


def told_by_environment(python: str, spec: JobSpec) -> list[str]:
    """The command of a node where the nodes are told to torchrun by variables (PET_NNODES, ...)."""
    return _torchrun(python, spec, f"--max-restarts={spec.retries}")


def _torchrun(python: str, spec: JobSpec, *options: str) -> list[str]:
    command = [python, "-P", "-m", "training.torchrun", *options]
    return [*command, "-m", PROCESS, *spec.arguments]
