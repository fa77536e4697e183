"""What a process kubelet runs in the place of an image: programs that this machine has.

The service's own image is read from the Dockerfile, so that what it sets for its processes holds
here too: environment, entry point, and the folders that they may write.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Image:
    """What an image says about its processes.

    Attributes:
        entrypoint: Words that start a container which states no command.
        command: Arguments of the entry point where a container states none.
        environment: Variables. What is said about the place of programs is this machine's business.
        folders: Places, absolute in the container, that it may write without a volume.
    """

    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    folders: tuple[str, ...] = ()

    def words(self, container: Mapping[str, list[str]]) -> list[str]:
        """What a container of this image runs: its own command drops the image's arguments too."""
        stated, arguments = container.get("command"), container.get("args")
        if stated:
            return [*stated, *(arguments or [])]
        return [*self.entrypoint, *(self.command if arguments is None else arguments)]


# Of an image that nobody has described: its pods have to state a command.
UNKNOWN = Image()


def image_of_dockerfile(text: str, target: str) -> Image:
    """What a stage of a Dockerfile says, with what it has of the stages below it.

    Args:
        text: Of the Dockerfile.
        target: Name of the stage.

    Raises:
        KeyError: There is no such stage.
    """
    stages: dict[str, Image] = {}
    name = ""
    for line in re.sub(r"\\\n", " ", re.sub(r"^\s*#.*\n", "", text, flags=re.M)).splitlines():
        word, _, rest = line.strip().partition(" ")
        if word == "FROM":
            base, _, name = re.sub(r"--\S+\s+", "", rest).partition(" AS ")
            stages[name] = stages.get(base.strip(), UNKNOWN)
        elif name:
            stages[name] = _with(stages[name], word, rest.strip())
    return stages[target]


def _with(image: Image, word: str, rest: str) -> Image:
    if word == "ENV":
        variables = dict(each.split("=", 1) for each in shlex.split(rest))
        variables.pop("PATH", None)
        merged = {**image.environment, **variables}
        return Image(image.entrypoint, image.command, merged, image.folders)
    if word == "ENTRYPOINT":
        return Image(tuple(json.loads(rest)), (), image.environment, image.folders)
    if word == "CMD":
        words = tuple(json.loads(rest))
        return Image(image.entrypoint, words, image.environment, image.folders)
    if word == "RUN":
        made = re.findall(r"install -d [^&|;]*", rest)
        places = tuple(p for each in made for p in shlex.split(each) if p.startswith("/"))
        return Image(image.entrypoint, image.command, image.environment, image.folders + places)
    return image


def service_image() -> Image:
    """The image of the service."""
    text = (REPOSITORY / "Dockerfile").read_text(encoding="utf-8")
    return image_of_dockerfile(text, "service")
