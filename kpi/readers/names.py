"""Names of measured objects: one name for one object, whatever source reports it.

A PM file names an object by its managed element and a path below it (TS 32.432 `measObjLdn`). Some
sources repeat the element at the head of the path, and a bare element name may come back as the
value of an RDN. Names are compared as string prefixes only: values may hold commas and spaces, so a
path is never taken apart.
"""

from __future__ import annotations


def compose(entity: str, path: str) -> str:
    """Distinguished name of the object at `path` below `entity`.

    * An empty path is the entity itself, and the other way round.
    * Where the path starts with the entity's last RDNs, or with all of it, they are not repeated.
    * Where the entity is a bare name and the path starts with an RDN of that value
      (`node7` and `ManagedElement=node7,NRCellDU=1`), the path is the whole name.

    Composing a name with its entity again changes nothing.
    """
    entity, path = entity.strip(), path.strip()
    if not path or not entity:
        return path or entity
    start = 0
    while start >= 0:
        if _heads(path, entity[start:]):
            return entity[:start] + path
        start = entity.find(",", start) + 1 or -1
    if "=" not in entity and _heads(path.partition("=")[2], entity):
        return path
    return f"{entity},{path}"


def object_name(entity: str, path: str, dn_prefix: str = "") -> str:
    """`compose` of entity and path, below `dn_prefix` where one is given."""
    name = compose(entity, path)
    return compose(dn_prefix, name) if dn_prefix else name


def _heads(path: str, part: str) -> bool:
    """Whether `part` is the whole path or its first RDNs."""
    return path.startswith(part) and path[len(part) : len(part) + 1] in ("", ",")
