"""A folder of compiled programs, and the manifest that says what they are good for.

The folder's name follows from its target, so that a stale one is never found; the manifest is
checked all the same, because folders are copied from node to node. An artifact whose self-test did
not hold is kept too, so that nobody makes it a second time; it is never run.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from model.checkpoint import Checkpoint
from model.code_cache import cache_folder, is_ours
from model.compiled.graph import Shape
from model.compiled.runner import RUNNER
from model.compiled.target import Precision, Target
from model.compiled.trial import TOLERANCES, Movement
from model.errors import ArtifactError

FORMAT = "rancast-compiled/1"
FOLDER = "compiled"
MANIFEST = "manifest.json"
KEPT_DAYS = 30
_DAY_SECONDS = 86_400
_NAME_LETTERS = 40
_REMEDY = "make it again with `rancast compile`"


@dataclass(frozen=True)
class Artifact:
    """Compiled programs of one checkpoint.

    Attributes:
        folder: Where the files are.
        target: What they were made for.
        digests: SHA-256 of each file, by name.
        moved: How far the checkpoint's quantiles moved in the self-test.
        seconds: How long the compiler took.
    """

    folder: Path
    target: Target
    digests: Mapping[str, str]
    moved: Movement
    seconds: float

    @property
    def is_faithful(self) -> bool:
        """Whether its self-test held."""
        return self.moved.within(TOLERANCES[self.target.precision])

    def program(self, shape: Shape) -> Path:
        """File of one program."""
        return self.folder / program_name(shape)


def program_name(shape: Shape) -> str:
    """File name of the program for a shape."""
    return f"{shape}.pt2"


def file_names() -> list[str]:
    """Names of all files beside the manifest."""
    return [*(program_name(shape) for shape in Shape), RUNNER]


def artifact_folder(checkpoint: Checkpoint, precision: Precision) -> Path:
    """Where the artifact of a checkpoint for this machine is, or would be.

    Raises:
        ArtifactError: There is no cache.
    """
    return (
        cache_folder() / FOLDER / f"{_prefix(checkpoint, precision)}-{_key(checkpoint, precision)}"
    )


def _prefix(checkpoint: Checkpoint, precision: Precision) -> str:
    """For people; a checkpoint's name may be anything."""
    name = re.sub(r"[^A-Za-z0-9._-]", "_", checkpoint.name)[:_NAME_LETTERS].lstrip(".")
    return f"{name}-{precision}"


def _key(checkpoint: Checkpoint, precision: Precision) -> str:
    return Target.of(checkpoint, precision).key


def find_artifact(checkpoint: Checkpoint, precision: Precision) -> Artifact | None:
    """The artifact for this machine, if it has been made; it may be one that is not faithful.

    Raises:
        ArtifactError: There is one that cannot be used, or the cache cannot be looked into.
    """
    folder = artifact_folder(checkpoint, precision)
    try:
        if not folder.exists():
            return None
    except OSError as error:
        raise ArtifactError(f"{folder} cannot be looked for: {error}") from error
    return read_artifact(folder, Target.of(checkpoint, precision))


def read_artifact(folder: Path, target: Target) -> Artifact:
    """Read and check an artifact.

    Args:
        folder: Its folder.
        target: What it has to be made for.

    Raises:
        ArtifactError: A file is missing, changed or writable by others, or it was made for another
            checkpoint, processor or version.
    """
    try:
        artifact = _from_manifest(folder, json.loads((folder / MANIFEST).read_bytes()))
        _check_target(artifact, target)
        for name in (MANIFEST, *artifact.digests):
            if not is_ours(folder / name):
                raise ArtifactError(
                    f"{folder / name} may be written by others, so it is not run; remove {folder} "
                    f"and {_REMEDY}"
                )
        for name, digest in artifact.digests.items():
            if file_digest(folder / name) != digest:
                raise ArtifactError(f"{folder / name} is not as it was made; {_REMEDY}")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ArtifactError(f"{folder} is not a whole artifact ({error!r}); {_REMEDY}") from error
    return artifact


def write_artifact(made: Path, artifact: Artifact) -> None:
    """Put the files of a folder, with their manifest, where an artifact belongs.

    What lies there already is replaced; whoever looks in between finds nothing, never a mixture.

    Raises:
        OSError: They cannot be written there.
    """
    manifest = {
        "format": FORMAT,
        "target": asdict(artifact.target),
        "digests": dict(artifact.digests),
        "moved": asdict(artifact.moved),
        "seconds": artifact.seconds,
    }
    (made / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    # Whatever the user's mask: what others may change would not be run.
    made.chmod(0o755)
    for name in (MANIFEST, *artifact.digests):
        (made / name).chmod(0o644)
    if artifact.folder.exists():
        old = made.with_name("old")
        os.replace(artifact.folder, old)
        shutil.rmtree(old, ignore_errors=True)
    os.replace(made, artifact.folder)


def remove_old(checkpoint: Checkpoint, keep: Artifact) -> None:
    """Delete what was made of checkpoints of this name more than a month ago, for other targets."""
    prefix = _prefix(checkpoint, keep.target.precision)
    oldest = time.time() - KEPT_DAYS * _DAY_SECONDS
    for manifest in keep.folder.parent.glob(f"{prefix}-*/{MANIFEST}"):
        if manifest.parent != keep.folder and manifest.stat().st_mtime < oldest:
            shutil.rmtree(manifest.parent, ignore_errors=True)


def file_digest(path: Path) -> str:
    """SHA-256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _from_manifest(folder: Path, manifest: Mapping[str, Any]) -> Artifact:
    if manifest.get("format") != FORMAT:
        raise ArtifactError(
            f"expected {folder} to be of format {FORMAT!r}, got {manifest.get('format')!r}; "
            f"{_REMEDY}"
        )
    target = {**manifest["target"], "precision": Precision(manifest["target"]["precision"])}
    digests = {str(name): str(digest) for name, digest in manifest["digests"].items()}
    if sorted(digests) != sorted(file_names()):
        raise ArtifactError(
            f"expected the files {file_names()} in {folder}, got {[*digests]}; {_REMEDY}"
        )
    moved = Movement(**{name: float(ratio) for name, ratio in manifest["moved"].items()})
    return Artifact(folder, Target(**target), digests, moved, float(manifest["seconds"]))


def _check_target(artifact: Artifact, target: Target) -> None:
    for field in fields(Target):
        wanted, found = getattr(target, field.name), getattr(artifact.target, field.name)
        if wanted != found:
            raise ArtifactError(
                f"{artifact.folder} was made for {field.name} {found}, this is {wanted}; {_REMEDY}"
            )
