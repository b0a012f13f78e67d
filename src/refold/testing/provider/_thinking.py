"""Checks thinking blocks as Claude does: signatures over the preceding messages, and the rules of an active tool loop.

A signature of this provider is a digest of everything before the block (system prompt, tools, messages, earlier
blocks of its own message) and of its text, so that a check needs no memory: it holds after a restart, on a branch and
in another process. `cache_control` is no part of it, and messages of one role in a row count as one, as for Claude.
Source: the documentation of preserved thinking and of extended thinking with tool use.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

from refold.core._json import Json, listing, mapping, objects, string, string_of
from refold.core.transcript import canonical
from refold.models._thinking import binds_thinking, claude_version

__all__ = ["CONTROLS", "misplaced", "missing", "signature", "without_misplaced"]

CONTROLS = "thinking-binding-controls-2026-08-01"  # the beta header under which a request may ask for dropping
ADAPTIVE = (4, 6)  # from here on an answer in a tool loop need not begin with thinking
MARKS = frozenset({"cache_control"})
KINDS = frozenset({"thinking", "redacted_thinking"})


def signature(body: Json, text: str) -> str:
    """Return the signature of thinking that a request is answered with."""
    digest = _start(body)
    for _, _, block, role in _blocks(body):
        digest = _chained(digest, role, block)
    return _signed(digest, "assistant", text)


def misplaced(body: Json) -> list[tuple[int, int]]:
    """Return where thinking stands behind anything else than it was produced behind: message and block, in order.

    A model that does not bind thinking checks nothing of the kind.
    """
    if not binds_thinking("anthropic", string(body, "model")):
        return []
    digest, mismatched = _start(body), []
    for place, number, block, role in _blocks(body):
        if block.get("type") in KINDS:
            text, signature = block.get("thinking", ""), block.get("signature", block.get("data"))
            if signature != _signed(digest, role, string_of(text)):
                mismatched.append((place, number))
        digest = _chained(digest, role, block)
    return mismatched


def without_misplaced(body: Json) -> Json:
    """Return a request without misplaced thinking, as the API drops it on request."""
    stale = set(misplaced(body))
    messages = [
        {**message, "content": [block for number, block in enumerate(content) if (place, number) not in stale]}
        if isinstance(content := message.get("content"), list)
        else message
        for place, message in enumerate(body.get("messages", ()))
    ]
    return {**body, "messages": messages}


def missing(body: Json) -> int | None:
    """Return the message of an active tool loop that has to begin with thinking and does not, None where none has to.

    Manual extended thinking of models before 4.6 demands it of the assistant's turn that the newest results answer.
    """
    version, thinking = claude_version(string(body, "model")), body.get("thinking")
    manual = mapping(thinking).get("type") == "enabled"
    messages = body.get("messages")
    if not manual or version is None or version >= ADAPTIVE or not isinstance(messages, list):
        return None
    opening = None
    for place in reversed(range(len(messages))):
        kinds = [block.get("type") for block in _content(messages[place])]
        if messages[place].get("role") == "assistant":
            opening = place
        elif set(kinds) != {"tool_result"}:  # words of the user begin a turn, also next to results
            break
    if opening is None or messages[-1].get("role") == "assistant":
        return None
    first = next(iter(_content(messages[opening])), {})
    return None if first.get("type") in KINDS else opening


def _start(body: Json) -> bytes:
    system = body.get("system") or []
    blocks = [{"type": "text", "text": system}] if isinstance(system, str) else system
    return blake2b(canonical([blocks, body.get("tools") or []], MARKS), digest_size=16).digest()


def _blocks(body: Json) -> Iterator[tuple[int, int, Json, str]]:
    for place, message in enumerate(listing(body.get("messages"))):
        for number, block in enumerate(_content(message)):
            yield place, number, block, message.get("role", "")


def _content(message: Json) -> list[Json]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return objects(content)


def _chained(digest: bytes, role: str, block: Json) -> bytes:
    return blake2b(digest + role.encode() + canonical(block, MARKS), digest_size=16).digest()


def _signed(digest: bytes, role: str, text: str) -> str:
    return (
        f"sig-{blake2b(digest + role.encode() + text.encode('utf-8', 'backslashreplace'), digest_size=16).hexdigest()}"
    )
