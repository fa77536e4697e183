"""Bearer tokens (RFC 6750) from a file: who they are, what they may, and whether one is known.

One token a line, as three words; `#` begins a comment::

    # name      scopes       token, or sha256: and the hash of one
    dashboard   read         3q2-7wd0b9f1c2a4e5d6
    collector   write        sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
    operator    read,write   …

Hashes are plain SHA-256, which suits long random tokens and no passwords. In memory there are
hashes only, whatever the file holds, and no message quotes a line of it.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from service.access.scopes import GRANTABLE, Scope
from service.errors import ServiceError

LEAST_CHARACTERS = 16
MOST_BYTES = 1024 * 1024
_HASHED = "sha256:"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
# The b64token of RFC 6750, section 2.1.
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")
_DIGEST = re.compile(r"[0-9a-fA-F]{64}")


class TokenFileError(ServiceError):
    """A token file that cannot be used; the message names its line, and never what it holds."""


@dataclass(frozen=True, slots=True)
class Token:
    """One entry of the file.

    Attributes:
        name: Who it is for; may be logged.
        scopes: What it may do, `admin` spelt out.
        digest: SHA-256 of the token.
    """

    name: str
    scopes: frozenset[Scope]
    digest: bytes


class TokenBook:
    """The tokens that hold at present.

    Args:
        path: The file.

    Raises:
        TokenFileError: The file cannot be read or used.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tokens = read_tokens(path)

    @property
    def tokens(self) -> Sequence[Token]:
        """What was read last."""
        return self._tokens

    def reload(self) -> None:
        """Take the file as it is now; where it cannot be used, what held before goes on holding.

        Raises:
            TokenFileError: The file cannot be read or used.
        """
        self._tokens = read_tokens(self._path)

    def find(self, presented: bytes) -> Token | None:
        """The entry of a token, None where there is none.

        Every entry is compared, and each in constant time, so that the time tells nothing.
        """
        digest = hashlib.sha256(presented).digest()
        found: Token | None = None
        for token in self._tokens:
            if hmac.compare_digest(token.digest, digest):
                found = token
        return found


def read_tokens(path: Path) -> tuple[Token, ...]:
    """Read a token file.

    Raises:
        TokenFileError: It cannot be read, is too large, holds no token, or a line cannot be used.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        text = content.decode("utf-8")
    except OSError as error:
        raise TokenFileError(
            f"expected a token file at {path}, but it cannot be read: {error.strerror}"
        ) from error
    except UnicodeDecodeError:
        raise TokenFileError(f"expected UTF-8 text in the token file {path}") from None
    if len(content) > MOST_BYTES:
        raise TokenFileError(f"expected at most {MOST_BYTES} bytes in the token file {path}")
    tokens: list[Token] = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            token = _entry(words)
            _check_new(token, tokens)
        except TokenFileError as error:
            raise TokenFileError(f"line {number} of the token file {path}: {error}") from None
        tokens.append(token)
    if not tokens:
        raise TokenFileError(
            f"expected at least one token in {path}, found none; write lines of name, scopes, token"
        )
    return tuple(tokens)


def _entry(words: Sequence[str]) -> Token:
    if len(words) != 3:
        raise TokenFileError(f"expected three words (name, scopes, token), got {len(words)}")
    name, scopes, secret = words
    if not _NAME.fullmatch(name):
        raise TokenFileError(
            "expected a name of up to 64 letters, digits, dots, dashes, underscores or @"
        )
    return Token(name, _scopes(scopes), _digest(secret))


def _scopes(text: str) -> frozenset[Scope]:
    known = {scope.value: scope for scope in GRANTABLE}
    parts = text.split(",")
    if not known.keys() >= set(parts):
        raise TokenFileError(
            f"expected scopes out of {', '.join(known)}, separated by commas and without spaces"
        )
    scopes = frozenset(known[part] for part in parts)
    return frozenset(GRANTABLE) if Scope.ADMIN in scopes else scopes


def _digest(secret: str) -> bytes:
    if secret.startswith(_HASHED):
        hashed = secret.removeprefix(_HASHED)
        if not _DIGEST.fullmatch(hashed):
            raise TokenFileError("expected 64 hexadecimal digits behind sha256:")
        return bytes.fromhex(hashed)
    if len(secret) < LEAST_CHARACTERS or not _TOKEN.fullmatch(secret):
        raise TokenFileError(
            f"expected a token of at least {LEAST_CHARACTERS} letters, digits or any of ._~+/- "
            "(openssl rand -hex 32 makes one), or sha256: and the hash of one"
        )
    return hashlib.sha256(secret.encode()).digest()


def _check_new(token: Token, others: Sequence[Token]) -> None:
    for other in others:
        if other.name == token.name:
            raise TokenFileError(f"expected each name once, got {token.name} again")
        if other.digest == token.digest:
            raise TokenFileError(f"expected each token once, got that of {other.name} again")
