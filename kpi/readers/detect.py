"""Which format a file has, by what is in it and never by its name."""

from __future__ import annotations

from enum import StrEnum

from kpi.errors import UnreadableFileError

PARQUET_MAGIC = b"PAR1"
_UTF16_XML = (b"\xff\xfe<\x00", b"\xfe\xff\x00<")


class Format(StrEnum):
    """What a reader can be chosen by."""

    XML = "xml"
    JSON = "json"
    PARQUET = "parquet"
    CSV = "csv"


def detect(data: bytes, name: object) -> Format:
    """The format of decompressed content.

    Raises:
        UnreadableFileError: It is neither XML, JSON, Parquet nor text.
    """
    if data.startswith(PARQUET_MAGIC):
        return Format.PARQUET
    if data.startswith(_UTF16_XML):
        return Format.XML
    head = data[:4096].removeprefix(b"\xef\xbb\xbf").lstrip()
    if head.startswith(b"<"):
        return Format.XML
    if head.startswith((b"{", b"[")):
        return Format.JSON
    if b"\0" in head:
        raise UnreadableFileError(
            name, "expected PM XML, a PM report, CSV or Parquet, got binary or UTF-16 data"
        )
    return Format.CSV
