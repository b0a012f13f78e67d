"""Anthropic Messages: a message is a list of numbered content blocks, each opened, grown by deltas and closed."""

from __future__ import annotations

from refold.core._json import Json, decoded, listing, mapping, string_of
from refold.formats._streaming._growing import GrowingText, grow, growing, index_of, settled

__all__ = ["AnthropicAccumulator"]

DESCRIBES_EVENT = frozenset({"type", "delta", "usage"})  # fields of a message_delta that are none of the message


class AnthropicAccumulator:
    """Adds up the events of `POST /v1/messages`.

    Arguments of a tool that are no JSON, as where the stream broke off, stay as they came under an empty key, since
    `input` has to be an object.
    """

    def __init__(self) -> None:
        self.error: Json | None = None
        self._message: Json = {"type": "message", "role": "assistant"}
        self._usage: Json = {}
        self._blocks: dict[int, Json] = {}
        self._arguments: dict[int, GrowingText] = {}
        self._stopped = False

    def add(self, event: Json) -> str:
        """Take one event and return the text for the user that it adds."""
        match event.get("type"):
            case "message_start":
                message = mapping(event.get("message"))
                self._message |= {key: value for key, value in message.items() if key not in ("content", "usage")}
                self._usage |= mapping(message.get("usage"))
                self._blocks |= {index: growing(block) for index, block in enumerate(listing(message.get("content")))}
            case "content_block_start":
                return self._open(event, mapping(event.get("content_block")))
            case "content_block_delta":
                return self._extend(event, mapping(event.get("delta")))
            case "message_delta":
                fields = {key: value for key, value in event.items() if key not in DESCRIBES_EVENT}
                self._message |= _reported({**mapping(event.get("delta")), **fields})
                self._usage |= _reported(mapping(event.get("usage")))
            case "message_stop":
                self._stopped = True
            case "error":
                self.error = mapping(event.get("error"))
        return ""

    @property
    def usage(self) -> Json:
        """The usage that was reported so far; figures of the end replace those of the beginning."""
        return self._usage

    @property
    def stop(self) -> str | None:
        """The reason why the message ended, None where it did not."""
        reason = self._message.get("stop_reason")
        return reason if isinstance(reason, str) else None

    @property
    def complete(self) -> bool:
        """Whether the message ended, whatever the reason."""
        return self._stopped or self.stop is not None

    def body(self) -> Json:
        """Return the message as far as it came."""
        content = []
        for index, block in sorted(self._blocks.items()):
            arguments = str(self._arguments.get(index, ""))
            if not arguments:
                content.append(settled(block))
                continue
            value = decoded(arguments)
            content.append({**settled(block), "input": value if isinstance(value, dict) else {"": arguments}})
        usage = {"usage": settled(self._usage)} if self._usage else {}
        return {**settled(self._message), "content": content, **usage}

    def _open(self, event: Json, block: Json) -> str:
        index = index_of(event)
        self._blocks[len(self._blocks) if index is None else index] = growing(block)
        if block.get("type") == "fallback" and (model := mapping(block.get("to")).get("model")):
            self._message["model"] = model  # the model that goes on after a refusal in mid-stream
        text = block.get("text") if block.get("type") == "text" else None
        return string_of(text)

    def _extend(self, event: Json, delta: Json) -> str:
        index = index_of(event)
        if index is None:
            index = max(self._blocks, default=0)
        block = self._blocks.setdefault(index, {})
        kind = delta.get("type")
        match kind, delta:
            case "input_json_delta", {"partial_json": str(piece)}:
                self._arguments.setdefault(index, GrowingText()).pieces.append(piece)
            case "citations_delta", {"citation": citation}:
                block["citations"] = [*(block.get("citations") or ()), growing(citation)]
            case "signature_delta" | "compaction_delta", _:  # these come whole: a second one replaces the first
                block |= {key: growing(value) for key, value in delta.items() if key != "type"}
            case _:
                if not block and isinstance(kind, str):
                    block["type"] = kind.removesuffix("_delta")
                grow(block, {key: value for key, value in delta.items() if key != "type"})
        text = delta.get("text") if kind == "text_delta" else None
        return string_of(text)


def _reported(fields: Json) -> Json:
    return {key: value for key, value in fields.items() if value is not None}
