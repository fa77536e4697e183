"""`python -m service`: serve with the settings of the environment."""

from __future__ import annotations

import sys

from service.errors import SettingsError
from service.server import serve
from service.settings import load_settings


def main() -> int:
    """Serve; returns the exit code."""
    try:
        settings = load_settings()
    except SettingsError as error:
        sys.stderr.write(f"rancast: {error}\n")
        return 2
    return serve(settings)


if __name__ == "__main__":
    sys.exit(main())
