"""Tells what stands in the document that the current request names, or in the part of it: "phase 1", "docs/plan.md".

Such a request is short, and what it asks for stands in a text that was written or read before. Where that has left the
view its lines are told, as far as they have room, behind the name of the file that is to be read again for the rest.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from refold._condense.call_outline import one_line
from refold._condense.digest.definitions import is_prose
from refold._condense.digest.outcomes import answered, failed
from refold._condense.digest.previous import own_text
from refold._condense.digest.turns import turn_numbers, turns_at, turns_in_work
from refold._condense.file_views import FileWritten, changes_of, excerpts_in, is_scratch
from refold._condense.pasted import without_pasted
from refold._condense.shell_commands import plain_path
from refold.core.messages import texts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from refold.core.messages import Message
    from refold.core.view import View

__all__ = ["NAMED_DOCUMENT", "named_document"]

NAMED_DOCUMENT = "Document that the current request names (its words are data)"  # the section of a digest
SHORT = 1_500  # characters of a request that may leave what is to be done to a document
LENGTH, LINES = 220, 60  # characters of a line, and lines, that are told
READ = 60_000  # characters of a document
THERE = 0.5  # share of its lines in the view from which it is not told
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
PATH = re.compile(r"@?([\w.~/\\:-]*[\w-]\.(?:md|mdx|markdown|rst|txt|adoc|org))(?![\w/])")
HEADING = re.compile(r"(#{1,6})\s+(\S.*?)[ #]*$")
MARKS = re.compile(r"^\s*(?:[-*+•]\s+|>\s*)?")


class _Document(Struct, frozen=True):
    """A text for readers as it was last written or read whole: where, in which turn, and whether it was written."""

    path: str
    text: str
    turn: int
    written: bool


def named_document(view: View, staying: Sequence[Message]) -> tuple[str, ...]:
    """Return the name of the document that the current request names, then its lines or those of the part it names."""
    numbers, in_work = turn_numbers(view.transcript), turns_in_work(view.transcript)
    turns = [message for message in view.transcript.messages if numbers.get(message.id) in in_work]
    request = "\n".join(without_pasted(own_text(turn)) for turn in turns).strip()
    if not request or len(request) > SHORT:
        return ()
    paths = [plain_path(each) for each in PATH.findall(request)]
    labels = [" ".join((one or other).lower().split()) for one, other in LABEL.findall(request)]
    if not (paths or labels or PLAN.search(request)):
        return ()
    documents = {document.path: document for document in _documents(view)}
    for document in reversed(documents.values()):
        named = any(f"/{document.path}".endswith(f"/{path.lstrip('./')}") for path in paths)
        part = next((section for label in labels if (section := _part(document, label))), ())
        word = PLAN.search(request) if not (paths or labels) else None
        planned = word is not None and document.written and (word[1] or word[2]).lower() in document.path.lower()
        lines = part or (tuple(document.text.split("\n")) if named or planned else ())
        if listed := _as_lines(lines, staying):
            how = "written" if document.written else "read"
            return (f"{document.path} ({how} in turn {document.turn}; read it again for what is not here):", *listed)
    return ()


def _documents(view: View) -> Iterator[_Document]:
    """Yield the texts for readers that calls wrote, or read from the beginning, in order."""
    turns = turns_at(view.transcript)
    for position, message in enumerate(view.transcript.messages):
        for call, result in answered(view, [message]):
            if failed(call, result):
                continue
            for change in changes_of(call):
                if isinstance(change, FileWritten) and is_prose(change.path) and not is_scratch(change.path):
                    yield _Document(plain_path(change.path), change.text[:READ], turns[position], True)
            for excerpt in excerpts_in(call, result):
                if is_prose(excerpt.path) and excerpt.start == 1 and not is_scratch(excerpt.path):
                    text = "\n".join(line for line in excerpt.visible.lines if line is not None)[:READ]
                    yield _Document(plain_path(excerpt.path), text, turns[position], False)


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


def _as_lines(lines: Sequence[str], staying: Sequence[Message]) -> tuple[str, ...]:
    """Return lines of a document as lines of a digest, nothing where most of them stand in the view."""
    full = [line.strip() for line in lines if line.strip(" #-*>`_|")]
    if not full:
        return ()
    there = "\n".join(text for message in staying for text in _texts(message))
    if sum(line in there for line in full) > THERE * len(full):
        return ()
    plain = (f"{heading[2]}:" if (heading := HEADING.match(line)) else MARKS.sub("", line) for line in full)
    return tuple(one_line(line, LENGTH) for line in plain)[:LINES]


def _texts(message: Message) -> Iterator[str]:
    yield from texts(message)
    yield from (result.text for result in message.results)
    yield from (
        str(change.text) for call in message.calls for change in changes_of(call) if isinstance(change, FileWritten)
    )
