"""Hypothesis strategies: valid conversations of every format, with what real ones hold and more."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st
from msgspec import Struct

__all__ = ["FORMATS", "conversations", "natives"]

FORMATS = ("anthropic", "bedrock", "gemini", "openai-chat", "openai-responses")
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAIAAAASFvFNAAAADElEQVR4nGNgIAkAAAAmAAEzwzTfAAAAAElFTkSuQmCC"

_words = st.text("abc xyz é漢👍\n", min_size=1, max_size=24).filter(lambda text: not text.isspace())
_names = st.sampled_from(["read", "grep", "bash", "web_fetch"])
_extra = st.sampled_from([{}, {}, {"x_vendor": {"n": 1, "list": [1.5, None, "é"]}}, {"x_flag": True}])
_arguments = st.dictionaries(st.sampled_from(["path", "query", "n"]), st.one_of(_words, st.integers(0, 9)), max_size=2)


class Call(Struct, frozen=True):
    """A call in the making, with what its tool answers (None: an image)."""

    id: str
    name: str
    arguments: dict[str, Any]
    answer: str | None
    failed: bool
    listed: bool
    kind: str = "function"


class Step(Struct, frozen=True):
    """One answer of the model: words, reasoning, calls, something unknown."""

    text: str
    thinking: str
    calls: tuple[Call, ...]
    strange: bool
    server: bool
    extra: dict[str, Any]


class Turn(Struct, frozen=True):
    """A user's message and the answers to it; the last step makes no call unless the turn is still under way."""

    text: str
    listed: bool
    image: bool
    strange: bool
    extra: dict[str, Any]
    steps: tuple[Step, ...]
    final: Step | None


@st.composite
def _calls(draw: st.DrawFn, reuse: bool) -> tuple[Call, ...]:
    count = draw(st.integers(1, 3))
    salt = "" if reuse else draw(st.uuids()).hex[:6]
    return tuple(
        Call(
            f"call_{salt}{number}",
            draw(_names),
            draw(_arguments),
            draw(st.one_of(_words, _words, st.just(""), st.none())),
            draw(st.booleans()),
            draw(st.booleans()),
            draw(st.sampled_from(["function", "function", "custom"])),
        )
        for number in range(count)
    )


@st.composite
def _steps(draw: st.DrawFn, reuse: bool, calling: bool) -> Step:
    calls = draw(_calls(reuse)) if calling else ()
    text = draw(_words) if not calls or draw(st.booleans()) else ""
    thinking = draw(st.one_of(st.just(""), _words))
    flags = st.integers(0, 5).map(lambda number: number == 0)
    return Step(text, thinking, calls, draw(flags), draw(flags), draw(_extra))


@st.composite
def conversations(draw: st.DrawFn, min_turns: int = 1, max_turns: int = 3) -> tuple[tuple[Turn, ...], bool]:
    """Return turns, and whether the last one ends on results that await the model (mid-turn)."""
    reuse = draw(st.booleans())
    count = draw(st.integers(min_turns, max_turns))
    midturn = draw(st.booleans())
    turns = []
    for number in range(count):
        steps = tuple(draw(_steps(reuse, True)) for _ in range(draw(st.integers(0, 2))))
        last = number == count - 1
        final = None if last and midturn else draw(_steps(reuse, False))
        flags = [draw(st.booleans()) for _ in range(3)]
        turns.append(Turn(draw(_words), *flags, draw(_extra), steps, final))
    return tuple(turns), draw(st.booleans())


def natives(format_name: str, min_turns: int = 1, max_turns: int = 3) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Return valid native lists of a format.

    Blocks and strings, unknown blocks and keys, failed, empty and pictured results, parallel calls, reasoning, ids used
    again in later batches (where the provider takes that), and conversations that end on results in mid-turn.
    """
    write = _WRITERS[format_name]
    return (
        conversations(min_turns, max_turns)
        .map(lambda said: _distinct(format_name, [message for turn in said[0] for message in write(turn, said[1])]))
        .filter(lambda messages: format_name != "anthropic" or not _ends_in_white_space(messages[-1]))
    )


def _ends_in_white_space(message: dict[str, Any]) -> bool:
    """Anthropic refuses a conversation whose last message is the assistant's and ends in white space."""
    blocks = message["content"] if isinstance(message["content"], list) else [{"text": message["content"]}]
    text = blocks[-1].get("text", "") if message["role"] == "assistant" and blocks else ""
    return isinstance(text, str) and text != text.rstrip()


def _distinct(format_name: str, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return messages with ids that are unique within the list, where the provider demands that."""
    batch = 0
    for place, message in enumerate(messages):
        if format_name == "openai-responses" and message.get("id") and message["type"] != "item_reference":
            message["id"] += f"_{place}"
        if format_name == "anthropic" and isinstance(message["content"], list):
            batch += message["role"] == "assistant"
            for block in message["content"]:
                key = {"tool_use": "id", "tool_result": "tool_use_id"}.get(block.get("type"))
                if key:
                    block[key] += f"_{batch}"
    return messages


def _chat(turn: Turn, flag: bool) -> list[dict[str, Any]]:
    blocks: list[Any] = [{"type": "text", "text": turn.text, **turn.extra}]
    if turn.image:
        blocks.append({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}", "detail": "low"}})
    if turn.strange:
        blocks.append({"type": "hologram", "data": {"x": 1}})
    out: list[dict[str, Any]] = [{"role": "user", "content": blocks if turn.listed else turn.text, **turn.extra}]
    for step in (*turn.steps, *([turn.final] if turn.final else [])):
        message: dict[str, Any] = {"role": "assistant", "content": step.text or None, **step.extra}
        if step.thinking:
            message["reasoning_content"] = step.thinking
        if step.strange:
            message["audio"] = {"id": "audio_1"}
        if step.calls:
            message["tool_calls"] = [_chat_call(call, step.extra) for call in step.calls]
        out.append(message)
        for call in reversed(step.calls) if flag else step.calls:
            answer: Any = [{"type": "text", "text": call.answer}] if call.listed and call.answer else call.answer or ""
            if call.answer is None:
                answer = [{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]
            out.append({"role": "tool", "tool_call_id": call.id, "content": answer, **step.extra})
    return out


def _chat_call(call: Call, extra: dict[str, Any]) -> dict[str, Any]:
    if call.kind == "custom":
        return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": "free text"}, **extra}
    function = {"name": call.name, "arguments": json.dumps(call.arguments)}
    return {"id": call.id, "type": "function", "function": function, **extra}


def _anthropic(turn: Turn, flag: bool) -> list[dict[str, Any]]:
    blocks: list[Any] = [{"type": "text", "text": turn.text, "cache_control": {"type": "ephemeral"}, **turn.extra}]
    if turn.image:
        blocks.append({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}})
    if turn.strange:
        blocks.append({"type": "container_upload", "file_id": "file_1"})
    out: list[dict[str, Any]] = [{"role": "user", "content": blocks if turn.listed else turn.text}]
    for step in (*turn.steps, *([turn.final] if turn.final else [])):
        content: list[Any] = []
        if step.thinking:
            content.append({"type": "thinking", "thinking": step.thinking, "signature": "c2ln" * 4})
        if step.thinking and flag:
            content.append({"type": "redacted_thinking", "data": "b3BhcXVl"})
        if step.text:
            content.append({"type": "text", "text": step.text, **step.extra})
        if step.server:
            content += [
                {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
                {
                    "type": "web_search_tool_result",
                    "tool_use_id": "srvtoolu_1",
                    "content": [{"encrypted_content": "e"}],
                },
            ]
        if step.strange:
            content.append({"type": "novelty", "payload": [1, 2, 3]})
        content += [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments, **step.extra}
            for call in step.calls
        ]
        out.append({"role": "assistant", "content": content})
        if step.calls:
            results = [_anthropic_result(call, step.extra) for call in step.calls]
            out.append({"role": "user", "content": results[::-1] if flag else results})
    return out


def _anthropic_result(call: Call, extra: dict[str, Any]) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": call.id, **extra}
    if call.answer is None:
        block["content"] = [
            {"type": "text", "text": "seen"},
            {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
        ]
    elif call.answer:
        block["content"] = [{"type": "text", "text": call.answer}] if call.listed else call.answer
    return {**block, "is_error": True} if call.failed else block


def _bedrock(turn: Turn, flag: bool) -> list[dict[str, Any]]:
    content: list[Any] = [{"text": turn.text}]
    if turn.image:
        content.append({"image": {"format": "png", "source": {"bytes": PIXEL}}})
    if turn.strange:
        content.append({"guardContent": {"text": {"text": "guarded"}}})
    if flag:
        content.append({"cachePoint": {"type": "default"}})
    out: list[dict[str, Any]] = [{"role": "user", "content": content}]
    for step in (*turn.steps, *([turn.final] if turn.final else [])):
        content = []
        if step.thinking:
            content.append({"reasoningContent": {"reasoningText": {"text": step.thinking, "signature": "c2ln"}}})
        if step.text:
            content.append({"text": step.text})
        if step.strange:
            content.append({"citationsContent": {"content": [{"text": "cited"}], "citations": []}})
        content += [
            {"toolUse": {"toolUseId": call.id, "name": call.name, "input": call.arguments, **step.extra}}
            for call in step.calls
        ]
        out.append({"role": "assistant", "content": content})
        if step.calls:
            out.append({"role": "user", "content": [_bedrock_result(call, step.extra) for call in step.calls]})
    return out


def _bedrock_result(call: Call, extra: dict[str, Any]) -> dict[str, Any]:
    inner: list[Any] = [{"json": {"value": call.answer}}] if call.listed else [{"text": call.answer or "none"}]
    if call.answer is None:
        inner.append({"image": {"format": "png", "source": {"bytes": PIXEL}}})
    result: dict[str, Any] = {"toolUseId": call.id, "content": inner, **extra}
    return {"toolResult": {**result, "status": "error"} if call.failed else result}


def _gemini(turn: Turn, flag: bool) -> list[dict[str, Any]]:
    parts: list[Any] = [{"text": turn.text, **turn.extra}]
    if turn.image:
        parts.append({"inlineData": {"mimeType": "image/png", "data": PIXEL}})
    if turn.strange:
        parts.append({"videoMetadata": {"startOffset": "1s"}})
    out: list[dict[str, Any]] = [{"role": "user", "parts": parts}]
    for step in (*turn.steps, *([turn.final] if turn.final else [])):
        parts = [{"text": step.thinking, "thought": True}] if step.thinking else []
        if step.text:
            parts.append({"text": step.text, **step.extra})
        if step.server:
            parts += [
                {"executableCode": {"language": "PYTHON", "code": "print(1)"}},
                {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
            ]
        for number, call in enumerate(step.calls):
            part: dict[str, Any] = {"functionCall": _gemini_call(call, flag)}
            parts.append({**part, "thoughtSignature": "c2ln" * 3} if step.thinking and not number else part)
        out.append({"role": "model", "parts": parts})
        if step.calls:
            out.append({"role": "user", "parts": [_gemini_result(call, flag, step.extra) for call in step.calls]})
    return out


def _gemini_call(call: Call, named: bool) -> dict[str, Any]:
    made: dict[str, Any] = {"name": call.name, "args": call.arguments}
    return {"id": call.id, **made} if named else made


def _gemini_result(call: Call, named: bool, extra: dict[str, Any]) -> dict[str, Any]:
    response: dict[str, Any] = {"error" if call.failed else "output": call.answer or ""}
    if call.listed:
        response |= {"count": 2}
    made: dict[str, Any] = {"name": call.name, "response": response, **extra}
    if call.answer is None:
        made["parts"] = [{"inlineData": {"mimeType": "image/png", "data": PIXEL}}]
    return {"functionResponse": {"id": call.id, **made} if named else made}


def _responses(turn: Turn, flag: bool) -> list[dict[str, Any]]:
    blocks: list[Any] = [{"type": "input_text", "text": turn.text, **turn.extra}]
    if turn.image:
        blocks.append({"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}", "detail": "auto"})
    if turn.strange:
        blocks.append({"type": "input_novelty", "payload": {"x": 1}})
    first: dict[str, Any] = {"role": "user", "content": blocks if turn.listed else turn.text}
    out: list[dict[str, Any]] = [{"type": "message", **first} if flag else first]
    if turn.strange:
        out.append({"type": "item_reference", "id": "msg_1"})
    for step in (*turn.steps, *([turn.final] if turn.final else [])):
        if step.thinking:
            out.append({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "ZW5jcnlwdGVk"})
        if step.server:
            out.append({"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"query": "x"}})
        if step.text:
            said = [{"type": "output_text", "text": step.text, "annotations": [], **step.extra}]
            out.append({"type": "message", "id": "msg_2", "role": "assistant", "status": "completed", "content": said})
        out += [_responses_call(call, step.extra) for call in step.calls]
        out += [_responses_output(call) for call in step.calls]
    return out


def _responses_call(call: Call, extra: dict[str, Any]) -> dict[str, Any]:
    if call.kind == "custom":
        return {"type": "custom_tool_call", "call_id": call.id, "name": call.name, "input": "free text", **extra}
    arguments = json.dumps(call.arguments)
    return {
        "type": "function_call",
        "id": "fc_1",
        "call_id": call.id,
        "name": call.name,
        "arguments": arguments,
        **extra,
    }


def _responses_output(call: Call) -> dict[str, Any]:
    kind = "custom_tool_call_output" if call.kind == "custom" else "function_call_output"
    output: Any = [{"type": "input_text", "text": call.answer}] if call.listed and call.answer else call.answer or ""
    if call.answer is None:
        output = [{"type": "input_image", "image_url": "https://example.org/a.png"}]
    return {"type": kind, "call_id": call.id, "output": output}


_WRITERS = {
    "anthropic": _anthropic,
    "bedrock": _bedrock,
    "gemini": _gemini,
    "openai-chat": _chat,
    "openai-responses": _responses,
}
