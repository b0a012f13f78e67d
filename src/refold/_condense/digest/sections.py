"""The sections of a digest in their order, and what earlier digests add to each.

A section is a heading with lines, the most valuable first. Where only an already compacted list was sent, earlier
digests are the only record of what left before, so their entries are carried on: first, each once. Sections that are
made from the whole transcript anyway (`CUMULATIVE`) hold those entries already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from refold._condense.call_facts import files_of
from refold._condense.digest.findings import (
    CallOutcome,
    decisions,
    openings,
    outcomes,
    searches,
    todos,
    values,
    well,
)
from refold._condense.digest.model_account import ACCOUNT
from refold._condense.digest.previous import earlier_entries
from refold._condense.digest.quotes import GOAL
from refold._condense.identifier_scores import likeliest_first
from refold._condense.pins import CONSTRAINTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from refold._condense.digest.quotes import Quotes
    from refold.core.messages import Message
    from refold.core.view import View

__all__ = ["Files", "Section", "sections", "touched_files"]

REMAINING, ERRORS = "Remaining", "Errors"
CHANGED, READ = "Files changed", "Files read"
CUMULATIVE = frozenset({GOAL, CONSTRAINTS, CHANGED, READ, ACCOUNT})  # they hold what earlier digests held already
ACCOUNT_POSITION = 3  # of a model's account among the sections: after what users said
END = " → "  # between a call and how it ended
UNRESOLVED, RESOLVED = " (unresolved)", " (went well later)"

Files: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]  # read, changed


class Section(Struct, frozen=True):
    """A heading with its lines, the most valuable first.

    `share` of the digest is what the lines may use at first; with 0 they are all there, whatever they take. With
    `newest_first` the lines are written in the opposite order.
    """

    title: str
    lines: tuple[str, ...]
    share: float = 0.1
    newest_first: bool = False


def sections(
    view: View,
    messages: Sequence[Message],
    staying: Sequence[Message],
    quotes: Quotes,
    files: Files,
    account: str = "",
) -> list[Section]:
    """Return the sections of a digest of messages that leave, in order, with the entries of earlier digests.

    `staying` is what stays in the view, so that nothing is said twice; `account` is what a model says of it.
    """
    all_sections = [_with_earlier(section, view) for section in _own(view, messages, staying, quotes, files)]
    if account:
        all_sections.insert(ACCOUNT_POSITION, Section(ACCOUNT, (account,), share=0))
    return all_sections


def touched_files(view: View) -> Files:
    """Return the files read and those changed, in order: those of earlier digests, then those of the messages."""
    earlier = earlier_entries(view.transcript)
    read, written = files_of(view.transcript.messages)
    changed = dict.fromkeys((*earlier.lines(CHANGED), *written))
    return tuple(path for path in dict.fromkeys((*earlier.lines(READ), *read)) if path not in changed), tuple(changed)


def _own(
    view: View, messages: Sequence[Message], staying: Sequence[Message], quotes: Quotes, files: Files
) -> Iterator[Section]:
    """Yield the sections without earlier entries. The shares were chosen by hand and are measured as a whole only."""
    yield Section(GOAL, quotes.goal, 0.2)
    yield Section(CONSTRAINTS, quotes.pinned, share=0)
    yield Section("Further requests (word for word)", quotes.requests, 0.3, newest_first=True)
    yield Section("Decisions and reasons", decisions(messages), 0.08, newest_first=True)
    tasks = None if todos(staying) else todos(messages)
    done, remaining = tasks or ((), ())
    closing, others = openings(messages)
    yield Section("Done", (*reversed(done), *closing), 0.06, newest_first=True)
    yield Section(REMAINING, remaining, 0.08)
    read, changed = files
    yield Section(CHANGED, tuple(reversed(changed)), 0.2, newest_first=True)
    yield Section(READ, likeliest_first(tuple(reversed(read)), view.transcript), 0.12)
    ends = outcomes(view, messages, staying)
    commands = tuple(_line(end) for end in ends if end.shell and not end.failed)
    yield Section("Commands", commands, 0.05, newest_first=True)
    yield Section("Searches and other calls", searches(view, messages), 0.03, newest_first=True)
    errors = sorted((end for end in ends if end.failed), key=lambda end: not end.open)
    yield Section(ERRORS, tuple(f"{_line(end)}{UNRESOLVED if end.open else RESOLVED}" for end in errors), 0.08)
    yield Section("Values", values(messages), 0.04, newest_first=True)
    yield Section("Said by the assistant", others, 0.04, newest_first=True)


def _with_earlier(section: Section, view: View) -> Section:
    """Return a section with the entries of earlier digests: those first, as far as they hold, and each once."""
    earlier = earlier_entries(view.transcript).lines(section.title)
    if not earlier or section.title in CUMULATIVE or (section.title == REMAINING and section.lines):
        return section
    if section.title == ERRORS:
        repeated, resolved = {line.split(END)[0] for line in section.lines}, well(view, view.transcript.messages)
        earlier = tuple(
            line.replace(UNRESOLVED, RESOLVED) if line.split(END)[0] in resolved else line
            for line in earlier
            if line.split(END)[0] not in repeated
        )
    lines = (*section.lines, *reversed(earlier)) if section.newest_first else (*earlier, *section.lines)
    return replace(section, lines=tuple(dict.fromkeys(lines)))


def _line(end: CallOutcome) -> str:
    return f"{end.call}{END}{end.ended}" if end.ended else end.call
