"""Ill-formed requests, each with the page, type or refusal that says so: one row a fault."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["ILL_FORMED", "Row", "body"]

CLAUDE = "https://platform.claude.com/docs/en"
OPENAI = "https://platform.openai.com/docs"
GEMINI = "https://ai.google.dev/gemini-api/docs"
AWS = "https://docs.aws.amazon.com/bedrock/latest"


class Row(NamedTuple):
    """A list of messages that a provider refuses, and where that is documented."""

    name: str
    format: str
    source: str
    messages: list[dict[str, Any]]


def body(format: str, messages: list[Any]) -> dict[str, Any]:
    """Return the least request body around messages."""
    match format:
        case "anthropic":
            return {"model": "claude", "max_tokens": 100, "messages": messages}
        case "openai-chat":
            return {"model": "gpt-5", "messages": messages}
        case "openai-responses":
            return {"model": "gpt-5", "input": messages}
        case "gemini":
            return {"model": "gemini-2.5-pro", "contents": messages}
        case _:
            spec = {"name": "f", "inputSchema": {"json": {"type": "object"}}}
            model = "anthropic.claude-sonnet-4-5-20250929-v1:0"
            return {"modelId": model, "messages": messages, "toolConfig": {"tools": [{"toolSpec": spec}]}}


def _user(content: Any = "Go.") -> dict[str, Any]:
    return {"role": "user", "content": content}


def _said(*content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": [*content]}


def _use(id: str = "t1", name: str = "f", **more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": {}, **more}


def _got(id: str = "t1", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": "ok", **more}


def _text(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": text, **more}


def _marked(text: str) -> dict[str, Any]:
    return _user([_text(text, cache_control={"type": "ephemeral"})])


_TOOLS = f"{CLAUDE}/agents-and-tools/tool-use/handle-tool-calls"
_ANTHROPIC = [
    ("an-id-with-a-space", _TOOLS, [_user(), _said(_use("a b")), _user([_got("a b")])]),
    ("an-id-with-a-dot", _TOOLS, [_user(), _said(_use("call.1")), _user([_got("call.1")])]),
    ("an-id-with-a-colon", _TOOLS, [_user(), _said(_use("functions.f:0")), _user([_got("functions.f:0")])]),
    ("an-id-used-again", _TOOLS, [_user(), _said(_use()), _user([_got()]), _said(_use()), _user([_got()])]),
    ("two-calls-with-one-id", _TOOLS, [_user(), _said(_use(), _use()), _user([_got(), _got()])]),
    ("a-name-with-a-dot", _TOOLS, [_user(), _said(_use(name="shop.find")), _user([_got()])]),
    ("input-that-is-a-list", f"{CLAUDE}/api/messages", [_user(), _said(_use(input=[1])), _user([_got()])]),
    ("input-that-is-a-string", f"{CLAUDE}/api/messages", [_user(), _said(_use(input="x")), _user([_got()])]),
    (
        "input-that-is-an-object-as-text",
        f"{CLAUDE}/api/messages",
        [_user(), _said(_use(input='{"a":1}')), _user([_got()])],
    ),
    ("a-result-that-is-null", f"{CLAUDE}/api/messages", [_user(), _said(_use()), _user([_got(content=None)])]),
    ("a-result-that-is-an-object", f"{CLAUDE}/api/messages", [_user(), _said(_use()), _user([_got(content={"a": 1})])]),
    (
        "a-call-without-input",
        "anthropic SDK, ToolUseBlockParam",
        [_user(), _said({"type": "tool_use", "id": "t1", "name": "f"}), _user([_got()])],
    ),
    (
        "thinking-without-signature",
        "anthropic SDK, ThinkingBlockParam",
        [_user(), _said({"type": "thinking", "thinking": "Hm."}, _text("Yes.")), _user()],
    ),
    (
        "thinking-with-an-empty-signature",
        f"{CLAUDE}/build-with-claude/extended-thinking",
        [_user(), _said({"type": "thinking", "thinking": "Hm.", "signature": ""}, _text("Yes.")), _user()],
    ),
    (
        "five-cache-marks",
        f"{CLAUDE}/build-with-claude/prompt-caching",
        [_marked("1"), _said(_text("a")), _marked("2"), _marked("3"), _said(_text("b")), _marked("4"), _marked("5")],
    ),
    ("a-call-without-result", _TOOLS, [_user(), _said(_use()), _user("And?")]),
    ("a-result-without-call", _TOOLS, [_user(), _said(_text("Yes.")), _user([_got()])]),
    ("two-results-for-one-call", _TOOLS, [_user(), _said(_use()), _user([_got(), _got()])]),
    ("words-before-the-results", _TOOLS, [_user(), _said(_use()), _user([_text("Here."), _got()])]),
    ("a-prefill-that-ends-in-a-space", f"{CLAUDE}/api/messages", [_user(), {"role": "assistant", "content": "It is "}]),
    ("a-prefill-that-ends-in-a-line-break", f"{CLAUDE}/api/messages", [_user(), _said(_text("Result:\n"))]),
    ("an-empty-text-block", f"{CLAUDE}/api/messages", [_user([_text(""), _text("Go.")])]),
    ("a-blank-text-block", f"{CLAUDE}/api/messages", [_user([_text(" \n"), _text("Go.")])]),
    ("an-empty-message", f"{CLAUDE}/api/messages", [_user(), _said(), _user()]),
    ("an-empty-string", f"{CLAUDE}/api/messages", [_user(), {"role": "assistant", "content": ""}, _user()]),
    ("the-assistant-first", f"{CLAUDE}/api/messages", [_said(_text("Hello.")), _user()]),
    ("a-call-of-the-user", f"{CLAUDE}/api/messages", [_user([_text("Go."), _use()])]),
    (
        "compaction-of-empty-words",
        "anthropic, BetaCompactionBlockParam",
        [_user(), _said({"type": "compaction", "content": ""}, _text("Yes.")), _user()],
    ),
    (
        "nothing-but-a-compaction-of-empty-words",
        "anthropic, BetaCompactionBlockParam",
        [_user(), _said({"type": "compaction", "content": ""}), _user()],
    ),
    (
        "thinking-of-the-user",
        f"{CLAUDE}/api/messages",
        [_user([_text("Go."), {"type": "thinking", "thinking": "x", "signature": "s"}])],
    ),
    ("a-result-of-the-assistant", f"{CLAUDE}/api/messages", [_user(), _said(_text("Yes."), _got()), _user()]),
    (
        "a-picture-of-openai",
        "anthropic SDK, ContentBlockParam",
        [_user([{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}, _text("What is it?")])],
    ),
    ("words-of-responses", "anthropic SDK, ContentBlockParam", [_user([{"type": "input_text", "text": "Go."}])]),
    ("an-answer-of-responses", "anthropic SDK", [_user(), _said({"type": "output_text", "text": "Yes."}), _user()]),
    (
        "a-server-call-without-result",
        f"{CLAUDE}/agents-and-tools/tool-use/server-tools",
        [_user(), _said(_text("I look."), _use("srvtoolu_1", "web_search", type="server_tool_use")), _user()],
    ),
    (
        "a-system-message-first",
        f"{CLAUDE}/build-with-claude/mid-conversation-system-messages",
        [{"role": "system", "content": "Be brief."}, _user()],
    ),
]


def _call(id: Any = "c1", name: str = "f", **more: Any) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}, **more}


def _calls(*calls: Any, content: Any = None) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "tool_calls": [*calls]}


def _tool(id: str = "c1", content: Any = "ok") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": content}


def _asked(arguments: Any) -> dict[str, Any]:
    return {"id": "c1", "type": "function", "function": {"name": "f", "arguments": arguments}}


_CHATS = f"{OPENAI}/api-reference/chat/create"
_LONG = "c" * 41
_CHAT = [
    ("an-empty-list-of-calls", _CHATS, [_user(), _calls(content="Yes."), _user()]),
    ("an-empty-list-of-calls-alone", _CHATS, [_user(), _calls(), _user()]),
    (
        "null-in-place-of-calls",
        _CHATS,
        [_user(), {"role": "assistant", "content": "Yes.", "tool_calls": None}, _user()],
    ),
    ("arguments-that-are-an-object", _CHATS, [_user(), _calls(_asked({"a": 1})), _tool()]),
    ("arguments-that-are-null", _CHATS, [_user(), _calls(_asked(None)), _tool()]),
    ("a-result-that-is-null", _CHATS, [_user(), _calls(_call()), {**_tool(), "content": None}]),
    ("a-result-that-is-an-object", _CHATS, [_user(), _calls(_call()), {**_tool(), "content": {"a": 1}}]),
    ("a-result-that-is-a-number", _CHATS, [_user(), _calls(_call()), {**_tool(), "content": 0}]),
    ("a-result-that-is-an-empty-list", _CHATS, [_user(), _calls(_call()), {**_tool(), "content": []}]),
    ("a-result-without-content", _CHATS, [_user(), _calls(_call()), {"role": "tool", "tool_call_id": "c1"}]),
    (
        "a-call-without-type",
        "openai SDK, ChatCompletionMessageFunctionToolCallParam",
        [_user(), _calls({"id": "c1", "function": {"name": "f", "arguments": "{}"}}), _tool()],
    ),
    ("an-id-that-is-too-long", _CHATS, [_user(), _calls(_call(_LONG)), _tool(_LONG)]),
    (
        "two-calls-with-one-id",
        f"{OPENAI}/guides/function-calling",
        [_user(), _calls(_call(), _call()), _tool(), _tool()],
    ),
    ("a-name-with-a-space", _CHATS, [_user(), _calls(_call(name="find it")), _tool()]),
    ("a-name-that-is-too-long", _CHATS, [_user(), _calls(_call(name="f" * 65)), _tool()]),
    ("a-call-without-result", f"{OPENAI}/guides/function-calling", [_user(), _calls(_call()), _user()]),
    ("a-result-without-call", f"{OPENAI}/guides/function-calling", [_user(), _tool()]),
    ("a-second-result", f"{OPENAI}/guides/function-calling", [_user(), _calls(_call()), _tool(), _tool()]),
    ("an-assistant-without-content", _CHATS, [_user(), {"role": "assistant", "content": None}, _user()]),
    ("an-empty-list-of-content", _CHATS, [_user([]), _user()]),
    (
        "words-of-responses",
        "openai SDK, ChatCompletionContentPartParam",
        [_user([{"type": "input_text", "text": "Go."}])],
    ),
    ("a-picture-of-responses", "openai SDK", [_user([{"type": "input_image", "image_url": "https://a.org/a.png"}])]),
    ("a-call-of-claude", "openai SDK", [_user(), _said(_text("I look."), _use()), _user()]),
    ("a-result-of-claude", "openai SDK", [_user(), _said(_text("I look.")), _user([_got()])]),
]


def _item(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, **more}


def _function(call_id: str = "c1", **more: Any) -> dict[str, Any]:
    return _item("function_call", call_id=call_id, name="f", arguments="{}") | more


def _output(id: str = "c1") -> dict[str, Any]:
    return _item("function_call_output", call_id=id, output="ok")


def _answer(kind: str = "output_text", **more: Any) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": kind, "text": "Yes."}], **more}


def _custom() -> dict[str, Any]:
    return _item("custom_tool_call", call_id="c1", name="patch", input="x")


def _search() -> dict[str, Any]:
    return _item("tool_search_call", call_id="c1", execution="client", arguments={}, status="completed")


def _screenshot() -> dict[str, Any]:
    shown = {"type": "computer_screenshot", "image_url": "https://a.org/a.png"}
    return _item("computer_call_output", call_id="c1", output=shown)


def _approval() -> dict[str, Any]:
    return _item("mcp_approval_response", approval_request_id="mcpr_1", approve=True)


_STATE = f"{OPENAI}/guides/conversation-state"
_ITEMS = f"{OPENAI}/api-reference/responses/create"
_RESPONSES = [
    (
        "input-text-of-the-assistant",
        f"{OPENAI}/api-reference/responses/create",
        [_user(), _answer("input_text"), _user()],
    ),
    ("plain-text-of-the-assistant", f"{OPENAI}/api-reference/responses/create", [_user(), _answer("text"), _user()]),
    ("output-text-of-the-user", f"{OPENAI}/api-reference/responses", [_user([{"type": "output_text", "text": "Go."}])]),
    ("plain-text-of-the-user", f"{OPENAI}/api-reference/responses/create", [_user([_text("Go.")])]),
    ("a-picture-of-chat", "openai SDK, ResponseInputContentParam", [_user([{"type": "image_url", "image_url": {}}])]),
    ("an-item-twice", _STATE, [_user(), _answer(id="msg_1"), _answer(id="msg_1"), _user()]),
    ("two-items-with-one-id", _STATE, [_user(), _answer(id="msg_1"), _user(), _answer(id="msg_1", phase="commentary")]),
    ("a-message-with-the-id-of-a-call", _STATE, [_user(), _answer(id="call_1"), _user()]),
    ("a-call-with-the-id-of-a-message", _STATE, [_user(), _function(id="msg_9"), _output()]),
    (
        "a-call-id-that-is-too-long",
        "openai refusal, input[].call_id",
        [_user(), _function("c" * 65), _output("c" * 65)],
    ),
    ("a-trigger-that-is-not-last", "openai SDK, CompactionTrigger", [_user(), _item("compaction_trigger"), _user()]),
    ("a-call-without-output", f"{OPENAI}/guides/function-calling", [_user(), _function(), _user()]),
    ("a-call-twice", f"{OPENAI}/guides/function-calling", [_user(), _function(), _function(), _output()]),
    ("arguments-that-are-an-object", _ITEMS, [_user(), _function(arguments={"a": 1}), _output()]),
    ("an-output-that-is-null", _ITEMS, [_user(), _function(), {**_output(), "output": None}]),
    ("an-output-that-is-an-object", _ITEMS, [_user(), _function(), {**_output(), "output": {"a": 1}}]),
    (
        "a-function-call-without-output-value",
        _ITEMS,
        [_user(), _function(), _item("function_call_output", call_id="c1")],
    ),
    ("an-output-of-another-kind", _ITEMS, [_user(), _custom(), _output()]),
    (
        "an-output-of-a-custom-call",
        _ITEMS,
        [_user(), _function(), _item("custom_tool_call_output", call_id="c1", output="ok")],
    ),
    ("a-client-search-without-output", f"{OPENAI}/guides/tools-tool-search", [_user(), _search(), _user()]),
    ("a-screenshot-without-call", f"{OPENAI}/guides/tools-computer-use", [_user(), _screenshot()]),
    ("an-approval-of-nothing", f"{OPENAI}/guides/tools-connectors-mcp", [_user(), _approval()]),
    ("an-output-without-call", f"{OPENAI}/guides/function-calling", [_user(), _output()]),
    (
        "reasoning-without-its-item",
        f"{OPENAI}/guides/reasoning",
        [_user(), _item("reasoning", id="rs_1", summary=[], encrypted_content="x"), _user()],
    ),
    ("a-name-with-a-space", f"{OPENAI}/guides/function-calling", [_user(), _function(name="find it"), _output()]),
]


def _content(role: str, *parts: Any) -> dict[str, Any]:
    return {"role": role, "parts": [*parts]}


def _asks(**args: Any) -> dict[str, Any]:
    return {"functionCall": {"name": "f", "args": {}, **args}}


_RESPONSE = {"functionResponse": {"name": "f", "response": {"output": "ok"}}}
_GO = _content("user", {"text": "Go."})
_CALLING = f"{GEMINI}/function-calling"


def _answered(response: Any) -> dict[str, Any]:
    return {"functionResponse": {"name": "f", "response": response}}


_GEMINI = [
    ("calls-after-the-model", _CALLING, [_GO, _content("model", {"text": "I look."}), _content("model", _asks()), _content("user", _RESPONSE)]),
    ("calls-first", _CALLING, [_content("model", _asks()), _content("user", _RESPONSE)]),
    ("too-few-responses", _CALLING, [_GO, _content("model", _asks(), _asks()), _content("user", _RESPONSE), _content("model", {"text": "Yes."})]),
    ("too-many-responses", _CALLING, [_GO, _content("model", _asks()), _content("user", _RESPONSE, _RESPONSE)]),
    ("responses-without-call", _CALLING, [_GO, _content("model", {"text": "Yes."}), _content("user", _RESPONSE)]),
    ("arguments-that-are-a-list", "google-genai SDK, FunctionCall", [_GO, _content("model", _asks(args=[1])), _content("user", _RESPONSE)]),
    ("a-response-that-is-words", _CALLING, [_GO, _content("model", _asks()), _content("user", _answered("ok"))]),
    ("a-response-that-is-a-list", _CALLING, [_GO, _content("model", _asks()), _content("user", _answered([1]))]),
    ("an-empty-part", "https://ai.google.dev/api/caching#Part", [_content("user", {}, {"text": "Go."})]),
    ("a-content-without-parts", "https://ai.google.dev/api/caching#Content", [_GO, _content("model"), _GO]),
    ("a-system-content", "https://ai.google.dev/api/caching#Content", [_content("system", {"text": "Be brief."}), _GO]),
]  # fmt: skip


def _block(role: str, *blocks: Any) -> dict[str, Any]:
    return {"role": role, "content": [*blocks]}


def _bedrock_use(id: str = "t1", **more: Any) -> dict[str, Any]:
    return {"toolUse": {"toolUseId": id, "name": "f", "input": {}, **more}}


def _bedrock_got(id: str = "t1") -> dict[str, Any]:
    return {"toolResult": {"toolUseId": id, "content": [{"text": "ok"}]}}


_HI = _block("user", {"text": "Go."})
_POINT = {"cachePoint": {"type": "default"}}
_MODEL = "botocore, service model of bedrock-runtime"
_WRONG = "a b"
_USERGUIDE = f"{AWS}/userguide/tool-use-inference-call.html"
_PAGE = {"document": {"format": "txt", "name": "Page", "source": {"text": "Page one."}}}
_BEDROCK = [
    ("an-id-with-a-space", _MODEL, [_HI, _block("assistant", _bedrock_use(_WRONG)), _block("user", _bedrock_got(_WRONG))]),
    ("an-id-that-is-too-long", _MODEL, [_HI, _block("assistant", _bedrock_use("t" * 65)), _block("user", _bedrock_got("t" * 65))]),
    ("input-that-is-a-list", _USERGUIDE, [_HI, _block("assistant", _bedrock_use(input=[1])), _block("user", _bedrock_got())]),
    ("input-that-is-an-object-as-text", _USERGUIDE, [_HI, _block("assistant", _bedrock_use(input='{"a":1}')), _block("user", _bedrock_got())]),
    ("a-call-without-input", _MODEL, [_HI, _block("assistant", {"toolUse": {"toolUseId": "t1", "name": "f"}}), _block("user", _bedrock_got())]),
    ("two-calls-with-one-id", _USERGUIDE, [_HI, _block("assistant", _bedrock_use(), _bedrock_use()), _block("user", _bedrock_got(), _bedrock_got())]),
    ("a-name-with-a-dot", _MODEL, [_HI, _block("assistant", _bedrock_use(name="a.b")), _block("user", _bedrock_got())]),
    ("document-without-words", f"{AWS}/APIReference/API_runtime_Message.html", [_block("user", _PAGE, _POINT)]),
    ("document-with-blank-words", f"{AWS}/APIReference/API_runtime_Message.html", [_block("user", {"text": " "}, _PAGE)]),
    ("blank-words", f"{AWS}/APIReference/API_runtime_ContentBlock.html", [_block("user", {"text": " "}, {"text": "Go."})]),
    ("the-assistant-first", f"{AWS}/APIReference/API_runtime_Message.html", [_block("assistant", {"text": "Yes."}), _HI]),
    ("two-users-in-a-row", f"{AWS}/APIReference/API_runtime_Message.html", [_HI, _HI]),
    ("a-call-without-result", _USERGUIDE, [_HI, _block("assistant", _bedrock_use()), _HI]),
    ("a-result-without-call", _USERGUIDE, [_HI, _block("assistant", {"text": "Yes."}), _block("user", _bedrock_got())]),
    ("five-cache-points", f"{AWS}/userguide/prompt-caching.html", [_block("user", *[part for n in range(5) for part in ({"text": f"{n}"}, _POINT)])]),
    ("a-call-of-the-user", _USERGUIDE, [_block("user", {"text": "Go."}, _bedrock_use())]),
]  # fmt: skip

ILL_FORMED = [
    Row(name, format, source, messages)
    for format, rows in {
        "anthropic": _ANTHROPIC,
        "openai-chat": _CHAT,
        "openai-responses": _RESPONSES,
        "gemini": _GEMINI,
        "bedrock": _BEDROCK,
    }.items()
    for name, source, messages in rows
]
