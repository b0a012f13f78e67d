"""Requests whose size in tokens a provider documents, or reported to others, with the source of each figure.

The measured pictures of Claude are less the tokens that all of that measurement have beside the picture: 65 for Haiku
4.5, 77 for Opus 5.5.
"""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any, NamedTuple

import refold

__all__ = ["ROWS", "Row", "counted"]

CLAUDE = "https://platform.claude.com/docs/en/build-with-claude"
OPENAI = "https://developers.openai.com/api/docs/guides"
COOKBOOK = "https://cookbook.openai.com/examples/how_to_count_tokens_with_tiktoken"
MEASURED = "https://huggingface.co/datasets/JOHNISKING/image-token-cost"
GEMINI = "https://ai.google.dev/gemini-api/docs"


class Row(NamedTuple):
    """A request and its documented tokens; `without` is a request whose tokens are taken off, for a part alone.

    `most` is the error that the test allows, as a share.
    """

    kind: str
    what: str
    model: str
    source: str
    tokens: int
    request: dict[str, Any]
    without: dict[str, Any] | None = None
    most: float = 0.01

    @property
    def counted(self) -> int:
        """What `refold.count` says."""
        return counted(self.model, self.request) - (counted(self.model, self.without) if self.without else 0)

    @property
    def error(self) -> float:
        """By how much the count is off, as a share of the documented figure; negative where it is too low."""
        return self.counted / self.tokens - 1 if self.tokens else float(self.counted)


def counted(model: str, request: dict[str, Any]) -> int:
    """Return the tokens of a request."""
    return refold.count(request["messages"], model=model, **{k: v for k, v in request.items() if k != "messages"})


def _png(width: int, height: int) -> str:
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(b"")), (b"IEND", b"")]
    made = b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + made).decode()


def _said(*content: Any, format: str = "anthropic") -> dict[str, Any]:
    key = "parts" if format == "gemini" else "content"
    return {"messages": [{"role": "user", key: list(content)}], "format": format}


def _claude_picture(width: int, height: int) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": _png(width, height)}}


def _picture(what: str, model: str, width: int, height: int, tokens: int, most: float = 0.01, **rest: Any) -> Row:
    """Return the row of one picture, in the shape of its model's provider; `rest` may name detail and source."""
    source, detail = rest.get("source", MEASURED), rest.get("detail", "auto")
    if model.startswith("claude"):
        request, without = _said(_claude_picture(width, height)), _said()
    elif model.startswith("gemini"):
        part = {"inlineData": {"mimeType": "image/png", "data": _png(width, height)}}
        request, without = _said(part, format="gemini"), _said(format="gemini")
    else:
        url = f"data:image/png;base64,{_png(width, height)}"
        block = {"type": "input_image", "image_url": url, "detail": detail}
        request, without = _said(block, format="openai-responses"), _said(format="openai-responses")
    return Row("picture", f"{what} {width:,} × {height:,}", model, source, tokens, request, without, most)


def _generated(model: str, width: int, height: int, tokens: int) -> tuple[Row, ...]:
    """Return rows of one picture where the provider's own tools have put it: it costs what any picture costs."""
    data = _png(width, height)
    call = {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": data}
    run = {
        "type": "code_interpreter_call",
        "id": "ci_1",
        "code": "plot()",
        "container_id": "cntr_1",
        "status": "completed",
        "outputs": [{"type": "image", "url": f"data:image/png;base64,{data}"}],
    }
    bare = {**run, "outputs": []}
    screen = {
        "type": "computer_call_output",
        "call_id": "c1",
        "output": {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{data}"},
    }
    rows: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("generated", call, {**call, "result": ""}),
        ("of the code interpreter", run, bare),
        ("on a screenshot", screen, {**screen, "output": ""}),
    ]
    return tuple(
        Row(
            "picture",
            f"{what} {width:,} × {height:,}",
            model,
            MEASURED,
            tokens,
            {"messages": [item], "format": "openai-responses"},
            {"messages": [rest], "format": "openai-responses"},
            0.02,  # what frames the call
        )
        for what, item, rest in rows
    )


WEATHER = {
    "name": "get_weather",
    "description": "Get the current weather in a given location",
    "input_schema": {
        "type": "object",
        "properties": {
            "location": {"type": "string", "description": "The city and state, e.g. San Francisco, CA"},
        },
        "required": ["location"],
    },
}
ASKED = {"messages": [{"role": "user", "content": "What's the weather like in San Francisco?"}], "format": "anthropic"}
PRIMES = [
    {"role": "user", "content": "Are there an infinite number of prime numbers such that n mod 4 == 3?"},
    {
        "role": "assistant",
        "content": [
            {
                "type": "thinking",
                "thinking": "This is a nice number theory question. Let's think about it step by step...",
                "signature": "EuYBCkQYAiJAgCs1le6/Pol5Z4/JMomVOouGrWdhYNsH3ukzUECbB6iWrSQtsQuRHJID6lWV...",
            },
            {"type": "text", "text": "Yes, there are infinitely many prime numbers p such that p mod 4 = 3..."},
        ],
    },
    {"role": "user", "content": "Can you write a formal proof?"},
]
JARGON = [
    {
        "role": "system",
        "content": "You are a helpful, pattern-following assistant that translates corporate jargon into plain English.",
    },
    {"role": "system", "name": "example_user", "content": "New synergies will help drive top-line growth."},
    {
        "role": "system",
        "name": "example_assistant",
        "content": "Things working well together will increase revenue.",
    },
    {
        "role": "system",
        "name": "example_user",
        "content": "Let's circle back when we have more bandwidth to touch base on opportunities for increased leverage.",
    },
    {
        "role": "system",
        "name": "example_assistant",
        "content": "Let's talk later when we're less busy about how to do better.",
    },
    {
        "role": "user",
        "content": "This late pivot means we don't have time to boil the ocean for the client deliverable.",
    },
]
LOG = "line of a build step that took a while\n" * 4_000
COMPACTED = [
    {"role": "user", "content": LOG},
    {"role": "assistant", "content": [{"type": "compaction", "content": "The log was read; port 8443 is free."}]},
    {"role": "user", "content": "Go on."},
]
FIELD = {"type": "string", "description": "The record."}
MANY = [
    {**WEATHER, "name": f"get_{number}", "description": "Does something with a record. " * 40, "defer_loading": True}
    for number in range(60)
]
FUNCTIONS = [
    {
        "type": "function",
        "name": f"get_{number}",
        "description": "Does something with a record. " * 40,
        "parameters": {"type": "object", "properties": {"id": FIELD}},
        "defer_loading": True,
    }
    for number in range(60)
]
SEARCH = {"type": "tool_search"}
SPACE = {"type": "namespace", "name": "records", "description": "Reads records."}
HI = {"messages": [{"role": "user", "content": "Hi"}]}
SEARCHED = [
    {"role": "user", "content": "Which record?"},
    {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "t1", "name": "find", "input": {"query": "get"}}],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "tool_reference", "tool_name": "get_7"}]}
        ],
    },
]

ROWS: tuple[Row, ...] = (
    Row(
        "words",
        "one message and a system prompt",
        "claude-sonnet-4-5",
        f"{CLAUDE}/token-counting",
        14,
        {
            "messages": [{"role": "user", "content": "Hello, Claude"}],
            "format": "anthropic",
            "system": "You are a scientist",
        },
        most=0.25,
    ),
    Row(
        "tools",
        "one tool",
        "claude-sonnet-4-5",
        f"{CLAUDE}/token-counting",
        403,
        {**ASKED, "tools": [WEATHER]},
        most=0.2,
    ),
    Row(
        "native block",
        "thinking of an earlier turn",
        "claude-sonnet-4-5",
        f"{CLAUDE}/token-counting",
        88,
        {"messages": PRIMES, "format": "anthropic"},
        most=0.35,
    ),
    Row(
        "words",
        "six messages, four with a name",
        "gpt-4",
        COOKBOOK,
        129,
        {"messages": JARGON, "format": "openai-chat"},
        most=0.2,
    ),
    Row(
        "words",
        "six messages, four with a name",
        "gpt-4o",
        COOKBOOK,
        124,
        {"messages": JARGON, "format": "openai-chat"},
        most=0.2,
    ),
    Row(
        "words",
        "one sentence",
        "gemini-2.5-flash",
        f"{GEMINI}/tokens",
        10,
        {"messages": [{"role": "user", "parts": [{"text": "The quick brown fox jumps over the lazy dog."}]}]},
        {"messages": [{"role": "user", "parts": []}], "format": "gemini"},
    ),
    _picture("high", "gpt-4o", 1_024, 1_024, 765, detail="high", source=f"{OPENAI}/images-vision"),
    _picture("high", "gpt-4o", 2_048, 4_096, 1_105, detail="high", source=f"{OPENAI}/images-vision"),
    _picture("low", "gpt-4o", 4_096, 8_192, 85, detail="low", source=f"{OPENAI}/images-vision"),
    _picture("auto", "gpt-5.5", 1_920, 1_080, 2_448),
    _picture("auto", "gpt-5.5", 4_032, 3_024, 11_868),
    _picture("auto", "gpt-6-astra", 512, 512, 308),
    _picture("auto", "gpt-6-astra", 3_840, 2_160, 9_792),
    _picture("high", "gpt-6-astra", 3_840, 2_160, 2_931, detail="high"),
    _picture("high", "gpt-6-astra", 4_032, 3_024, 2_942, detail="high"),
    *_generated("gpt-6-astra", 1_024, 1_024, 1_229),
    _picture("inline", "claude-haiku-4-5", 512, 512, 361),
    _picture("inline", "claude-haiku-4-5", 1_280, 720, 1_196),
    _picture("inline", "claude-haiku-4-5", 3_840, 2_160, 1_592, 0.02),
    _picture("inline", "claude-opus-5-5", 1_024, 1_024, 1_369),
    _picture("inline", "claude-opus-5-5", 1_920, 1_080, 2_691),
    _picture("inline", "claude-opus-5-5", 4_032, 3_024, 3_928, 0.25),  # the page's bound is 4,784
    _picture("inline", "gemini-3-pro-preview", 1_280, 720, 1_101, 0.05),
    Row(
        "native block",
        "what a compaction block replaced",
        "claude-opus-4-8",
        f"{CLAUDE}/compaction",
        0,
        {"messages": COMPACTED, "format": "anthropic"},
        {"messages": COMPACTED[1:], "format": "anthropic"},
    ),
    Row(
        "deferred tools",
        "60 tools with `defer_loading`",
        "claude-opus-4-8",
        "https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool",
        0,
        {**HI, "format": "anthropic", "tools": [WEATHER, *MANY]},
        {**HI, "format": "anthropic", "tools": [WEATHER]},
    ),
    Row(
        "deferred tools",
        "one of 60 loaded by a reference",
        "claude-opus-4-8",
        "https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool",
        counted(
            "claude-opus-4-8", {**HI, "format": "anthropic", "tools": [WEATHER, {**MANY[7], "defer_loading": False}]}
        )
        - counted("claude-opus-4-8", {**HI, "format": "anthropic", "tools": [WEATHER]}),
        {"messages": SEARCHED, "format": "anthropic", "tools": [WEATHER, *MANY]},
        {"messages": SEARCHED, "format": "anthropic", "tools": [WEATHER]},
    ),
    Row(
        "deferred tools",
        "60 functions of a namespace",
        "gpt-6-astra",
        f"{OPENAI}/tools-tool-search",
        0,
        {**HI, "format": "openai-responses", "tools": [SEARCH, {**SPACE, "tools": FUNCTIONS}]},
        {**HI, "format": "openai-responses", "tools": [SEARCH, {**SPACE, "tools": []}]},
    ),
)
