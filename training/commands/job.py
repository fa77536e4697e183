"""`rancast job`: training that runs on its own, on this machine or in a cluster."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from training.jobs.pod_settings import PodSettings

HELP = "Train as a job: on this machine, in Kubernetes, or with Kubeflow Trainer."

Run = Annotated[str, typer.Argument(metavar="RUN_ID", help="The job, as list shows it.")]
Backend = Annotated[
    str,
    typer.Option(envvar="RANCAST_JOB_BACKEND", help="Where: local, kubernetes, trainjob."),
]
JobsDir = Annotated[
    Path | None,
    typer.Option(
        envvar="RANCAST_JOBS_DIR", help="Folder of local jobs.", show_default="the user's own"
    ),
]
Kubeconfig = Annotated[
    Path | None,
    typer.Option(help="Way to the cluster.", show_default="KUBECONFIG, or the pod's account"),
]
Context = Annotated[str | None, typer.Option(help="Context of it.", show_default="the current one")]
Namespace = Annotated[
    str | None, typer.Option(help="Namespace of the jobs.", show_default="the context's")
]


def submit(
    given: typer.Context,
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="-- COMMAND OPTIONS…",
            help="What to run: train, finetune, pretrain or calibrate, with its options.",
        ),
    ],
    run_id: Annotated[
        str | None, typer.Option(help="Name of the job.", show_default="from its content")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Stay and show how it goes; Ctrl-C leaves the job.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the objects (YAML); reach no cluster.")
    ] = False,
    deadline: Annotated[
        float, typer.Option(help="Hours that it may take, all attempts together.")
    ] = 24.0,
    retries: Annotated[
        int, typer.Option(help="Attempts after one that failed; none after bad data.")
    ] = 1,
    keep: Annotated[float, typer.Option(help="Hours that it can be asked for afterwards.")] = 24.0,
    processes: Annotated[int, typer.Option(help="Processes a node, under torchrun.")] = 1,
    nodes: Annotated[int, typer.Option(help="Nodes that train together.")] = 1,
    env: Annotated[
        list[str] | None, typer.Option(help="NAME=VALUE for the process; repeatable.")
    ] = None,
    image: Annotated[
        str | None, typer.Option(envvar="RANCAST_IMAGE", help="Image of the pods.")
    ] = None,
    image_pull_secret: Annotated[
        list[str] | None, typer.Option(help="Secret to pull the image with; repeatable.")
    ] = None,
    image_pull_policy: Annotated[
        str | None,
        typer.Option(help="Always, IfNotPresent or Never.", show_default="the cluster's"),
    ] = None,
    python: Annotated[str, typer.Option(help="Python of the image.")] = "python3",
    user_id: Annotated[
        str,
        typer.Option(help="User of the process, and group of volumes; none: the platform's own."),
    ] = "10001",
    cpu: Annotated[
        str, typer.Option(help="Cores; --threads of the command follow, unless it says them.")
    ] = "1",
    memory: Annotated[str, typer.Option(help="Memory of a pod.")] = "4Gi",
    gpus: Annotated[
        int, typer.Option(help="GPUs of a pod; training computes on the CPU and leaves them idle.")
    ] = 0,
    scratch: Annotated[
        str | None,
        typer.Option(
            help="Disk of a pod (ephemeral-storage), as for copies from a store: 20Gi.",
            show_default="what the node has left",
        ),
    ] = None,
    mount: Annotated[
        list[str] | None,
        typer.Option(help="CLAIM:PATH of a PersistentVolumeClaim, :ro to only read; repeatable."),
    ] = None,
    secret: Annotated[
        list[str] | None,
        typer.Option(help="Secret whose keys become variables (S3 credentials); repeatable."),
    ] = None,
    service_account: Annotated[
        str | None, typer.Option(help="Of the pods; its token is not mounted.")
    ] = None,
    node_selector: Annotated[
        list[str] | None, typer.Option(help="LABEL=VALUE of the node; repeatable.")
    ] = None,
    toleration: Annotated[
        list[str] | None, typer.Option(help="KEY[=VALUE][:EFFECT] of the node; repeatable.")
    ] = None,
    label: Annotated[
        list[str] | None, typer.Option(help="KEY=VALUE of the objects and pods; repeatable.")
    ] = None,
    annotation: Annotated[
        list[str] | None, typer.Option(help="KEY=VALUE of the objects and pods; repeatable.")
    ] = None,
    runtime: Annotated[
        str | None,
        typer.Option(
            help="ClusterTrainingRuntime of a TrainJob.", show_default="torch-distributed"
        ),
    ] = None,
    backend: Backend = "local",
    jobs_dir: JobsDir = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    namespace: Namespace = None,
) -> None:
    """Start a job. The same submit twice is one job; this says so and shows how it goes.

    Exit status 1: the job has failed (with --follow, or where it was submitted before).
    """
    import sys

    from rich.console import Console

    from training.jobs.choice import LOCAL, BackendChoice, open_backend, open_cluster_backend
    from training.jobs.cli import submit_and_show
    from training.jobs.given import check_given
    from training.jobs.kept import check_kept
    from training.jobs.pod_settings import Mount, PodSettings, Toleration, amount, parse_user_id
    from training.jobs.spec import JobSpec, with_own_run_id
    from training.jobs.trained_by import checked_command, was_given

    choice = BackendChoice(backend, jobs_dir, kubeconfig, context, namespace, runtime)
    check_given([name for name in given.params if was_given(given, name)], backend)
    local = backend == LOCAL
    threads: int | None = None
    if not local or was_given(given, "cpu"):
        threads = max(1, int(amount("cpu", cpu) / max(1, processes)))
    command = checked_command(arguments, processes=nodes * processes, threads=threads)
    pod: PodSettings | None = None
    if not local:
        pod = PodSettings(
            image=image or "",
            image_pull_policy=image_pull_policy,
            image_pull_secrets=tuple(image_pull_secret or ()),
            python=python,
            service_account=service_account,
            user_id=parse_user_id(user_id),
            cpu=cpu,
            memory=memory,
            gpus=gpus,
            scratch=scratch,
            mounts=tuple(Mount.parse(text) for text in mount or ()),
            secrets=tuple(secret or ()),
            node_selector=_pairs("--node-selector", node_selector),
            tolerations=tuple(Toleration.parse(text) for text in toleration or ()),
            labels=_pairs("--label", label),
            annotations=_pairs("--annotation", annotation),
        )
        check_kept(command.out, pod.mounts)
    spec = JobSpec(
        run_id=run_id or "new",
        arguments=command.arguments,
        environment=_pairs("--env", env),
        directory=os.getcwd() if local else None,
        nodes=nodes,
        processes=processes,
        retries=retries,
        deadline_seconds=_seconds("--deadline", deadline),
        keep_seconds=_seconds("--keep", keep),
        pod=pod,
    )
    spec = spec if run_id else with_own_run_id(spec)
    if gpus:
        sys.stderr.write("rancast: training computes on the CPU; the GPUs will be idle\n")
    if dry_run:
        import yaml

        objects = open_cluster_backend(choice, offline=True).manifests(spec)
        sys.stdout.write(yaml.safe_dump_all(objects, sort_keys=False))
        return
    raise typer.Exit(submit_and_show(open_backend(choice), spec, Console(), follow=follow))


def list_(
    backend: Backend = "local",
    jobs_dir: JobsDir = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    namespace: Namespace = None,
) -> None:
    """Show all jobs, whoever submitted them."""
    from rich.console import Console

    from training.jobs.choice import BackendChoice, open_backend
    from training.jobs.cli import show_list

    choice = BackendChoice(backend, jobs_dir, kubeconfig, context, namespace)
    show_list(open_backend(choice).list(), Console())


def status(
    run_id: Run,
    follow: Annotated[
        bool, typer.Option("--follow", help="Stay until it ends; Ctrl-C leaves the job.")
    ] = False,
    backend: Backend = "local",
    jobs_dir: JobsDir = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    namespace: Namespace = None,
) -> None:
    """Show how a job goes, and why it failed or does not start. Exit status 1: it has failed."""
    from rich.console import Console

    from training.jobs.choice import BackendChoice, open_backend
    from training.jobs.cli import FAILED, follow_job, show_status
    from training.jobs.status import Phase

    found = open_backend(BackendChoice(backend, jobs_dir, kubeconfig, context, namespace))
    if follow:
        raise typer.Exit(follow_job(found, run_id, Console()))
    job = found.status(run_id)
    show_status(job, Console())
    raise typer.Exit(FAILED if job.phase is Phase.FAILED else 0)


def logs(
    run_id: Run,
    follow: Annotated[
        bool, typer.Option("--follow", help="Wait for more until the job has ended.")
    ] = False,
    backend: Backend = "local",
    jobs_dir: JobsDir = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    namespace: Namespace = None,
) -> None:
    """Print what every attempt of a job has printed."""
    import sys

    from training.jobs.choice import BackendChoice, open_backend
    from training.jobs.cli import print_logs

    found = open_backend(BackendChoice(backend, jobs_dir, kubeconfig, context, namespace))
    print_logs(found, run_id, sys.stdout.write, follow=follow)


def cancel(
    run_id: Run,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Wait until its processes are gone.")
    ] = True,
    backend: Backend = "local",
    jobs_dir: JobsDir = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    namespace: Namespace = None,
) -> None:
    """End a job and remove it with its logs; what it has written stays."""
    from rich.console import Console

    from training.jobs.choice import BackendChoice, open_backend
    from training.jobs.cli import cancel_and_wait

    found = open_backend(BackendChoice(backend, jobs_dir, kubeconfig, context, namespace))
    cancel_and_wait(found, run_id, Console(), wait=wait)


COMMANDS: tuple[Callable[..., None], ...] = (submit, list_, status, logs, cancel)


def _pairs(option: str, texts: list[str] | None) -> tuple[tuple[str, str], ...]:
    from training.jobs.errors import JobSpecError

    pairs = []
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise JobSpecError(f"expected NAME=VALUE after {option}, got {text!r}")
        pairs.append((name, value))
    return tuple(pairs)


def _seconds(option: str, hours: float) -> int:
    import math

    from training.jobs.errors import JobSpecError

    if not math.isfinite(hours):
        raise JobSpecError(f"expected a number of hours after {option}, got {hours}")
    return round(hours * 3600)
