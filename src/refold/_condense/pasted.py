"""What a user pasted into a turn: code, quotations, documents in tags, pages of the web. Sentences in it are not the
user's own.

Code counts between fences, and without them where most lines of a stretch can hardly be anything else.

In doubt a text is the user's: a fence without an end, tags that name a task or a request, other tags. So is what
follows lines that an earlier plan left out, up to the next fence: a fence may have been among them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from refold._text.text_cache import text_cache

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["pasted_spans", "without_pasted"]

FENCE = re.compile(r"^[ \t]*(?:(```+|~~~+)([^\n]*)|\[… [^\]\n]{1,60} left out …\].*)$", re.M)  # or what left some out
QUOTED = re.compile(r"(?:^[ \t]*>[^\n]*(?:\n|\Z))+", re.M)
OPENING = re.compile(r"^[ \t]*<([A-Za-z][\w-]*)(?: [^<>\n]*)?>", re.M)
# Words in the names of elements that hold what was pasted, and words of those that hold what is asked for.
DOCUMENT = (
    "log logs output trace stacktrace traceback stdout stderr diff patch code snippet file files document documents "
    "doc docs article page webpage email mail transcript quote issue ticket bug report description example examples"
)
REQUEST = "task user request instruction instructions requirement requirements rules prompt goal"
DOCUMENTS, REQUESTS = frozenset(DOCUMENT.split()), frozenset(REQUEST.split())
NAME = re.compile(r"[-_]")
CHECKED = ("```", "~~~", ">", "://")  # signs without which nothing was pasted
ADDRESS = re.compile(r"^[ \t]*https?://\S+[ \t]*$", re.M)  # alone in its line
# What was copied from a page that a browser showed holds names, dates, counts and buttons, each in a line of its own.
# Of the turns of 60 lines and more in recorded sessions they are .55 in pages, .34 and less in tasks and plans.
PAGE_LINES, BARE_SHARE = 60, 0.45  # lines of a page, at least, and the share of them that are bare
BARE_WORDS, BARE_LENGTH = 3, 30  # words and characters of a bare line, at most
ITEM = re.compile(r"[-*+•#>|]|\d+[.)]")
# A line of a program, but for items of a list, and by how many of them a stretch has more than of others.
LISTED = re.compile(r"\s*(?:[-*+•]|\d+[.)])\s")
CODE_LINE = re.compile(
    r"\s*(?:(?:from [\w.]+ )?import [\w.{*]|@\w|(?:async )?def \w+\(|class \w+[:({]|"
    r"(?:const|let|var) \w+ ?=|[\w.]+ ?= ?\S|(?:return|await) \w).*|.*(?:[({\[};=]|\):|[)}\]],)|\s+\S.*,|\s*[)\]}]+"
)
# How such a line begins or ends that holds no equals sign: most lines do neither, and need no search.
CODE_STARTS = ("import ", "from ", "@", "async ", "def ", "class ", "const ", "let ", "var ", "return ", "await ")
CODE_ENDS = ("(", "{", "[", ")", "}", "]", ";", "=", ":", ",")
CODE_MARGIN, CODE_BREAK = 12, 4


@text_cache
def pasted_spans(text: str) -> tuple[tuple[int, int], ...]:
    """Return where what was pasted begins and ends in a text, in order."""
    if not any(sign in text for sign in CHECKED) and text.count("\n") < CODE_MARGIN:
        return ()
    spans: list[tuple[int, int]] = []
    for start, stop in sorted(_spans(text)):
        if not spans or start >= spans[-1][1]:
            spans.append((start, stop))
    return tuple(spans)


def without_pasted(text: str) -> str:
    """Return what a user said beside what was pasted; a line break stands for each part of that."""
    spans = pasted_spans(text)
    if not spans:
        return text
    ends = [0, *(end for span in spans for end in span), len(text)]
    return "\n".join(text[start:stop] for start, stop in zip(ends[::2], ends[1::2], strict=True))


def _spans(text: str) -> Iterator[tuple[int, int]]:
    yield from _fenced(text)
    if ">" in text:
        yield from (match.span() for match in QUOTED.finditer(text))
    if "</" in text:
        yield from _elements(text)
    if "://" in text:
        yield from _pages(text)
    if text.count("\n") >= CODE_MARGIN:
        yield from _code(text)


def _fenced(text: str) -> Iterator[tuple[int, int]]:
    """Yield the blocks between a fence and the next one that is as long and bears no label.

    A block ends where lines are left out; whether the fence behind them ends it too is told by those that follow.
    """
    opening: re.Match[str] | None = None
    cut = False  # lines are left out since the last fence
    matches = list(FENCE.finditer(text))
    for number, match in enumerate(matches):
        if match[1] is None:
            if opening is not None and not cut:
                yield opening.start(), match.start()
            cut = True
        elif cut:
            opening, cut = (None if _closes(matches[number:]) else match), False
        elif opening is None:
            opening = match
        elif match[1].startswith(opening[1]) and not match[2].strip():
            yield opening.start(), match.end()
            opening = None


def _closes(matches: Sequence[re.Match[str]]) -> bool:
    """Tell whether the first of these fences ends a block: one with a label, and the end, find all blocks ended."""
    bare = 0
    for match in matches:
        if match[1] is None or match[2].strip():
            break
        bare += 1
    return bare % 2 == 1


def _elements(text: str) -> Iterator[tuple[int, int]]:
    """Yield the elements that begin a line and are named like a document."""
    endless: set[str] = set()
    at = 0
    while match := OPENING.search(text, at):
        at = match.end()
        name = match[1]
        words = set(NAME.split(name.lower()))
        if name not in endless and not words.isdisjoint(DOCUMENTS) and words.isdisjoint(REQUESTS):
            end = text.find(f"</{name}>", at)
            if end < 0:
                endless.add(name)
            else:
                at = end + len(f"</{name}>")
                yield match.start(), at


def _pages(text: str) -> Iterator[tuple[int, int]]:
    """Yield what stands behind an address that is alone in its line, if it is what a browser showed of pages.

    The last paragraph may be the user's own again.
    """
    address = ADDRESS.search(text)
    if address is None:
        return
    end = text.rstrip().rfind("\n\n")
    lines = [line for each in text[address.end() : end].split("\n") if (line := each.strip())] if end > 0 else []
    if len(lines) >= PAGE_LINES and sum(map(_is_bare, lines)) >= BARE_SHARE * len(lines):
        yield address.end(), end


def _code(text: str) -> Iterator[tuple[int, int]]:
    """Yield stretches of lines of which most are code: each from its first such line to where their margin is best."""
    first = at = 0
    margin, best, end = 0, 0, 0
    for line in (*text.split("\n"), *["-"] * (CODE_BREAK + 1)):
        start, at = at, at + len(line) + 1
        is_code = _is_code(line.rstrip())
        if line.strip():
            first = start if is_code and not margin else first
            margin = max(margin + (1 if is_code else -1), 0)
        if margin > best:
            best, end = margin, min(at, len(text))
        elif best - margin > CODE_BREAK or not margin:
            if best >= CODE_MARGIN:
                yield first, end
            margin = best = 0


def _is_code(line: str) -> bool:
    """Tell whether a line without blanks at its end is one of a program, and no item of a list."""
    if not ("=" in line or line.endswith(CODE_ENDS) or line.lstrip().startswith(CODE_STARTS)):
        return False
    return LISTED.match(line) is None and CODE_LINE.fullmatch(line) is not None


def _is_bare(line: str) -> bool:
    """Tell whether a line is a label of a page: a few words and no item of a list."""
    return len(line) <= BARE_LENGTH and len(line.split()) <= BARE_WORDS and ITEM.match(line) is None
