"""Logs of a provider's HTTP traffic: request and response bodies, an exchange a line, or a HAR file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from refold.core._json import Json, mapping
from refold.transcripts._bodies import body_of, reported
from refold.transcripts._conversation import RecordedConversation
from refold.transcripts._skipped import SkippedItems
from refold.transcripts._source import Document
from refold.transcripts._streams import answer_of, whole

Row = tuple[int, Any]


def matches(document: Document) -> bool:
    """Tell by an exchange whose request body is one of a provider's."""
    return any(_request(row) is not None for _, row in _rows(document)[:50])


def _rows(document: Document) -> list[Row]:
    entries = mapping(mapping(document.value).get("log")).get("entries")
    return [(0, row) for row in entries] if isinstance(entries, list) else document.lines


def _request(row: object) -> Json | None:
    """Return the fields of the conversation that an exchange asks to go on with."""
    request = mapping(row).get("request")
    if not isinstance(request, dict):
        return None
    posted = request.get("postData")
    body = whole(request.get("body", posted.get("text") if isinstance(posted, dict) else request))
    return body_of(body) if isinstance(body, dict) else None


def _response(row: Json) -> Any:
    response = row.get("response")
    if not isinstance(response, dict):
        return response
    assembled = response.get("body") or response.get("body_raw") or mapping(response.get("content")).get("text")
    return whole(assembled) if assembled else response


def read(document: Document) -> Iterator[RecordedConversation]:
    """Yield one conversation an exchange: what was sent and, where it came, the answer."""
    aside = SkippedItems()
    conversations: list[RecordedConversation] = []
    for count, (number, row) in enumerate(_rows(document), 1):
        body = _request(row)
        if body is None:
            aside.add("exchange that is no request to a model", number)
            continue
        answer = answer_of(_response(row))
        sent = len(body["messages"])
        if answer is None or answer.format != body["format"]:
            aside.add("request without an answer, kept", number)
            conversations.append(RecordedConversation("request-log", name=f"request {count}", **body))
            continue
        fields = {**body, "messages": [*body["messages"], *answer.messages], "model": answer.model or body["model"]}
        conversations.append(
            RecordedConversation("request-log", name=f"request {count}", usage=reported(sent, answer.usage), **fields)
        )
    for at, item in enumerate(conversations):
        yield item if at else replace(item, notes=item.notes + aside.notes())
