"""Says how what failed came to go well: what was changed in between, or the other call that went well.

That something "went well later" helps nobody who meets the same error again. What helps is what was done about it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from refold._condense.call_facts import is_shell, subject
from refold._condense.call_outline import one_line
from refold._condense.digest.announcements import SENTENCE, announces
from refold._condense.digest.conclusions import LEADS, prose
from refold._condense.shell_commands import statements

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.messages import Message, ToolCall

__all__ = ["announced", "preparation", "remedy"]

WORDS = 110  # characters of what the assistant said of a change
FEWEST_WORDS = 3  # of an announcement; fewer say nothing
FILES = 3  # changed files that are named; of more nobody can tell which it was
CLAUSE, LEAST_OF_CUT = re.compile(r"[,;:](?= )| (?:[—–-] |\()"), 0.25  # where one ends, and the share that says enough
PREPARES = re.compile(r"\b(?:use|activate|install|ci|sync)\b|^(?:source|export|\.)\s")  # what a command needs to run
BACK, FAR = 2, 12  # messages before the first change, and before the last, in which it may be announced


def preparation(failed: ToolCall, passed: ToolCall) -> str:
    """Return the last command that prepares what went well and stood not in what failed, or nothing."""
    if not (is_shell(failed) and is_shell(passed)):
        return ""
    before = [words for _, words in statements(subject(failed)[0])]
    parts = [" ".join(words) for _, words in statements(subject(passed)[0])[:-1] if words not in before]
    return next((one_line(part, WORDS) for part in reversed(parts) if PREPARES.search(part)), "")


def remedy(
    messages: Sequence[Message], changed: Sequence[tuple[int, str]], call: str, passed: str, prepared: str = ""
) -> str:
    """Return what made a call go well: what prepared it, or files that were changed, each with its position.

    Else it is the call that passed. What the assistant said before the last of a few changes says what they are.
    Nothing where the same call went well without a change.
    """
    if prepared:
        return f": after `{prepared.replace('`', chr(39))}`"
    if not changed:
        return f": as {passed}" if passed and passed != call else ""
    names = list(dict.fromkeys(path.replace("\\", "/").rsplit("/", 1)[-1] for _, path in changed))
    if len(names) > FILES:
        return ""
    last = changed[-1][0]
    near = messages[max(changed[0][0] - BACK, last - FAR, 0) : last + 1]
    words = next((words for each in reversed(near) if (words := announced(each, WORDS))), "")
    return f": {', '.join(names)} changed{f', {chr(34)}{words}{chr(34)}' if words else ''}"


def announced(message: Message, length: int) -> str:
    """Return the sentence in which the assistant says what it does next: the last that does, else the first."""
    text = prose(message).strip() if message.role == "assistant" else ""
    lines = (LEADS.sub("", each.replace("**", "").strip(" -*#>`|:")) for each in SENTENCE.split(text))
    sentences = [line for line in lines if len(line.split()) >= FEWEST_WORDS]
    if not sentences:
        return "" if text.isascii() else one_line(text, length)
    words = next((each for each in reversed(sentences) if announces(each)), sentences[0])
    line = one_line(f"{words}`" if words.count("`") % 2 else words, length)
    return _whole_clauses(line.removesuffix(" …")) or line if line.endswith(" …") else line


def _whole_clauses(cut: str) -> str:
    """Return the clauses of a sentence that was cut which are whole, where they are most of it, else nothing.

    Of what is listed behind a colon or a dash none is left where not all is there.
    """
    borders = [match.start() for match in CLAUSE.finditer(cut) if match.start() >= LEAST_OF_CUT * len(cut)]
    borders.sort(key=lambda border: (cut[border] == ",", -border))
    clauses = (cut[:border].rstrip() for border in borders)
    return next((each for each in clauses if not each.count("`") % 2 and each.count("(") == each.count(")")), "")
