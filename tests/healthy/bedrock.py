"""Requests of the Amazon Bedrock Converse API, one or more for each documented feature."""

from __future__ import annotations

from typing import Any

from tests.healthy import Feature

__all__ = ["EVERYTHING", "FEATURES"]

DOCS = "https://docs.aws.amazon.com/bedrock/latest/userguide"
SONNET = "anthropic.claude-sonnet-4-5-20250929-v1:0"


def _feature(name: str, page: str, *messages: dict[str, Any], model: str = SONNET, **rest: Any) -> Feature:
    return Feature(name, f"{DOCS}/{page}.html", model, {"modelId": model, "messages": list(messages), **rest})


def _user(*content: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": [*content]}


FEATURES = (
    _feature(
        "cache-points",
        "prompt-caching",
        _user({"text": "What does the guide say?"}, {"cachePoint": {"type": "default"}}),
        system=[{"text": "Answer from the guide."}, {"cachePoint": {"type": "default"}}],
        inferenceConfig={"maxTokens": 1024},
    ),
)

EVERYTHING = {"modelId": SONNET, "messages": [message for one in FEATURES for message in one.body["messages"]]}
