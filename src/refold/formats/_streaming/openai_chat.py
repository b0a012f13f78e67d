"""OpenAI chat completions: every chunk holds deltas of the choices, a last one perhaps the usage alone."""

from __future__ import annotations

from typing import Any

from refold.core._json import Json, listing, mapping
from refold.formats._streaming._growing import grow, index_of, settled

__all__ = ["OpenAIChatAccumulator", "continued_call"]

GROWN = frozenset({"delta", "index", "logprobs"})  # fields of a choice that add up, or number it
PER_CHUNK = frozenset({"choices", "usage", "object", "obfuscation", "error"})  # padding among them


class OpenAIChatAccumulator:
    """Adds up the chunks of `POST /v1/chat/completions`, as OpenAI and many other servers send them."""

    def __init__(self) -> None:
        self.error: Json | None = None
        self._completion: Json = {}
        self._choices: dict[int, Json] = {}
        self._usage: Json = {}

    def add(self, event: Json) -> str:
        """Take one chunk and return the text for the user that it adds to the first choice."""
        if event.get("error"):
            self.error = mapping(event["error"]) or {"message": event["error"]}
        for key, value in event.items():
            if key not in PER_CHUNK and value is not None and (key != "id" or not self._completion.get(key)):
                self._completion[key] = value
        self._usage = mapping(event.get("usage")) or self._usage
        text = ""
        for choice in map(mapping, listing(event.get("choices"))):
            number = index_of(choice) or 0
            self._extend(self._choices.setdefault(number, {"message": {"role": "assistant", "content": None}}), choice)
            piece = mapping(choice.get("delta")).get("content")
            if number == 0 and isinstance(piece, str):
                text += piece
        return text

    @property
    def usage(self) -> Json:
        """The usage that was reported last, empty where none was."""
        return self._usage

    @property
    def stop(self) -> str | None:
        """The reason why the first choice ended, None where it did not."""
        reason = self._choices.get(0, {}).get("finish_reason")
        return reason if isinstance(reason, str) else None

    @property
    def complete(self) -> bool:
        """Whether every choice ended, whatever the reason."""
        return bool(self._choices) and all(choice.get("finish_reason") for choice in self._choices.values())

    def body(self) -> Json:
        """Return the completion as far as it came."""
        choices = [_choice(number, choice) for number, choice in sorted(self._choices.items())]
        usage = {"usage": settled(self._usage)} if self._usage else {}
        return {**settled(self._completion), "object": "chat.completion", "choices": choices, **usage}

    def _extend(self, choice: Json, piece: Json) -> None:
        message: Json = choice["message"]
        delta = mapping(piece.get("delta"))
        calls = listing(delta.get("tool_calls"))
        grow(message, {key: value for key, value in delta.items() if key != "tool_calls"})
        for call in map(mapping, calls):
            grow(continued_call(message.setdefault("tool_calls", []), call), call)
        grow(choice, {"logprobs": piece.get("logprobs")})
        choice |= {key: value for key, value in piece.items() if value is not None and key not in GROWN}


def continued_call(calls: list[Json], piece: Json) -> Json:
    """Return the call that a piece continues; where it begins one, an empty one that is added to the list.

    Pieces of one call have one index. Some servers send calls whole and number them all alike, or not at all: there
    another id, or a name where one is complete, begins another call.
    """
    index, id = index_of(piece), piece.get("id")
    for call in reversed(calls):
        if index_of(call) == index:
            if (id and call.get("id") not in (None, "", id)) or (index is None and not id and _name(piece)):
                break
            return call
    new: Json = {}
    calls.append(new)
    return new


def _name(call: Json) -> Any:
    return any(mapping(call.get(kind)).get("name") for kind in ("function", "custom"))


def _choice(number: int, choice: Json) -> Json:
    message = settled(choice["message"])
    if calls := message.pop("tool_calls", None):
        calls.sort(key=lambda call: index_of(call) or 0)
        message["tool_calls"] = [
            {"type": "function", **{key: value for key, value in call.items() if key != "index"}} for call in calls
        ]
    rest = {key: value for key, value in settled(choice).items() if key != "message"}
    return {"index": number, "message": message, "finish_reason": None, **rest}
