"""The demo: a simulated network, or the user's own files, forecast by the real service.

It runs what a user would run, as processes of their own: `rancast simulate` writes PM files, and
`rancast serve` watches the directory, keeps a journal and answers over REST on loopback.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import quote

import httpx
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from service.errors import StartupError

HOST = "127.0.0.1"
DEFAULT_PORT = 8080
HORIZON_STEPS = 24
SHOWN_STEPS = 8
LISTED_CELLS = 1_000
START_TIMEOUT_SECONDS = 300.0
POLL_SECONDS = 0.5
STOP_TIMEOUT_SECONDS = 20.0
SIMULATED_CELLS = 12
BEST_KNOWN_KPI = "RRU.PrbTotDl"
HISTORY_DAYS = 14
LIVE_DAYS = 7
PERIOD_SECONDS = 900
PERIODS_A_SECOND = 0.2
FAULTS = ("--late", "0.02", "--duplicate", "0.02", "--missing-file", "0.01", "--suspect", "0.01")


@dataclass(frozen=True)
class _Demo:
    """The running processes and where to reach them."""

    base_url: str
    service: subprocess.Popen[bytes]
    others: Sequence[subprocess.Popen[bytes]]

    def check(self) -> None:
        """Fail when the service has ended by itself."""
        if self.service.poll() is not None:
            raise StartupError(
                f"the service ended with status {self.service.returncode}; its last lines are above"
            )


def run_demo(data: Path | None, port: int | None) -> int:
    """Run the demo until it is interrupted.

    Args:
        data: A file or directory of the user's, None for a simulated network.
        port: Port on 127.0.0.1, None for 8080 or a free one where that is taken.

    Returns:
        Exit status: 0 after an interrupt.

    Raises:
        StartupError: The data do not exist, the port is taken, or the service did not start.
    """
    if data is not None and not data.exists():
        raise StartupError(f"expected a file or directory at {data}, found none")
    console = Console(highlight=False)
    chosen = _choose_port(port)
    with ExitStack() as stack:
        stack.enter_context(_terminate_as_interrupt())
        try:
            work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rancast-demo-")))
            demo = _start(stack, work, data, chosen, console)
            _wait_for_cells(demo, console)
            _show(demo, console)
            while True:
                demo.check()
                time.sleep(POLL_SECONDS)
        except KeyboardInterrupt:
            console.print("stopping")
    return 0


def _choose_port(port: int | None) -> int:
    """The port asked for, or 8080, or a free one where nobody asked and 8080 is taken."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, DEFAULT_PORT if port is None else port))
        except OSError as error:
            if port is not None:
                raise StartupError(
                    f"port {port} on {HOST} is taken; stop what listens there or give another "
                    "port (make demo PORT=8081)",
                    exit_code=2,
                ) from error
            probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _start(stack: ExitStack, work: Path, data: Path | None, port: int, console: Console) -> _Demo:
    """Start the service, and the simulator where there is no data."""
    ingest = _ingest_directory(work, data)
    others = []
    if data is None:
        console.print(
            f"simulating {SIMULATED_CELLS} cells: PM files of {HISTORY_DAYS} days at once, then a "
            f"quarter-hour every {1 / PERIODS_A_SECOND:g} seconds for {LIVE_DAYS} days"
        )
        others.append(_launch(stack, _simulator(ingest), {}, quiet=True))
    else:
        console.print(f"reading {data}", markup=False)
    environment = {
        "RANCAST_HOST": HOST,
        "RANCAST_PORT": str(port),
        "RANCAST_PROFILE": "non-rt",
        "RANCAST_INGEST_DIRECTORY": str(ingest),
        "RANCAST_JOURNAL_PATH": str(work / "journal.sqlite"),
        "RANCAST_LOG_LEVEL": "warning",
        "RANCAST_ACCESS_LOG": "false",
    }
    service = _launch(stack, ["serve"], environment, quiet=False)
    return _Demo(f"http://{HOST}:{port}", service, others)


def _simulator(directory: Path) -> list[str]:
    """Arguments of a simulation that catches up with the present and then ends."""
    begin = datetime.now(UTC) - timedelta(days=HISTORY_DAYS + LIVE_DAYS)
    return [
        *("simulate", "--out", str(directory), "--cells", str(SIMULATED_CELLS)),
        *("--start", begin.isoformat(timespec="seconds"), "--days", str(HISTORY_DAYS)),
        *("--periods", str(LIVE_DAYS * 86_400 // PERIOD_SECONDS)),
        *("--period-seconds", str(PERIOD_SECONDS), "--speed", str(PERIODS_A_SECOND), *FAULTS),
    ]


def _ingest_directory(work: Path, data: Path | None) -> Path:
    """The directory to watch; a single file is linked into one of its own."""
    if data is not None and data.is_dir():
        return data.resolve()
    directory = work / "pm"
    directory.mkdir()
    if data is not None:
        (directory / data.name).symlink_to(data.resolve())
    return directory


def _launch(
    stack: ExitStack, arguments: Sequence[str], environment: dict[str, str], *, quiet: bool
) -> subprocess.Popen[bytes]:
    """Run a `rancast` command beside this one, ended when the demo ends."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("RANCAST_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "rancast", *arguments],
        env={**kept, **environment},
        stdout=subprocess.DEVNULL if quiet else None,
        stderr=subprocess.DEVNULL if quiet else None,
        # Ctrl-C reaches only this process, which then stops the others in order.
        start_new_session=True,
    )
    stack.callback(_stop, process)
    return process


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for_cells(demo: _Demo, console: Console) -> None:
    """Wait until the service is ready and holds cells whose histories no longer grow."""
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    last: list[tuple[str, str]] = []
    with console.status("starting") as status, httpx.Client(base_url=demo.base_url) as client:
        while time.monotonic() < deadline:
            demo.check()
            held = _held(client)
            if held and held == last:
                return
            last = held
            if held:
                status.update(f"{len(held)} cells read")
            time.sleep(2 * POLL_SECONDS)
    raise StartupError(
        f"no cell was read within {START_TIMEOUT_SECONDS:g} s; the lines above say which files "
        "could not be read"
    )


def _held(client: httpx.Client) -> list[tuple[str, str]]:
    """First and last sample of each cell listed; none before readiness."""
    try:
        if client.get("/readyz").status_code != httpx.codes.OK:
            return []
        answer = client.get("/v1/cells", params={"limit": LISTED_CELLS})
        answer.raise_for_status()
    except httpx.HTTPError:
        return []
    return [(cell["first"], cell["last"]) for cell in answer.json()["cells"]]


def _show(demo: _Demo, console: Console) -> None:
    """Print the address, one forecast, and how to ask for it.

    Raises:
        StartupError: The service did not answer.
    """
    with httpx.Client(base_url=demo.base_url, timeout=30) as client:
        listed = _ask(client, "/v1/cells", {"limit": LISTED_CELLS})
        cells = listed["cells"]
        cell = max(cells, key=_interest)
        path = f"/v1/cells/{quote(cell['cell'], safe='')}/forecast"
        question: dict[str, str | int] = {
            "horizon": HORIZON_STEPS,
            "kpi": _shown_kpi(cell["kpis"]),
        }
        answer = _ask(client, path, question)
    count = f"{len(cells)}{' or more' if listed['next'] else ''} cells"
    console.print(f"\nrancast answers on [bold]{demo.base_url}[/]  ({count})\n")
    console.print(_forecast_table(answer["forecasts"][0]))
    url = f"{demo.base_url}{path}?horizon={HORIZON_STEPS}"
    console.print(f"\n  curl '{url}'\n", soft_wrap=True, markup=False)
    console.print("Ctrl-C stops it.")


def _ask(client: httpx.Client, path: str, question: Mapping[str, str | int]) -> Any:
    """The body of an answer."""
    try:
        answer = client.get(path, params=question)
        answer.raise_for_status()
    except httpx.HTTPError as error:
        raise StartupError(f"the service did not answer {path}: {error}") from error
    return answer.json()


def _interest(cell: dict[str, Any]) -> tuple[bool, timedelta]:
    """Which cell to show: one that reports the best known KPI, with the longest history."""
    history = datetime.fromisoformat(cell["last"]) - datetime.fromisoformat(cell["first"])
    return BEST_KNOWN_KPI in cell["kpis"], history


def _shown_kpi(kpis: Sequence[str]) -> str:
    """The downlink PRB use where it is reported, since everyone knows it, else the first KPI."""
    return BEST_KNOWN_KPI if BEST_KNOWN_KPI in kpis else kpis[0]


def _forecast_table(forecast: dict[str, Any]) -> Table:
    """The first steps of the first KPI."""
    kpi, quantiles = next(iter(forecast["kpis"].items()))
    table = Table(
        title=escape(
            f"{forecast['cell']}\n{kpi} from {forecast['start']}, "
            f"every {forecast['step_seconds']:g} s"
        ),
        title_justify="left",
    )
    table.add_column("step", justify="right")
    for level in quantiles:
        table.add_column(f"quantile {level}", justify="right")
    rows = zip(*quantiles.values(), strict=True)
    for step, values in enumerate(list(rows)[:SHOWN_STEPS], start=1):
        cells = ("-" if value is None else f"{value:.4g}" for value in values)
        table.add_row(str(step), *cells)
    return table


@contextmanager
def _terminate_as_interrupt() -> Iterator[None]:
    """SIGTERM ends the demo the way Ctrl-C does."""

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
