"""Requests of the Anthropic Messages API, one or more for each documented feature."""

from __future__ import annotations

from typing import Any

from tests.healthy import Feature

__all__ = ["EVERYTHING", "FEATURES"]

DOCS = "https://platform.claude.com/docs/en"
OPUS = "claude-opus-4-8"


def _body(*messages: dict[str, Any], model: str = OPUS, **rest: Any) -> dict[str, Any]:
    return {"model": model, "max_tokens": 4096, "messages": list(messages), **rest}


def _feature(name: str, page: str, *messages: dict[str, Any], model: str = OPUS, **rest: Any) -> Feature:
    return Feature(name, f"{DOCS}/{page}", model, _body(*messages, model=model, **rest))


def _user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content[0] if len(content) == 1 and isinstance(content[0], str) else [*content]}


def _assistant(*content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": [*content]}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _thinking(text: str, signature: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, "signature": signature}


def _use(id: str, name: str, **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": given}


def _result(id: str, content: Any, **rest: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": content, **rest}


FEATURES = (
    _feature(
        "adaptive-thinking-after-text",
        "build-with-claude/adaptive-thinking",
        _user("Fix the failing test."),
        _assistant(
            _text("I look at the pool first."),
            _thinking("Perhaps a connection leaks.", "EqQBCgIYAhIkYWRhcHRpdmUtMQ=="),
            _use("toolu_01A", "read_file", path="pool.py"),
        ),
        _user(_result("toolu_01A", "class Pool: ...")),
        thinking={"type": "adaptive"},
        tools=[{"name": "read_file", "description": "Reads a file.", "input_schema": {"type": "object"}}],
    ),
    _feature(
        "compaction-block",
        "build-with-claude/compaction",
        _user("Port the parser."),
        _assistant(
            {"type": "compaction", "content": "The parser was ported; port 8443 was chosen."},
            _text("The parser is ported."),
        ),
        _user("Now the tests."),
        context_management={"edits": [{"type": "compact_20260112"}]},
    ),
    _feature(
        "system-message-in-the-middle",
        "build-with-claude/mid-conversation-system-messages",
        _user("Hello."),
        _assistant(_text("Hello.")),
        _user("List the open orders."),
        {"role": "system", "content": "From now on answer in JSON."},
        thinking={"type": "adaptive"},
    ),
)

EVERYTHING = _body(*(message for feature in FEATURES for message in feature.body["messages"]))
