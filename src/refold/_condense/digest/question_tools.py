"""Tells what users answered to tools that ask them: each question with the option or the words that were given.

A tool gives the answers back, so they are words of a tool and never a constraint. Where it names questions by an id
only, the call has their words. What the user says later on the same matter stands behind an answer. A plan that was
shown with a tool and accepted, and what the user said in place of letting a call run, are answers, too.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from refold._condense.call_facts import arguments_of, plain_name
from refold._condense.call_outline import one_line
from refold._condense.digest.answers import QUOTES
from refold._condense.digest.conclusions import PLAN_ENDS
from refold._condense.digest.outcomes import answered, failed
from refold._condense.digest.previous import own_text
from refold._condense.digest.turns import turn_numbers, turns_at
from refold._condense.pins import sentences_of
from refold._salience.words import UNSPACED, words_of
from refold._text.text_cache import word_cache
from refold.core._json import decoded, listing, mapping, objects, string

if TYPE_CHECKING:
    from refold.core._json import Json
    from refold.core.messages import ToolCall
    from refold.core.transcript import Transcript
    from refold.core.view import View

__all__ = ["answers_by_tool", "asks_user"]

MOST = 150  # lines that are looked for
QUESTION, ANSWER, MEANING = 160, 400, 400  # characters of each, and of what the call says of the chosen options
SHORT_TURN, SENTENCE = 400, 160  # characters of a later turn that may change a choice, and of its sentence
LONG = 4  # letters of a word that two texts share which are about the same
SHARED = 2  # such words; one is enough where it is a name
ASKERS = re.compile(r"^ask_?(?:user|followup|the_user|human)|user_?(?:question|input)$|^question$")  # tools, by name
# A question with the user's answer, and how a harness begins that gives back such pairs: of other words all count.
QUESTION_AND_ANSWER = re.compile(
    r'(?:^|[,:] )"([^\n]+?)"="(.+?)"(?=, "|\.? (?:You can|selected preview|user notes)|\W*\Z)', re.S
)
PAIRS = re.compile(r'\s*(?:[^"\n]{0,60}\banswer(?:s|ed)?\b[^"\n]{0,30})?"')
# An answer that lets the assistant go on, and decides nothing else.
PERMISSION = re.compile(r"(?:[^:\n]{1,30}: )?(?:authori[sz]e|approve|grant|proceed|go ahead)\b", re.I)
# How a harness gives back what the user said in place of letting a call run (Claude Code).
REFUSED = re.compile(r"\bto tell you how to proceed, the user said:\s*(\S.*?)\s*(?:\n\nNote: |\Z)", re.I | re.S)
PLAN_TITLE = re.compile(r"^#+ (?:Plan: )?(.+)$", re.M)
NOTE = "user_note: "  # before what the user wrote beside an option (Codex)
CHANGES = re.compile(  # how a sentence sounds that chooses something else, or takes a choice back
    r"\b(?:do not|don['’]?t|no|not|never|instead|rather|without|drop|remove|use|go with|nicht|kein\w*|statt|ne|pas|"
    r"sans|não|sem|sin|non|senza|не|без|вместо)\b|"
    r"にしよう|にします|にして|で(?:い|行)こう|不要|不用|而不是|改用|하지 ?마|대신",
    re.I,
)
# A name: with a capital letter that begins no sentence (where words have no capitals, any), or of several words.
NAME = re.compile(r"(?<=[^.!?\s\"'] )[A-Z][\w-]{3,}|[A-Za-z]+[_-][\w-]+")
FOREIGN_NAME = re.compile(r"[A-Z][A-Za-z0-9_-]{3,}")


def answers_by_tool(view: View) -> tuple[str, ...]:
    """Return what users answered to tools that ask, newest first. Of permissions the newest stands for all."""
    transcript = view.transcript
    turns = turns_at(transcript)
    lines: list[str] = []
    permissions = at = 0
    for place in range(len(transcript.messages) - 1, -1, -1):
        for call, result in answered(view, transcript.messages[place : place + 1]):
            if result.is_error and not asks_user(call.name) and (refused := REFUSED.search(result.text)):
                lines.append(f'turn {turns[place]}, {call.name} refused: "{one_line(refused[1], ANSWER)}"')
            elif plain_name(call.name).replace("_", "") in PLAN_ENDS and not failed(call, result):
                title = PLAN_TITLE.search(string(arguments_of(call), "plan"))
                lines += [f'turn {turns[place]}: plan "{one_line(title[1], SENTENCE)}" accepted'] if title else []
            if not asks_user(call.name) or failed(call, result):
                continue
            pairs = _pairs(call, result.text)
            if len(pairs) == 1 and not pairs[0][0] and PERMISSION.match(pairs[0][1]):
                permissions += 1
                if permissions > 1:
                    continue
                at = len(lines)
            for asking_words, answer in pairs:
                question = asking_words or _only_question(call)
                asking = f'"{one_line(question, QUESTION).translate(QUOTES)}" → ' if question else ""
                words = f'"{one_line(answer, ANSWER)}"' if question else one_line(answer, ANSWER)
                meant = _description(call, question, answer)
                means = f" ({meant})" if 0 < len(meant) <= MEANING and meant not in answer else ""
                later = _later(transcript, turns[place], f"{question} {answer} {meant}")
                lines.append(f"turn {turns[place]}, {call.name}: {asking}{words}{means}{later}")
    if permissions > 1:
        lines[at] += f" (the newest of {permissions} permissions)"
    return tuple(dict.fromkeys(lines))[:MOST]


def _pairs(call: ToolCall, text: str) -> list[tuple[str, str]]:
    """Return the questions with their answers; what is given back in other words is one answer without a question."""
    if matches := QUESTION_AND_ANSWER.findall(text) if PAIRS.match(text) else []:
        return [(question, answer) for question, answer in matches]
    by_id = mapping(mapping(decoded(text)).get("answers")) if text.lstrip()[:1] == "{" else {}
    worded = {string(one, "id"): string(one, "question") for one in _questions(call)}
    pairs = [
        (worded.get(name) or name, "; ".join(str(each).removeprefix(NOTE) for each in _values_of(value)))
        for name, value in by_id.items()
    ]
    return [pair for pair in pairs if pair[1]] or [("", text)]


def _values_of(value: object) -> list[object]:
    """Return the answers to one question, whether they stand in a list or alone."""
    inside = mapping(value).get("answers", value)
    return listing(inside) or [inside]


def _questions(call: ToolCall) -> list[Json]:
    return objects(arguments_of(call).get("questions"))


def _only_question(call: ToolCall) -> str:
    """Return the question of a call that asks one."""
    questions = [each for one in (arguments_of(call), *_questions(call)) if (each := string(one, "question"))]
    return questions[0] if len(questions) == 1 else ""


def _description(call: ToolCall, question: str, answer: str) -> str:
    """Return what the call says of the options that were chosen."""
    answering = (one for one in (arguments_of(call), *_questions(call)) if string(one, "question").strip() == question)
    options = (option for one in answering for option in objects(one.get("options")))
    return " ".join(
        string(one, "description").strip() for one in options if (label := string(one, "label")) and label in answer
    )


def _later(transcript: Transcript, turn: int, choice: str) -> str:
    """Return what a later short turn of the user says that changes a choice, as words behind it; or nothing."""
    numbers = turn_numbers(transcript)
    words, names = _long(choice), _names(choice)
    for id, number in reversed(numbers.items()):
        text = own_text(transcript.messages[transcript.index[id]])
        if number <= turn or len(text) > SHORT_TURN:
            continue
        for sentence in sentences_of(text):
            again = sentence.strip() in choice
            if CHANGES.search(sentence) and not (again or sentence.rstrip().endswith(("?", "？"))):
                shared = words & _long(sentence)
                if len(shared) >= SHARED or any(name in sentence for name in names):
                    return f' (but then user turn {number}: "{one_line(sentence, SENTENCE)}")'
    return ""


def _names(text: str) -> frozenset[str]:
    return frozenset((FOREIGN_NAME if UNSPACED.search(text) else NAME).findall(text))


def _long(text: str) -> frozenset[str]:
    return frozenset(word for word in words_of(text) if len(word) >= LONG)


@word_cache(1_024)
def asks_user(name: str) -> bool:
    """Tell whether a tool asks the user, by its name."""
    return ASKERS.search(plain_name(name)) is not None
