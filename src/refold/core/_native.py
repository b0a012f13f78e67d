"""Values that a caller passes in the provider's own shape: their types, and objects of an SDK as the JSON it sends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import is_
from typing import Any, Protocol, TypeAlias

__all__ = ["Messages", "SDKValue", "SystemPrompt", "ToolDefinitions", "as_json"]


class SDKValue(Protocol):
    """A value of a provider's SDK that can write itself as JSON values (a pydantic model)."""

    def model_dump(self) -> dict[str, Any]:
        """Return the fields as JSON values."""


Messages: TypeAlias = Sequence[Mapping[str, Any] | SDKValue]
"""A list of the provider's messages: mappings as the provider's API takes them, or objects of its SDK.

A mapping may hold objects too, as in `{"role": "assistant", "content": response.content}`.
"""

SystemPrompt: TypeAlias = str | Sequence[Mapping[str, Any]] | Mapping[str, Any] | SDKValue
"""A system prompt kept apart from the messages: a text, a list of blocks, or an object with parts."""

ToolDefinitions: TypeAlias = Sequence[Mapping[str, Any] | SDKValue] | Mapping[str, Any]
"""Tool definitions in the provider's shape: a list of them, or Bedrock's `toolConfig`."""


_WITH_DEFAULTS = ("google.genai.", "mistralai.", "ollama.")  # modules of the SDKs that send them


def as_json(value: Any) -> Any:
    """Return a value with the SDK objects in it as the JSON that the SDK sends; the very same value where it has none.

    Like the SDKs, it leaves out fields that nothing has set, and those that the SDK marks as its own (`parsed`).
    google-genai, mistralai and ollama leave out only what is None: the roles of their messages are defaults.
    """
    if isinstance(value, dict):
        changed = {key: new for key, old in value.items() if type(old) is not str and (new := as_json(old)) is not old}
        return {**value, **changed} if changed else value
    if isinstance(value, list | tuple):
        entries = [as_json(entry) for entry in value]
        return value if all(map(is_, entries, value)) else entries
    if (dump := getattr(value, "model_dump", None)) is None or isinstance(value, type):
        return value
    if any(base.__module__.startswith(_WITH_DEFAULTS) for base in type(value).__mro__):
        return dump(mode="json", by_alias=True, exclude_none=True, warnings=False)
    own = getattr(value, "__api_exclude__", None)
    return dump(mode="json", by_alias=True, exclude_unset=True, exclude=own, warnings=False)
