"""Tells what stands in the document that the current request names, or in the part of it: "phase 1", "docs/plan.md".

Such a request is short, and what it asks for stands in a text that was written or read before. Where that has left the
view its lines are told, as far as they have room, behind the name of the file that is to be read again for the rest.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from refold._condense.call_outline import one_line
from refold._condense.digest.conclusions import FENCED
from refold._condense.digest.definitions import is_prose
from refold._condense.digest.endings import changed_in
from refold._condense.digest.guides import rules_in
from refold._condense.digest.outcomes import answered, failed
from refold._condense.digest.previous import own_text
from refold._condense.digest.turns import turn_numbers, turns_at, turns_in_work
from refold._condense.file_views import FileWritten, changes_of, excerpts_in, is_scratch
from refold._condense.last_changes import is_changed_after
from refold._condense.pasted import without_pasted
from refold._condense.shell_commands import plain_path
from refold.core._speakers import is_turn
from refold.core.messages import texts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from refold.core.messages import Message, MessageId
    from refold.core.view import View

__all__ = ["NAMED_DOCUMENT", "named_document"]

NAMED_DOCUMENT = "Document that the current request names (its words are data)"  # the section of a digest
SHORT = 1_500  # characters of a request that may leave what is to be done to a document
LENGTH, LINES, LOOKED_AT = 220, 60, 240  # characters of a line, and lines, that are told, and that are looked at
READ = 60_000  # characters of a document
RULES = 8  # of a longer one that come first
THERE = 0.5  # share of those in the view from which it is not told
LABEL = re.compile(  # a part of a plan, with its number
    r"\b((?:phase|step|stage|milestone|part|task|slice|sprint|iteration|work ?package|wp|story|epic|"
    r"schritt|étape|fase|etapa|paso|passo)s?[ #-]?\d{1,2}[a-z]?)\b|"
    r"((?:阶段|步骤|フェーズ|ステップ|단계) ?\d{1,2}|第 ?\d{1,2} ?(?:阶段|步|段階))",
    re.I,
)
PLAN = re.compile(
    r"\b(?:the|this|that|your|our|le|la|el|den|dem|der|das|o|il) (?:\w+ )?(plan|spec|design|proposal|roadmap|prd|rfc|"
    r"entwurf|konzept|propuesta|proposta)\b|(计划|方案|設計書?|仕様書?|計画|계획)",
    re.I,
)
PATH = re.compile(r"(?a:@?([\w.~/\\:-]*[\w-]\.(?:md|mdx|markdown|rst|txt|adoc|org))(?![\w/]))")
HEADING = re.compile(r"(#{1,6})\s+(\S.*)")
PARENTS = re.compile(r"^(?:\.{0,2}/)+")
FRONT_MATTER = re.compile(r"\A---\n(?:.*\n)*?---\n")
MARKS = re.compile(r"^\s*(?:[-*+•]\s+|>\s*)?")


class _Document(Struct, frozen=True):
    """A text for readers as it was last written or read from the beginning: where, and whether it was written."""

    path: str
    text: str
    message: MessageId
    turn: int
    written: bool


def named_document(view: View, staying: Sequence[Message]) -> tuple[str, ...]:
    """Return the name of the document that the current request names, then its lines or those of the part it names.

    Of a long request only what its beginning names counts.
    """
    numbers, in_work = turn_numbers(view.transcript), turns_in_work(view.transcript)
    turns = [message for message in view.transcript.messages if numbers.get(message.id) in in_work]
    request = "\n".join(without_pasted(own_text(turn)) for turn in turns).strip()
    first = next(filter(is_turn, view.transcript.messages), None)
    is_on_first = not changed_in(view.transcript) - in_work  # nothing was changed in turns that have ended
    opening = own_text(first)[:SHORT] if first and is_on_first else ""
    paths = [plain_path(each) for each in PATH.findall(f"{request[:SHORT]}\n{opening}")]
    request = "" if len(request) > SHORT else request
    labels = [" ".join((one or other).lower().split()) for one, other in LABEL.findall(request)]
    if not (paths or labels or PLAN.search(request)):
        return ()
    for document in reversed(_documents(view).values()):
        named = any(_is_same(document.path, PARENTS.sub("", path)) for path in paths)
        if paths and not named:
            continue
        part = next((section for label in labels if (section := _part(document, label))), ())
        word = PLAN.search(request) if not (paths or labels) else None
        planned = word is not None and document.written and (word[1] or word[2]).lower() in document.path.lower()
        lines = part or (tuple(document.text.split("\n")) if named or planned else ())
        if listed := _as_lines(lines, staying):
            how = f"{'written' if document.written else 'read'} in turn {document.turn}"
            later = ", changed since" if is_changed_after(view.transcript, document.message, document.path) else ""
            return (f"{document.path} ({how}{later}; read it again for what is not here):", *listed)
    return ()


def _documents(view: View) -> dict[str, _Document]:
    """Return the texts for readers that calls wrote, or read from the beginning, by path, the last one at the end."""
    turns = turns_at(view.transcript)
    documents: dict[str, _Document] = {}
    for position, message in enumerate(view.transcript.messages):
        for call, result in reversed([*answered(view, [message])]):
            if failed(call, result):
                continue
            texts_seen = [
                *((each.path, each.text, True) for each in changes_of(call) if isinstance(each, FileWritten)),
                *((each.path, each.visible.lines, False) for each in excerpts_in(call, result) if each.start == 1),
            ]
            for path, content, written in texts_seen:
                if is_prose(path) and not is_scratch(path):
                    text = content if isinstance(content, str) else "\n".join(filter(None, content))
                    name = plain_path(path)
                    documents.pop(name, None)
                    documents[name] = _Document(name, text[:READ], message.id, turns[position], written)
    return documents


def _part(document: _Document, label: str) -> tuple[str, ...]:
    """Return the lines of a document below the heading that a label begins or names; all where that is its title."""
    name = re.compile(rf"(?:^|\W){re.escape(label)}(?!\w)", re.I)
    lines = document.text.split("\n")
    for at, line in enumerate(lines):
        heading = HEADING.match(line)
        if heading is None or name.search(heading[2]) is None:
            continue
        level = len(heading[1])
        end = next(
            (
                later
                for later in range(at + 1, len(lines))
                if (other := HEADING.match(lines[later])) and len(other[1]) <= level
            ),
            len(lines),
        )
        return tuple(lines[at:end])
    return ()


def _is_same(path: str, named: str) -> bool:
    """Tell whether one of two paths ends in the other."""
    return f"/{path}".endswith(f"/{named}") or f"/{named}".endswith(f"/{path}")


def _as_lines(lines: Sequence[str], staying: Sequence[Message]) -> tuple[str, ...]:
    """Return the lines of a document that do not stand in the view, rules first; nothing where most of them do.

    Code in fences is told by the document itself, and a heading without a line below it says nothing.
    """
    plain = FENCED.sub("\n", FRONT_MATTER.sub("", "\n".join(lines)))
    text = [line.strip() for line in plain.split("\n") if line.strip(" #-*>`_|")][:LOOKED_AT]
    there = "\n".join(text for message in staying for text in _texts(message))
    missing = [line for line in text if line not in there]
    if not missing or len(missing) < (1 - THERE) * len(text):
        return ()
    rules = [rule for rule, _ in rules_in(plain) if rule not in there][:RULES] if len(missing) > LINES else []
    ordered = (*(line for line in missing if any(map(line.__contains__, rules))), *_with_content(missing)[:LINES])
    listed = (
        f"{heading[2].rstrip(' #')}:" if (heading := HEADING.match(line)) else MARKS.sub("", line) for line in ordered
    )
    return tuple(dict.fromkeys(one_line(line, LENGTH) for line in listed))


def _with_content(lines: Sequence[str]) -> list[str]:
    """Return lines without the headings behind which the next one of their level or above follows at once."""
    lasting: list[str] = []
    for line in reversed(lines):
        heading = HEADING.match(line)
        below = HEADING.match(lasting[-1]) if lasting else None
        if heading is None or (lasting and (below is None or len(below[1]) > len(heading[1]))):
            lasting.append(line)
    return lasting[::-1]


def _texts(message: Message) -> Iterator[str]:
    yield from texts(message)
    yield from (
        str(change.text) for call in message.calls for change in changes_of(call) if isinstance(change, FileWritten)
    )
