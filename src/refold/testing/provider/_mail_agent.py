"""A rule-driven agent that reads a mailbox of 41 e-mails (W19), and the mailbox.

The agent remembers nothing: what is still unread it tells from the messages of each request alone, so a compaction
that loses what was done shows as e-mails read twice, and one that loses what is left as e-mails never read.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from refold.core.messages import Text, ToolCall, ToolResult
from refold.testing._seeded_random import SeededRandom
from refold.testing.provider._mails import mail, mail_tools
from refold.testing.provider._script import ScriptedReply

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from refold.core._json import Json
    from refold.core.messages import Message
    from refold.testing.provider._script import ReceivedRequest

__all__ = ["MailAgent", "Mailbox"]

BATCH = 15  # W12, W19
LINES = 650  # lines of an e-mail that make some 33K tokens by the estimate of W02
ID = re.compile(r"\bmsg_\w{12}\b")
TOTAL = re.compile(r"\b(\d+) messages\b")
DONE = re.compile(r"mail_read|^\W*read\b", re.I)
HEADING = re.compile(r"^(?:#{1,4} .+|\d\. [A-Z][^:]*(?=:)|[A-Z]{4,}(?=:))", re.M)
FENCED = re.compile(r"<(conversation|previous-summary)>\n.*?\n</\1>", re.S)
REQUEST = re.compile(r"^\[user\]\n(.+)$", re.M)


@cache
def _mails_of(seed: int, lines: int) -> list[Json]:
    """Return the e-mails of a seed, which take a second to build; a demo reads the same ones under every policy."""
    return mail(SeededRandom(seed), lines)


class Mailbox:
    """Two tools over 41 e-mails made from a seed; `read` lists every e-mail that was handed out, in order."""

    def __init__(self, seed: int = 41, lines: int = LINES) -> None:
        messages = _mails_of(seed, lines)
        self.system: str = messages[0]["content"]
        self.task: str = messages[1]["content"]
        self.tools = mail_tools()
        self.read: list[str] = []
        requested = {call["id"]: call["function"] for each in messages for call in each.get("tool_calls", ())}
        answers = [(requested[each["tool_call_id"]], each["content"]) for each in messages if each["role"] == "tool"]
        self._listing: str = answers[0][1]
        self._bodies: dict[str, str] = {json.loads(call["arguments"])["id"]: text for call, text in answers[1:]}

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all e-mails."""
        return tuple(self._bodies)

    @property
    def unread(self) -> tuple[str, ...]:
        """The ids of the e-mails that were never handed out."""
        return tuple(id for id in self._bodies if id not in set(self.read))

    def mail_search(self, query: str = "") -> str:
        """List all e-mails, whatever the query."""
        return self._listing

    def mail_read(self, id: str) -> str:
        """Return one e-mail."""
        if id not in self._bodies:
            return f"error: there is no message {id}"
        self.read.append(id)
        return self._bodies[id]

    def call(self, name: str, arguments: str | Mapping[str, Any]) -> str:
        """Run a tool by name, with arguments as JSON text or a mapping."""
        values = json.loads(arguments) if isinstance(arguments, str) else arguments
        return self.mail_search(**values) if name == "mail_search" else self.mail_read(**values)


class _MailboxState(Struct):
    """What the messages of one request tell: ids in order of appearance, which of them are read, and how many are."""

    ids: dict[str, None] = {}
    read: dict[str, None] = {}
    total: int = 0

    @property
    def unread(self) -> list[str]:
        return [id for id in self.ids if id not in self.read]


class MailAgent:
    """A behavior for `ScriptedProvider`: searches, reads 15 e-mails a turn, and writes the briefing at the end.

    It searches again where fewer ids are in view than it is said there are. A request without tools asks for a
    summary; it is written under the headings that the request names.
    """

    def __call__(self, received: ReceivedRequest) -> ScriptedReply:
        """Answer a request by what is in it."""
        known = _known(received.messages)
        if not received.tools:
            return ScriptedReply(_summary(received, known))
        searched = bool(received.messages) and _is_search(received.messages)
        if not known.ids or (len(known.ids) < known.total and not searched):
            return ScriptedReply(
                "I search for the unread mail.", [("mail_search", {"query": "is:unread newer_than:7d"})]
            )
        unread = known.unread[:BATCH]
        if not unread:
            return ScriptedReply(f"Briefing: {len(known.read)} of {len(known.ids)} messages are read.")
        text = f"Reading {len(unread)} of {len(known.ids)} messages, {len(known.read)} are done."
        return ScriptedReply(text, [("mail_read", {"id": id}) for id in unread])


def _known(messages: tuple[Message, ...]) -> _MailboxState:
    known = _MailboxState()
    requested: dict[str, str] = {}
    for part in (part for message in messages for part in message.parts):
        match part:
            case ToolCall(call_id=call_id, name="mail_read", arguments=arguments):
                requested[call_id] = arguments
            case ToolResult(call_id=call_id, is_error=False) if call_id in requested:
                _note(known, f"mail_read {requested[call_id]}")
            case ToolResult() | Text():
                _note(known, part.text)
            case _:
                pass
    return known


def _note(known: _MailboxState, text: str) -> None:
    """Take note of the ids of a text; those on a line that speaks of reading are read."""
    for line in text.splitlines():
        if match := TOTAL.search(line):
            known.total = max(known.total, int(match[1]))
        ids = ID.findall(line)
        known.ids.update(dict.fromkeys(ids))
        if ids and DONE.search(line):
            known.read.update(dict.fromkeys(ids))


def _is_search(messages: tuple[Message, ...]) -> bool:
    """Tell whether the newest result is the answer to a search."""
    calls = [part for message in messages for part in message.parts if isinstance(part, ToolCall)]
    return bool(messages[-1].results) and bool(calls) and calls[-1].name == "mail_search"


def _summary(received: ReceivedRequest, known: _MailboxState) -> str:
    """Write a summary under the requested headings, or in three lines where none are."""
    whole = "\n".join([received.system, *_texts(received.messages)])
    request = REQUEST.search(whole)
    task = f"Task: {request[1]}" if request else "Task: go through the unread mail and write a briefing."
    done = f"Read ({len(known.read)} of {known.total} messages): {', '.join(known.read)}"
    left = f"Unread ({len(known.unread)}): {', '.join(known.unread) or 'none'}"
    headings = HEADING.findall(FENCED.sub("", whole))
    return "\n\n".join(f"{heading}:\n{text}" for heading, text in _filled(headings, task, done, left)) or "\n".join(
        (task, done, left)
    )


def _filled(headings: list[str], task: str, done: str, left: str) -> Iterator[tuple[str, str]]:
    """Yield each heading with the one text that belongs there, every text at least once."""
    texts = {"goal|task|request|intent|primary": task, "done|progress|attempted|solving": done}
    texts["remaining|next|pending|unresolved"] = left
    for heading in dict.fromkeys(headings):
        fitting = next((text for words, text in texts.items() if re.search(words, heading, re.I)), "none")
        yield heading, fitting


def _texts(messages: tuple[Message, ...]) -> list[str]:
    return [part.text for message in messages for part in message.parts if isinstance(part, Text)]
