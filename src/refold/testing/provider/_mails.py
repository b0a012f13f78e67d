"""A task over forty-one e-mails: a search, then reads in batches of fifteen, fifteen and eleven, with long bodies."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from refold.core._decoders import decoder
from refold.core._json import Json

if TYPE_CHECKING:
    from refold.testing._seeded_random import SeededRandom

__all__ = ["BATCHES", "MailWords", "mail", "mail_tools", "mail_words"]

BATCHES = (15, 15, 11)  # W19

_SYSTEM = (
    "You are an assistant that works through a mailbox with tools. Read every message that a task names before you "
    "sum it up. Never send or delete mail."
)
_TASK = (
    "Please go through all unread mail of the last week, every single one, and write me a briefing: what needs an "
    "answer from me today, what can wait, which numbers and dates I must know. Do not answer anybody. Amounts always "
    "with their invoice number."
)
_TOPICS = (
    "invoice",
    "delivery",
    "contract",
    "complaint",
    "stock count",
    "audit",
    "tender",
    "holiday rota",
    "price list",
)
_OPENINGS = (
    "<name> asked me to send you the state of the <topic> before <day>.",
    "Following our call on <day>, here is what we know about the <topic>.",
    "I am writing about the <topic> <id>, which is still open on our side.",
    "You will remember the <topic> of last month; there is news.",
)
_LINES = (
    "The <adj> part comes to <amount> EUR under <id>, due on <day> the <n>th.",
    "<name> from <city> will call between <n> and <m> o'clock, number ending in <n><m>.",
    "Warehouse <house> reports a <noun> of <n><m> pieces against <m><n> in the books.",
    "We can offer <n> percent if <id> is confirmed before the <m>th, otherwise the old <noun> holds.",
    "Carrier <carrier> lost the box with barcode <id>; the claim has to be in by <day>.",
    "For the <topic> we need your signature on page <n> and the stamp on page <m>.",
    "The <noun> was wrong in our letter of the <n>th: read <amount> EUR, not the figure printed there.",
    "If nobody objects, the <adj> <noun> ends with week <m> and <name> takes over.",
    "Attached you find <n> tables; the third of them, <id>, replaces what you have.",
    "Our lawyers see no risk in the <adj> clause, but they want the <noun> named in figures.",
    "There were <m> complaints about the <topic>, <n> of them from <city>.",
    "Please note the new account for <carrier>: it ends in <id> and is valid from the <m>th.",
)
_CITIES = ("Graz", "Aarhus", "Lille", "Brno", "Turku", "Porto", "Gent", "Ulm")
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
_encode = msgspec.json.Encoder().encode


class MailWords(Struct, frozen=True):
    """Names and words that the e-mails are filled with."""

    warehouses: tuple[str, ...]
    carriers: tuple[str, ...]
    people: tuple[str, ...]
    adjectives: tuple[str, ...]
    nouns: tuple[str, ...]


_decode = decoder(MailWords)


@cache
def mail_words() -> MailWords:
    """Return the words of the e-mails."""
    return _decode(files(__package__).joinpath("mail_words.json").read_bytes())


def mail(dice: SeededRandom, lines: int = 120) -> list[Json]:
    """Return the task in openai-chat shape, up to the answers of the third batch; `lines` is the length of a body."""
    ids = [f"msg_{dice.letters(12)}" for _ in range(sum(BATCHES))]
    subjects = [(dice.pick(mail_words().people), dice.pick(_TOPICS), _id(dice)) for _ in ids]
    listing = "\n".join(
        f"{id}  {name.lower()}@example.com  {topic} {subject}"
        for id, (name, topic, subject) in zip(ids, subjects, strict=True)
    )
    messages: list[Json] = [
        {"role": "system", "content": _SYSTEM},
        {"role": "user", "content": _TASK},
        _call(dice, "I'll search for the unread mail first.", "mail_search", [{"query": "is:unread newer_than:7d"}]),
    ]
    messages += _answers(messages[-1], [f"{len(ids)} messages\n{listing}"])
    start = 0
    for size in BATCHES:
        batch = ids[start : start + size]
        text = f"Reading {size} of {len(ids)} messages, {start} are done."
        messages.append(_call(dice, text, "mail_read", [{"id": id} for id in batch]))
        bodies = [_body(dice, *subjects[place], lines) for place in range(start, start + size)]
        messages += _answers(messages[-1], bodies)
        start += size
    return messages


def mail_tools() -> list[Json]:
    """Return the definitions of the two tools."""
    named = (("mail_search", "Search the mailbox.", "query"), ("mail_read", "Read one message.", "id"))
    return [
        {
            "type": "function",
            "function": {
                "name": name,
                "description": about,
                "parameters": {"type": "object", "properties": {key: {"type": "string"}}, "required": [key]},
            },
        }
        for name, about, key in named
    ]


def _call(dice: SeededRandom, text: str, tool: str, inputs: list[dict[str, str]]) -> Json:
    calls = [
        {
            "id": f"call_{dice.letters(16)}",
            "type": "function",
            "function": {"name": tool, "arguments": _encode(input).decode()},
        }
        for input in inputs
    ]
    return {"role": "assistant", "content": text, "tool_calls": calls}


def _answers(message: Json, texts: list[str]) -> list[Json]:
    calls = message["tool_calls"]
    return [
        {"role": "tool", "tool_call_id": call["id"], "content": text} for call, text in zip(calls, texts, strict=True)
    ]


def _body(dice: SeededRandom, name: str, topic: str, subject: str, lines: int) -> str:
    head = f"From: {name} <{name.lower()}@example.com>\nTo: desk@example.com\nSubject: {topic} {subject}\n"
    text = [dice.fill(dice.pick(_OPENINGS), **_slots(dice, topic) | {"name": name, "id": subject})]
    text.extend(
        "" if number % 7 == 6 else dice.fill(dice.pick(_LINES), **_slots(dice, topic)) for number in range(lines)
    )
    return f"{head}\n" + "\n".join(text) + f"\n\nKind regards\n{name}"


def _slots(dice: SeededRandom, topic: str) -> dict[str, object]:
    words = mail_words()
    return {
        "topic": topic, "name": dice.pick(words.people), "day": dice.pick(_DAYS), "id": _id(dice),
        "adj": dice.pick(words.adjectives), "noun": dice.pick(words.nouns), "house": dice.pick(words.warehouses),
        "carrier": dice.pick(words.carriers), "city": dice.pick(_CITIES), "n": dice.between(2, 28),
        "m": dice.between(2, 28), "amount": f"{dice.between(90, 98_000)}.{dice.between(10, 99)}",
    }  # fmt: skip


def _id(dice: SeededRandom) -> str:
    return f"{dice.pick(('RE', 'AB', 'LS', 'KV'))}-{dice.between(2_000, 9_999)}-{dice.hex(4)}"
