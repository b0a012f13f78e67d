"""Types of values that a caller passes in the provider's own shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

__all__ = ["Messages", "SDKValue", "SystemPrompt", "ToolDefinitions"]


class SDKValue(Protocol):
    """A value of a provider's SDK that can write itself as JSON values (a pydantic model)."""

    def model_dump(self) -> dict[str, Any]:
        """Return the fields as JSON values."""


Messages: TypeAlias = Sequence[Mapping[str, Any]]
"""A list of the provider's messages, each a mapping as the provider's API takes it."""

SystemPrompt: TypeAlias = str | Sequence[Mapping[str, Any]] | Mapping[str, Any] | SDKValue
"""A system prompt kept apart from the messages: a text, a list of blocks, or an object with parts."""

ToolDefinitions: TypeAlias = Sequence[Mapping[str, Any] | SDKValue] | Mapping[str, Any]
"""Tool definitions in the provider's shape: a list of them, or Bedrock's `toolConfig`."""
