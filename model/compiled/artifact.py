"""A folder of compiled programs, and the manifest that says what they are good for.

The folder's name follows from its target, so that a stale one is never found; the manifest is
checked all the same, because folders are copied from node to node and names can be given by hand.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from model.checkpoint import Checkpoint
from model.code_cache import cache_folder, is_ours
from model.compiled.graph import Shape
from model.compiled.target import Precision, Target
from model.errors import ArtifactError

FORMAT = "rancast-compiled/1"
FOLDER = "compiled"
MANIFEST = "manifest.json"
_REMEDY = "make it again with `rancast compile`"


@dataclass(frozen=True)
class Artifact:
    """Compiled programs of one checkpoint.

    Attributes:
        folder: Where the files are.
        target: What they were made for.
        digests: SHA-256 of each program's file.
        moved_ratio: How far the checkpoint's quantiles moved in the self-test, see
            `model.compiled.trial`.
        seconds: How long the compiler took.
    """

    folder: Path
    target: Target
    digests: Mapping[Shape, str]
    moved_ratio: float
    seconds: float

    def program(self, shape: Shape) -> Path:
        """File of one program."""
        return program_path(self.folder, shape)


def program_path(folder: Path, shape: Shape) -> Path:
    """Where the program for a shape lies in a folder."""
    return folder / f"{shape}.pt2"


def artifact_folder(checkpoint: Checkpoint, precision: Precision) -> Path:
    """Where the artifact of a checkpoint for this machine is, or would be."""
    key = Target.of(checkpoint, precision).key
    return cache_folder() / FOLDER / f"{checkpoint.name}-{precision}-{key}"


def find_artifact(checkpoint: Checkpoint, precision: Precision) -> Artifact | None:
    """The artifact for this machine, if it has been made.

    Raises:
        ArtifactError: There is one that cannot be used.
    """
    folder = artifact_folder(checkpoint, precision)
    if not folder.exists():
        return None
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
        for shape, digest in artifact.digests.items():
            path = artifact.program(shape)
            if not is_ours(path):
                raise ArtifactError(f"{path} may be written by others, so it is not run")
            if file_digest(path) != digest:
                raise ArtifactError(f"{path} is not as it was made; {_REMEDY}")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ArtifactError(f"{folder} is not a whole artifact ({error!r}); {_REMEDY}") from error
    return artifact


def write_artifact(made: Path, artifact: Artifact) -> None:
    """Put the files of a folder, with their manifest, where an artifact belongs, in one step.

    Raises:
        OSError: They cannot be written there.
    """
    manifest = {
        "format": FORMAT,
        "target": asdict(artifact.target),
        "digests": dict(artifact.digests),
        "moved_ratio": artifact.moved_ratio,
        "seconds": artifact.seconds,
    }
    (made / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    made.chmod(0o755)
    try:
        os.replace(made, artifact.folder)
    except OSError:
        # Not empty: another process was first, or what lies there is broken. Ours is as good.
        with tempfile.TemporaryDirectory(dir=artifact.folder.parent) as old:
            os.replace(artifact.folder, Path(old) / "old")
            os.replace(made, artifact.folder)


def remove_others(keep: Artifact) -> None:
    """Delete what was made of the same checkpoint and precision for other versions."""
    prefix = keep.folder.name.rpartition("-")[0]
    for folder in keep.folder.parent.glob(f"{prefix}-*"):
        if folder == keep.folder or not (folder / MANIFEST).is_file():
            continue
        try:
            other = _from_manifest(folder, json.loads((folder / MANIFEST).read_bytes())).target
        except (OSError, ValueError, KeyError, TypeError, AttributeError, ArtifactError):
            continue
        if (other.checkpoint, other.processor) == (keep.target.checkpoint, keep.target.processor):
            shutil.rmtree(folder, ignore_errors=True)


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
    digests = {Shape(name): str(digest) for name, digest in manifest["digests"].items()}
    if set(digests) != set(Shape):
        raise ArtifactError(f"expected the programs {[*Shape]} in {folder}, got {[*digests]}")
    return Artifact(
        folder,
        Target(**target),
        digests,
        float(manifest["moved_ratio"]),
        float(manifest["seconds"]),
    )


def _check_target(artifact: Artifact, target: Target) -> None:
    for field in fields(Target):
        wanted, found = getattr(target, field.name), getattr(artifact.target, field.name)
        if wanted != found:
            raise ArtifactError(
                f"{artifact.folder} was made for {field.name} {found}, this is {wanted}; {_REMEDY}"
            )
