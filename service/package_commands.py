"""`rancast package …`: the packages that a RIC's own tools take in.

A command is its options and its help; what it does is imported when it is called.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

HELP = "Write and check what a RIC's own tools onboard: chart, xApp descriptor, rApp package."

Out = Annotated[Path, typer.Option(help="Folder to write to.")]
ChartFolder = Annotated[
    Path | None,
    typer.Option("--chart", help="The chart's folder.", show_default="the one beside the sources"),
]
Image = Annotated[
    str, typer.Option(help="The service's image: [REGISTRY/]REPOSITORY[:TAG][@DIGEST].")
]


def chart(out: Out, chart: ChartFolder = None) -> None:
    """Write the Helm chart as a package, under a version that ends in a digest of its content."""
    from service.packaging.cli import write_chart

    write_chart(chart, out)


def xapp(
    image: Image,
    out: Out,
    name: Annotated[str, typer.Option(help="Name of the xApp.")] = "rancast",
    version: Annotated[
        str | None,
        typer.Option(
            help="Its version; a digest of the descriptor goes behind it.",
            show_default="rancast's own",
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A setting of the service, such as open_access=true; repeat it for several.",
        ),
    ] = None,
) -> None:
    """Write the xApp's descriptor and the schema of its controls, which dms_cli onboards."""
    from service.packaging.cli import write_xapp

    write_xapp(name, version, image, set_ or (), out)


def csar(
    image: Image,
    out: Out,
    push_uri: Annotated[
        str, typer.Option(help="Where charts are sent to, such as http://HOST:PORT/api/charts.")
    ],
    pull_uri: Annotated[
        str, typer.Option(help="Where charts are pulled from, such as http://HOST:PORT/charts.")
    ],
    chart: ChartFolder = None,
    release: Annotated[
        str, typer.Option(help="Name of the Helm release, its Service and the rApp.")
    ] = "rancast",
    namespace: Annotated[str, typer.Option(help="Namespace to install into.")] = "nonrtric",
    provider: Annotated[str, typer.Option(help="Who provides the rApp.")] = "rancast",
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A value over the chart's own, as with helm; repeat it for several.",
        ),
    ] = None,
    extra: Annotated[
        Path | None,
        typer.Option(help="Folder with more Files/, such as an information job for DME."),
    ] = None,
    publish: Annotated[
        bool, typer.Option(help="Whether the package has what the service registry publishes.")
    ] = True,
) -> None:
    """Write the rApp's package (CSAR), which the rApp manager onboards.

    The time of the release is SOURCE_DATE_EPOCH, for the same input gives the same bytes.
    """
    from service.packaging.cli import write_csar

    write_csar(
        chart,
        out,
        release=release,
        namespace=namespace,
        provider=provider,
        image=image,
        push_uri=push_uri,
        pull_uri=pull_uri,
        overrides=set_ or (),
        extra=extra,
        published=publish,
    )


def check(
    files: Annotated[
        list[Path], typer.Argument(help="A .csar, a chart's .tgz, or a descriptor's .json.")
    ],
    schema: Annotated[
        Path | None,
        typer.Option(
            help="The controls schema of a descriptor.", show_default="schema.json beside it"
        ),
    ] = None,
) -> None:
    """Say what a RIC's tools would refuse in a package, and what would fail once it is installed.

    Exit status 1: something is wrong.
    """
    from service.packaging.cli import check_packages

    raise typer.Exit(0 if check_packages(files, schema) else 1)


COMMANDS: tuple[Callable[..., None], ...] = (chart, xapp, csar, check)
