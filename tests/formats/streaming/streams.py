"""Streams chosen to hurt: what each provider sends at its most complicated, as lists of events."""

import json

from msgspec.structs import replace

from refold.testing.provider import ReceivedRequest, ScriptedReply
from refold.testing.provider._wire import WireTurn
from refold.testing.provider._wire_anthropic import AnthropicWire
from refold.testing.provider._wire_gemini import GeminiWire
from refold.testing.provider._wire_openai import OpenAIChatWire
from refold.testing.provider._wire_responses import OpenAIResponsesWire

# Anthropic Messages


def anthropic(*blocks, stop="end_turn", usage=None, start=None, end=None, interleaved=False):
    """A message of blocks, each a start and its deltas; `interleaved` sends the deltas of all blocks in turn."""
    usage = {"input_tokens": 25, "cache_read_input_tokens": 100, "output_tokens": 1, **(usage or {})}
    message = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": usage, **(start or {}),
    }  # fmt: skip
    opened = [
        {"type": "content_block_start", "index": at, "content_block": block} for at, (block, *_) in enumerate(blocks)
    ]
    deltas = [
        [{"type": "content_block_delta", "index": at, "delta": delta} for delta in deltas]
        for at, (_, *deltas) in enumerate(blocks)
    ]
    closed = [{"type": "content_block_stop", "index": at} for at in range(len(blocks))]
    if interleaved:
        longest = max(map(len, deltas))
        middle = [*opened, *(row[turn] for turn in range(longest) for row in deltas if turn < len(row)), *closed]
    else:
        middle = [event for at in range(len(blocks)) for event in (opened[at], *deltas[at], closed[at])]
    ended = {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, **(end or {})}
    ended["usage"] = {"output_tokens": 15, **ended.get("usage", {})}
    return [{"type": "message_start", "message": message}, {"type": "ping"}, *middle, ended, {"type": "message_stop"}]


def use(name, *pieces, id="toolu_1", type="tool_use", **more):
    block = {"type": type, "id": id, "name": name, "input": {}, **more}
    return (block, *({"type": "input_json_delta", "partial_json": piece} for piece in pieces))


def words(*pieces):
    return ({"type": "text", "text": ""}, *({"type": "text_delta", "text": piece} for piece in pieces))


THOUGHT = (
    {"type": "thinking", "thinking": "", "signature": ""},
    {"type": "thinking_delta", "thinking": "Where was "},
    {"type": "thinking_delta", "thinking": "it?"},
    {"type": "signature_delta", "signature": "EqQBCg=="},
)
CITED = {"type": "char_location", "cited_text": "sky", "document_index": 0, "document_title": "T", "file_id": None,
         "start_char_index": 0, "end_char_index": 3}  # fmt: skip
SEARCHED = {
    "type": "web_search_tool_result", "tool_use_id": "srvtoolu_1",
    "content": [{"type": "web_search_result", "title": "T", "url": "https://x", "encrypted_content": "E=", "page_age": None}],
}  # fmt: skip

ANTHROPIC = {
    "text": anthropic(words("Hel", "lo", " \U0001f600 wörld\u2028\x85\x0b")),
    "thinking then two calls": anthropic(
        THOUGHT,
        words("I look."),
        use("read", "", '{"path": ', '"a.py"', ', "n": [1, 2.50, {"x": null}]}'),
        use("ls", id="toolu_2"),
        stop="tool_use",
    ),
    "interleaved calls": anthropic(
        use("read", '{"path"', ': "a"}'),
        use("read", '{"path": "b', '.py"}', "", id="toolu_2"),
        stop="tool_use",
        interleaved=True,
    ),
    "redacted thinking": anthropic(({"type": "redacted_thinking", "data": "Em0="},), words("Hm.")),
    "thoughts that are left out": anthropic(
        (THOUGHT[0], {"type": "signature_delta", "signature": "EqQBCg=="}),
        use("read", '{"path": "a"}'),
        stop="tool_use",
    ),
    "citations": anthropic(
        (*words("The ", "sky"), {"type": "citations_delta", "citation": CITED}),
        ({"type": "text", "text": "", "citations": [CITED]}, {"type": "citations_delta", "citation": CITED}),
    ),
    "server tools": anthropic(
        use("web_search", '{"query": "re', 'fold"}', id="srvtoolu_1", type="server_tool_use"),
        (SEARCHED,),
        words("So."),
        end={"usage": {"server_tool_use": {"web_search_requests": 1}}},
    ),
    "a server tool that goes on": anthropic(
        use("code_execution", '{"code": "1"}', id="srvtoolu_1", type="server_tool_use"),
        stop="pause_turn",
        end={
            "delta": {
                "stop_reason": "pause_turn",
                "stop_sequence": None,
                "container": {"id": "c1", "expires_at": "2026-01-01T00:00:00Z"},
            }
        },
    ),
    "mcp tools": anthropic(
        use("query", '{"sql": ', '"select 1"}', id="mcptoolu_1", type="mcp_tool_use", server_name="db"),
        (
            {
                "type": "mcp_tool_result",
                "tool_use_id": "mcptoolu_1",
                "is_error": False,
                "content": [{"type": "text", "text": "1"}],
            },
        ),
    ),
    "compaction": anthropic(
        (
            {"type": "compaction", "content": None},
            {"type": "compaction_delta", "content": "All of it.", "encrypted_content": "E="},
        ),
        words("Go on."),
        end={
            "context_management": {
                "applied_edits": [
                    {"type": "clear_tool_uses_20250919", "cleared_tool_uses": 2, "cleared_input_tokens": 99}
                ]
            }
        },
    ),
    "usage of the end replaces": anthropic(
        words("Hi"),
        end={"usage": {"input_tokens": 30, "cache_read_input_tokens": None, "cache_creation_input_tokens": 7}},
    ),
    "a refusal": anthropic(
        words("I"),
        stop="refusal",
        end={
            "delta": {
                "stop_reason": "refusal",
                "stop_sequence": None,
                "stop_details": {"type": "refusal", "category": None, "explanation": None},
            }
        },
    ),
    "a stop sequence": anthropic(words("a"), end={"delta": {"stop_reason": "stop_sequence", "stop_sequence": "END"}}),
    "nothing": anthropic(),
}

# OpenAI chat completions


def chunk(delta=None, finish=None, *, index=0, id="chatcmpl-1", **more):
    choice = {"index": index, "delta": delta or {}, "finish_reason": finish, "logprobs": None}
    head = {"id": id, "object": "chat.completion.chunk", "created": 1, "model": "gpt-x", "system_fingerprint": "fp_1"}
    choice |= {key: more.pop(key) for key in ("logprobs", "content_filter_results") if key in more}
    return {**head, "choices": [choice], **more}


def bare(**more):
    """A chunk without a choice."""
    return {**chunk(), "choices": [], **more}


def call(index, id=None, name=None, arguments=None, **more):
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return {"index": index, **({"id": id, "type": "function"} if id else {}), "function": function, **more}


def logprob(token):
    return {"token": token, "logprob": -0.1, "bytes": list(token.encode()), "top_logprobs": []}


USAGE = {
    "prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13,
    "prompt_tokens_details": {"cached_tokens": 2, "audio_tokens": 0},
}  # fmt: skip
CHAT = {
    "text": [
        chunk({"role": "assistant", "content": "", "refusal": None}),
        chunk({"content": "Hel"}),
        chunk({"content": "lo \U0001f600\u2028"}),
        chunk(finish="stop"),
        bare(usage=USAGE),
    ],
    "interleaved parallel calls": [
        chunk({"role": "assistant", "content": None}),
        chunk({"tool_calls": [call(0, "call_a", "read", "")]}),
        chunk({"tool_calls": [call(1, "call_b", "ls", "")]}),
        chunk({"tool_calls": [call(0, arguments='{"path"'), call(1, arguments='{"n"')]}),
        chunk({"tool_calls": [call(1, arguments=": 1}"), call(0, arguments=': "a"}')]}),
        chunk(finish="tool_calls"),
    ],
    "fragments of one call in the first chunk": [
        chunk({"role": "assistant", "tool_calls": [call(0, "call_a", "read", '{"a'), call(0, arguments='": 1}')]}),
        chunk(finish="tool_calls"),
    ],
    "two choices": [
        chunk({"role": "assistant", "content": "He"}),
        chunk({"role": "assistant", "content": "Ho"}, index=1),
        chunk({"content": "llo"}),
        chunk({"content": "la"}, index=1),
        chunk(finish="stop"),
        chunk(finish="length", index=1),
        bare(usage=USAGE),
    ],
    "logprobs": [
        chunk({"role": "assistant", "content": "a"}, logprobs={"content": [logprob("a")], "refusal": None}),
        chunk({"content": "bc"}, logprobs={"content": [logprob("b"), logprob("c")], "refusal": None}),
        chunk(finish="stop"),
    ],
    "a refusal": [
        chunk({"role": "assistant", "content": None, "refusal": "I "}),
        chunk({"refusal": "cannot."}, logprobs={"content": None, "refusal": [logprob("I")]}),
        chunk(finish="stop"),
    ],
    "fields that nobody knows": [
        chunk(
            {"role": "assistant", "content": "", "reasoning_content": "Let ", "odd": {"deep": "a", "n": None}},
            provider="somebody",
        ),
        chunk({"reasoning_content": "me.", "odd": {"deep": "b"}, "flags": ["x"]}),
        chunk({"content": "Yes", "flags": ["y"]}, provider="somebody"),
        chunk(finish="stop", provider="somebody"),
    ],
    "reasoning details": [
        chunk(
            {
                "role": "assistant",
                "content": "",
                "reasoning_details": [{"type": "reasoning.text", "text": "Let ", "index": 0}],
            }
        ),
        chunk({"reasoning_details": [{"type": "reasoning.text", "text": "me.", "index": 0}]}),
        chunk({"reasoning_details": [{"type": "reasoning.text", "signature": "s=", "index": 0}]}),
        chunk({"content": "Yes"}),
        chunk(finish="stop"),
    ],
    "a call of a function, as of old": [
        chunk({"role": "assistant", "content": None, "function_call": {"name": "read", "arguments": ""}}),
        chunk({"function_call": {"arguments": '{"path": '}}),
        chunk({"function_call": {"arguments": '"a"}'}}),
        chunk(finish="function_call"),
    ],
    "audio": [
        chunk({"role": "assistant", "audio": {"id": "audio_1", "transcript": "He"}}),
        chunk({"audio": {"transcript": "llo", "data": "AAAA"}}),
        chunk({"audio": {"data": "BBBB"}}),
        chunk({"audio": {"expires_at": 1_767_225_600}}),
        chunk(finish="stop"),
    ],
    "usage with the last choice, and empty choices before": [
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "Hi"}),
        bare(obfuscation="xx"),
        chunk(finish="stop", usage=USAGE),
    ],
    "nothing but an end": [chunk({"role": "assistant"}), chunk(finish="content_filter")],
}

# OpenAI Responses


def responses(*items, status="completed", **end):
    """A response of items, each the item when done and the events that it grows by."""
    head = {
        "id": "resp_1", "object": "response", "created_at": 1, "status": "in_progress", "error": None,
        "incomplete_details": None, "instructions": "Be brief.", "metadata": {}, "model": "gpt-x", "output": [],
        "parallel_tool_calls": True, "temperature": 1.0, "tool_choice": "auto", "tools": [], "top_p": 1.0,
    }  # fmt: skip
    rows = [("response.created", {"response": head}), ("response.in_progress", {"response": head})]
    for place, (item, added, *grown) in enumerate(items):
        at = {"output_index": place}
        rows.append(("response.output_item.added", {**at, "item": {**item, **added}}))
        rows += [(f"response.{kind}", {"item_id": item.get("id"), **at, **data}) for kind, data in grown]
        rows.append(("response.output_item.done", {**at, "item": item}))
    usage = {"input_tokens": 9, "input_tokens_details": {"cached_tokens": 2}, "output_tokens": 4,
             "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 13}  # fmt: skip
    last = {**head, "status": status, "output": [item for item, *_ in items], "usage": usage, **end}
    rows.append((f"response.{status}", {"response": last}))
    return [{"type": kind, **data, "sequence_number": number} for number, (kind, data) in enumerate(rows)]


def said(text, *pieces, id="msg_1", **more):
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": [], **more}
    item = {"id": id, "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    at = {"content_index": 0}
    annotations = [
        ("output_text.annotation.added", {**at, "annotation_index": number, "annotation": annotation})
        for number, annotation in enumerate(part["annotations"])
    ]
    return (
        item, {"status": "in_progress", "content": []},
        ("content_part.added", {**at, "part": {**part, "text": "", "annotations": []}}),
        *(("output_text.delta", {**at, "delta": piece, "logprobs": []}) for piece in pieces), *annotations,
        ("output_text.done", {**at, "text": text, "logprobs": []}), ("content_part.done", {**at, "part": part}),
    )  # fmt: skip


def reasoned(*texts, id="rs_1", **more):
    """Reasoning with a part of its summary for each list of pieces."""
    parts = [{"type": "summary_text", "text": "".join(pieces)} for pieces in texts]
    item = {"id": id, "type": "reasoning", "summary": parts, **more}
    grown = []
    for number, (part, pieces) in enumerate(zip(parts, texts, strict=True)):
        at = {"summary_index": number}
        grown.append(("reasoning_summary_part.added", {**at, "part": {**part, "text": ""}}))
        grown += [("reasoning_summary_text.delta", {**at, "delta": piece}) for piece in pieces]
        grown.append(("reasoning_summary_text.done", {**at, "text": part["text"]}))
        grown.append(("reasoning_summary_part.done", {**at, "part": part}))
    return (item, {"summary": []}, *grown)


def called(name, *pieces, id="fc_1", call_id="call_1"):
    arguments = "".join(pieces)
    item = {"id": id, "type": "function_call", "call_id": call_id, "name": name, "arguments": arguments,
            "status": "completed"}  # fmt: skip
    deltas = [("function_call_arguments.delta", {"delta": piece}) for piece in pieces]
    done = ("function_call_arguments.done", {"name": name, "arguments": arguments})
    return (item, {"arguments": "", "status": "in_progress"}, *deltas, done)


PATCH = {"id": "ctc_1", "type": "custom_tool_call", "call_id": "call_9", "name": "apply_patch", "input": "*** Begin",
         "status": "completed"}  # fmt: skip
CODE = {"id": "ci_1", "type": "code_interpreter_call", "container_id": "c", "code": "1 + 1", "outputs": [],
        "status": "completed"}  # fmt: skip
REFUSED = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
           "content": [{"type": "refusal", "refusal": "I cannot."}]}  # fmt: skip
LINK = {"type": "url_citation", "start_index": 0, "end_index": 3, "title": "T", "url": "https://x"}

RESPONSES = {
    "text": responses(said("Hello \U0001f600\u2028", "Hel", "lo ", "\U0001f600", "\u2028")),
    "reasoning, text and two calls": responses(
        reasoned(("Let ", "me."), ("And ", "so"), encrypted_content="gAAA="),
        said("I look.", "I ", "look."),
        called("read", '{"path"', ': "a"}'),
        called("ls", "{}", id="fc_2", call_id="call_2"),
    ),
    "reasoning in full": responses(
        (
            {
                "id": "rs_1",
                "type": "reasoning",
                "summary": [],
                "content": [{"type": "reasoning_text", "text": "Let me."}],
            },
            {"content": []},
            ("reasoning_text.delta", {"content_index": 0, "delta": "Let "}),
            ("reasoning_text.delta", {"content_index": 0, "delta": "me."}),
            ("reasoning_text.done", {"content_index": 0, "text": "Let me."}),
        )
    ),
    "custom tools": responses(
        (
            PATCH,
            {"input": "", "status": "in_progress"},
            ("custom_tool_call_input.delta", {"delta": "*** "}),
            ("custom_tool_call_input.delta", {"delta": "Begin"}),
            ("custom_tool_call_input.done", {"input": "*** Begin"}),
        )
    ),
    "annotations": responses(said("The sky", "The ", "sky", annotations=[LINK, LINK])),
    "a refusal": responses(
        (
            REFUSED,
            {"content": [], "status": "in_progress"},
            ("content_part.added", {"content_index": 0, "part": {"type": "refusal", "refusal": ""}}),
            ("refusal.delta", {"content_index": 0, "delta": "I "}),
            ("refusal.delta", {"content_index": 0, "delta": "cannot."}),
            ("refusal.done", {"content_index": 0, "refusal": "I cannot."}),
        )
    ),
    "hosted tools": responses(
        (
            {
                "id": "ws_1",
                "type": "web_search_call",
                "status": "completed",
                "action": {"type": "search", "query": "q"},
            },
            {"status": "in_progress"},
            ("web_search_call.in_progress", {}),
            ("web_search_call.searching", {}),
            ("web_search_call.completed", {}),
        ),
        (
            CODE,
            {"code": "", "status": "in_progress"},
            ("code_interpreter_call_code.delta", {"delta": "1 + "}),
            ("code_interpreter_call_code.delta", {"delta": "1"}),
            ("code_interpreter_call_code.done", {"code": "1 + 1"}),
            ("code_interpreter_call.completed", {}),
        ),
        said("2", "2"),
    ),
    "events that nobody knows": [
        *responses(said("Hi", "Hi"))[:-1],
        {"type": "response.something.delta", "delta": "x", "output_index": 0, "sequence_number": 90},
        responses(said("Hi", "Hi"))[-1],
    ],
    "incomplete": responses(
        said("Half", "Half"), status="incomplete", incomplete_details={"reason": "max_output_tokens"}
    ),
    "failed": responses(said("Half", "Half"), status="failed", error={"code": "server_error", "message": "It failed."}),
    "an end without output": [
        *responses(called("read", "{}"), said("Hi", "Hi"))[:-1],
        {
            **(last := responses()[-1]),
            "response": {key: value for key, value in last["response"].items() if key != "output"},
        },
    ],
    "nothing": responses(),
}

# Gemini


def candidate(*parts, finish=None, index=0, **more):
    held = {"content": {"role": "model", "parts": list(parts)}, "index": index, **more}
    return {**held, "finishReason": finish} if finish else held


def response(*candidates, completion=None, **more):
    usage = {"promptTokenCount": 7, "totalTokenCount": 7 + (completion or 0)}
    if completion is not None:
        usage["candidatesTokenCount"] = completion
    head = {"usageMetadata": usage, "modelVersion": "gemini-x", "responseId": "r1"}
    return {**({"candidates": list(candidates)} if candidates else {}), **head, **more}


def function(name, signature=None, **args):
    part = {"functionCall": {"name": name, "args": args}}
    return {**part, "thoughtSignature": signature} if signature else part


GEMINI = {
    "text": [
        response(candidate({"text": "Hel"})),
        response(candidate({"text": "lo \U0001f600\u2028"})),
        response(candidate({"text": ""}, finish="STOP"), completion=3),
    ],
    "thoughts, then text": [
        response(candidate({"text": "Let ", "thought": True})),
        response(candidate({"text": "me.", "thought": True})),
        response(candidate({"text": "Yes", "thoughtSignature": "c2ln"})),
        response(candidate({"text": "."})),
        response(
            candidate({"text": ""}, finish="STOP"),
            completion=3,
            usageMetadata={"promptTokenCount": 7, "candidatesTokenCount": 3, "thoughtsTokenCount": 50},
        ),
    ],
    "a signature alone at the end": [
        response(candidate({"text": "So "})),
        response(candidate({"text": "it is."})),
        response(candidate({"text": "", "thoughtSignature": "c2ln"}, finish="STOP"), completion=2),
    ],
    "parallel calls": [
        response(candidate(function("read", "c2ln", path="a"), function("read", path="b"))),
        response(
            candidate(
                {"functionCall": {"id": "f3", "name": "ls", "args": {"n": 1.5, "deep": {"x": [None]}}}}, finish="STOP"
            ),
            completion=9,
        ),
    ],
    "two candidates": [
        response(candidate({"text": "He"}), candidate({"text": "Ho"}, index=1)),
        response(candidate({"text": "la"}, index=1, finish="MAX_TOKENS")),
        response(candidate({"text": "llo"}, finish="STOP"), completion=4),
    ],
    "code that ran": [
        response(candidate({"text": "I run it."})),
        response(candidate({"executableCode": {"language": "PYTHON", "code": "1 + 1"}})),
        response(candidate({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}})),
        response(candidate({"text": "2"}, finish="STOP", groundingMetadata={"webSearchQueries": ["q"]}), completion=9),
    ],
    "citations": [
        response(candidate({"text": "a"}, citationMetadata={"citations": [{"uri": "https://x", "endIndex": 1}]})),
        response(candidate({"text": "b"}, citationMetadata={"citations": [{"uri": "https://y", "endIndex": 2}]})),
        response(candidate({"text": "c"}, finish="STOP")),
    ],
    "a blocked prompt": [response(promptFeedback={"blockReason": "SAFETY"})],
    "an end without content": [
        response(candidate({"text": "Hi"})),
        response({"index": 0, "finishReason": "SAFETY"}, completion=1),
    ],
}

STREAMS = {"anthropic": ANTHROPIC, "openai-chat": CHAT, "openai-responses": RESPONSES, "gemini": GEMINI}
WIRES = {
    "anthropic": AnthropicWire(), "openai-chat": OpenAIChatWire(), "openai-responses": OpenAIResponsesWire(),
    "gemini": GeminiWire(),
}  # fmt: skip
NAMED = ("anthropic", "openai-responses")


def scripted(format):
    """The streams of the scripted provider, each with the body it sends where nothing is streamed."""
    body = {"stream_options": {"include_usage": True}}
    received = ReceivedRequest(1, format, body=body, model="m")
    calls = [("read", {"path": "a.py", "deep": {"list": [1, "ö"]}}), ("ls", {})]
    for answer in (
        ScriptedReply("Hello there, this is a text of several words."),
        ScriptedReply("I look.", calls),
        ScriptedReply("", calls[:1]),
        ScriptedReply("Cut", stop="length"),
    ):
        turn = WireTurn(replace(received, number=1), answer, 100, 20)
        yield [data for _, data in WIRES[format].events(turn)], WIRES[format].reply(turn)


CASES = [
    *((format, name, events) for format, streams in STREAMS.items() for name, events in streams.items()),
    *((format, f"scripted {at}", events) for format in STREAMS for at, (events, _) in enumerate(scripted(format))),
]
IDS = [f"{format}, {name}" for format, name, _ in CASES]


def encoded(format, events, line="\n", *, bom=False, comments=False, done=True, spread=False):
    """Events as the bytes of a stream; `spread` writes the JSON of each over several lines of data."""
    out = ["\ufeff"] if bom else []
    for event in events:
        if comments:
            out += [": keep-alive", line, line]
        if format in NAMED:
            out += [f"event: {event['type']}", line]
        text = json.dumps(event, ensure_ascii=False, indent=1 if spread else None)
        out += [f"data: {row}{line}" for row in text.split("\n")]
        out.append(line)
    if done and format == "openai-chat":
        out += ["data: [DONE]", line, line]
    return "".join(out).encode()
