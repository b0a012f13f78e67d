"""LiteLLM call logs: what one call sent, its tools, and the response with its usage."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from refold.core._json import Json, mapping
from refold.transcripts._bodies import body_of, reported
from refold.transcripts._conversation import RecordedConversation
from refold.transcripts._source import Document
from refold.transcripts._streams import answer_of

_SETTINGS = ("kwargs", "optional_params", "model_parameters")  # where versions of the log keep the tools


def matches(document: Document) -> bool:
    """Tell by messages together with their response."""
    return any(_is_call(row) for _, row in document.objects[:5])


def _is_call(row: Json) -> bool:
    return isinstance(_sent(row), list) and isinstance(row.get("response"), dict) and "request" not in row


def _sent(row: Json) -> Any:
    """Return the messages of a chat call, or the input of a call of the Responses API."""
    return row["messages"] if isinstance(row.get("messages"), list) else row.get("input")


def read(document: Document) -> Iterator[RecordedConversation]:
    """Yield the conversation of each call; a second one where tools were turned into plain text for the model."""
    rows = document.objects
    for count, (number, row) in enumerate(rows, 1):
        name = f"call {count}" if len(rows) > 1 else "main"
        notes = () if _is_call(row) else (f"line {number}: no call, left aside",)
        if not _is_call(row):
            yield RecordedConversation("litellm", "openai-chat", [], name=name, notes=notes)
            continue
        raw = row.get("raw_messages")
        if not isinstance(raw, list):
            yield _call(name, row, _sent(row), row["response"])
            continue
        # the usage is that of the text that was sent, so it stands with that conversation alone
        yield _call(
            name,
            row,
            row["messages"],
            {**row["response"], **(row.get("raw_response") or {}), "usage": row["response"].get("usage")},
        )
        yield _call(f"{name} before its tools became text", row, raw, {**row["response"], "usage": None})


def _call(name: str, row: Json, messages: list[Any], response: object) -> RecordedConversation:
    tools = next((tools for key in _SETTINGS if (tools := mapping(row.get(key)).get("tools"))), None)
    field = "messages" if isinstance(row.get("messages"), list) else "input"
    body = body_of({**row, field: messages, "tools": row.get("tools") or tools})
    if body is None:
        raise ValueError("`messages` holds something that is no message")
    answer = answer_of(response)
    same = answer is not None and answer.format == body["format"]
    reply = answer.messages if answer is not None and same else []
    fields = {**body, "messages": [*messages, *reply], "model": body["model"] or (answer.model if answer else None)}
    window = row.get("context_window")
    return RecordedConversation(
        "litellm",
        name=name,
        window=window if isinstance(window, int) else None,
        usage=reported(len(messages), answer.usage) if answer else (),
        notes=() if same else ("the response is no chat answer, left aside",),
        **fields,
    )
