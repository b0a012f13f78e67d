"""Gemini CLI sessions: one document, or JSON lines after a header, where newer versions write an item again whenever
it grows; calls stand with their results in one item.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from refold.core._json import Json, mapping, objects, placed_objects
from refold.transcripts._conversation import RecordedConversation, RecordedUsage, usage_reports
from refold.transcripts._skipped import SkippedItems
from refold.transcripts._source import Document

Row = tuple[int, Json]


def matches(document: Document) -> bool:
    """Tell by the session's header, or by an item of type gemini."""
    rows = _rows(document)
    first = document.objects[0][1] if document.objects else {}
    return ("sessionId" in first and "projectHash" in first) or any(
        row.get("type") == "gemini" and "content" in row for _, row in rows[:20]
    )


def _rows(document: Document) -> list[Row]:
    messages = mapping(document.value).get("messages")
    return [(0, row) for row in objects(messages)] if isinstance(messages, list) else document.objects


def read(document: Document) -> Iterator[RecordedConversation]:
    """Yield the one conversation of a session."""
    aside = SkippedItems()
    contents: list[Json] = []
    usage: list[RecordedUsage] = []
    model: str | None = None
    results: set[str] = set()  # ids of the calls whose results stand with them
    for number, row in _standing(_rows(document), aside):
        if row.get("type") == "user":
            parts = _parts(row.get("content"))
            responses = (mapping(mapping(part).get("functionResponse")) for part in parts)
            new = [part for part, response in zip(parts, responses, strict=True) if response.get("id") not in results]
            for _ in range(len(parts) - len(new)):
                aside.add("result that stands with its call too", number)
            if new or not parts:
                contents.append({"role": "user", "parts": new})
        elif row.get("type") == "gemini":
            model = row.get("model") or model
            tokens = mapping(row.get("tokens"))
            prompt = (tokens.get("input") or 0) + (tokens.get("tool") or 0)
            completion = (tokens.get("output") or 0) + (tokens.get("thoughts") or 0)
            usage += usage_reports(len(contents), prompt, completion, tokens.get("cached") or 0)
            contents.extend(_answer(row, aside, number))
            results.update(call["id"] for call in row.get("toolCalls") or [] if call.get("result"))
        else:
            aside.add(f"item of type {row.get('type') or 'header'}", number)
    yield RecordedConversation(
        "gemini-cli", "gemini", contents, model=model, usage=tuple(usage), name="main", notes=aside.notes()
    )


def _standing(rows: list[Row], aside: SkippedItems) -> list[Row]:
    """Return the items that are left after the last line, each as it was last written.

    In the lines of newer versions an item is written again under its id, `$set` with messages begins the list anew, and
    `$rewindTo` takes back everything from an id on (all of it where the id is unknown).
    """
    items: dict[str, Row] = {}
    for at, (number, row) in enumerate(rows):
        match row:
            case {"$rewindTo": str(id)}:
                names = list(items)
                for name in names[names.index(id) if id in items else 0 :]:
                    aside.add("item that was taken back", items.pop(name)[0])
            case {"$set": {"messages": list(messages)}}:
                for old, item in items.values():
                    if "type" in item:
                        aside.add("item of a list that was begun anew", old)
                items = {name: item for name, item in items.items() if "type" not in item[1]} | {
                    str(item.get("id") or f"{at}.{place}"): (number, item) for place, item in placed_objects(messages)
                }
            case {"$set": _}:
                aside.add("change of the session's own fields", number)
            case {"id": str(id)}:
                if id in items:
                    aside.add("item that was written again later", items[id][0])
                items[id] = (number, row)
            case _:
                items[str(at)] = (number, row)
    return list(items.values())


def _parts(content: Any) -> list[Any]:
    match content:
        case str():
            return [{"text": content}] if content else []
        case dict():
            return [content]
        case _:
            return [{"text": part} if isinstance(part, str) else part for part in content or []]


def _answer(row: Json, aside: SkippedItems, number: int) -> Iterator[Json]:
    for _ in row.get("thoughts") or []:
        aside.add("thought for the screen, which is not sent again", number)
    calls = row.get("toolCalls") or []
    parts = _parts(row.get("content"))
    parts += [
        {"functionCall": {"id": call["id"], "name": call["name"], "args": call.get("args") or {}}} for call in calls
    ]
    if parts:
        yield {"role": "model", "parts": parts}
    else:
        aside.add("answer without content", number)
    results: list[Any] = []
    for call in calls:
        result = call.get("result")
        if not result:
            aside.add(f"call without a result ({call.get('status')}), kept open", number)
        elif isinstance(result, str):
            results.append(
                {"functionResponse": {"id": call["id"], "name": call["name"], "response": {"output": result}}}
            )
        else:
            results.extend(_parts(result))
    if results:
        yield {"role": "user", "parts": results}
