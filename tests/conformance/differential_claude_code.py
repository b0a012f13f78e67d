"""Compares the policy `claude-code` with learn-claude-code's own context manager, decision by decision."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import refold
from refold.core.budget import Budget
from refold.policies import find
from tests.agent.kit import Watched, calls, results
from tests.conformance import histories
from tests.conformance.differential import Decision, original, recorded_histories

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conformance.histories import Entry, History

POLICY = find("claude-code")
WINDOW = 4_000_000
CLEARED = "[Old tool result content cleared]"
SYSTEM = "You are one of several agents. " * 600  # of a window where 13,000 tokens are the smaller part
RESTORED = "[Restored after compaction] "

TEXTS = "what the provider reads is counted, not the JSON around it"
REQUEST = "an unfinished request stays and is the last message"
AGAIN = "a file that was read again is the newest"
LAST = "the acknowledgement is left out where it would be the last message and may not be"
PENDING = "a call that awaits its result stays"
DIFFERENCES = {
    TEXTS: "The original counts braces, names of fields, and every line break as two characters.",
    REQUEST: "The original ends on its acknowledgement, and what the user asked for is in the summary at best.",
    AGAIN: "The original numbers paths by how many it knows, so that one read again ties with another.",
    LAST: "The original ends on it, and models that want a user's message last refuse the request.",
    PENDING: "The original removes the call, and its result then answers nothing.",
}


def decisions() -> Iterator[Decision]:
    """Yield every decision of both."""
    recorded = original("claude-code")
    for window, maximum, threshold in recorded["thresholds"]:
        budget = Budget(window, POLICY.reserve(window, maximum))
        yield Decision("threshold", f"{window:,}, {maximum:,}", POLICY.trigger.tokens(budget), threshold)
    yield from _outputs(recorded["outputs"])
    for history, theirs in recorded_histories("claude-code"):
        messages = histories.anthropic(history.entries)
        yield _cleared(history, messages, theirs["cleared"])
        yield from _due(history, messages, theirs["due"])
        yield from _compacted(history, messages, theirs["compacted"])


def _outputs(recorded: list[tuple[int, bool]]) -> Iterator[Decision]:
    """Compare which outputs of a tool become a path and a preview as they arrive."""
    texts = ["z" * size for size, _ in recorded]
    with TemporaryDirectory() as folder:
        budget = Budget(1_000_000, 100_000)
        run = Watched(
            [*map(calls, texts), "Done."], policy="claude-code", folder=Path(folder), budget=budget, max_steps=99
        )
        run.agent.run("go")
        found = results(run.agent.messages)
    for (size, archived), text, result in zip(recorded, texts, found, strict=True):
        yield Decision("large outputs", f"{size:,} characters", result != text, archived)


def _cleared(history: History, messages: list[Any], theirs: list[str]) -> Decision:
    """Compare what is cleared before a call when nothing is due."""
    result = refold.compact(messages, policy="claude-code", window=WINDOW)
    blocks = [
        block for message in result.messages if isinstance(message["content"], list) for block in message["content"]
    ]
    ours = [block["tool_use_id"] for block in blocks if block.get("content") == CLEARED]
    return Decision("cleared results", history.name, ours, theirs)


def _due(history: History, messages: list[Any], theirs: list[Any]) -> Iterator[Decision]:
    """Compare the size, and whether a run is due at that size and one token below it."""
    size = refold.check(messages, policy="claude-code", window=WINDOW).tokens
    lengths = [len(json.dumps(message)) // 4 for message in messages]
    parts = [
        len(text) // 4
        for entry in history.entries
        if entry.role != "system"
        for text in [entry.text or entry.tool + json.dumps(entry.arguments, separators=(",", ":"))]
    ]
    why = (TEXTS,) if (sum(parts), sum(lengths)) == (size, theirs[0]) else ()
    yield Decision("estimate", history.name, size, theirs[0], why)
    total = refold.check(messages, policy="claude-code", window=WINDOW, system=SYSTEM).tokens
    answers = []
    for threshold in (total, total - 1):
        window = threshold + 13_000 + 1_000  # less the margin and the answer
        check = refold.check(messages, policy="claude-code", window=window, max_output=1_000, system=SYSTEM)
        answers.append(check.due)
    yield Decision("due", history.name, answers, theirs[1:])


def _compacted(history: History, messages: list[Any], theirs: dict[str, Any]) -> Iterator[Decision]:
    files = histories.files()
    limits: list[int | None] = []

    def summarize(request: Any) -> str:
        limits.append(request.max_tokens)
        return histories.SUMMARY

    handlers = refold.Handlers(summarize=summarize, read_file=lambda need: files[need.path], redact=False)
    result = refold.compact(messages, policy="claude-code", window=WINDOW, force=True, handlers=handlers)
    after = result.messages
    texts = [text for message in after for text in _texts(message)]
    own = {id(message) for message in messages}
    made = [message for message in after if id(message) not in own]
    kept = [message for message in after if id(message) in own]
    names = _left(history.entries, kept)
    expected = list(theirs["roles"])
    if made[-1] is after[-1] and made[-1]["role"] == "user":
        names = (*names, LAST)
        expected = [expected[0], *expected[2:-1]]
    expected = [role for role, _ in groupby([*expected, *(message["role"] for message in kept)])]
    names = names if expected == [message["role"] for message in after] else ()
    yield Decision("messages after", history.name, [message["role"] for message in after], theirs["roles"], names)
    head = f"[Conversation compressed]\n\n{histories.SUMMARY}"
    yield Decision("summary", history.name, [texts[0] == head, limits], [theirs["summary"], [theirs["limit"]]])
    restored = [text.removeprefix(RESTORED).split("\n", 1)[0] for text in texts if text.startswith(RESTORED)]
    again = (AGAIN,) if sorted(restored) == sorted(theirs["files"]) and restored == _newest(history.entries) else ()
    yield Decision("restored files", history.name, restored, theirs["files"], again)


def _newest(entries: tuple[Entry, ...]) -> list[str]:
    """Return the files that were read, the last read first."""
    return list(dict.fromkeys(e.arguments["path"] for e in reversed(entries) if "path" in e.arguments))[:5]


def _texts(message: dict[str, Any]) -> list[str]:
    content = message["content"]
    return [content] if isinstance(content, str) else [block["text"] for block in content if block["type"] == "text"]


def _left(entries: tuple[Entry, ...], kept: list[Any]) -> tuple[str, ...]:
    """Return why messages of the conversation itself stay."""
    names: list[str] = []
    asked = [entry.text for entry in entries if entry.role == "user"]
    rest = [message for message in kept if message["content"] != asked[-1]]
    if len(rest) < len(kept) and entries[-1].role != "assistant":
        names.append(REQUEST)
    answered = {entry.call for entry in entries if entry.role == "result"}
    open_ = {entry.call for entry in entries if entry.role == "call"} - answered
    if rest and any(
        block.get("id") in open_ for message in rest for block in message["content"] if isinstance(block, dict)
    ):
        names.append(PENDING)
    return tuple(names)
