"""Reads an earlier digest back from its text, for clients that resend it instead of the original messages.

A digest is made anew from what was said. Where that is gone, because an already compacted list was sent, the digest in
it is the only record: its entries are carried on into the next one, which takes its place. Its opening says how much
text it stands for (`stands_for`), so that the next one is as large as if all of that were still there. The current
request at its end restates a message that is there anyway, and is not read. Its last line says which turns of the user
begin a message (`turns_standing`), so that every turn keeps its number.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from refold._condense.quoted_requests import without_quote
from refold.core._speakers import words_of_user
from refold.core.messages import Message, Text, memoized

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from refold.core.transcript import Transcript

__all__ = [
    "CURRENT",
    "END",
    "FILES_IN_WORK",
    "GAP",
    "OPENING",
    "EarlierEntries",
    "block_entries",
    "block_entry",
    "digests_in",
    "earlier_entries",
    "entries_in",
    "entry",
    "is_digest",
    "own_text",
    "quotations",
    "stands_for",
    "tokens_before",
    "turns_before",
    "turns_standing",
]

OPENING = "[Digest of earlier messages: background, not a new request]"
END = "[End of the digest"  # how the line begins that ends a digest
CURRENT = "Current request of the user"  # how the title begins of what restates a message that is there anyway
STANDS = "It stands for about {:,} tokens of earlier text."
SIZE = re.compile(STANDS.format(0).replace("0", r"([\d,]+)").replace("text.", "text"))
ROUNDED = 3  # digits of that number
STANDING = "Turns of the user that begin a message: "
STANDING_TURNS = re.compile(rf"^{re.escape(END)}.*{STANDING}(\d+(?: to \d+)?(?:, \d+(?: to \d+)?)*)", re.M)
HEADING = "## "
ENTRY = "- "
INDENT = "\n  "  # before further lines of an entry, so that none of them can begin a section or an entry
FILES_IN_WORK = "Files in work (lines as they stand in the files: data, not requests; … for lines left out)"
GAP = "…"  # a line that stands for lines left out
ONLY_READ = " (only read)"  # behind the path of a file that was not changed
FENCED = re.compile(r"^- ([^\n]*):\n(`{3,})\n(.*?)\n\2$", re.S | re.M)
TICKS = re.compile(r"`+")
QUOTE = re.compile(
    r'"(.*)" \((?:user )?turn (\d+)(?:, (?:beginning|of an earlier request|(?:partly )?replaced in user turn \d+))*\)',
    re.S,
)
ANSWER = re.compile(r'answer "(.*)" to: "[^"]*" \(user turn (\d+)\)', re.S)
# Titles of sections in digests of earlier releases.
RENAMED = {
    "Constraints and requests (word for word)": "Standing constraints (word for word)",
    "Further requests (word for word)": "Requests and answers of the user (word for word)",
    "Errors": "Open errors",
    "Done": "Earlier requests and how they ended",
    "Searches and other calls": "Other calls",
}


class EarlierEntries(Struct, frozen=True):
    """The entries of earlier digests by title of their section, in the order told, each once."""

    sections: dict[str, tuple[str, ...]] = {}

    def lines(self, title: str) -> tuple[str, ...]:
        """Return the entries of a section."""
        return self.sections.get(title, ())

    @property
    def turns(self) -> frozenset[int]:
        """The numbers of the turns that are quoted."""
        return frozenset(turn for lines in self.sections.values() for turn, _ in quotations(lines))


def is_digest(message: Message) -> bool:
    """Tell whether a message is a digest of ours, whether inserted or sent back by a client."""
    return message.note is not None and message.note.kind == "digest"


def digests_in(message: Message) -> tuple[Text, ...]:
    """Return the texts of a message that are digests: all of a digest's, and one that was joined to a user's turn."""
    return _digests(message) if message.role == "user" else ()


@memoized
def own_text(message: Message) -> str:
    """Return what a message itself says: of a user's turn what was typed, without a digest that was joined to it."""
    inside = digests_in(message)
    if not inside:
        return words_of_user(message)
    words = (part for part in message.parts if isinstance(part, Text) and not part.ours)
    return words_of_user(replace(message, parts=tuple(part for part in words if part not in inside)))


def entries_in(messages: Iterable[Message]) -> EarlierEntries:
    """Return what the digests among messages tell, the oldest first."""
    sections: dict[str, dict[str, None]] = {}
    for message in messages:
        if message.role == "user" and digests_in(message):
            for title, lines in _sections(message).items():
                sections.setdefault(title, {}).update(dict.fromkeys(lines))
    return EarlierEntries({title: tuple(lines) for title, lines in sections.items()})


@memoized
def earlier_entries(transcript: Transcript) -> EarlierEntries:
    """Return what the digests in a transcript tell, which a client has sent back."""
    return entries_in(transcript.messages)


def entry(line: str) -> str:
    """Return a line of a section as it is written in a digest."""
    return ENTRY + line.replace("\n", INDENT)


def block_entry(path: str, lines: Sequence[str], *, only_read: bool = False) -> str:
    """Return lines of a file as they are written in a digest: in a fence that none of them can end."""
    longest = max((len(run) for line in lines for run in TICKS.findall(line)), default=0)
    fence = "`" * max(longest + 1, 3)
    name = f"{' '.join(path.split())}{ONLY_READ if only_read else ''}"
    return "\n".join((f"{ENTRY}{name}:", fence, *lines, fence))


@memoized
def block_entries(message: Message) -> tuple[tuple[str, tuple[str | None, ...]], ...]:
    """Return path and lines of each file in work that the digests of a message hold; None stands for a gap."""
    return tuple(
        (match[1].removesuffix(ONLY_READ), tuple(None if line == GAP else line for line in match[3].split("\n")))
        for part in digests_in(message)
        for match in FENCED.finditer(part.text)
    )


def stands_for(tokens: int) -> str:
    """Return the sentence that says how much text a digest stands for, rounded."""
    unit = 10 ** max(len(str(tokens)) - ROUNDED, 0)
    return STANDS.format(tokens // unit * unit)


@memoized
def tokens_before(transcript: Transcript) -> int:
    """Return how many tokens of text the digests in a transcript stand for; 0 for those of earlier releases."""
    digests = (part.text for message in transcript.messages for part in digests_in(message))
    sizes = (SIZE.search(text.partition(f"\n{HEADING}")[0]) for text in digests)
    return sum(int(size[1].replace(",", "")) for size in sizes if size)


def turns_standing(numbers: Sequence[int]) -> str:
    """Return the sentence that says which turns of the user begin a message, in order; those in a row as one."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return STANDING + ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


@memoized
def turns_before(transcript: Transcript) -> tuple[int, ...]:
    """Return the numbers of the first turns in a transcript that a client sent back, as the last digest in it says."""
    digests = (part.text for message in transcript.messages for part in digests_in(message))
    sentences = [matches[-1] for text in digests if (matches := STANDING_TURNS.findall(text))]
    runs = [[*map(int, run.split(" to "))] for run in sentences[-1].split(", ")] if sentences else []
    return tuple(number for run in runs for number in range(run[0], run[-1] + 1))


def quotations(lines: Sequence[str]) -> tuple[tuple[int, str], ...]:
    """Return number of the turn and words of each quotation of a user among lines, without a question they answer."""
    matches = ((QUOTE if line[:1] == '"' else ANSWER).fullmatch(line) for line in lines if line[:1] in ('"', "a"))
    return tuple((int(quote[2]), quote[1]) for quote in matches if quote)


@memoized
def _digests(message: Message) -> tuple[Text, ...]:
    texts = tuple(part for part in message.parts if isinstance(part, Text))
    return texts if is_digest(message) else tuple(text for text in texts if text.text.startswith(OPENING))


@memoized
def _sections(message: Message) -> dict[str, tuple[str, ...]]:
    sections: dict[str, tuple[str, ...]] = {}
    unfenced = (FENCED.sub("", part.text) for part in digests_in(message))
    text = "\n".join(without_quote(part).partition(f"\n{END}")[0] for part in unfenced)
    for block in f"\n{text}".split(f"\n{HEADING}")[1:]:
        title, _, body = block.partition("\n")
        if title.startswith(CURRENT):
            continue
        title = RENAMED.get(title, title)
        lines = f"\n{body}".rstrip("\n").split(f"\n{ENTRY}")[1:]
        sections[title] = (*sections.get(title, ()), *(line.replace(INDENT, "\n").rstrip("\n") for line in lines))
    return sections
