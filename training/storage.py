"""Data and checkpoints by path or by URL: `s3://bucket/key`, `file:///path`, and plain paths.

What lies in a store is copied to a local folder before it is read, since readers look at whole
files. What is written there becomes visible in one step. Endpoint, region and credentials of S3 are
those of the environment (`AWS_ENDPOINT_URL`, `AWS_REGION`, `AWS_ACCESS_KEY_ID`, …) or of what AWS's
own library finds; other schemes are those that `pyarrow.fs.FileSystem.from_uri` knows.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from kpi.errors import UnreadableFileError
from model.checkpoint import (
    Checkpoint,
    content_digest,
    encode_checkpoint,
    load_checkpoint,
)
from model.files import replace_file
from model.pretrained import find_checkpoint
from training.errors import PlaceError, StoreError

COPY_BYTES = 1 << 20
CONNECT_SECONDS = 10.0
REQUEST_SECONDS = 60.0
SECRETS = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID")

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
_SCHEME = re.compile(r"^([a-zA-Z][a-zA-Z0-9+.-]+)://")
_REFUSED = re.compile(
    r"ACCESS_DENIED|NO_SUCH_BUCKET|NO_SUCH_KEY|RESOURCE_NOT_FOUND|INVALID_ACCESS_KEY_ID|"
    r"INVALID_CLIENT_TOKEN_ID|INVALID_SIGNATURE|SIGNATURE_DOES_NOT_MATCH|"
    r"MISSING_AUTHENTICATION_TOKEN|HTTP status 40[0134]|Bucket .* not found"
)


@dataclass(frozen=True)
class StoredFile:
    """A file of a store, with those methods of a path that a run needs.

    Attributes:
        url: As the user wrote it.
        key: Its path in the file system.
        filesystem: A `pyarrow.fs.FileSystem`.
    """

    url: str
    key: str
    filesystem: Any = field(repr=False, compare=False)

    def __str__(self) -> str:
        return self.url

    @property
    def name(self) -> str:
        """The last part of the key."""
        return PurePosixPath(self.key).name

    def with_name(self, name: str) -> StoredFile:
        """The file of another name beside this one."""
        url, key = (text[: len(text) - len(self.name)] + name for text in (self.url, self.key))
        return replace(self, url=url, key=key)

    def is_dir(self) -> bool:
        """Whether files lie below it, as below a folder."""
        return self._type() == "Directory"

    def exists(self) -> bool:
        """Whether there is such a file."""
        return self._type() == "File"

    def read_bytes(self) -> bytes:
        """The whole content.

        Raises:
            PlaceError: There is no such file, or it may not be read.
            StoreError: The store failed.
        """
        with (
            _told(f"{self.url} cannot be read"),
            self.filesystem.open_input_stream(self.key) as stream,
        ):
            return bytes(stream.read())

    def write_bytes(self, content: bytes) -> None:
        """Put the file there in one step: written beside it, then moved over it by the store.

        Raises:
            PlaceError: It may not be written there, or there is no such bucket.
            StoreError: The store failed; what was there stays.
        """
        partial = self.with_name(f"{self.name}.partial").key
        with _told(f"{self.url} cannot be written"):
            with self.filesystem.open_output_stream(partial) as stream:
                stream.write(content)
            self.filesystem.move(partial, self.key)

    def unlink(self, missing_ok: bool = False) -> None:
        """Remove the file.

        Raises:
            PlaceError: There is none, unless `missing_ok`, or it may not be removed.
            StoreError: The store failed.
        """
        with _told(f"{self.url} cannot be removed"):
            try:
                self.filesystem.delete_file(self.key)
            except FileNotFoundError:
                if not missing_ok:
                    raise

    def _type(self) -> str:
        with _told(f"{self.url} cannot be looked at"):
            return str(self.filesystem.get_file_info(self.key).type.name)


Place = Path | StoredFile


def place_of(text: str) -> Place:
    """The place that a path or URL names; nothing is asked of a store yet.

    Raises:
        PlaceError: The URL is of no known scheme, names no file, or holds credentials.
        StoreError: The region of a bucket could not be found out.
    """
    match = _SCHEME.match(text)
    if match is None:
        return Path(text)
    scheme = match.group(1).lower()
    parts = urlsplit(text)
    if "@" in parts.netloc:
        raise PlaceError(
            f"expected a {scheme}:// URL without credentials, which would end up in logs; set "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or what the store's own tools read"
        )
    if scheme == "file":
        if parts.netloc not in ("", "localhost"):
            raise PlaceError(f"expected file:///path with three slashes, got {text}")
        return Path(unquote(parts.path))
    if scheme == "s3":
        bucket, _, key = text[match.end() :].partition("/")
        if not bucket:
            raise PlaceError(f"expected s3://BUCKET/KEY, got {text}")
        return StoredFile(text.rstrip("/"), f"{bucket}/{key}".rstrip("/"), _s3(bucket))
    from pyarrow import fs

    with _told(f"{text} cannot be used"):
        try:
            filesystem, key = fs.FileSystem.from_uri(text)
        except ValueError as error:
            raise PlaceError(
                f"expected a path, file://, s3:// or another URL that pyarrow knows, got {text} "
                f"({error})"
            ) from error
    return StoredFile(text.rstrip("/"), key.rstrip("/"), filesystem)


def write_file(place: Place, content: bytes) -> None:
    """Put a file where it belongs in one step: a reader sees the old one or the new one, whole.

    Raises:
        OSError: A local file cannot be written; what was there stays.
        PlaceError: It may not be written to the store.
        StoreError: The store failed.
    """
    if isinstance(place, Path):
        replace_file(place, content)
    else:
        place.write_bytes(content)


def stored_checkpoint(place: Place) -> Checkpoint:
    """A checkpoint to start from: by its path, by its shipped name, or by its URL.

    Raises:
        CheckpointError: There is none, or it is damaged.
        PlaceError: There is nothing at a URL, or it may not be read.
        StoreError: The store failed.
    """
    if isinstance(place, Path):
        return load_checkpoint(find_checkpoint(place))
    with fetched([place]) as (path,):
        return load_checkpoint(path)


def store_checkpoint(checkpoint: Checkpoint, place: Place) -> Checkpoint:
    """Write a checkpoint in one step; returns it with the digest of the file.

    Raises:
        OSError: A local file cannot be written; what was there stays.
        PlaceError: It may not be written to the store.
        StoreError: The store failed.
    """
    content = encode_checkpoint(checkpoint)
    write_file(place, content)
    return replace(checkpoint, digest=content_digest(content))


def check_writable(place: Place) -> None:
    """Write an empty file beside a place and remove it, so that a long run does not end in vain.

    Raises:
        PlaceError: It cannot be written there, with the reason.
        OSError: The disk is full or fails, which may pass.
        StoreError: The store failed.
    """
    if isinstance(place, StoredFile) and "/" not in place.key:
        raise PlaceError(f"expected a file below a bucket to write to, got {place}")
    probe = place.with_name(f"{place.name}.probe")
    try:
        write_file(probe, b"")
        probe.unlink(missing_ok=True)
    except PlaceError as error:
        raise PlaceError(str(error).replace(str(probe), str(place))) from None
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise
        raise PlaceError(f"{place} cannot be written: {error.strerror or error}") from error


@contextmanager
def fetched(places: Sequence[Place]) -> Iterator[tuple[Path, ...]]:
    """Local paths of data; what lies in a store is copied, and the copy goes when this ends.

    All are looked for before the first is copied.

    Raises:
        UnreadableFileError: There is nothing at a path.
        PlaceError: There is nothing at a URL, or it may not be read.
        StoreError: The store failed.
    """
    listings = {}
    for index, place in enumerate(places):
        if isinstance(place, StoredFile):
            listings[index] = _files_of(place)
        elif not place.exists():
            raise UnreadableFileError(place, "expected a file or a folder, found nothing")
    if not listings:
        yield tuple(place for place in places if isinstance(place, Path))
        return
    with tempfile.TemporaryDirectory(prefix="rancast-") as folder:
        yield tuple(
            place
            if isinstance(place, Path)
            else _copy(place, listings[index], Path(folder, str(index)))
            for index, place in enumerate(places)
        )


def _files_of(place: StoredFile) -> list[Any]:
    """What `pyarrow.fs` knows of the file, or of all files below it."""
    from pyarrow import fs

    with _told(f"{place} cannot be read"):
        info = place.filesystem.get_file_info(place.key)
        if info.type == fs.FileType.File:
            return [info]
        selector = fs.FileSelector(place.key, recursive=True, allow_not_found=True)
        found = [
            entry
            for entry in place.filesystem.get_file_info(selector)
            if entry.type == fs.FileType.File
        ]
    if not found:
        raise PlaceError(f"{place}: expected a file, or files below it, found nothing")
    return found


def _copy(place: StoredFile, files: Sequence[Any], folder: Path) -> Path:
    """Copy files with their names and times; the local file or folder bears the place's name."""
    root = folder / place.name
    for info in files:
        inner = PurePosixPath(info.path[len(place.key) :].lstrip("/"))
        if ".." in inner.parts:
            raise PlaceError(f"{place}: expected keys without '..', got {info.path}")
        target = root / inner
        target.parent.mkdir(parents=True, exist_ok=True)
        with (
            _told(f"{place} cannot be read"),
            place.filesystem.open_input_stream(info.path) as stream,
            target.open("wb") as file,
        ):
            shutil.copyfileobj(stream, file, COPY_BYTES)
        if info.mtime_ns:  # a reader takes it for the time when the file became available
            os.utime(target, ns=(info.mtime_ns, info.mtime_ns))
    return root


def _s3(bucket: str) -> Any:
    """The S3 that the environment names; a store of one's own needs no region."""
    from pyarrow import fs

    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    options: dict[str, Any] = {}
    if endpoint:
        parts = urlsplit(endpoint if "//" in endpoint else f"https://{endpoint}")
        if parts.scheme not in ("http", "https") or not parts.netloc or "@" in parts.netloc:
            raise PlaceError(
                "expected AWS_ENDPOINT_URL as http://HOST:PORT or https://HOST:PORT, without "
                "credentials"
            )
        options.update(scheme=parts.scheme, endpoint_override=parts.netloc)
    if bundle := os.environ.get("AWS_CA_BUNDLE"):
        options["tls_ca_file_path"] = bundle
    with _told(f"the region of the bucket {bucket} cannot be found; set AWS_REGION"):
        if not region:
            region = "us-east-1" if endpoint else fs.resolve_s3_region(bucket)
    return fs.S3FileSystem(
        region=region,
        connect_timeout=CONNECT_SECONDS,
        request_timeout=REQUEST_SECONDS,
        allow_delayed_open=True,
        **options,
    )


@contextmanager
def _told(what: str) -> Iterator[None]:
    """Errors of a store as our own: refusals apart from failures, and no secret in the words."""
    try:
        yield
    except OSError as error:
        reason = str(error)
        for name in SECRETS:
            if secret := os.environ.get(name):
                reason = reason.replace(secret, f"<{name}>")
        refused = isinstance(error, FileNotFoundError | PermissionError | NotADirectoryError)
        kind = PlaceError if refused or _REFUSED.search(reason) else StoreError
        raise kind(f"{what}: {reason}") from None
