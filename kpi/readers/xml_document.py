"""An XML file as its root and the elements that hold measurements.

Safe by construction: DTDs refused, no entities, no network, libxml2's own limits on depth and text
length kept (`huge_tree` off). A document of ordinary size is parsed at once, a large one piece by
piece, and what has been read of it is dropped. Only one thing is ever repaired, an XML declaration
that does not stand first, as one emulator writes it; a parser's recover mode would invent data.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lxml import etree

from kpi.errors import UnreadableFileError

_WHOLE_BYTES = 8 * 2**20
_FEED_BYTES = 1 << 18
_MISPLACED = re.compile(
    rb"((?:\xef\xbb\xbf)?(?>\s+|<\?(?!xml\s).*?\?>|<!--.*?-->)++)(<\?xml\s.*?\?>)", re.DOTALL
)
# collect_ids stays on: switching it off makes libxml2 load external DTDs, whatever load_dtd says.
_OPTIONS: dict[str, Any] = {
    "resolve_entities": False,
    "load_dtd": False,
    "dtd_validation": False,
    "no_network": True,
    "huge_tree": False,
    "recover": False,
    "remove_comments": True,
    "remove_pis": True,
    "remove_blank_text": True,
}


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed document.

    Attributes:
        root: The root element; of a large document only as far as it has been read.
        elements: The wanted elements in document order. Each is valid until the next is taken;
            taking it may raise UnreadableFileError.
    """

    root: etree._Element
    elements: Iterator[etree._Element]


def local_name(element: etree._Element) -> str:
    """Name of an element without its namespace."""
    return str(element.tag).rpartition("}")[2]


def open_document(
    data: bytes, name: object, wanted: Sequence[str], whole_bytes: int = _WHOLE_BYTES
) -> Document:
    """Parse a document.

    Args:
        data: The document.
        name: Its name, for errors.
        wanted: Local names of the elements to give.
        whole_bytes: Up to this size the document is parsed at once.

    Raises:
        UnreadableFileError: It is not well-formed, or exceeds the parser's limits.
    """
    data = _repaired(data)
    tags = [f"{{*}}{tag}" for tag in wanted]
    if len(data) > whole_bytes:
        pieces = _pieces(data, name, tags)
        root = next(pieces)
        return Document(root, pieces)
    try:
        root = etree.fromstring(data, etree.XMLParser(**_OPTIONS))
    except etree.XMLSyntaxError as error:
        raise _unreadable(data, name, error) from error
    return Document(root, root.iter(*tags))


def _pieces(data: bytes, name: object, tags: Sequence[str]) -> Iterator[etree._Element]:
    """The root, then the wanted elements of a large document while it is parsed."""
    # The stubs know neither the events' type by kind nor slices of elements.
    probe: Any = etree.XMLPullParser(events=("start",), **_OPTIONS)
    parser: Any = None
    before: etree._Element | None = None
    try:
        for begin in range(0, len(data), _FEED_BYTES):
            chunk = data[begin : begin + _FEED_BYTES]
            if parser is None:
                probe.feed(chunk)
                _, root = next(iter(probe.read_events()), (None, None))
                if root is None:
                    continue
                parser = etree.XMLPullParser(
                    events=("start", "end"), tag=[root.tag, *tags], **_OPTIONS
                )
                chunk = data[: begin + _FEED_BYTES]
            parser.feed(chunk)
            for event, element in parser.read_events():
                if element.getparent() is None:
                    if event == "start":
                        yield element
                elif event == "end":
                    if before is not None and (parent := before.getparent()) is not None:
                        parent.remove(before)
                    before = element
                    yield element
        (probe if parser is None else parser).close()
    except etree.XMLSyntaxError as error:
        raise _unreadable(data, name, error) from error


def _repaired(data: bytes) -> bytes:
    """`data` with its XML declaration moved to the front, where it is not there."""
    if data.startswith(b"<?xml") and data[5:6].isspace():
        return data
    match = _MISPLACED.match(data)
    if match is None:
        return data
    return match[2] + match[1].removeprefix(b"\xef\xbb\xbf") + data[match.end() :]


def refuse_dtd(root: etree._Element, name: object) -> None:
    """Raise UnreadableFileError where the document declares a DTD, be it empty."""
    info: Any = root.getroottree().docinfo
    if info.doctype or info.internalDTD is not None:
        raise UnreadableFileError(
            name,
            f"expected a PM file without a DTD, got <!DOCTYPE> before <{local_name(root)}>; DTDs "
            "and entities are never read",
        )


def _unreadable(data: bytes, name: object, error: etree.XMLSyntaxError) -> UnreadableFileError:
    if b"<!DOCTYPE" in data[:_FEED_BYTES]:
        return UnreadableFileError(
            name, f"expected a PM file without a DTD, got <!DOCTYPE> and: {error.msg}"
        )
    return UnreadableFileError(
        name,
        f"expected well-formed XML, got: {error.msg}; the file is truncated, damaged or beyond the "
        "parser's limits (10 MB a text, depth 256); transfer or export it again",
    )
