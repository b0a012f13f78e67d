"""Requests of the Amazon Bedrock Converse API, one or more for each documented feature.

Bytes are written as base64, as they are on the wire.
"""

from __future__ import annotations

from typing import Any

from tests.healthy import Feature

__all__ = ["EVERYTHING", "FEATURES"]

DOCS = "https://docs.aws.amazon.com/bedrock/latest"
SONNET = "anthropic.claude-sonnet-4-5-20250929-v1:0"  # manual thinking
OPUS = "anthropic.claude-opus-4-8"  # adaptive thinking, system messages in the middle of the list
NOVA = "amazon.nova-2-lite-v1:0"

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAIAAAASFvFNAAAADElEQVR4nGNgIAkAAAAmAAEzwzTfAAAAAElFTkSuQmCC"
PDF = "JVBERi0xLjQKJeLjz9MKdHJhaWxlcgo8PC9Sb290IDEgMCBSPj4KJSVFT0YK"
MP4 = "AAAAGGZ0eXBpc29tAAACAGlzb21pc28yAAAACGZyZWU="
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAgD4AAAB9AAACABAAZGF0YQAAAAA="
SIGNATURE = "EqQBCgIYAhIkc2lnbmF0dXJlIG9mIHRoaW5raW5nLCBmaXJzdA=="
MORE = "EqQBCgIYAhIkc2lnbmF0dXJlIG9mIHRoaW5raW5nLCBzZWNvbmQ="
POINT = {"cachePoint": {"type": "default"}}
THINKS = {"thinking": {"type": "enabled", "budget_tokens": 4096}}
ADAPTS = {"thinking": {"type": "adaptive"}}


def _feature(name: str, page: str, *messages: dict[str, Any], model: str = SONNET, **rest: Any) -> Feature:
    page = page if "/" in page else f"userguide/{page}"
    return Feature(name, f"{DOCS}/{page}.html", model, {"modelId": model, "messages": list(messages), **rest})


def _user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": [_block(each) for each in content]}


def _assistant(*content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": [_block(each) for each in content]}


def _block(content: Any) -> dict[str, Any]:
    return {"text": content} if isinstance(content, str) else content


def _thinking(text: str = "Perhaps a connection leaks.", signature: str = SIGNATURE) -> dict[str, Any]:
    return {"reasoningContent": {"reasoningText": {"text": text, "signature": signature}}}


def _use(id: str, name: str, **given: Any) -> dict[str, Any]:
    return {"toolUse": {"toolUseId": f"tooluse_{id}", "name": name, "input": given}}


def _result(id: str, *content: Any, **rest: Any) -> dict[str, Any]:
    return {"toolResult": {"toolUseId": f"tooluse_{id}", "content": [_block(each) for each in content], **rest}}


def _spec(name: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    return {"toolSpec": {"name": name, "description": f"Runs {name}.", "inputSchema": {"json": schema}}}


def _tools(*names: str, rest: tuple[Any, ...] = (), **options: Any) -> dict[str, Any]:
    return {"tools": [*map(_spec, names), *rest], **options}


def _picture(**source: Any) -> dict[str, Any]:
    return {"image": {"format": "png", "source": source or {"bytes": PNG}}}


def _document(name: str, source: dict[str, Any], **rest: Any) -> dict[str, Any]:
    return {"document": {"format": "pdf", "name": name, "source": source, **rest}}


def _s3(name: str) -> dict[str, Any]:
    return {"s3Location": {"uri": f"s3://amzn-s3-demo-bucket/{name}", "bucketOwner": "111122223333"}}


def _searched(**rest: Any) -> dict[str, Any]:
    content = [{"text": "The pool holds at most 40 connections."}]
    return {
        "searchResult": {"source": "https://docs.example.com/limits", "title": "Limits", "content": content, **rest}
    }


READ = _tools("read_file")

TALK = (
    _feature(
        "system-prompt-and-settings",
        "conversation-inference-call",
        _user("Which planet is the largest?"),
        _assistant("Jupiter."),
        _user("And the smallest?"),
        system=[{"text": "Be brief."}],
        inferenceConfig={"maxTokens": 1024, "temperature": 0.2, "topP": 0.9, "stopSequences": ["###"]},
        performanceConfig={"latency": "standard"},
        requestMetadata={"team": "search"},
        additionalModelRequestFields={"top_k": 40},
    ),
    _feature(
        "cache-points",
        "prompt-caching",
        _user("What does the guide say?", POINT),
        _assistant(_use("01A", "read_file", path="guide.md")),
        _user(_result("01A", "Never on a Friday."), {"cachePoint": {"type": "default", "ttl": "5m"}}),
        system=[{"text": "Answer from the guide."}, {"cachePoint": {"type": "default", "ttl": "1h"}}],
        toolConfig=_tools("read_file", rest=({"cachePoint": {"type": "default", "ttl": "1h"}},)),
    ),
    _feature(
        "guarded-content",
        "guardrails-use-converse-api",
        _user(
            "Is this a good offer?",
            {"guardContent": {"text": {"text": "Buy now, pay never.", "qualifiers": ["query", "guard_content"]}}},
            {"guardContent": {"image": {"format": "png", "source": {"bytes": PNG}}}},
        ),
        _assistant("It is none."),
        _user("Why?"),
        system=[{"text": "Judge offers."}, {"guardContent": {"text": {"text": "No advice on loans."}}}],
        guardrailConfig={"guardrailIdentifier": "gr1234567890", "guardrailVersion": "1", "trace": "enabled"},
    ),
    _feature(
        "system-message-in-the-middle",
        "APIReference/API_runtime_Message",
        _user("Hello."),
        _assistant("Hello."),
        _user("List the open orders."),
        {"role": "system", "content": [{"text": "From now on answer in JSON."}]},
        model=OPUS,
    ),
    _feature(
        "structured-output",
        "structured-output",
        _user("Name a planet."),
        outputConfig={
            "textFormat": {
                "type": "json_schema",
                "structure": {"jsonSchema": {"schema": '{"type": "object"}', "name": "planet"}},
            }
        },
    ),
)

THINKING = (
    _feature(
        "thinking-in-a-tool-loop",
        "claude-messages-extended-thinking",
        _user("Fix the failing test."),
        _assistant(_thinking(), "I look at the pool.", _use("10A", "read_file", path="pool.py")),
        _user(_result("10A", "class Pool: ...")),
        toolConfig=READ,
        additionalModelRequestFields=THINKS,
    ),
    _feature(
        "redacted-thinking",
        "claude-messages-extended-thinking",
        _user("Fix the failing test."),
        _assistant(
            {"reasoningContent": {"redactedContent": "RW13S0FoZ0JFZ3kzdmEzcHppeC9MYWZQc240YQ=="}},
            _use("11A", "read_file", path="pool.py"),
        ),
        _user(_result("11A", "class Pool: ...")),
        toolConfig=READ,
        additionalModelRequestFields=THINKS,
    ),
    _feature(
        "thinking-behind-words",
        "claude-messages-adaptive-thinking",
        _user("Fix the failing test."),
        _assistant("I look at the pool first.", _thinking(), _use("12A", "read_file", path="pool.py")),
        _user(_result("12A", "class Pool: ...")),
        _assistant("Now its test.", _thinking("Two are open.", MORE), _use("12B", "read_file", path="test.py")),
        _user(_result("12B", "def test_pool(): ...")),
        model=OPUS,
        toolConfig=READ,
        additionalModelRequestFields=ADAPTS,
    ),
    _feature(
        "thinking-whose-text-is-omitted",
        "claude-messages-adaptive-thinking",
        _user("Fix the failing test."),
        _assistant(_thinking(""), _use("13A", "read_file", path="pool.py")),
        _user(_result("13A", "class Pool: ...")),
        model=OPUS,
        toolConfig=READ,
        additionalModelRequestFields=ADAPTS,
    ),
    _feature(
        "reasoning-without-a-signature",
        "inference-reasoning",
        _user("Which planet is the largest?"),
        _assistant({"reasoningContent": {"reasoningText": {"text": "The gas giants first."}}}, "Jupiter."),
        _user("And the smallest?"),
        model="us.deepseek.r1-v1:0",
    ),
)

TOOLS = (
    _feature(
        "parallel-calls",
        "tool-use-inference-call",
        _user("Compare both files."),
        _assistant("Both.", _use("20A", "read_file", path="a.py"), _use("20B", "read_file", path="b.py")),
        _user(_result("20B", "b = 2"), _result("20A", "a = 1"), "Mind the names."),
        toolConfig=_tools("read_file", toolChoice={"auto": {}}),
    ),
    _feature(
        "results-behind-words",
        "tool-use-inference-call",
        _user("Read it."),
        _assistant(_use("21A", "read_file", path="a.py")),
        _user(_result("21A", "a = 1", status="success"), POINT, "And then?"),
        toolConfig=READ,
    ),
    _feature(
        "results-of-every-kind",
        "tool-use-inference-call",
        _user("Look at all of it."),
        _assistant(*(_use(f"22{id}", "read_file", path=id) for id in "ABCDEFG")),
        _user(
            _result("22A", {"json": {"rows": [1, 2], "next": None}}),
            _result("22B", "no such file", status="error"),
            _result("22C", "A picture:", _picture(), _picture(**_s3("page.png"))),
            _result("22D", _document("Manual", {"bytes": PDF}), _document("Notes", {"text": "Page one."})),
            _result("22E", {"video": {"format": "mp4", "source": _s3("clip.mp4")}}),
            _result("22F", _searched(citations={"enabled": True})),
            _result("22G"),
        ),
        toolConfig=READ,
    ),
    _feature(
        "system-tool",
        "nova2-userguide/web-grounding",
        _user("Who won yesterday?"),
        _assistant(
            {
                "toolUse": {
                    "toolUseId": "tooluse_23A",
                    "name": "nova_grounding",
                    "input": {"query": "yesterday's winner"},
                    "type": "server_tool_use",
                }
            },
            {
                "toolResult": {
                    "toolUseId": "tooluse_23A",
                    "content": [{"text": "[HIDDEN]"}],
                    "status": "success",
                    "type": "nova_grounding_result",
                }
            },
            {
                "citationsContent": {
                    "content": [{"text": "Turin won."}],
                    "citations": [{"location": {"web": {"url": "https://example.com/1", "domain": "example.com"}}}],
                }
            },
        ),
        _user("By how much?"),
        model=NOVA,
        toolConfig={"tools": [{"systemTool": {"name": "nova_grounding"}}]},
    ),
    _feature(
        "system-tool-code-interpreter",
        "nova2-userguide/code-interpreter",
        _user("How many rows are there?"),
        _assistant(
            {
                "toolUse": {
                    "toolUseId": "tooluse_24A",
                    "name": "nova_code_interpreter",
                    "input": {"snippet": "print(len(rows))"},
                    "type": "server_tool_use",
                }
            },
            {
                "toolResult": {
                    "toolUseId": "tooluse_24A",
                    "content": [{"json": {"stdOut": "17", "stdErr": "", "exitCode": 0, "isError": False}}],
                    "status": "success",
                    "type": "nova_code_interpreter_result",
                }
            },
            {"text": "There are 17 rows."},
        ),
        _user("And columns?"),
        model=NOVA,
        toolConfig={"tools": [{"systemTool": {"name": "nova_code_interpreter"}}]},
    ),
    _feature(
        "tools-added-and-removed-in-the-middle",
        "APIReference/API_runtime_ContentBlock",
        _user("Find customer 7."),
        {
            "role": "system",
            "content": [
                {"toolAddition": {"tool": {"type": "tool_reference", "name": "crm_get"}}},
                {"toolRemoval": {"tool": {"type": "tool_reference", "name": "read_file"}}},
            ],
        },
        _assistant(_use("24A", "crm_get", path="7")),
        _user(_result("24A", "Ada")),
        model=OPUS,
        toolConfig=_tools("read_file", "crm_get"),
    ),
)

CONTENT = (
    _feature(
        "pictures-by-bytes-and-place",
        "conversation-inference-call",
        _user("What differs?", _picture(), _picture(**_s3("ant.png"))),
        _assistant("The legs."),
        _user("How many?"),
        model=NOVA,
    ),
    _feature(
        "documents-of-every-source",
        "conversation-inference-call",
        _user(
            "What do they say?",
            _document("Manual", {"bytes": PDF}, context="Of 2026."),
            _document("Guide", _s3("guide.pdf")),
            {"document": {"format": "txt", "name": "Notes", "source": {"text": "The grass is green."}}},
            {"document": {"name": "Chunks", "source": {"content": [{"text": "Chunk one."}, {"text": "Chunk two."}]}}},
        ),
    ),
    _feature(
        "videos-and-recordings",
        "conversation-inference-call",
        _user(
            "What happens?",
            {"video": {"format": "mp4", "source": {"bytes": MP4}}},
            {"video": {"format": "three_gp", "source": _s3("clip.3gp")}},
            {"audio": {"format": "wav", "source": {"bytes": WAV}}},
        ),
        _assistant("A door shuts."),
        _user("When?"),
        model=NOVA,
    ),
    _feature(
        "citations-of-documents",
        "APIReference/API_runtime_CitationsContentBlock",
        _user(
            {
                "document": {
                    "format": "txt",
                    "name": "Colors",
                    "source": {"text": "The grass is green."},
                    "citations": {"enabled": True},
                }
            },
            "Which color is the grass?",
        ),
        _assistant(
            "By the document, ",
            {
                "citationsContent": {
                    "content": [{"text": "the grass is green"}],
                    "citations": [
                        {
                            "title": "Colors",
                            "sourceContent": [{"text": "The grass is green."}],
                            "location": {"documentChar": {"documentIndex": 0, "start": 0, "end": 19}},
                        },
                        {"title": "Colors", "location": {"documentPage": {"documentIndex": 0, "start": 1, "end": 2}}},
                        {"title": "Colors", "location": {"documentChunk": {"documentIndex": 0, "start": 0, "end": 1}}},
                    ],
                }
            },
            ".",
        ),
        _user("And the sky?"),
    ),
    _feature(
        "search-results-and-their-citations",
        "APIReference/API_runtime_SearchResultBlock",
        _user(_searched(citations={"enabled": True}), "How many connections may the pool hold?"),
        _assistant(
            {
                "citationsContent": {
                    "content": [{"text": "Forty."}],
                    "citations": [
                        {
                            "title": "Limits",
                            "source": "https://docs.example.com/limits",
                            "sourceContent": [{"text": "The pool holds at most 40 connections."}],
                            "location": {"searchResultLocation": {"searchResultIndex": 0, "start": 0, "end": 1}},
                        }
                    ],
                }
            }
        ),
        _user("Since when?"),
    ),
)

FEATURES = (*TALK, *THINKING, *TOOLS, *CONTENT)

# What cannot be combined: thinking that another model signed, cache points beyond four.
APART = frozenset({"cache-points", "thinking-in-a-tool-loop", "redacted-thinking", "reasoning-without-a-signature"})


def _together() -> dict[str, Any]:
    """Return one body with all that can be combined: every conversation in turn."""
    bodies = [feature.body for feature in FEATURES if feature.name not in APART]
    messages: list[dict[str, Any]] = []
    tools: dict[str, Any] = {}
    for body in bodies:
        if messages and messages[-1]["role"] != "assistant":
            messages.append(_assistant("Yes."))
        messages += body["messages"]
        for tool in body.get("toolConfig", {}).get("tools", ()):
            tools.setdefault(next(iter(tool.values()))["name"], tool)
    return {
        "modelId": OPUS,
        "messages": messages,
        "system": [{"text": "Be brief."}, POINT],
        "toolConfig": {"tools": [*tools.values(), POINT]},
        "inferenceConfig": {"maxTokens": 4096},
        "additionalModelRequestFields": ADAPTS,
    }


EVERYTHING = _together()
