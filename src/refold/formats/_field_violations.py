"""Finds fields of a message whose values are of a type that no provider of the format takes: content, words, calls.

Only the fields that every message has are looked at, and only their types: what is unknown in them is carried through.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from refold._rules.form import Flaw
from refold._text.surrogates import repair_surrogates
from refold.core._json import Json, listing, mapping, string, type_in_words
from refold.core.messages import Message, Text
from refold.formats._base import arguments_text

__all__ = ["content_flaws", "words_for", "wrong_calls", "wrong_entries"]


def content_flaws(message: Message, key: str, kinds: Collection[str] = (), *, untyped: bool = False) -> Iterator[Flaw]:
    """Yield a content that is no list of blocks, and what is wrong in a list; no content at all is for another rule.

    `kinds` are the types of blocks of text. Where blocks have a type, a text may stand in place of the list, else not.
    For `untyped` see `wrong_entries`.
    """
    content = mapping(message.native).get(key)
    if isinstance(content, list):
        for place, text, value in wrong_entries(content, key, kinds, untyped=untyped):
            words = words_for(value)
            yield Flaw(text, (key, place), Text(words) if words.strip() else None)
    elif content is not None and not (kinds and isinstance(content, str)):
        wanted = "a string or a list of blocks" if kinds else "a list of blocks"
        words = words_for(content)
        text = f"{key} is {type_in_words(content)}: give {wanted}"
        yield Flaw(text, (key,), Text(words) if words.strip() else None)


def wrong_entries(
    content: list[Any], key: str, kinds: Collection[str], *, untyped: bool = False
) -> Iterator[tuple[int, str, object]]:
    """Yield entries that are no block, blocks without a type, and blocks of text without any.

    Of each: its place, what is wrong, and the value that may hold its words. With `untyped` a block that holds anything
    but words needs no type, as servers take `{"image_url": …}`.
    """
    for place, block in enumerate(content):
        at = f"{key}[{place}]"
        if not isinstance(block, dict):
            yield place, f"{at} is {type_in_words(block)}: give a block", block
        elif untyped and block and not block.keys() & {"type", "text"}:
            continue
        elif kinds and not isinstance(block.get("type"), str):
            yield place, f"{at}.type is {_seen(block, 'type')}: give a string", string(block, "text")
        elif (block["type"] in kinds if kinds else block.get("text") is not None) and not isinstance(
            block.get("text"), str
        ):
            yield place, f"{at}.text is {_seen(block, 'text')}: give a string", block.get("text")


def wrong_calls(native: Json) -> Iterator[Flaw]:
    """Yield calls of chat completions that are no list, and entries that name no function."""
    calls, old = native.get("tool_calls"), native.get("function_call")
    if calls is not None and not isinstance(calls, list):
        yield Flaw(f"tool_calls is {type_in_words(calls)}: give a list of calls", ("tool_calls",))
    for place, call in enumerate(listing(calls)):
        kind = string(call, "type") or "function" if isinstance(call, dict) else ""
        if not kind:
            yield Flaw(f"tool_calls[{place}] is {type_in_words(call)}: give a call", ("tool_calls", place))
        elif kind in ("function", "custom") and not isinstance(mapping(call.get(kind)).get("name"), str):
            yield Flaw(f"tool_calls[{place}].{kind} has no name: give one", ("tool_calls", place))
    if old is not None and not isinstance(mapping(old).get("name"), str):
        yield Flaw("function_call has no name: give one", ("function_call",))


def _seen(block: Json, key: str) -> str:
    return type_in_words(block[key]) if key in block else "missing"


def words_for(value: object) -> str:
    """Return a value where words belong as words: its own, or JSON; none where it holds nothing."""
    if value is None or value in ("", [], {}):
        return ""
    own = string(value, "text") if isinstance(value, dict) else ""
    return repair_surrogates(own or arguments_text(value))
