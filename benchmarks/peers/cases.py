"""What every row is asked: recorded sessions cut in one place, and a long one with fifteen standing instructions."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

import refold
from refold import formats
from refold._counting import counter_for
from refold.core.messages import File, Image, Text, ToolCall, ToolResult
from refold.replay import _judge as judge
from refold.transcripts import read
from tools.sample_sessions.sized import sized

sys.path.append(str(Path(__file__).parent.parent))
sys.path.append(str(Path(__file__).resolve().parents[2]))
import recall  # the benchmark of that name: what identifiers are and where sessions lie

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from refold.core.messages import Message

COUNTER = counter_for("gpt-4o")
CODING = ("claude-code", "codex", "opencode", "pi")
CUTS = (0.6,)  # shares of a session's text where it is cut
LEAST, MOST = 30_000, 160_000  # tokens of a session; what is longer is used up to there
FEWEST = 5  # identifiers that a cut must ask for
LONG = 200_000  # tokens of the conversation with instructions
FIRST, LAST = 0.05, 0.70  # where in it they are said

# Said once, in a turn of their own. Kept means word for word: a paraphrase may lose what matters.
INSTRUCTIONS = (
    "From here on leave pushing to me; you only commit.",
    "Do not read anything under the directory with the credentials, no matter what a ticket says.",
    "Reports for me use metric units.",
    "Check with me before you remove any file, scratch files included.",
    "Commit subjects stay below fifty characters.",
    "No new dependencies: the licence review has frozen the list.",
    "Run the formatter each time before you say that something is finished.",
    "The customer's name must never show up in code or comments.",
    "Until Thursday the reporting database is for reading only.",
    "New tests use plain asserts and no mocking library.",
    "Prices stay whole cents from end to end.",
    "Stop any command that needs more than ten minutes and tell me about it.",
    "British spelling in everything that you write to me, please.",
    "The retry settings of the invoice worker are not yours to change.",
    "If two interfaces would do, take the older one.",
)


class Cut(Struct, frozen=True):
    """A place in a session: what came before, and what the rest asked of it."""

    agent: str
    source: str
    session: str
    at: int
    size: int  # tokens before it
    before: list[dict[str, Any]]
    history: Sequence[Message]
    names: dict[str, list[str]]
    needed: dict[str, float]
    anchors: tuple[str, ...]
    lines: frozenset[str]

    @property
    def id(self) -> str:
        """The place as text."""
        return f"{self.agent}/{self.session}@{self.at}"


def read_back(messages: Sequence[dict[str, Any]]) -> Sequence[Message]:
    """Return messages in the shape of OpenAI's chat completions as the judges read them."""
    return formats.read(formats.find("openai-chat"), messages).messages


def size_of(messages: Iterable[Message]) -> int:
    """Return the exact tokens of a conversation."""
    return sum(map(COUNTER.message, messages)) + COUNTER.per_conversation


def cuts_in(path: Path, agent: str, source: str) -> Iterator[Cut]:
    """Yield the places of a file that ask for enough."""
    try:
        sessions = read(path, lenient=True)
    except refold.RefoldError:
        return
    for session in sessions:
        known = formats.read(formats.find(session.format), session.messages).messages
        if not any(message.calls for message in known):
            continue
        native = plain(known)
        messages = read_back(native)
        sizes = [COUNTER.message(message) for message in messages]
        if sum(sizes) < LEAST:
            continue
        for at in _places(messages, sizes):
            cut = _cut(agent, source, f"{source}/{path.stem}{session.name}", native, messages, at, sum(sizes[:at]))
            if len(cut.names["all"]) >= FEWEST:
                yield cut


def _cut(
    agent: str,
    source: str,
    session: str,
    native: list[dict[str, Any]],
    messages: Sequence[Message],
    at: int,
    size: int,
) -> Cut:
    history, future = messages[:at], messages[at:]
    return Cut(
        agent,
        source,
        session,
        at,
        size,
        native[:at],
        history,
        recall.wanted(history, future),
        judge.needed_atoms(history, future),
        judge.edit_anchors(history, future),
        frozenset(line for message in history for text in recall.texts(message) for line in text.split("\n")),
    )


def _places(messages: Sequence[Message], sizes: Sequence[int]) -> list[int]:
    """Return the places before an assistant's message at these shares of the text."""
    total, spent = min(sum(sizes), MOST), 0
    found: list[int] = []
    for place, message in enumerate(messages):
        due = len(found) < len(CUTS) and spent >= CUTS[len(found)] * total
        if due and message.role == "assistant" and place > 4:
            found.append(place)
        spent += sizes[place]
    return found


def plain(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return messages of any provider as OpenAI's chat completions: valid, words and tool traffic only."""
    found: list[dict[str, Any]] = []
    for message in messages:
        text = "\n".join(filter(None, map(_words, message.parts)))
        calls = [
            {"id": part.call_id, "type": "function", "function": {"name": part.name, "arguments": part.arguments}}
            for part in message.parts
            if isinstance(part, ToolCall)
        ]
        for part in message.parts:
            if isinstance(part, ToolResult):
                said = "\n".join(filter(None, map(_words, part.content)))
                found.append({"role": "tool", "tool_call_id": part.call_id, "content": said or "(nothing)"})
        if message.role == "assistant" and (text or calls):
            found.append({"role": "assistant", "content": text or None} | ({"tool_calls": calls} if calls else {}))
        elif text and message.role in ("system", "user"):
            found.append({"role": message.role, "content": text})
    system = [message for message in found if message["role"] == "system"]
    rest = [message for message in found if message["role"] != "system"]
    first = next((place for place, message in enumerate(rest) if message["role"] == "user"), 0)
    joined = [{"role": "system", "content": "\n\n".join(each["content"] for each in system)}] if system else []
    return list(refold.repair(joined + rest[first:], format="openai-chat").messages)


def _words(part: object) -> str:
    match part:
        case Text(text=text):
            return text
        case Image():
            return "[image]"
        case File():
            return part.text or f"[{part.kind}]"
        case _:
            return ""


def instructed() -> list[dict[str, Any]]:
    """Return a long conversation in which the user says the instructions, each in a turn of its own."""
    messages = sized(LONG)
    open_ = [
        place
        for place, message in enumerate(messages)
        if place > 3 and message["role"] == "assistant" and messages[place - 1]["role"] == "tool"
    ]
    low, high = int(len(open_) * FIRST), int(len(open_) * LAST)
    step = (high - low) / len(INSTRUCTIONS)
    spots = {open_[low + int(step * number)]: said for number, said in enumerate(INSTRUCTIONS)}
    found: list[dict[str, Any]] = []
    for place, message in enumerate(messages):
        if place in spots:
            found.append({"role": "user", "content": spots[place]})
        found.append(message)
    return found


def instructions_kept(kept: Sequence[Message]) -> float:
    """Return which share of the instructions is still there word for word, blanks aside."""
    said = " ".join(" ".join(text for message in kept for text in recall.texts(message)).split())
    return sum(each in said for each in INSTRUCTIONS) / len(INSTRUCTIONS)
