"""How large the tiles are that a program of the kernel holds.

The sizes keep operands within the shared memory that every supported GPU has, 99 KiB a block. They
follow from that bound, not from timings, which nobody has taken yet.
"""

from __future__ import annotations

from dataclasses import dataclass

SMALLEST = 16
"""Side of the smallest tile that can be multiplied."""


@dataclass(frozen=True, slots=True)
class Tiles:
    """Shape of a tile, and how the compiler is to work on it.

    Attributes:
        queries: Queries of a tile.
        keys: Keys of a tile.
        warps: Warps of a program.
        stages: Tiles that are on their way from memory at once.
    """

    queries: int
    keys: int
    warps: int = 4
    stages: int = 2


# By the bytes of a padded row: half precision has twice the channels in the same space.
_FORWARD = {
    128: Tiles(128, 64),
    256: Tiles(64, 64),
    512: Tiles(32, 32),
    1024: Tiles(16, 16),
}
_BACKWARD = {
    128: Tiles(64, 64),
    256: Tiles(32, 64),
    512: Tiles(32, 32, stages=1),
    1024: Tiles(16, 16, stages=1),
}


def padded_width(width: int) -> int:
    """Channels of a tile: the next power of two that can be multiplied."""
    return max(SMALLEST, 1 << (width - 1).bit_length())


def choose(width: int, itemsize: int, n_q: int, n_k: int, backward: bool) -> Tiles:
    """Tiles for a head width and a type, no larger than short sequences fill.

    Args:
        width: Head width D, at most 256.
        itemsize: Bytes of a number.
        n_q: Number of queries.
        n_k: Number of keys.
        backward: Whether for the gradients, which hold more at once.
    """
    row = max(128, padded_width(width) * itemsize)
    tiles = (_BACKWARD if backward else _FORWARD)[row]
    return Tiles(
        min(tiles.queries, padded_width(max(1, n_q))),
        min(tiles.keys, padded_width(max(1, n_k))),
        tiles.warps,
        tiles.stages,
    )
