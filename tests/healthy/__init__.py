"""Healthy requests: one or more for each documented feature of each provider, a module a provider.

Every module has `FEATURES`, the requests, and `EVERYTHING`, one body with all features that can be combined switched
on. A request holds what the documentation or the SDK's types show; the provider accepts it as it is, so no rule may
find fault with it, a repair changes nothing, and a compaction keeps it valid.
"""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["Feature"]


class Feature(NamedTuple):
    """A whole request body as it is sent to the API, that uses one feature.

    `name` is a short slug, unique within the provider; `source` the page of the provider's documentation that describes
    the feature; `model` the model's id, also where the body carries none (Gemini and Bedrock name it in the URL).
    """

    name: str
    source: str
    model: str
    body: dict[str, Any]
