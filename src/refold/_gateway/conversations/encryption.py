"""Encrypts stored values if a store key is configured."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from functools import lru_cache
from hashlib import scrypt
from typing import Any

from refold.errors import StoreCorrupt

__all__ = ["Seal", "is_sealed", "sealing_machine"]

MARK = "refold-sealed-2:"
OLD_MARK, OLD_SALT = "refold-sealed:", b"refold gateway store"  # of releases in which stores had no salt of their own
MARKS = MARK, OLD_MARK


class Seal:
    """Closes and opens texts with a key derived from a secret and a store's salt; without a secret they stay plain."""

    def __init__(self, secret: str, salt: bytes = b"") -> None:
        self._secret = secret
        self._machine = sealing_machine(secret, salt) if secret else None

    @property
    def has_secret(self) -> bool:
        """Whether it has a secret, so that what it closes is encrypted."""
        return self._machine is not None

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
        return json.loads(self.opened_text(value)) if isinstance(value, str) and is_sealed(value) else value

    def opened_text(self, text: str) -> str:
        """Return a text that was kept.

        Raises:
            StoreCorrupt: it is encrypted with another secret, or with one that was not given.
        """
        if not is_sealed(text):
            return text
        from cryptography.fernet import InvalidToken

        if self._machine is None:
            raise StoreCorrupt(
                "what the store holds is encrypted: set REFOLD_STORE_KEY to the secret it was written with"
            )
        try:
            if text.startswith(OLD_MARK):
                opened: bytes = sealing_machine(self._secret, OLD_SALT).decrypt(text[len(OLD_MARK) :].encode())
            else:
                opened = self._machine.decrypt(text[len(MARK) :].encode())
        except InvalidToken:
            raise StoreCorrupt(
                "what the store holds was encrypted with another secret: set REFOLD_STORE_KEY to that one"
            ) from None
        return opened.decode()


def is_sealed(text: str) -> bool:
    """Tell whether a text is kept encrypted."""
    return text.startswith(MARKS)


@lru_cache(4)
def sealing_machine(secret: str, salt: bytes) -> Any:
    """Return the Fernet that a secret and a store's salt make."""
    from cryptography.fernet import Fernet

    return Fernet(urlsafe_b64encode(scrypt(secret.encode(), salt=salt, n=2**14, r=8, p=1, dklen=32)))
