"""What an agent says between its calls: what came of the last ones, and what it does next."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from refold._condense.call_outline import one_line
from refold._condense.digest.announcements import SENTENCE, announces, points_back
from refold._condense.digest.conclusions import LEADS, prose
from refold._condense.digest.remedies import announced
from refold.core.messages import memoized

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.messages import Message

__all__ = ["narration", "no_work"]

WORDS = 150  # characters of what it does next
FINDING, FEWEST_WORDS = 220, 4  # characters of what it found, and words of a sentence that says it
LEAST_WORDS = 3  # words of any sentence that counts
# A heading, an item of a list, a row of a table, a step by number, or what is no whole sentence.
NO_SENTENCE = re.compile(r"^(?:[-*•#>|]\s|[#|]|\d+[.)] |\w+ \d+[.:] )|[^.!。！\"”]$")
# What the agent says of itself: that it knows enough by now.
KNOWS = re.compile(r"\bI(?:['’]ve| have)? (?:now |already )?(?:have|got|see|understand)\b", re.I)
NO_WORK_LENGTH = 400  # characters: a longer text is an answer, whatever it begins with
# What a harness or a provider says in place of an answer.
NO_WORK = re.compile(
    r"^\W*(?:API Error|Error:? \d{3}|\d{3} \{|You(?:'|’)ve (?:hit|reached|exceeded) your|Claude (?:AI )?usage limit|"
    r"(?:monthly |weekly |daily )?(?:spend(?:ing)?|usage|rate|session|request|quota) (?:limit|cap)|Credit balance|"
    r"(?:Too many|Request) requests?|Request (?:timed out|interrupted|was aborted|failed)|\[Request interrupted|"
    r"No response requested|Prompt is too long|Invalid API key|Please run /login|Execution error|Internal server error|"
    r"Overloaded|Service unavailable|Stream (?:error|disconnected|closed)|Connection (?:error|lost|reset)|"
    r"Conversation compacted|Context (?:low|window exceeded)|Interrupted by user|Operation (?:aborted|cancelled))",
    re.I,
)


@memoized
def narration(message: Message) -> tuple[str, str]:
    """Return what the assistant says it does next, and what it says before that: what came of the step before."""
    text = prose(message).strip()
    if message.role != "assistant" or no_work(text):
        return "", ""
    lines = [LEADS.sub("", each.strip()) for each in SENTENCE.split(text.replace("**", ""))]
    sentences = [each for each in lines if len(each.split()) >= LEAST_WORDS or _is_foreign(each)]
    last = max((at for at, each in enumerate(sentences) if announces(each)), default=-1)
    if last < 0 and _is_foreign(text):  # how other languages announce is not known: it stands last
        last = len(sentences) - 1
    finding = _finding(sentences[:last] if last >= 0 else sentences)
    return (announced(message, WORDS).rstrip(".") if last >= 0 or not finding else ""), finding


def _is_foreign(text: str) -> bool:
    """Tell whether a text is in a script without Latin letters."""
    return sum(map(str.isascii, text)) < 0.8 * len(text)


def _finding(sentences: Sequence[str]) -> str:
    """Return the first whole sentences that say how something is, as far as they have room together, or nothing."""
    taken: list[str] = []
    for sentence in sentences:
        telling = not (NO_SENTENCE.search(sentence) or KNOWS.search(sentence) or announces(sentence))
        stands = len(sentence.split()) >= FEWEST_WORDS + sentence.endswith("!") or _is_foreign(sentence)
        if (
            telling
            and (taken or (stands and not points_back(sentence)))
            and len(" ".join((*taken, sentence))) <= FINDING
        ):
            taken.append(sentence)
        elif taken:
            break
    return one_line(" ".join(taken).replace('"', "'"), FINDING)


def no_work(text: str) -> bool:
    """Tell whether a text in place of an answer says only that there is none: a limit, an error of a provider."""
    return len(text) <= NO_WORK_LENGTH and NO_WORK.match(text) is not None
