"""Which models bind thinking to the messages before it, by model id.

Claude models from 5.1 on (Fable 5.1, Opus 5.5 and later, on the Claude API, Bedrock, Vertex and Foundry) accept a
thinking block only behind the very prefix it was produced under: system prompt, tools and every message before it.
Anything else is answered with 400, on every retry. It is a floor, not a list of names: a later model is bound as well.
Older Claude models check the block alone; those with manual extended thinking demand it in the active tool loop.
Source: the providers' documentation of preserved thinking (autumn 2026).
"""

from __future__ import annotations

import re
from functools import lru_cache

from refold.models import _names as names

__all__ = ["SIGNED_BLOCKS", "binds_thinking", "claude_version"]

FLOOR = (5, 1)
SIGNED_BLOCKS = frozenset(
    {"anthropic", "bedrock"}
)  # formats whose thinking is Claude's unless the model says otherwise
FAMILIES = re.compile(r"claude|anthropic|opus|sonnet|haiku|fable|mythos")
OTHERS = re.compile(
    r"gpt|o[134]\b|gemini|gemma|nova|titan|llama|mistral|mixtral|magistral|devstral|codestral|qwen|qwq|deepseek|kimi|"
    r"moonshot|glm|minimax|abab|grok|command|jamba|palmyra|ernie|doubao|seed|hunyuan|mimo|step|phi|nemotron|granite"
)
NUMBER = re.compile(r"\d{1,2}(?:[-.]\d{1,2})?(?!\d)")


@lru_cache(maxsize=256)  # asked with every request of a gateway
def binds_thinking(format: str, model: str | None) -> bool:
    """Tell whether thinking may be sent only behind the prefix it was produced under.

    A model that is not named, or whose name says neither vendor nor version, is taken for a current one: without its
    thinking a request is accepted by every model but those with manual extended thinking (before 4.6), which have to
    be named. In a format that is not Claude's own only a model that is named as Claude counts.
    """
    name = names.split(model).model if model else ""
    if not FAMILIES.search(name):
        return format in SIGNED_BLOCKS and not OTHERS.search(name)
    version = claude_version(name)
    return version is None or version >= FLOOR


def claude_version(model: str) -> tuple[int, int] | None:
    """Return major and minor version that the id of a Claude model names, None where it names none.

    Dates of snapshots are no versions.
    """
    name = names.split(model).model
    match = NUMBER.search(re.sub(r"\d{6,}", "", name)) if FAMILIES.search(name) else None
    if match is None:
        return None
    major, _, minor = match[0].replace(".", "-").partition("-")
    return int(major), int(minor or 0)
