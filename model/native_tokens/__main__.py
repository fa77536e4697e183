"""`python -m model.native_tokens [--beside]`: build the tokeniser and say what will run."""

from __future__ import annotations

import sys

from model.errors import ArtifactError
from model.native_tokens.library import BESIDE, build, load


def main(arguments: list[str]) -> int:
    """Build into the cache, or beside the package."""
    try:
        path = build(BESIDE if "--beside" in arguments else None)
        if "--beside" in arguments:
            path.parent.chmod(0o755)
    except (ArtifactError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    library = load()
    sys.stdout.write(f"{library.reason}\n")
    return 0 if library.function is not None else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
