"""OpenAI Responses: a response is a list of items, repeated in full at its end."""

from __future__ import annotations

from refold._gateway.recall.response_merger import (
    GIVEN_UP,
    RecallCall,
    RecallRound,
    ResponseMerger,
    added,
    sound,
)
from refold._gateway.recall.tool import NAME
from refold.core._json import Json, mapping
from refold.formats._streaming.openai_responses import BEGINNING, ENDING

__all__ = ["OpenAIResponsesMerger"]

CALLED = "_call"  # at the end of an item's type that somebody must answer


class OpenAIResponsesMerger(ResponseMerger):
    """Joins answers of `POST /v1/responses`.

    Reasoning that leads to a call must not stand without it, so it goes with it; in a stream it waits for what follows.
    """

    named = True

    def __init__(self, *, stored: bool = True) -> None:
        super().__init__()
        self._stored = stored
        self._items: dict[tuple[int, int], int] = {}
        self._sent = 0
        self._waiting = False
        self._before: list[Json] = []  # what earlier rounds leave in the answer

    def starts_recall(self, data: Json) -> bool:
        return data.get("type") == "response.output_item.added" and _ours(data.get("item"))

    def may_belong_to_recall(self, data: Json) -> bool:
        if data.get("type") == "response.output_item.added":
            self._waiting = (data.get("item") or {}).get("type") == "reasoning"
        elif data.get("type") in ENDING:
            self._waiting = False
        return self._waiting

    def is_preamble(self, data: Json) -> bool:
        return data.get("type") in BEGINNING

    def merge_event(self, data: Json, *, closing: bool) -> list[Json]:
        kind = data.get("type")
        if kind in BEGINNING:
            return [] if self.round else [self._numbered({**data, "response": _plain(data.get("response"))})]
        if kind in ENDING:
            return self._ended(data) if closing else []
        if "output_index" not in data:
            return [self._numbered(data)]
        if data["output_index"] in self.dropped:
            return []
        place = self._items.setdefault((self.round, data["output_index"]), len(self._items))
        return [self._numbered({**data, "output_index": place})]

    def _ended(self, data: Json) -> list[Json]:
        response = _plain(data.get("response"))
        if "output" in response:
            response["output"] = [*self._before, *_without_recalls(response["output"])]
            if not response["output"] and self.dropped:
                return [*self._given_up(), self._numbered({**data, "response": {**response, "output": [_words()]}})]
        if self.round and isinstance(response.get("usage"), dict):
            response["usage"] = added(self.spent, response["usage"])
        return [self._numbered({**data, "response": response})]

    def _given_up(self) -> list[Json]:
        item, at = _words(), {"output_index": len(self._items)}
        address = {"item_id": item["id"], "content_index": 0, **at}
        part = item["content"][0]
        events = (
            {"type": "response.output_item.added", **at, "item": {**item, "content": []}},
            {"type": "response.content_part.added", **address, "part": {**part, "text": ""}},
            {"type": "response.output_text.delta", **address, "delta": GIVEN_UP, "logprobs": []},
            {"type": "response.output_text.done", **address, "text": GIVEN_UP, "logprobs": []},
            {"type": "response.content_part.done", **address, "part": part},
            {"type": "response.output_item.done", **at, "item": item},
        )
        return [self._numbered(event) for event in events]

    def _numbered(self, data: Json) -> Json:
        if "sequence_number" not in data:
            return data
        self._sent += 1
        return {**data, "sequence_number": self._sent - 1}

    def read_round(self, body: Json) -> RecallRound:
        output: list[Json] = body.get("output") or []
        ours = [item for item in output if _ours(item)]
        others = tuple(
            RecallCall(item.get("call_id", ""), item.get("arguments"), item.get("name", ""))
            for item in output
            if str(item.get("type")).endswith(CALLED) and not _ours(item) and _waits_for_client(item)
        )
        recalls = tuple(RecallCall(item.get("call_id", ""), item.get("arguments")) for item in ours)
        cut = body.get("status") not in (None, "completed")
        return RecallRound(self._turn(output), recalls, others, cut, _dropped(output), body.get("usage") or {})

    def _turn(self, output: list[Json]) -> list[Json]:
        """Return items as they go back: of an answer that is not kept upstream, without what only the keeper knows."""
        output = [{**item, "arguments": sound(item.get("arguments"))} if _ours(item) else item for item in output]
        if self._stored:
            return output
        known = [item for item in output if item.get("type") != "reasoning" or item.get("encrypted_content")]
        if len(known) == len(output):
            return output
        return [{key: value for key, value in item.items() if key != "id"} for item in known]

    def follows(self, recall_round: RecallRound) -> None:
        super().follows(recall_round)
        self._before += _without_recalls(recall_round.turn)

    def joined(self, bodies: list[Json]) -> Json:
        output = [item for body in bodies for item in _without_recalls(body.get("output") or [])]
        usage: Json = {}
        for body in bodies:
            usage = added(usage, body.get("usage") or {})
        dropped = any(_dropped(body.get("output") or []) for body in bodies)
        merged = {**_plain(bodies[-1]), "output": output or ([_words()] if dropped else [])}
        return {**merged, "usage": usage} if usage else merged

    def results(self, recall_round: RecallRound, texts: list[str]) -> list[Json]:
        return [
            {"type": "function_call_output", "call_id": call.id, "output": text}
            for call, text in zip(recall_round.recalls, texts, strict=True)
        ]

    def error(self, body: Json) -> Json:
        details = mapping(body.get("error"))
        return self._numbered(
            {"type": "error", "sequence_number": 0, "code": details.get("code"), "message": details.get("message", ""),
             "param": details.get("param")}
        )  # fmt: skip


def _ours(item: object) -> bool:
    match item:
        case {"type": "function_call", "name": name}:
            return bool(name == NAME)
        case _:
            return False


def _waits_for_client(item: Json) -> bool:
    return item.get("type") in ("function_call", "custom_tool_call", "computer_call", "local_shell_call", "shell_call",
                                "apply_patch_call")  # fmt: skip


def _dropped(output: list[Json]) -> frozenset[int]:
    """Return the places of recalls, and of the reasoning that leads to them alone.

    Reasoning that leads to several calls at once stays before the first of them that is the client's.
    """
    items: set[int] = set()
    alone = True  # whether what follows the recalls needs no reasoning from before them
    for place in range(len(output) - 1, -1, -1):
        thinks = output[place].get("type") == "reasoning"
        if _ours(output[place]) or (thinks and alone and place + 1 in items):
            items.add(place)
        else:
            alone = thinks
    return frozenset(items)


def _without_recalls(output: list[Json]) -> list[Json]:
    indexes = _dropped(output)
    return [item for place, item in enumerate(output) if place not in indexes]


def _plain(response: object) -> Json:
    """Return a response without the tool that the client knows nothing of."""
    body = mapping(response)
    tools = body.get("tools")
    if not isinstance(tools, list):
        return dict(body)
    return {**body, "tools": [tool for tool in tools if mapping(tool).get("name") != NAME]}


def _words() -> Json:
    part: Json = {"type": "output_text", "text": GIVEN_UP, "annotations": []}
    return {"type": "message", "id": "msg_refold", "status": "completed", "role": "assistant", "content": [part]}
