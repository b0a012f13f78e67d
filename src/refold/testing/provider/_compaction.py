"""The refusal of a server that speaks a provider's protocol and knows nothing of the provider's own compaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from refold.core._json import Json, placed_objects, string
from refold.testing.provider._wire import WireError

__all__ = ["compaction_refusal"]

_FIELDS = ("context_management", "compaction")
_TYPES = frozenset({"compaction", "compaction_summary", "compaction_trigger", "context_compaction"})
_BETAS = ("context-management-", "compact-")


def compaction_refusal(body: Json, headers: Mapping[str, str]) -> WireError | None:
    """Return why such a server rejects a request: a field, a block or item, or a beta that it does not know."""
    for field in _FIELDS:
        if field in body:
            return WireError("invalid", f"{field}: Extra inputs are not permitted", field)
    for at, kind in _types(body):
        if kind in _TYPES:
            return WireError("invalid", f"{at}: Input tag {kind!r} does not match any of the expected tags", at)
    for beta in headers.get("anthropic-beta", "").split(","):
        if beta.strip().startswith(_BETAS):
            return WireError("invalid", f"Unexpected value(s) `{beta.strip()}` for the `anthropic-beta` header")
    return None


def _types(body: Json) -> Iterator[tuple[str, str]]:
    """Yield the type of each item and block of a conversation, with its path."""
    for key in ("input", "messages"):
        for place, message in placed_objects(body.get(key)):
            yield f"{key}.{place}", string(message, "type")
            for number, block in placed_objects(message.get("content")):
                yield f"{key}.{place}.content.{number}", string(block, "type")
