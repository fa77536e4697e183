"""Building the native code that forecasts run on."""

from __future__ import annotations

from model import native_tokens
from model.attention import native as native_attention
from model.attention.native.library import find as find_attention
from model.errors import ModelError
from model.native_tokens.library import find as find_tokens


def build_native_code() -> list[str]:
    """Build the tokeniser and the attention kernel, each where it lies in no place.

    Returns:
        What could not be built, and why: torch does it then.
    """
    troubles = []
    for find, build in (
        (find_tokens, native_tokens.build),
        (find_attention, native_attention.build),
    ):
        try:
            if find() is None:
                build()
        except (ModelError, OSError) as error:
            troubles.append(str(error))
    return troubles
