"""What a provider reports about a call, in one shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct

from refold.core.budget import Usage
from refold.errors import UsageError
from refold.models._names import provider_key

__all__ = ["UsageReport", "as_json", "reported", "unwrapped"]

PROMPT: Final = (
    *("prompt_tokens", "input_tokens", "promptTokenCount", "inputTokens", "input", "prompt"),
    "prompt_token_count",  # google-genai's objects
)
ANSWER: Final = (
    *("completion_tokens", "output_tokens", "candidatesTokenCount", "outputTokens", "output", "completion"),
    "candidates_token_count",
)
TOOL_PROMPT: Final = ("toolUsePromptTokenCount", "tool_use_prompt_token_count")  # these two of Gemini's stand apart
THOUGHTS: Final = ("thoughtsTokenCount", "thoughts_token_count")
APART: Final = frozenset((*TOOL_PROMPT, *THOUGHTS))
READ: Final = (
    *("cache_read_input_tokens", "cachedContentTokenCount", "cached_content_token_count", "cacheReadInputTokens"),
    *("cacheReadInputTokenCount", "cached_input_tokens", "prompt_cache_hit_tokens", "cacheRead", "cache_read"),
    *("cached_tokens", "cached"),
)
WRITE: Final = (
    *("cache_creation_input_tokens", "cacheWriteInputTokens", "cacheWriteInputTokenCount", "cacheWrite"),
    "cache_write",
)
DETAILS: Final = ("prompt_tokens_details", "input_tokens_details", "input_token_details", "cache")
CACHED: Final = frozenset((*READ, *WRITE, *DETAILS))
WRAPPERS: Final = ("usage", "usageMetadata", "usage_metadata", "token_usage")
WRAPPED: Final = frozenset(WRAPPERS)
MAPPING: Final = (dict, Mapping)  # a dict is known at once
# In these a prompt figure leaves out what the cache gave or took.
ADDED: Final = ("cacheReadInputTokens", "cacheWriteInputTokens", "cacheRead", "cacheWrite")


class UsageReport(Struct, frozen=True):
    """One report in tokens. `prompt` is all input, what the cache gave and took included."""

    prompt: int
    completion: int = 0
    cached_read: int = 0
    cache_write: int = 0

    def usage(self, covers: int | None = None) -> Usage:
        """Return it as the value that gauges take; `covers` is how many leading messages were in the prompt."""
        return Usage(self.prompt, self.completion, self.cached_read, covers)


def reported(usage: object, provider: str | None = None) -> UsageReport:
    """Return a report of OpenAI (chat, Responses), Anthropic, Gemini, Bedrock or LiteLLM in one shape.

    OpenAI and Gemini contain cached tokens in the prompt figure, Anthropic and Bedrock leave them out; that is told
    from the names of the fields. `usage`, `usageMetadata` and `token_usage` wrappers are opened. Where a client
    summed several calls and gives the size of one beside it (`aggregated_calls`, `total_tokens`), that one is meant.
    `usage` is a mapping, or a usage or response object of an SDK.

    Raises:
        UsageError: a figure that is negative or no number, or a report without any.
    """
    usage = unwrapped(usage)
    prompt, answer = _first(usage, PROMPT), _first(usage, ANSWER)
    total = _figure(usage, "total_tokens")
    if prompt is None and answer is None:
        raise UsageError(f"no token figure in the usage report with the fields {sorted(map(str, usage))[:8]}")
    read, write = _cached(usage)
    size, completion = prompt or 0, answer or 0
    if not APART.isdisjoint(usage):
        size += _first(usage, TOOL_PROMPT) or 0
        completion += _first(usage, THOUGHTS) or 0
    if total != size + completion and _cache_apart(usage, provider):
        size += read + write
    if "aggregated_calls" in usage and _figure(usage, "aggregated_calls") not in {None, 0, 1} and total is not None:
        size = total
    return UsageReport(size, completion, read, write)


def unwrapped(usage: object) -> Mapping[str, object]:
    """Return the fields of a report: a mapping or an SDK's object, without the response that it may stand in.

    Raises:
        UsageError: neither.
    """
    fields = _fields(usage)
    if not WRAPPED.isdisjoint(fields):
        for wrapper in WRAPPERS:
            inner = fields.get(wrapper)
            if inner is not None and not isinstance(inner, (int, float, str, list)):
                return unwrapped(inner)
    return fields


def as_json(usage: object) -> dict[str, object]:
    """Return the fields of a report as plain JSON values, for a log.

    Raises:
        UsageError: it is no report.
    """
    fields = unwrapped(usage)
    plain: dict[str, object] = msgspec.json.decode(msgspec.json.encode(dict(fields), enc_hook=_plain))
    return plain


def _fields(usage: object) -> Mapping[str, object]:
    if isinstance(usage, MAPPING):
        return usage
    dump = getattr(usage, "model_dump", None) or getattr(usage, "to_dict", None) or getattr(usage, "dict", None)
    fields = dump() if callable(dump) else getattr(usage, "__dict__", None)
    if not isinstance(fields, MAPPING) or not fields:
        raise UsageError(
            f"a usage report of type {type(usage).__name__} cannot be read: pass the provider's mapping or its "
            "SDK's usage or response object"
        )
    return fields


def _plain(value: object) -> object:
    """Return a value that JSON has none for as one that it has: objects within objects, enumerations, dates."""
    if isinstance(value, Mapping):
        return dict(value)
    try:
        return dict(_fields(value))
    except (UsageError, TypeError):
        return str(value)


def _cached(usage: Mapping[str, object]) -> tuple[int, int]:
    if CACHED.isdisjoint(usage):
        return 0, 0
    read, write = _first(usage, READ), _first(usage, WRITE)
    for name in DETAILS:
        if (details := usage.get(name)) is not None and isinstance(details, MAPPING):
            amount = _first(details, ("cached_tokens", "cache_read", "read"))
            read = amount if read is None else read
            amount = _first(details, ("cache_creation", "cache_creation_tokens", "cache_write_tokens", "write"))
            write = amount if write is None else write
    return read or 0, write or 0


def _cache_apart(usage: Mapping[str, object], provider: str | None) -> bool:
    """Tell whether the prompt figure leaves the cache out."""
    if any(name in usage for name in ADDED):
        return True
    if "prompt_tokens" in usage:  # OpenAI's name; LiteLLM adds the cache in and keeps Anthropic's fields beside it
        return False
    if provider_key(provider) in {"anthropic", "bedrock"}:
        return True
    if "cache_read_input_tokens" in usage or "cache_creation_input_tokens" in usage:
        return "input_tokens_details" not in usage
    return isinstance(usage.get("cache"), Mapping)


def _first(usage: Mapping[str, object], names: tuple[str, ...]) -> int | None:
    for name in names:
        if name in usage and (amount := _figure(usage, name)) is not None:
            return amount
    return None


def _figure(usage: Mapping[str, object], name: str) -> int | None:
    value = usage.get(name)
    if value is None or (type(value) is int and value >= 0):
        return value
    if isinstance(value, (Mapping, list)):
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise UsageError(f"usage field {name!r} is {value!r}; a report holds whole numbers of tokens from 0 up")
    return value
