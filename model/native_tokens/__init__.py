"""Tokens by plain C++ where it has been built: what torch needs five hundred small steps for."""

from model.native_tokens.library import Library, load
from model.native_tokens.tokeniser import build_tokens

__all__ = ["Library", "build_tokens", "load"]
