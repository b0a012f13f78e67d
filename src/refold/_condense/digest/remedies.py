"""Says how what failed came to go well: what was changed in between, or the other call that went well.

That something "went well later" helps nobody who meets the same error again. What helps is what was done about it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold._condense.call_outline import one_line
from refold._condense.digest.announcements import SENTENCE, announces
from refold._condense.digest.conclusions import LEADS, prose

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.messages import Message

__all__ = ["announced", "remedy"]

WORDS = 110  # characters of what the assistant said of a change
FEWEST_WORDS = 3  # of an announcement; fewer say nothing
FILES = 3  # changed files that are named
BACK, FAR = 2, 12  # messages before the first change, and before the last, in which it may be announced


def remedy(messages: Sequence[Message], changed: Sequence[tuple[int, str]], call: str, passed: str) -> str:
    """Return what made a call go well: files that were changed, each with its position, else the call that passed.

    What the assistant said before the last of a few changes says what they are. Nothing where the same call went well
    without a change.
    """
    if not changed:
        return f": as {passed}" if passed and passed != call else ""
    names = list(dict.fromkeys(path.replace("\\", "/").rsplit("/", 1)[-1] for _, path in changed))
    more = f" and {len(names) - FILES} more" if len(names) > FILES else ""
    last = changed[-1][0]
    near = messages[max(changed[0][0] - BACK, last - FAR, 0) : last + 1] if len(names) <= FILES else ()
    words = next((words for each in reversed(near) if (words := announced(each, WORDS))), "")
    return f": {', '.join(names[:FILES])}{more} changed{f', {chr(34)}{words}{chr(34)}' if words else ''}"


def announced(message: Message, length: int) -> str:
    """Return the sentence in which the assistant says what it does next: the last that does, else the first."""
    text = prose(message).strip() if message.role == "assistant" else ""
    lines = (LEADS.sub("", each.strip(" -*#>`|:")) for each in SENTENCE.split(text))
    sentences = [line for line in lines if len(line.split()) >= FEWEST_WORDS]
    if not sentences:
        return "" if text.isascii() else one_line(text, length)
    return one_line(next((each for each in reversed(sentences) if announces(each)), sentences[0]), length)
