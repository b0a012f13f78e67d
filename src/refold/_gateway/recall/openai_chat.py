"""OpenAI chat: calls are numbered within one message, whose content is one text."""

from __future__ import annotations

from typing import Any

from refold._gateway.recall.response_merger import (
    BREAK,
    GIVEN_UP,
    RecallCall,
    RecallRound,
    ResponseMerger,
    added,
    sound,
)
from refold._gateway.recall.tool import NAME
from refold.core._json import Json, listing, mapping, string
from refold.formats._streaming.openai_chat import continued_call

__all__ = ["OpenAIChatMerger"]

FIRST_ROUND_FIELDS = ("id", "created", "system_fingerprint")  # of the first round
SIGNED = ("extra_content", "provider_specific_fields")  # of a call: what Gemini and proxies want back with the first


class OpenAIChatMerger(ResponseMerger):
    """Joins answers of `POST /v1/chat/completions`."""

    def __init__(self) -> None:
        super().__init__()
        self._head: Json = {}
        self._calls: list[Json] = []  # of this round, each with its `number` for the client, unless it is left out
        self._numbered = 0  # calls of all rounds that the client gets
        self._seal: Json = {}  # of a call that is left out
        self._worded = self._broken = False

    def starts_recall(self, data: Json) -> bool:
        return any(_name(call) == NAME for choice in _choices(data) for call in _calls(choice.get("delta")))

    def is_preamble(self, data: Json) -> bool:
        return "error" not in data and not any(
            choice.get("finish_reason")
            or any(value for key, value in (choice.get("delta") or {}).items() if key != "role")
            for choice in _choices(data)
        )

    def merge_event(self, data: Json, *, closing: bool) -> list[Json]:
        if "choices" not in data:
            return [data]
        if not self._head:
            self._head = {key: data[key] for key in FIRST_ROUND_FIELDS if key in data}
        choices = [merged for choice in _choices(data) if (merged := self._choice(choice, closing=closing))]
        usage = data.get("usage")
        if isinstance(usage, dict):
            usage = added(self.spent, usage)
        if not choices and (_choices(data) or not closing):
            return []
        return [{**data, **self._head, "choices": choices, **({"usage": usage} if "usage" in data else {})}]

    def _choice(self, choice: Json, *, closing: bool) -> Json | None:
        delta = dict(choice.get("delta") or {})
        if self.round:
            delta.pop("role", None)
        calls = delta.pop("tool_calls", None)
        if calls and (visible := [merged for call in calls if (merged := self._client_call(call))]):
            delta["tool_calls"] = visible
        elif calls is not None and not calls:
            delta["tool_calls"] = calls
        finish = choice.get("finish_reason")
        if delta.get("content"):
            text = delta["content"]
            if self.round > 0 and self._worded and not self._broken:
                text = BREAK + text
            self._broken = self.round > 0
            self._worded = True
            delta["content"] = text
        if finish and not closing:
            finish = None
        if finish == "tool_calls" and self.dropped and not self._numbered:
            finish = "stop"
            if not self._worded:
                delta["content"] = GIVEN_UP
        merged = {**choice, "delta": delta}
        if "finish_reason" in choice:
            merged["finish_reason"] = finish
        return merged if delta or finish or not (calls or self.round or choice.get("finish_reason")) else None

    def follows(self, recall_round: RecallRound) -> None:
        super().follows(recall_round)
        self._broken = False
        self._calls = []
        self._seal = {}

    def _client_call(self, call: Json) -> Json | None:
        """Return a piece of a call as the client gets it; nothing of one that is left out but its signature."""
        known = continued_call(self._calls, call)
        if not known:
            known |= {"index": call.get("index"), "recall": _name(call) == NAME}
        if call.get("id"):
            known["id"] = call["id"]
        if known["recall"]:
            if not any("number" in each for each in self._calls):
                self._seal |= _seal(call)
            return None
        if "number" not in known:
            known["number"] = self._numbered
            self._numbered += 1
            call, self._seal = {**self._seal, **call}, {}
        return {**call, "index": known["number"]}

    def read_round(self, body: Json) -> RecallRound:
        choice = (_choices(body) or [{}])[0]
        message: Json = choice.get("message") or {}
        calls = _calls(message)
        ours = [place for place, call in enumerate(calls) if _name(call) == NAME]
        recalls = tuple(
            RecallCall(calls[place].get("id", ""), calls[place]["function"].get("arguments")) for place in ours
        )
        turn = {key: value for key, value in message.items() if value is not None or key == "content"}
        if calls:
            turn["tool_calls"] = [_sound(call) if _name(call) == NAME else call for call in calls]
        cut = choice.get("finish_reason") not in ("tool_calls", "stop", "function_call")
        others = tuple(_other(call) for call in calls if _name(call) != NAME)
        return RecallRound([turn], recalls, others, cut, frozenset(ours), body.get("usage") or {})

    def joined(self, bodies: list[Json]) -> Json:
        last = bodies[-1]
        choice = dict((_choices(last) or [{}])[0])
        message = dict(choice.get("message") or {})
        messages = [(_choices(body) or [{}])[0].get("message") or {} for body in bodies]
        texts = [text for each in messages if (text := string(each, "content"))]
        calls = _without_recalls(_calls(message))
        dropped = len(calls) < len(_calls(message))
        message.pop("tool_calls", None)
        if calls:
            message["tool_calls"] = calls
        elif dropped and choice.get("finish_reason") == "tool_calls":
            choice["finish_reason"] = "stop"
            texts = texts or [GIVEN_UP]
        message["content"] = BREAK.join(texts) if texts else message.get("content")
        merged = {**last, **{key: bodies[0][key] for key in FIRST_ROUND_FIELDS if key in bodies[0]}}
        merged["choices"] = [{**choice, "message": message}]
        return _with_usage(merged, bodies)

    def results(self, recall_round: RecallRound, texts: list[str]) -> list[Json]:
        return [
            {"role": "tool", "tool_call_id": call.id, "content": text}
            for call, text in zip(recall_round.recalls, texts, strict=True)
        ]


def _with_usage(merged: Json, bodies: list[Json]) -> Json:
    usage: Json = {}
    for body in bodies:
        usage = added(usage, body.get("usage") or {})
    return {**merged, "usage": usage} if usage else merged


def _choices(data: Json) -> list[Json]:
    return listing(data.get("choices"))


def _calls(message: object) -> list[Json]:
    return listing(mapping(message).get("tool_calls"))


def _name(call: Json) -> Any:
    return mapping(call.get("function")).get("name")


def _other(call: Json) -> RecallCall:
    function = call.get("function") or call.get("custom") or {}
    return RecallCall(call.get("id", ""), function.get("arguments", function.get("input")), function.get("name", ""))


def _seal(call: Json) -> Json:
    return {key: call[key] for key in SIGNED if call.get(key)}


def _without_recalls(calls: list[Json]) -> list[Json]:
    """Return the client's calls; the signature of a recall that was the first goes to the one that is the first now."""
    visible = [call for call in calls if _name(call) != NAME]
    if visible and visible[0] is not calls[0]:
        visible[0] = {**_seal(calls[0]), **visible[0]}
    return visible


def _sound(call: Json) -> Json:
    function = call["function"]
    return {**call, "function": {**function, "arguments": sound(function.get("arguments"))}}
