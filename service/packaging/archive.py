"""Archives that depend on nothing but their content: the same files give the same bytes.

Times, owners and modes are fixed and the order is that of the names, so a package can be built
again and compared. What zlib makes of the content is the only thing left to the machine.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from collections.abc import Mapping

# The first moment that a zip file can state.
_YEAR = 1980
_MTIME_S = 315_532_800
_MODE = 0o644
_LEVEL = 9
_UNIX = 3


def tar_gz(files: Mapping[str, bytes]) -> bytes:
    """A gzipped tar file of plain files.

    Args:
        files: Content by name; names are POSIX paths.
    """
    packed = io.BytesIO()
    # Without a name and a time in its header, and always with the same system.
    with (
        gzip.GzipFile("", "wb", _LEVEL, packed, mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.GNU_FORMAT) as tar,
    ):
        for name in sorted(files):
            entry = tarfile.TarInfo(name)
            entry.size = len(files[name])
            entry.mtime = _MTIME_S
            entry.mode = _MODE
            tar.addfile(entry, io.BytesIO(files[name]))
    return packed.getvalue()


def zip_archive(files: Mapping[str, bytes]) -> bytes:
    """A zip file whose entries state their sizes up front, as streaming readers need it.

    Args:
        files: Content by name; names are POSIX paths.
    """
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, (_YEAR, 1, 1, 0, 0, 0))
            entry.create_system = _UNIX
            entry.external_attr = _MODE << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, files[name], compresslevel=_LEVEL)
    return packed.getvalue()
