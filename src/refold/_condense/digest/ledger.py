"""Keeps account of what the current request lists: which of its items are done, checked, in work or still open.

Agents work on a numbered request item by item, and say so by number ("item 4 is fine", "Item 5: use a map"). An item is
done where the work went on to another one after a change, checked where the assistant says that nothing is to be done.
Where no item is spoken of by number, nothing is known of any of them, and nothing is told. The findings of a review by
another agent for the current request are open until a file that they name was changed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from refold._condense.call_facts import plain_name, writes
from refold._condense.call_outline import one_line
from refold._condense.digest.announcements import SENTENCE
from refold._condense.digest.conclusions import prose
from refold._condense.digest.file_log import AGENTS
from refold._condense.digest.open_items import base_name, files_named
from refold._condense.digest.outcomes import answered, failed
from refold._condense.digest.previous import own_text
from refold._condense.digest.turns import turn_numbers, turns_at, turns_in_work
from refold._condense.pasted import without_pasted
from refold._salience.atoms import spoken

if TYPE_CHECKING:
    from collections.abc import Iterator

    from refold.core.messages import Message
    from refold.core.view import View

__all__ = ["ALL_DONE", "ledger"]

ALL_DONE = "nothing open: report to the user"
ITEM, FINDING = 120, 200  # characters of an item that are quoted
FEWEST, MOST = 2, 12  # items of a list whose account is kept
NUMBERED = re.compile(r"^[ \t]*\(?(\d{1,2})[.):][ \t]+(\S.*)$", re.M)
BULLET = re.compile(r"^(?:[-*•]|\d{1,2}[.)])[ \t]+(\S.*)$", re.M)
SPOKEN_OF = re.compile(  # an item, by its number
    r"\b(?:items?|points?|tasks?|findings?|numbers?)[ \t]*#?("
    r"\d{1,2}(?:(?:,| and| &|, and) #?\d{1,2})*)(?![\w/]|\.\d)",
    re.I,
)
NOTHING_TO_DO = re.compile(
    r"\b(?:is|are|was|were|looks?) (?:also |all |already |actually )*(?:fine|ok(?:ay)?|good|correct|right|handled|"
    r"covered|in place|not (?:needed|necessary|a problem|an issue))\b|\bnothing to (?:do|change|fix)\b|"
    r"\bno (?:changes?|fix|action) (?:is |are )?needed\b",
    re.I,
)
FINISHED = re.compile(r"\b(?:done|fixed|finished|completed?|implemented|addressed|resolved)\b|✅", re.I)
LATER = re.compile(r"\b(?:remaining|remains?|still|later|pending|left|open|not yet)\b", re.I)
# What says that something is to be done, or was not.
UNDONE = re.compile(
    r"\b(?:not|never|cannot|could|should|must|would|needs?|to be|before|once|if|when|until|unless)\b|n['’]t\b", re.I
)
REVIEWS = re.compile(r"\b(?:code[ -])?review|\baudit|\bbugs?\b", re.I)  # what another agent is asked for


def ledger(view: View) -> Iterator[str]:
    """Yield the state of each item of the current request, then the open findings of the newest review in it."""
    messages, turns = view.transcript.messages, turns_at(view.transcript)
    numbers, in_work = turn_numbers(view.transcript), turns_in_work(view.transcript)
    since = next((at for at, turn in enumerate(turns) if turn in in_work), 0)
    for at in range(len(messages) - 1, since - 1, -1):
        if messages[at].id in numbers and (items := _listed(messages[at])):
            yield from _account(view, at, items)
            break
    yield from _findings(view, since)


def _listed(message: Message) -> dict[int, str]:
    """Return the items of a request by number, where they count up from one."""
    listed = [(int(number), words) for number, words in NUMBERED.findall(without_pasted(own_text(message)))]
    counted = [number for number, _ in listed] == [*range(1, len(listed) + 1)]
    return dict(listed) if counted and FEWEST <= len(listed) <= MOST else {}


def _account(view: View, start: int, items: dict[int, str]) -> Iterator[str]:
    """Yield a line for each item, where the assistant speaks of some by number, and what is next where none is open."""
    became: dict[int, str] = {}
    current, edited = 0, False
    for message in view.transcript.messages[start + 1 :]:
        for sentence in SENTENCE.split(prose(message)) if message.role == "assistant" else ():
            for number, state in _states(sentence):
                if number not in items:
                    continue
                if state != "in work":
                    became[number] = state
                    continue
                if current not in (0, number) and became.get(current) == "in work":
                    became[current] = "done" if edited else "open"
                current, edited = number, edited and current == number
                became[number] = state
        changed = any(writes(call) and not failed(call, result) for call, result in answered(view, [message]))
        edited = edited or changed
    for number, words in items.items() if became else ():
        yield f"item {number}, {became.get(number, 'open')}: {one_line(words, ITEM)}"
    if became and all(became.get(number) in ("done", "checked, nothing to do") for number in items):
        yield ALL_DONE


def _states(sentence: str) -> Iterator[tuple[int, str]]:
    """Yield the items that a sentence speaks of by number, each with what it says of it.

    A sentence that says of items both that they are finished and what is left tells nothing of each.
    """
    matches = [*SPOKEN_OF.finditer(sentence)]
    for place, match in enumerate(matches):
        end = matches[place + 1].start() if place + 1 < len(matches) else len(sentence)
        words = sentence[0 if place == 0 else match.start() : end]
        if words.rstrip().endswith("?"):
            continue
        is_done, is_left = FINISHED.search(words) and not UNDONE.search(words), LATER.search(words)
        if is_done and is_left:
            continue
        state = "open" if is_left else "done" if is_done else "in work"
        if NOTHING_TO_DO.search(words) and not is_left:
            state = "checked, nothing to do"
        yield from ((int(number), state) for number in re.findall(r"\d+", match[1]))


def _findings(view: View, since: int) -> Iterator[str]:
    """Yield the findings of the newest review by another agent since then that name no file changed after it."""
    messages = view.transcript.messages
    changed: set[str] = set()
    for at in range(len(messages) - 1, since - 1, -1):
        for call, result in answered(view, [messages[at]]):
            if failed(call, result):
                continue
            changed |= {base_name(path) for path in writes(call)}
            if AGENTS.search(plain_name(call.name)) and REVIEWS.search(spoken(call)):
                findings = BULLET.findall(result.text)
                for words in findings[:MOST] if len(findings) >= FEWEST else ():
                    files = files_named(words)
                    if files and changed.isdisjoint(files):
                        yield f"open finding: {one_line(words.replace('**', ''), FINDING)}"
                return
