"""Sessions that form a tree: which of their messages are the main chain, and which a sub-agent's."""

from __future__ import annotations

from typing import Any, TypeAlias

from refold.core._json import Json, objects
from refold.transcripts._skipped import SkippedItems

__all__ = ["Row", "main_chain", "once", "ordered", "side_of", "speaks"]

Row: TypeAlias = tuple[int, Json]  # line number and line


def speaks(row: Json) -> bool:
    """Whether a line holds a message."""
    message = row.get("message")
    return (
        row.get("type") in ("user", "assistant")
        and isinstance(message, dict)
        and isinstance(message.get("content"), str | list)
    )


def once(rows: list[Row], aside: SkippedItems) -> list[Row]:
    """Leave out lines that a resumed session or a client's log repeats word for word."""
    seen: Json = {}
    chain: list[Row] = []
    for number, row in rows:
        uuid = row.get("uuid")
        if uuid and uuid in seen and seen[uuid] == row.get("message"):
            aside.add("line that repeats an earlier one", number)
            continue
        if uuid:
            seen[uuid] = row.get("message")
        chain.append((number, row))
    return chain


def ordered(rows: list[Row]) -> list[Row]:
    """Put parents before their children, otherwise in file order: clients' traces mix several sub-agents up."""
    places: dict[str, int] = {}
    for at, (_, row) in enumerate(rows):
        if row.get("uuid"):
            places.setdefault(row["uuid"], at)
    done = [False] * len(rows)
    ordered: list[Row] = []
    for start in range(len(rows)):
        waiting: list[int] = []
        at = start
        while at >= 0 and not done[at]:
            done[at] = True
            waiting.append(at)
            at = places.get(rows[at][1].get("parentUuid") or "", -1)
        ordered.extend(rows[at] for at in reversed(waiting))
    return ordered


def main_chain(rows: list[Row]) -> set[int]:
    """Return the rows of the main chain: the path from its last message to the start, and what belongs to it.

    Calls of one answer fork the tree, so the path alone misses results: further lines of an answer
    on the path, and results of its calls, belong to it too.
    """
    places: dict[str, list[int]] = {}
    before: list[int] = []  # the nearest earlier message of the main chain, -1 at the start
    last = -1
    for at, (_, row) in enumerate(rows):
        if row.get("uuid"):
            places.setdefault(row["uuid"], []).append(at)
        before.append(last)
        if speaks(row) and not row.get("isSidechain"):
            last = at
    path: set[int] = set()
    at = last
    while at >= 0 and at not in path:
        path.add(at)
        row = rows[at][1]
        known = places.get(row.get("parentUuid") or row.get("logicalParentUuid") or "", [])
        earlier = [place for place in known if place < at]
        # a parent that is not in the file (resumed, cut, or never written): go on with what was said before
        at = earlier[-1] if earlier else before[at]
    answers = {
        rows[at][1]["message"].get("id")
        for at in path
        if rows[at][1].get("type") == "assistant" and speaks(rows[at][1])
    }
    chain = set(path)
    attached: set[Any] = set()  # messages that belong to the path without being on it; what follows them belongs too
    calls: set[Any] = set()
    for at, (_, row) in enumerate(rows):
        if not speaks(row) or row.get("isSidechain"):
            continue
        message = row["message"]
        used = {block.get("id") or block.get("tool_use_id") for block in objects(message["content"])} - {None}
        same = bool(message.get("id")) and message["id"] in answers
        if at not in chain and (same or row.get("parentUuid") in attached or (row["type"] == "user" and used & calls)):
            chain.add(at)
            attached.add(row.get("uuid", ""))
        if at in chain and row["type"] == "assistant":
            calls |= used
    return chain


def side_of(row: Json, roots: dict[str, str]) -> str:
    """Return the name of the sub-agent that a sidechain line belongs to."""
    if agent := row.get("agentId"):
        return f"sidechain {agent}"
    uuid = str(row.get("uuid", ""))
    roots[uuid] = roots.get(str(row.get("parentUuid")), uuid[:8])
    return f"sidechain {roots[uuid]}"
