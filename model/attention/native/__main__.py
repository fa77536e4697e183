"""Builds the kernel's library, or says why it cannot: `python -m model.attention.native`."""

from __future__ import annotations

import argparse
import sys

from model.attention.native.library import BESIDE, build, load
from model.errors import AttentionError


def main(arguments: list[str] | None = None) -> int:
    """Build into the cache, or into the package itself; a machine that cannot is told so."""
    parser = argparse.ArgumentParser(prog="python -m model.attention.native", description=__doc__)
    parser.add_argument("--beside", action="store_true", help="into the package itself")
    options = parser.parse_args(arguments)
    try:
        if options.beside:  # unlike a cache, a package is for everyone who may read it
            BESIDE.mkdir(exist_ok=True)
        build(BESIDE if options.beside else None)
    except (AttentionError, OSError) as error:
        sys.stderr.write(f"{error}\nattention will run in torch\n")
        return 1
    sys.stdout.write(f"{load().reason}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
