"""Building the C++ that forecasts run on: `python -m model.native_code [--beside]`.

Where it cannot be built, torch does what it would, slower; nothing else changes.
"""

from __future__ import annotations

import argparse
import sys

from model.attention.native.library import kernel_library, lacking_platform
from model.attention.native.library import load as load_attention
from model.errors import ArtifactError
from model.native_tokens.library import load as load_tokens
from model.native_tokens.library import token_library


def build_native_code(beside: bool = False) -> list[str]:
    """Build the tokeniser and, where it exists for the machine, the attention kernel.

    Args:
        beside: Into the package itself, for everyone who may read it. Otherwise into the user's
            cache, unless it lies in one of the two places.

    Returns:
        What could not be built, and why.
    """
    libraries = [token_library()]
    if lacking_platform() is None:
        libraries.append(kernel_library())
    troubles = []
    for library in libraries:
        try:
            if beside:
                library.build_beside()
            elif library.find() is None:
                library.build()
        except (ArtifactError, OSError) as error:
            troubles.append(str(error))
    return troubles


def main(arguments: list[str] | None = None) -> int:
    """Build, and say what will run; 1 where something could not be built."""
    parser = argparse.ArgumentParser(prog="python -m model.native_code", description=__doc__)
    parser.add_argument("--beside", action="store_true", help="into the package itself")
    troubles = build_native_code(parser.parse_args(arguments).beside)
    for words in troubles:
        sys.stderr.write(f"{words}\n")
    sys.stdout.write(f"tokens: {load_tokens().reason}\nattention: {load_attention().reason}\n")
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main())
