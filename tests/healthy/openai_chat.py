"""Requests of the OpenAI chat completions API, and of servers that follow it, one or more for each documented feature."""

from __future__ import annotations

from typing import Any

from tests.healthy import Feature

__all__ = ["EVERYTHING", "FEATURES"]

DOCS = "https://developers.openai.com/api/docs/guides"
MODEL = "gpt-5.4"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
PICTURE = f"data:image/png;base64,{PIXEL}"
ALONE = frozenset({"calls-await-their-results", "one-of-two-results-so-far"})  # an end of its own


def _feature(name: str, page: str, *messages: dict[str, Any], model: str = MODEL, **rest: Any) -> Feature:
    source = page if page.startswith("https:") else f"{DOCS}/{page}"
    return Feature(name, source, model, {"model": model, "messages": list(messages), **rest})


def _user(content: Any, **rest: Any) -> dict[str, Any]:
    return {"role": "user", "content": content, **rest}


def _assistant(content: Any = None, *calls: dict[str, Any], **rest: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **({"tool_calls": list(calls)} if calls else {}), **rest}


def _text(text: str, **rest: Any) -> dict[str, Any]:
    return {"type": "text", "text": text, **rest}


def _call(id: str, name: str, arguments: str = "{}", **rest: Any) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}, **rest}


def _result(id: str, content: Any, **rest: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": content, **rest}


def _tool(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}


MESSAGES = (
    _feature(
        "system-and-developer",
        "text",
        {"role": "system", "content": "You are terse."},
        {"role": "developer", "content": [_text("Answer in one sentence."), _text("Use British spelling.")]},
        _user("What is a mutex?"),
        _assistant("A lock that one thread holds at a time."),
        _user("And a semaphore?"),
    ),
    _feature(
        "developer-in-the-middle",
        "text",
        _user("Start."),
        _assistant("Started."),
        {"role": "developer", "content": "From now on answer in JSON."},
        _user("Go on."),
    ),
    _feature(
        "names-of-speakers",
        "text",
        {"role": "system", "content": "Be brief.", "name": "rules"},
        _user("Hello.", name="ada"),
        _user("Hello from me too.", name="alan"),
        _assistant("Hello, both.", name="helper"),
        _user("Bye.", name="ada"),
    ),
    _feature("users-in-a-row", "text", _user("One more thing."), _user("Two more things.")),
    _feature(
        "assistant-speaks-twice",
        "text",
        _user("Think aloud."),
        _assistant("First thought."),
        _assistant("Second thought."),
        _user("Good."),
    ),
    _feature(
        "content-as-parts",
        "text",
        _user([_text("Write a line."), _text("Then another.")]),
        _assistant([_text("A line."), _text("Another.")]),
        _user("Good."),
    ),
    _feature(
        "refusal-as-a-part",
        "structured-outputs",
        _user("How do I pick this lock?"),
        _assistant([{"type": "refusal", "refusal": "I cannot help with that."}]),
        _user("It is my own lock."),
    ),
    _feature(
        "refusal-beside-the-content",
        "structured-outputs",
        _user("How do I pick it?"),
        _assistant(None, refusal="I cannot help with that."),
        _user("It is mine."),
    ),
    _feature(
        "annotations-come-back",
        "tools-web-search",
        _user("What is new?"),
        _assistant(
            "See the page.",
            annotations=[
                {
                    "type": "url_citation",
                    "url_citation": {"url": "https://example.com/a", "title": "A", "start_index": 0, "end_index": 3},
                }
            ],
        ),
        _user("Thanks."),
        model="gpt-4o-search-preview",
        web_search_options={},
    ),
    _feature(
        "predicted-output",
        "predicted-outputs",
        _user("Rename the class in this file: class A: pass"),
        prediction={"type": "content", "content": "class A: pass"},
        model="gpt-4.1",
    ),
)
INPUTS = (
    _feature(
        "pictures",
        "images-vision",
        _user(
            [
                _text("What differs?"),
                {"type": "image_url", "image_url": {"url": "https://example.com/cat.png"}},
                {"type": "image_url", "image_url": {"url": PICTURE, "detail": "high"}},
                {"type": "image_url", "image_url": {"url": PICTURE, "detail": "low"}},
            ]
        ),
    ),
    _feature(
        "audio-in",
        "audio",
        _user(
            [
                _text("What is said?"),
                {"type": "input_audio", "input_audio": {"data": "UklGRiQAAABXQVZF", "format": "wav"}},
                {"type": "input_audio", "input_audio": {"data": "SUQzBAAAAAAAI1RT", "format": "mp3"}},
            ]
        ),
        model="gpt-4o-audio-preview",
    ),
    _feature(
        "audio-out-comes-back-by-id",
        "audio",
        _user("Say hello."),
        _assistant(None, audio={"id": "audio_abc"}),
        _user("Slower."),
        model="gpt-4o-audio-preview",
        modalities=["text", "audio"],
        audio={"voice": "alloy", "format": "wav"},
    ),
    _feature(
        "files",
        "file-inputs",
        _user(
            [
                {"type": "file", "file": {"file_id": "file-report-1"}},
                {
                    "type": "file",
                    "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0xLjQ="},
                },
                _text("Summarize both."),
            ]
        ),
    ),
    _feature(
        "cache-breakpoints",
        "prompt-caching",
        _user([_text("A long manual.", prompt_cache_breakpoint={"mode": "explicit"}), _text("What is on page 3?")]),
        model="gpt-5.6-sol",
        prompt_cache_options={"mode": "explicit"},
    ),
)
CALLS = (
    _feature(
        "call-and-result",
        "function-calling",
        _user("What is the weather in Paris?"),
        _assistant(None, _call("call_w1", "get_weather", '{"city":"Paris"}')),
        _result("call_w1", "21 degrees"),
        _assistant("It is 21 degrees."),
        _user("And in Rome?"),
        tools=[_tool("get_weather")],
    ),
    _feature(
        "words-beside-a-call",
        "function-calling",
        _user("Read the file."),
        _assistant("I read it.", _call("call_r1", "read_file")),
        _result("call_r1", "hello"),
        _user("And?"),
        tools=[_tool("read_file")],
    ),
    _feature(
        "empty-content-beside-a-call",
        "function-calling",
        _user("Read the other file."),
        _assistant("", _call("call_r2", "read_file")),
        _result("call_r2", "hello"),
        {"role": "assistant", "tool_calls": [_call("call_r3", "read_file")]},
        _result("call_r3", "hello again"),
        _user("And?"),
        tools=[_tool("read_file")],
    ),
    _feature(
        "parallel-calls-answered-out-of-order",
        "function-calling",
        _user("Compare Paris and Rome."),
        _assistant(None, _call("call_p1", "get_weather"), _call("call_p2", "get_weather")),
        _result("call_p2", "25 degrees"),
        _result("call_p1", "21 degrees"),
        _assistant("Rome is warmer."),
        _user("Thanks."),
        tools=[_tool("get_weather")],
        parallel_tool_calls=True,
    ),
    _feature(
        "result-as-parts",
        "function-calling",
        _user("Show me the log."),
        _assistant(None, _call("call_l1", "log")),
        _result("call_l1", [_text("first half"), _text("second half")]),
        _user("Explain it."),
        tools=[_tool("log")],
    ),
    _feature(
        "result-without-words",
        "function-calling",
        _user("Run the formatter."),
        _assistant(None, _call("call_e1", "format")),
        _result("call_e1", ""),
        _user("And?"),
        tools=[_tool("format")],
    ),
    _feature(
        "call-id-comes-again-in-a-later-turn",
        "function-calling",
        _user("Ping."),
        _assistant(None, _call("call_0", "ping")),
        _result("call_0", "pong"),
        _user("Again."),
        _assistant(None, _call("call_0", "ping")),
        _result("call_0", "pong pong"),
        _user("Good."),
        tools=[_tool("ping")],
    ),
    _feature(
        "custom-tool",
        "function-calling",
        _user("Print hello."),
        _assistant(
            None, {"id": "call_c1", "type": "custom", "custom": {"name": "code_exec", "input": "print('hello')"}}
        ),
        _result("call_c1", "hello"),
        _assistant("Printed."),
        _user("Again."),
        tools=[{"type": "custom", "custom": {"name": "code_exec"}}],
    ),
    _feature(
        "custom-and-function-calls-together",
        "function-calling",
        _user("Print hello, then read the file."),
        _assistant(
            None,
            {"id": "call_c2", "type": "custom", "custom": {"name": "code_exec", "input": "print('hello')"}},
            _call("call_c3", "read_file"),
        ),
        _result("call_c2", "hello"),
        _result("call_c3", "hi"),
        _user("Good."),
        tools=[{"type": "custom", "custom": {"name": "code_exec"}}, _tool("read_file")],
    ),
    _feature(
        "old-function-call",
        "function-calling",
        _user("What is the weather in Oslo?"),
        {
            "role": "assistant",
            "content": None,
            "function_call": {"name": "get_weather", "arguments": '{"city":"Oslo"}'},
        },
        {"role": "function", "name": "get_weather", "content": "4 degrees"},
        _assistant("It is 4 degrees."),
        _user("Brr."),
        model="gpt-4",
        functions=[{"name": "get_weather", "parameters": {"type": "object", "properties": {}}}],
    ),
    _feature(
        "calls-await-their-results",
        "function-calling",
        _user("Book the blue room."),
        _assistant(None, _call("call_open1", "book")),
        tools=[_tool("book")],
    ),
    _feature(
        "one-of-two-results-so-far",
        "function-calling",
        _user("Book both rooms."),
        _assistant(None, _call("call_open2", "book"), _call("call_open3", "book")),
        _result("call_open2", "booked"),
        tools=[_tool("book")],
    ),
)
DEEPSEEK, OPENROUTER, LITELLM = (
    "https://api-docs.deepseek.com/guides/thinking_mode",
    "https://openrouter.ai/docs/use-cases/reasoning-tokens",
    "https://docs.litellm.ai/docs/reasoning_content",
)
SERVERS = (
    _feature(
        "reasoning-content-comes-back",
        DEEPSEEK,
        _user("What is the date in Tokyo?"),
        _assistant("", _call("call_ds1", "get_date"), reasoning_content="I need the date first."),
        _result("call_ds1", "2026-11-28"),
        _assistant("It is 28 November.", reasoning_content="The tool said so."),
        _user("And in Oslo?"),
        model="deepseek-chat",
        tools=[_tool("get_date")],
    ),
    _feature(
        "reasoning-details-come-back",
        OPENROUTER,
        _user("What is in the file?"),
        _assistant(
            "",
            _call("call_or1", "read_file"),
            reasoning="Reading the file.",
            reasoning_details=[
                {
                    "type": "reasoning.summary",
                    "summary": "Reading.",
                    "id": "rs_1",
                    "format": "openai-responses-v1",
                    "index": 0,
                },
                {"type": "reasoning.encrypted", "data": "gAAAAABsealed", "id": "rs_1", "format": "openai-responses-v1"},
            ],
        ),
        _result("call_or1", "hello"),
        _user("Append a line."),
        model="openai/gpt-5.4",
        tools=[_tool("read_file")],
    ),
    _feature(
        "reasoning-text-with-signature",
        OPENROUTER,
        _user("Read it."),
        _assistant(
            "I read it.",
            _call("call_or2", "read_file"),
            reasoning_details=[
                {
                    "type": "reasoning.text",
                    "text": "A file to read.",
                    "signature": "EqQBCgIYAhIkc2lnbmVk",
                    "format": "anthropic-claude-v1",
                    "index": 0,
                }
            ],
        ),
        _result("call_or2", "hello"),
        _user("Again."),
        model="anthropic/claude-opus-4-5",
        tools=[_tool("read_file")],
    ),
    _feature(
        "thinking-blocks-come-back",
        LITELLM,
        _user("What is the weather in Bergen?"),
        _assistant(
            "I look it up.",
            _call("call_ll1", "get_weather"),
            reasoning_content="Weather needs the tool.",
            thinking_blocks=[
                {"type": "thinking", "thinking": "Weather needs the tool.", "signature": "EqQBCgIYAhIkbGl0ZQ=="},
                {"type": "redacted_thinking", "data": "EmwKAhgBEgy3"},
            ],
        ),
        _result("call_ll1", "rain"),
        _user("And tomorrow?"),
        model="anthropic/claude-sonnet-4-5",
        tools=[_tool("get_weather")],
    ),
    _feature(
        "cache-control",
        "https://docs.litellm.ai/docs/completion/prompt_caching",
        {"role": "system", "content": [_text("A long manual.", cache_control={"type": "ephemeral"})]},
        _user([_text("What is on page 3?", cache_control={"type": "ephemeral"})]),
        _assistant("A table."),
        _user("And on page 4?"),
        model="anthropic/claude-sonnet-4-5",
    ),
    _feature(
        "cache-control-on-a-result",
        "https://docs.litellm.ai/docs/completion/prompt_caching",
        _user("Read the manual."),
        _assistant(None, _call("call_cc1", "read_file")),
        _result("call_cc1", [_text("The manual.", cache_control={"type": "ephemeral"})]),
        _user("Go on."),
        model="anthropic/claude-sonnet-4-5",
        tools=[_tool("read_file")],
    ),
    _feature(
        "thought-signature-of-gemini",
        "https://ai.google.dev/gemini-api/docs/thought-signatures",
        _user("Check both flights."),
        _assistant(
            None,
            _call("call_g1", "flight", extra_content={"google": {"thought_signature": "CiQBVKhc7signature"}}),
            _call("call_g2", "flight"),
        ),
        _result("call_g1", "delayed"),
        _result("call_g2", "on time"),
        _user("Book the second."),
        model="gemini-3-pro",
        tools=[_tool("flight")],
    ),
    _feature(
        "pictures-in-a-result",
        "https://docs.litellm.ai/docs/completion/vision",
        _user("Take a screenshot."),
        _assistant(None, _call("call_pic1", "screenshot")),
        _result("call_pic1", [_text("The screen."), {"type": "image_url", "image_url": {"url": PICTURE}}]),
        _user("What is on it?"),
        model="openai/gpt-5.4",
        tools=[_tool("screenshot")],
    ),
    _feature(
        "generated-pictures-come-back",
        "https://openrouter.ai/docs/features/multimodal/image-generation",
        _user("Draw a cat."),
        _assistant("Here.", images=[{"type": "image_url", "image_url": {"url": PICTURE}}]),
        _user("Now a dog."),
        model="google/gemini-2.5-flash-image",
    ),
    _feature(
        "name-on-a-result",
        "https://docs.litellm.ai/docs/completion/function_call",
        _user("What is the weather in Lima?"),
        _assistant(None, _call("call_n1", "get_weather")),
        _result("call_n1", "17 degrees", name="get_weather"),
        _user("Thanks."),
        tools=[_tool("get_weather")],
    ),
)
FEATURES = (*MESSAGES, *INPUTS, *CALLS, *SERVERS)


def _everything() -> dict[str, Any]:
    """Return one body of all features that combine."""
    body: dict[str, Any] = {"model": MODEL}
    messages: list[Any] = []
    tools: dict[str, Any] = {}
    for feature in FEATURES:
        if feature.name not in ALONE:
            messages += feature.body["messages"]
            tools |= {repr(tool): tool for tool in feature.body.get("tools", ())}
            body |= {key: value for key, value in feature.body.items() if key not in ("model", "messages", "tools")}
    return {**body, "messages": messages, "tools": list(tools.values())}


EVERYTHING = _everything()
