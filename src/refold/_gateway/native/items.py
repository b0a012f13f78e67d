"""Compaction items of the gateway: a sealed reference to a history in the store, in the shape of the provider's item.

Theory of operation. A provider's compaction item is opaque to everyone else. Ours refers to the originals: a session
of the store, how many of its messages the item stands for, and the id of the last of them, which depends on all
before. It is encrypted and authenticated with the store's own salt and key, so nobody can make one that names another
history. `words` are what can be read of the history when the store no longer has it. A block of Anthropic's carries
them beside the reference, and never a signature, which only the provider can make.
"""

from __future__ import annotations

import asyncio
import zlib
from functools import cached_property
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import Struct

from refold._condense.transcript_text import serialize
from refold._gateway.conversations.encryption import sealing_machine
from refold._gateway.native.wishes import ITEMS
from refold._text.graphemes import head_and_tail
from refold.core._decoders import decoder
from refold.core._json import Json, mapping, string
from refold.core.messages import Message, MessageId, text_of

__all__ = [
    "MARK",
    "RecordedItem",
    "Reference",
    "Sealer",
    "compaction_block",
    "compaction_item",
    "digest_of",
    "long_form",
    "words_of",
]

MARK = "refold-compaction-1."
LONGEST = 24_000  # characters of words, of which a quarter are the beginning where they are longer


class Reference(Struct, frozen=True, omit_defaults=True):
    """The history that an item stands for: `count` messages of a session up to `tip`, and the plans in force then."""

    conversation: str
    session: str
    count: int
    tip: MessageId
    plans: tuple[str, ...] = ()
    owner: str = ""
    words: str = ""


_reference = decoder(Reference)


class RecordedItem(Struct, frozen=True, omit_defaults=True, tag="item"):
    """An item that a provider made: the digest of its content, the upstream, and the history it stands for."""

    digest: str
    upstream: str
    reference: Reference


class Sealer:
    """Seals references, and opens those that this store has sealed."""

    def __init__(self, secret: str, salt: bytes) -> None:
        self._secret = secret or salt.hex()
        self._salt = salt

    @cached_property
    def _machine(self) -> Any:
        return sealing_machine(self._secret, self._salt)

    async def prepare(self) -> None:
        """Derive the key beside the event loop, which that would hold for 50 ms."""
        if "_machine" not in vars(self):
            await asyncio.to_thread(getattr, self, "_machine")

    def sealed(self, reference: Reference) -> str:
        """Return a reference as opaque text."""
        token: bytes = self._machine.encrypt(zlib.compress(msgspec.json.encode(reference)))
        return MARK + token.decode()

    def opened(self, text: str, owner: str) -> Reference | None:
        """Return the reference that a text seals; None where it was sealed elsewhere, altered, or for another owner."""
        from cryptography.fernet import InvalidToken

        try:
            plain = zlib.decompress(self._machine.decrypt(text.removeprefix(MARK).encode()))
            reference = _reference(plain)
        except (InvalidToken, zlib.error, msgspec.DecodeError, UnicodeEncodeError):
            return None
        return reference if reference.owner == owner else None


def compaction_item(sealed: str) -> Json:
    """Return OpenAI's item."""
    return {"id": f"cmp_{_digest(sealed)}", "type": "compaction", "encrypted_content": sealed}


def compaction_block(sealed: str, words: str) -> Json:
    """Return Anthropic's block."""
    return {"type": "compaction", "content": words, "encrypted_content": sealed}


def digest_of(item: Json) -> str:
    """Return by what an item or block is known again; nothing where it is none, or holds nothing."""
    if string(item, "type") not in ITEMS:
        return ""
    values = (string(item, key) for key in ("signature", "encrypted_content", "content"))
    return next((_digest(value) for value in values if value), "")


def words_of(view: tuple[Message, ...]) -> str:
    """Return what a view says, as text: what plans wrote first, then the messages; its middle may be left out."""
    written = [text for message in view if message.note is not None and (text := text_of(message))]
    rest = [message for message in view if message.note is None and message.role != "system"]
    text = "\n\n".join([*written, serialize(rest)])
    if len(text) <= LONGEST:
        return text
    head = min(max(LONGEST // 4, sum(map(len, written))), LONGEST // 2)
    return head_and_tail(text, head, LONGEST - head, "[… {omitted} characters left out …]")


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def long_form(message: Json) -> Json:
    """Return a message of OpenAI's in the form in which its answers give one, without an id and a status.

    A text is a list of one part, and an image has its detail: schemas of the Responses API require them.
    """
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "input_text", "text": content}]
    elif isinstance(content, list):
        content = [_with_detail(part) for part in content]
    kept = {key: value for key, value in message.items() if key not in ("id", "status")}
    return {"type": "message", **kept, "content": content}


def _with_detail(part: Any) -> Any:
    image = string(mapping(part), "type") == "input_image" and not part.get("detail")
    return {**part, "detail": "auto"} if image else part
