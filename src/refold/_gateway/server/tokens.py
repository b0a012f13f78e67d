"""Tokens of users, teams and administrators, in a file that only grows; it holds hashes, never a token.

Each line is a token as it is from then on: a later line of the same id replaces the earlier one, which is how a token
is revoked. So two commands that write at once lose nothing. A token has 256 random bits, for which a plain hash is
enough: there is no dictionary to try.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
import time
from hashlib import sha256
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from refold.core._decoders import decoder
from refold.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["TOKEN_START", "Token", "TokenFile"]

TOKEN_START = "refold_"  # noqa: S105 - how the text of each token begins
NAME = re.compile(r"[\w.@-]{1,64}", re.ASCII)
CHECKED = 1.0  # seconds after which a file that may have changed is looked at again
NO_HASH = sha256(b"").hexdigest()  # compared with where there is no token of an id, so that both take as long


class Token(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One token: whose it is and what it allows.

    `owner` is "user:NAME" or "team:NAME"; an administrator's is empty. `rate` is requests a minute and `max_body` bytes
    of a request body; 0 leaves both to the settings of the gateway. Times are seconds since 1970.
    """

    id: str
    owner: str = ""
    admin: bool = False
    hash: str
    created: float
    revoked: float = 0.0
    rate: int = 0
    max_body: int = 0


_decode = decoder(Token)


class TokenFile:
    """The tokens of a file; a file that does not exist holds none."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tokens: dict[str, Token] = {}
        self._version: tuple[int, ...] = ()
        self._looked = float("-inf")
        self._was_used = False

    def create(self, owner: str, *, admin: bool = False, rate: int = 0, max_body: int = 0) -> tuple[Token, str]:
        """Add a token and return it with its text, which nothing can show again.

        Raises:
            UsageError: the name is none, or the file cannot be read or written.
        """
        if not admin and not NAME.fullmatch(owner.partition(":")[2]):
            raise UsageError(f"{owner.partition(':')[2]!r} is no name: use 1 to 64 letters, digits or any of . @ _ -")
        secret = secrets.token_urlsafe(32)
        token = Token(
            id=secrets.token_hex(4), owner=owner, admin=admin, hash=sha256(secret.encode()).hexdigest(),
            created=time.time(), rate=rate, max_body=max_body,
        )  # fmt: skip
        self._append(token)
        return token, f"{TOKEN_START}{token.id}_{secret}"

    def revoke(self, id: str) -> Token:
        """End a token; gateways that read this file refuse it within a second.

        Raises:
            UsageError: no token in force has this id, or the file cannot be read or written.
        """
        token = next((token for token in self.in_force() if token.id == id), None)
        if token is None:
            raise UsageError(f"there is no token {id!r} in force in {self._path}: `refold tokens list` shows them")
        token = replace(token, revoked=time.time())
        self._append(token)
        return token

    def in_force(self) -> tuple[Token, ...]:
        """Return the tokens that are not revoked, the oldest first.

        Raises:
            UsageError: the file cannot be read, or is damaged.
        """
        return tuple(token for token in self._read().values() if not token.revoked)

    def find(self, text: str) -> Token | None:
        """Return the token in force that a text is.

        A file that was damaged since is not taken over: the tokens that were read last stay in force.
        """
        id, _, secret = text.removeprefix(TOKEN_START).partition("_")
        token = self._current().get(id) if text.startswith(TOKEN_START) else None
        same = hmac.compare_digest(sha256(secret.encode()).hexdigest(), token.hash if token is not None else NO_HASH)
        return token if token is not None and same and not token.revoked else None

    def get(self, id: str) -> Token | None:
        """Return the token in force of an id."""
        token = self._current().get(id)
        return token if token is not None and not token.revoked else None

    @property
    def is_used(self) -> bool:
        """Whether it holds a token, be it revoked, or held one before: that the last one went promotes nobody."""
        return bool(self._current()) or self._was_used

    def _current(self) -> dict[str, Token]:
        now = time.monotonic()
        if now - self._looked >= CHECKED:
            self._looked = now
            try:
                version = self._stated()
                if version != self._version:
                    self._tokens, self._version = self._read(), version
                    self._was_used = self._was_used or bool(self._tokens)
            except (UsageError, OSError):
                pass
        return self._tokens

    def _stated(self) -> tuple[int, ...]:
        try:
            stat = self._path.stat()
        except FileNotFoundError:
            return ()
        return stat.st_ino, stat.st_mtime_ns, stat.st_size

    def _read(self) -> dict[str, Token]:
        try:
            if self._path.exists() and not self._path.is_file():  # a device would keep no token, and lose its mode
                raise UsageError(f"{self._path} is not a regular file: name a file with --token-file")
            lines = self._path.read_bytes().splitlines()
        except FileNotFoundError:
            lines = []
        except OSError as error:
            raise UsageError(f"{self._path} cannot be read ({error.strerror}): name a file with --token-file") from None
        tokens: dict[str, Token] = {}
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    token = _decode(line)
                except msgspec.DecodeError as error:
                    message = f"{self._path}: line {number} is no token ({error})"
                    raise UsageError(f"{message}: restore the file, or remove the line") from None
                tokens[token.id] = token
        return tokens

    def _append(self, token: Token) -> None:
        self._read()  # a damaged file is reported and not added to
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            number = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.fchmod(number, 0o600)
                size = os.fstat(number).st_size
                ended = not size or os.pread(number, 1, size - 1) == b"\n"  # an editor may have left a line open
                line = (b"" if ended else b"\n") + msgspec.json.encode(token) + b"\n"
                os.write(number, line)  # one write, which no other comes between
                os.fsync(number)
            finally:
                os.close(number)
        except OSError as error:
            raise UsageError(
                f"{self._path} cannot be written ({error.strerror}): name a file with --token-file"
            ) from None
