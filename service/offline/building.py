"""Building the native code that forecasts run on."""

from __future__ import annotations

from model import native_tokens
from model.attention import native as native_attention


def build_native_code() -> None:
    """Build the tokeniser and the attention kernel, where they are missing.

    Raises:
        ModelError: There is no compiler, or it fails.
    """
    native_tokens.build()
    native_attention.build()
