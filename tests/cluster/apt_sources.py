"""apt with state of its own, so that packages can be fetched without changing the system.

The mirrors and their keys are those that the system itself uses; source packages are asked for in
addition. Works without root.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

CODENAME = "bookworm"
# Suites of the release itself: others that the system may use have nothing of what is needed.
_SUITE = re.compile(rf"{CODENAME}(-updates|-security|-backports)?$")


class AptUnavailableError(Exception):
    """The system has no sources of Debian 12, or they cannot be reached."""


@dataclass(frozen=True)
class Source:
    """One entry of apt's list.

    Attributes:
        options: Keys and values of its first part, such as `Signed-By`.
        uris: Mirrors.
        suites: Releases.
        components: Parts of the releases.
    """

    options: tuple[tuple[str, str], ...]
    uris: tuple[str, ...]
    suites: tuple[str, ...]
    components: tuple[str, ...]

    def lines(self) -> list[str]:
        """The entry in deb822, with packages and their sources."""
        return [
            "Types: deb deb-src",
            f"URIs: {' '.join(self.uris)}",
            f"Suites: {' '.join(self.suites)}",
            f"Components: {' '.join(self.components)}",
            *(f"{name}: {value}" for name, value in self.options),
        ]


def parse_deb822(text: str) -> list[Source]:
    """Entries of a `.sources` file that belong to Debian 12 and are switched on."""
    found = []
    for paragraph in re.split(r"\n\s*\n", text):
        lines = [line for line in paragraph.splitlines() if not line.startswith("#")]
        # A value may go on in lines that are indented, as embedded keys do.
        fields: dict[str, str] = {}
        name = ""
        for line in lines:
            if line[:1].isspace() and name:
                fields[name] += f"\n{line}"
            elif ":" in line:
                name, _, value = line.partition(":")
                fields[name] = value.strip()
        suites = tuple(each for each in fields.get("Suites", "").split() if _SUITE.match(each))
        if suites and fields.get("Enabled", "yes") != "no":
            options = tuple((key, fields[key]) for key in ("Signed-By",) if key in fields)
            uris, parts = fields.get("URIs", "").split(), fields.get("Components", "").split()
            found.append(Source(options, tuple(uris), suites, tuple(parts)))
    return found


def parse_one_line(text: str) -> list[Source]:
    """Entries of a `.list` file that belong to Debian 12."""
    found = []
    for line in text.splitlines():
        match = re.match(r"deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)\s+([^#]+)", line.strip())
        if match is None or not _SUITE.match(match[3]):
            continue
        signed = re.search(r"signed-by=(\S+)", match[1] or "", flags=re.IGNORECASE)
        options = (("Signed-By", signed[1]),) if signed else ()
        found.append(Source(options, (match[2],), (match[3],), tuple(match[4].split())))
    return found


def system_sources(etc: Path = Path("/etc/apt")) -> list[Source]:
    """What the system knows of Debian 12, whichever way it is written.

    Args:
        etc: Where apt is configured.
    """
    found = []
    for file in sorted(etc.glob("sources.list.d/*.sources")):
        found += parse_deb822(file.read_text(encoding="utf-8"))
    for file in (etc / "sources.list", *sorted(etc.glob("sources.list.d/*.list"))):
        if file.exists():
            found += parse_one_line(file.read_text(encoding="utf-8"))
    return found


@dataclass(frozen=True)
class PrivateApt:
    """apt that keeps everything in a folder.

    Attributes:
        folder: Where.
    """

    folder: Path

    @classmethod
    def of_system(cls, folder: Path) -> PrivateApt:
        """With the system's own mirrors.

        Raises:
            AptUnavailableError: The system has none for Debian 12.
        """
        sources = system_sources()
        if not sources:
            raise AptUnavailableError(
                f"expected sources of Debian 12 ({CODENAME}) in /etc/apt, whose source package "
                "of Kubernetes is built; found none. Set KUBECONFIG to a cluster of yours"
            )
        for place in ("sources.list.d", "lists/partial", "cache/archives/partial"):
            (folder / place).mkdir(parents=True, exist_ok=True)
        listed = "\n\n".join("\n".join(source.lines()) for source in sources)
        (folder / "sources.list.d" / "debian.sources").write_text(f"{listed}\n", encoding="utf-8")
        (folder / "status").touch()
        configuration = {
            "Dir::State": folder,
            "Dir::State::lists": folder / "lists",
            "Dir::State::status": folder / "status",
            "Dir::Cache": folder / "cache",
            "Dir::Etc::sourcelist": "-",
            "Dir::Etc::sourceparts": folder / "sources.list.d",
            # apt would fetch as a user who may not write here.
            "APT::Sandbox::User": "root",
        }
        lines = [f'{key} "{value}";' for key, value in configuration.items()]
        (folder / "apt.conf").write_text("\n".join(lines) + "\n", encoding="utf-8")
        return cls(folder)

    def update(self) -> None:
        """Fetch the lists of packages."""
        self._run(["update"], self.folder)

    def source(self, name: str, target: Path) -> None:
        """Fetch a source package, as it came and checked, into a folder."""
        self._run(["source", "--download-only", name], target)

    def download(self, names: Sequence[str], target: Path) -> None:
        """Fetch packages into a folder."""
        self._run(["download", *names], target)

    def _run(self, arguments: Sequence[str], place: Path) -> None:
        answer = subprocess.run(
            ["apt-get", "-qq", *arguments],
            cwd=place,
            env={**os.environ, "APT_CONFIG": str(self.folder / "apt.conf")},
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        if answer.returncode:
            said = " / ".join(answer.stderr.strip().splitlines()[-3:])
            raise AptUnavailableError(f"apt-get {' '.join(arguments)} failed: {said}")
