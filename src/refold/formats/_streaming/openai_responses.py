"""OpenAI Responses: numbered output items, each added, grown by deltas and sent whole; then the whole response."""

from __future__ import annotations

from msgspec import Struct

from refold.core._json import Json, listing, mapping, string_of
from refold.formats._streaming._growing import GrowingText, grow, growing, index_of, settled

__all__ = ["BEGINNING", "ENDING", "OpenAIResponsesAccumulator"]

BEGINNING = ("response.created", "response.queued", "response.in_progress")
ENDING = ("response.completed", "response.incomplete", "response.failed")


class Field(Struct, frozen=True):
    """Where a delta goes: a field of the item, or of a part of type `part` in one of the item's lists."""

    name: str
    parts: str = ""
    part: str = ""


FIELDS = {
    "output_text": Field("text", "content", "output_text"),
    "refusal": Field("refusal", "content", "refusal"),
    "reasoning_text": Field("text", "content", "reasoning_text"),
    "reasoning_summary_text": Field("text", "summary", "summary_text"),
    "function_call_arguments": Field("arguments"),
    "mcp_call_arguments": Field("arguments"),
    "custom_tool_call_input": Field("input"),
    "code_interpreter_call_code": Field("code"),
}
PARTS = {"content_part": "content", "reasoning_summary_part": "summary"}


class OpenAIResponsesAccumulator:
    """Adds up the events of `POST /v1/responses`.

    The last event holds the whole response, which counts; without it, or where it leaves the output out, the output is
    what the items came to.
    """

    def __init__(self) -> None:
        self.error: Json | None = None
        self.complete = False
        self._response: Json = {}
        self._items: dict[int, Json] = {}
        self._done: set[int] = set()

    def add(self, event: Json) -> str:
        """Take one event and return the text for the user that it adds."""
        kind = event.get("type")
        kind = string_of(kind)
        if kind in BEGINNING or kind in ENDING:
            self._lifecycle(mapping(event.get("response")), ends=kind in ENDING)
        elif kind == "error":
            self.error = mapping(event.get("error")) or {
                key: value for key, value in event.items() if key not in ("type", "sequence_number")
            }
        elif kind in ("response.output_item.added", "response.output_item.done"):
            self._item(event, done=kind.endswith("done"))
        elif (index := self._index(event)) in self._items and index not in self._done:
            self._extend(self._items[index], event, *kind.removeprefix("response.").rsplit(".", 1))
        piece = event.get("delta")
        return piece if kind == "response.output_text.delta" and isinstance(piece, str) else ""

    @property
    def usage(self) -> Json:
        """The usage that the end reported, empty where it did not."""
        return mapping(self._response.get("usage"))

    @property
    def stop(self) -> str | None:
        """How the response ended: why it is incomplete, else its status; None where it did not end."""
        reason = mapping(self._response.get("incomplete_details")).get("reason") or self._response.get("status")
        return reason if self.complete and isinstance(reason, str) else None

    def body(self) -> Json:
        """Return the response as far as it came."""
        output = (self.complete and listing(self._response.get("output"))) or [
            self._items[index] for index in sorted(self._items)
        ]
        status = {} if self.complete else {"status": "in_progress"}
        body: Json = settled({**self._response, **status, "output": output})
        return body

    def _lifecycle(self, response: Json, *, ends: bool) -> None:
        self._response = response or self._response
        self.complete = self.complete or ends
        if error := mapping(response.get("error")):
            self.error = error
        for index, item in enumerate(listing(response.get("output"))):
            self._items.setdefault(index, growing(item))

    def _index(self, event: Json) -> int:
        """Return which item an event is about: by its number, by its id, or a new one."""
        if (index := index_of(event, "output_index")) is not None:
            return index
        id = event.get("item_id") or mapping(event.get("item")).get("id")
        return next((at for at, item in self._items.items() if id and item.get("id") == id), len(self._items))

    def _item(self, event: Json, *, done: bool) -> None:
        if item := mapping(event.get("item")):
            index = self._index(event)
            self._items[index] = growing(item)
            if done:
                self._done.add(index)

    def _extend(self, item: Json, event: Json, kind: str, action: str = "") -> None:
        if field := FIELDS.get(kind):
            target = _part(item, field.parts, event, field.part) if field.parts else item
            piece = event.get("delta") if action == "delta" else event.get(field.name)
            if action == "delta" and isinstance(piece, str):
                grow(target, {field.name: piece})
            elif action == "done" and isinstance(piece, str):
                target[field.name] = GrowingText(piece)
        elif name := PARTS.get(kind):
            _part(item, name, event).update(growing(mapping(event.get("part"))))
        elif (kind, action) == ("output_text.annotation", "added"):
            part = _part(item, "content", event, "output_text")
            part["annotations"] = [*(part.get("annotations") or ()), growing(event.get("annotation"))]


def _part(item: Json, name: str, event: Json, type: str = "") -> Json:
    """Return the part of an item that an event is about, a new one at the end of its list where there is none."""
    parts = item[name] = listing(item.get(name))
    index = index_of(event, f"{name}_index")
    if index is not None and 0 <= index < len(parts) and isinstance(parts[index], dict):
        part: Json = parts[index]
        return part
    parts.append(part := {"type": type} if type else {})
    return part
