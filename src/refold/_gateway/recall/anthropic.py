"""Anthropic Messages: a message is a list of numbered blocks; those of all rounds stand in one list."""

from __future__ import annotations

from refold._gateway.recall.response_merger import (
    GIVEN_UP,
    RecallCall,
    RecallRound,
    ResponseMerger,
    added,
)
from refold._gateway.recall.tool import NAME
from refold.core._json import Json, mapping

__all__ = ["AnthropicMerger"]


class AnthropicMerger(ResponseMerger):
    """Joins answers of `POST /v1/messages`.

    Thinking behind a call of the tool, in the same round or a later one, stood behind what the client never sees. A
    model that binds thinking would refuse it in the client's next request, so the client does not get it.
    """

    named = True

    def __init__(self, *, binds_thinking: bool = False) -> None:
        super().__init__()
        self._binds = binds_thinking
        self._blocks: dict[tuple[int, int], int] = {}
        self._begun: Json = {}  # the usage that this round's beginning told
        self._worded = self._called = False

    def starts_recall(self, data: Json) -> bool:
        return data.get("type") == "content_block_start" and _ours(data.get("content_block"))

    def is_preamble(self, data: Json) -> bool:
        return data.get("type") in ("message_start", "ping")

    def merge_event(self, data: Json, *, closing: bool) -> list[Json]:
        match data.get("type"):
            case "message_start":
                self._begun = (data.get("message") or {}).get("usage") or {}
                return [] if self.round else [data]
            case "content_block_start" | "content_block_delta" | "content_block_stop":
                if data["type"] == "content_block_start" and self.round and self._bound(data.get("content_block")):
                    self.dropped |= {data.get("index", 0)}
                if data.get("index") in self.dropped:
                    return []
                if data["type"] == "content_block_start":
                    self._called = self._called or (data.get("content_block") or {}).get("type") == "tool_use"
                    self._worded = True
                key = self.round, data.get("index", 0)
                return [{**data, "index": self._blocks.setdefault(key, len(self._blocks))}]
            case "message_delta":
                return self._closing(data) if closing else []
            case "message_stop":
                return [data] if closing else []
            case _:
                return [data]

    def _closing(self, data: Json) -> list[Json]:
        merged = dict(data)
        if self.round and isinstance(data.get("usage"), dict):
            merged["usage"] = added(self.spent, {**self._begun, **_without_nulls(data["usage"])})
        delta = data.get("delta") or {}
        if not (self.dropped and delta.get("stop_reason") == "tool_use" and not self._called):
            return [merged]
        merged["delta"] = {**delta, "stop_reason": "end_turn"}
        if self._worded:
            return [merged]
        at = len(self._blocks)
        return [
            {"type": "content_block_start", "index": at, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": at, "delta": {"type": "text_delta", "text": GIVEN_UP}},
            {"type": "content_block_stop", "index": at},
            merged,
        ]

    def read_round(self, body: Json) -> RecallRound:
        content: list[Json] = body.get("content") or []
        ours = [place for place, block in enumerate(content) if _ours(block)]
        recalls = tuple(RecallCall(content[place].get("id", ""), content[place].get("input")) for place in ours)
        others = tuple(
            RecallCall(block.get("id", ""), block.get("input"), block.get("name", ""))
            for block in content
            if block.get("type") == "tool_use" and not _ours(block)
        )
        turn = {"role": "assistant", "content": content}
        cut = body.get("stop_reason") not in ("tool_use", "end_turn")
        first = 0 if self.round else ours[0] if ours else len(content)
        bound = [place for place in range(first, len(content)) if self._bound(content[place])]
        return RecallRound([turn], recalls, others, cut, frozenset({*ours, *bound}), body.get("usage") or {})

    def joined(self, bodies: list[Json]) -> Json:
        content: list[Json] = []
        called = False
        for block in [block for body in bodies for block in body.get("content") or ()]:
            called = called or _ours(block)
            if not (_ours(block) or (called and self._bound(block))):
                content.append(block)
        usage: Json = {}
        for body in bodies:
            usage = added(usage, body.get("usage") or {})
        merged = {**bodies[-1], "id": bodies[0].get("id"), "content": content, "usage": usage}
        if merged.get("stop_reason") == "tool_use" and not any(block.get("type") == "tool_use" for block in content):
            merged["stop_reason"] = "end_turn"
            merged["content"] = content or [{"type": "text", "text": GIVEN_UP}]
        return merged

    def results(self, recall_round: RecallRound, texts: list[str]) -> list[Json]:
        blocks = [
            {"type": "tool_result", "tool_use_id": call.id, "content": text}
            for call, text in zip(recall_round.recalls, texts, strict=True)
        ]
        return [{"role": "user", "content": blocks}]

    def error(self, body: Json) -> Json:
        return {"type": "error", **body}

    def _bound(self, block: object) -> bool:
        """Tell whether a block is thinking that is bound to what stands before it."""
        return self._binds and mapping(block).get("type") in ("thinking", "redacted_thinking")


def _ours(block: object) -> bool:
    return isinstance(block, dict) and block.get("type") == "tool_use" and block.get("name") == NAME


def _without_nulls(values: Json) -> Json:
    return {key: value for key, value in values.items() if value is not None}
