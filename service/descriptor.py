"""The xApp descriptor: what the near-RT RIC platform was told of this application.

The platform mounts it into the pod from a ConfigMap. The path is `CONFIG_FILE`, as the platform's
own frameworks have it; its chart sets `XAPP_DESCRIPTOR_PATH` instead, to the folder. The file is
read whenever it is asked for, because an updated ConfigMap is another file under the same name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from service.errors import DescriptorError

FILE_VARIABLE = "CONFIG_FILE"
FOLDER_VARIABLE = "XAPP_DESCRIPTOR_PATH"
FILE_NAME = "config-file.json"
# A ConfigMap holds no more.
_MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Descriptor:
    """What the application is to the platform.

    Attributes:
        name: Name of the xApp.
        text: The descriptor as JSON, without blanks.
    """

    name: str
    text: str


def descriptor_path(environment: Mapping[str, str]) -> Path | None:
    """Where the descriptor lies; None where the platform named no place."""
    if file := environment.get(FILE_VARIABLE):
        return Path(file)
    if folder := environment.get(FOLDER_VARIABLE):
        return Path(folder) / FILE_NAME
    return None


def read_descriptor(path: Path) -> Descriptor:
    """The descriptor in a file.

    Raises:
        DescriptorError: The file cannot be read, or holds no JSON object with the xApp's name.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise DescriptorError(f"expected at most {_MOST_BYTES} bytes in {path}, got more")
        fields = json.loads(content, parse_constant=_refuse)
    except OSError as error:
        raise DescriptorError(
            f"the descriptor cannot be read: {error}; mount its ConfigMap there, or unset "
            f"{FILE_VARIABLE}"
        ) from error
    except (ValueError, RecursionError) as error:
        raise DescriptorError(f"expected a descriptor in JSON in {path}, got: {error}") from error
    name = (fields.get("name") or fields.get("xapp_name")) if isinstance(fields, dict) else None
    if not isinstance(name, str) or not name:
        raise DescriptorError(
            f"expected a JSON object with the xApp's name as name or xapp_name in {path}, got "
            f"{_shape(fields)}"
        )
    return _descriptor(name, fields)


def own_descriptor(name: str, version: str) -> Descriptor:
    """What is true without a descriptor: who this is, and that it speaks no RMR."""
    return _descriptor(name, {"name": name, "version": version, "messaging": {"ports": []}})


def _descriptor(name: str, fields: Mapping[str, Any]) -> Descriptor:
    # ASCII, so that half a surrogate pair, which JSON can hold, is no encoding error later.
    return Descriptor(name, json.dumps(fields, separators=(",", ":")))


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _shape(fields: Any) -> str:
    if isinstance(fields, dict):
        return f"an object of {sorted(fields)[:10]}"
    return f"a {type(fields).__name__}"
