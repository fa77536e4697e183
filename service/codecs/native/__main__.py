"""Builds the reader of samples: `python -m service.codecs.native [--beside]`.

Where it cannot be built, pydantic reads samples as well, slower; nothing else changes.
"""

from __future__ import annotations

import argparse
import sys

from model.errors import ArtifactError
from service.codecs.native.library import cutter_library, load


def main(arguments: list[str] | None = None) -> int:
    """Build, and say what will run; 1 where it could not be built."""
    parser = argparse.ArgumentParser(prog="python -m service.codecs.native", description=__doc__)
    parser.add_argument("--beside", action="store_true", help="into the package itself")
    trouble = build(parser.parse_args(arguments).beside)
    if trouble is not None:
        sys.stderr.write(f"{trouble}\n")
    sys.stdout.write(f"samples: {load().reason}\n")
    return 0 if trouble is None else 1


def build(beside: bool = False) -> str | None:
    """Build the library into the package or the user's cache; why not, or None where it is there.

    Args:
        beside: Into the package itself, for everyone who may read it. Otherwise into the user's
            cache, unless it lies in one of the two places.
    """
    library = cutter_library()
    try:
        if beside:
            library.build_beside()
        elif library.find() is None:
            library.build()
    except (ArtifactError, OSError) as error:
        return str(error)
    return None


if __name__ == "__main__":
    sys.exit(main())
