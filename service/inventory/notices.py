"""The licences of all that an image is made of, as a text for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from service.inventory.component import Component, Origin, flattened
from service.inventory.policy import DEBIAN_REASON, reason

_WIDTH = 40


def licence_list(components: Sequence[Component], name: str, version: str) -> str:
    """One line for each part: name, version, licence; below it where the words of the licence are.

    Args:
        components: What the image is made of.
        name: Of the image.
        version: Of the image.
    """
    return "\n".join(_lines(components, f"{name} {version}")) + "\n"


def _lines(components: Sequence[Component], title: str) -> Iterator[str]:
    yield f"Licences of what the image of {title} is made of"
    parts = list(flattened(components))
    for origin in Origin:
        members = [(part, carrier) for part, carrier in parts if part.origin is origin]
        if not members:
            continue
        yield from ("", origin.value, "=" * len(origin.value), "")
        if origin is Origin.DEBIAN:
            yield from (DEBIAN_REASON, "")
        for part, carrier in members:
            yield from _entry(part, carrier)


def _entry(part: Component, carrier: str) -> Iterator[str]:
    what = f"{part.name} {part.version}".strip()
    yield f"{f'{what} (in {carrier})' if carrier else what:<{_WIDTH}}  {part.licence}"
    # The words of what lies inside another part are with those of who carries it.
    yield from (f"    {text}" for text in (() if carrier else part.texts))
    if part.origin is not Origin.DEBIAN and (words := reason(part)) is not None:
        yield f"    May be shipped: {words}"
