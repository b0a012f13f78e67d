"""What a request asks of its provider's own compaction: edits, a threshold, a compaction at once.

Sources: `context_management` and `compaction` in the beta types of the anthropic SDK 2.14; `context_management`,
`compaction_trigger` and `responses.compact` in the types of the openai SDK 3.57.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from refold.core._json import Json, is_whole, listing, mapping, objects, string, string_of

if TYPE_CHECKING:
    from refold._gateway.wire.body import ParsedBody

__all__ = [
    "ASKING", "BETAS", "CLEAR_THINKING", "CLEAR_TOOL_USES", "ITEMS", "ClearThinking", "ClearToolUses", "Wish",
    "provider_threshold", "wish_of",
]  # fmt: skip

CLEAR_TOOL_USES = "clear_tool_uses_20250919"
CLEAR_THINKING = "clear_thinking_20251015"
COMPACT = "compact_20260112"
TRIGGER = "compaction_trigger"  # the last item of an input that is to be compacted
ASKING = ("context_management", "compaction")  # keys of a body
BETAS = frozenset({"context-management-2025-06-27", "compact-2026-01-12", "compact-2026-09-04"})
ITEMS = frozenset({"compaction", "compaction_summary", "context_compaction"})  # Codex knows three names
TOOL_USES_FROM = 100_000  # tokens: the provider's default for clearing tool uses
KEPT_TOOL_USES = 3  # its default for the newest ones, which stay
KEPT_THINKING = 1  # its default for turns that keep their thinking
COMPACTS_FROM = 150_000  # tokens: its default for a compaction


class ClearToolUses(Struct, frozen=True):
    """Results of tools are cleared but for the newest, from a number of tokens or of tool uses on.

    `inputs` are the names of tools whose arguments are cleared too; None are all.
    """

    tokens: int | None = TOOL_USES_FROM
    uses: int = 0
    keep: int = KEPT_TOOL_USES
    least: int = 0
    never: frozenset[str] = frozenset()
    inputs: frozenset[str] | None = frozenset()


class ClearThinking(Struct, frozen=True):
    """Thinking is removed but for that of the newest turns; None keeps all."""

    keep: int | None = KEPT_THINKING


class Wish(Struct, frozen=True):
    """What a request asks for.

    `clears` are edits of each request. `compacts`: the answer may begin with a compaction, from `threshold` tokens on
    (None: whenever the gateway compacts); with `pause` it then ends there. `now`: the answer is a compaction.
    `reports`: the answer tells which edits were applied.
    """

    clears: tuple[ClearToolUses | ClearThinking, ...] = ()
    compacts: bool = False
    threshold: int | None = None
    pause: bool = False
    instructions: str = ""
    now: bool = False
    reports: bool = False

    @property
    def nothing(self) -> bool:
        """Whether the request asks for nothing of this kind."""
        return not (self.now or self.reports or self.compacts)


def wish_of(body: ParsedBody, format: str) -> Wish:
    """Return what a body asks for; what cannot be read of it, and edits of other versions, are left out."""
    managed = body.get("context_management")
    if format == "openai-responses":
        entry = next((each for each in objects(managed) if each.get("type") == "compaction"), None)
        triggered = bool(body.raws) and TRIGGER.encode() in bytes(body.raws[-1])
        if entry is None:
            return Wish(now=triggered)
        return Wish(compacts=True, threshold=_whole(entry.get("compact_threshold")), now=triggered)
    at_once = mapping(body.get("compaction"))
    if at_once.get("type") == "summarize":
        return Wish(now=True, instructions=string_of(at_once.get("instructions")))
    edits = objects(mapping(managed).get("edits"))
    wish = Wish(_clears(edits), reports=isinstance(managed, dict))
    entry = next((each for each in edits if each.get("type") == COMPACT), None)
    if entry is None:
        return wish
    threshold = _whole(mapping(entry.get("trigger")).get("value")) or COMPACTS_FROM
    pause, instructions = entry.get("pause_after_compaction") is True, string_of(entry.get("instructions"))
    return Wish(wish.clears, True, threshold, pause, instructions, reports=True)


def provider_threshold(managed: Any, format: str) -> int | None:
    """Return the tokens from which the provider compacts by itself (0: it decides); None where it was not asked to."""
    if format == "openai-responses":
        entries = [each for each in objects(managed) if each.get("type") == "compaction"]
        return (_whole(entries[0].get("compact_threshold")) or 0) if entries else None
    edits = [each for each in objects(mapping(managed).get("edits")) if each.get("type") == COMPACT]
    return (_whole(mapping(edits[0].get("trigger")).get("value")) or COMPACTS_FROM) if edits else None


def _clears(edits: list[Json]) -> tuple[ClearToolUses | ClearThinking, ...]:
    clears: list[ClearToolUses | ClearThinking] = []
    for edit in edits:
        keep = edit.get("keep")
        if edit.get("type") == CLEAR_THINKING:
            value = _whole(mapping(keep).get("value"))
            everything = keep == "all" or mapping(keep).get("type") == "all"
            clears.append(ClearThinking(None if everything else KEPT_THINKING if value is None else value))
        elif edit.get("type") == CLEAR_TOOL_USES:
            clears.append(_tool_uses(edit))
    return tuple(clears)


def _tool_uses(edit: Json) -> ClearToolUses:
    trigger, inputs = mapping(edit.get("trigger")), edit.get("clear_tool_inputs")
    value, kept = _whole(trigger.get("value")), _whole(mapping(edit.get("keep")).get("value"))
    by_uses = string(trigger, "type") == "tool_uses" and value is not None
    return ClearToolUses(
        None if by_uses else TOOL_USES_FROM if value is None else value,
        value or 0 if by_uses else 0,
        KEPT_TOOL_USES if kept is None else kept,
        _whole(mapping(edit.get("clear_at_least")).get("value")) or 0,
        frozenset(name for name in listing(edit.get("exclude_tools")) if isinstance(name, str)),
        None if inputs is True else frozenset(name for name in listing(inputs) if isinstance(name, str)),
    )


def _whole(value: object) -> int | None:
    return value if is_whole(value) and value >= 0 else None
