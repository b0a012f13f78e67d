"""Encrypts stored values if a store key is configured."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from hashlib import scrypt
from typing import Any

from refold.errors import StoreCorrupt

__all__ = ["Seal"]

MARK = "refold-sealed:"
SALT = b"refold gateway store"  # one key for one store; the secret itself must be a strong one


class Seal:
    """Closes and opens texts with a key derived from a secret; without a secret they stay as they are."""

    def __init__(self, secret: str) -> None:
        self._machine: Any = None
        if secret:
            from cryptography.fernet import Fernet

            key = scrypt(secret.encode(), salt=SALT, n=2**14, r=8, p=1, dklen=32)
            self._machine = Fernet(urlsafe_b64encode(key))

    def closed(self, text: str) -> str:
        """Return JSON text of a message as a store keeps it."""
        return text if self._machine is None else json.dumps(self.closed_text(text))

    def closed_text(self, text: str) -> str:
        """Return any text as a store keeps it."""
        return text if self._machine is None else MARK + self._machine.encrypt(text.encode()).decode()

    def words(self, text: str) -> str:
        """Return the words for a store's search, which there are none of when it is to know nothing."""
        return text if self._machine is None else ""

    def opened(self, value: object) -> Any:
        """Return a message that was kept."""
        return json.loads(self.opened_text(value)) if isinstance(value, str) and value.startswith(MARK) else value

    def opened_text(self, text: str) -> str:
        """Return a text that was kept.

        Raises:
            StoreCorrupt: it is encrypted with another secret, or with one that was not given.
        """
        if not text.startswith(MARK):
            return text
        from cryptography.fernet import InvalidToken

        if self._machine is None:
            raise StoreCorrupt(
                "what the store holds is encrypted: set REFOLD_STORE_KEY to the secret it was written with"
            )
        try:
            opened: bytes = self._machine.decrypt(text[len(MARK) :].encode())
        except InvalidToken:
            raise StoreCorrupt(
                "what the store holds was encrypted with another secret: set REFOLD_STORE_KEY to that one"
            ) from None
        return opened.decode()
