"""Requests of the Anthropic Messages API, one or more for each documented feature, beta features included."""

from __future__ import annotations

from typing import Any

from tests.healthy import Feature

__all__ = ["EVERYTHING", "FEATURES"]

DOCS = "https://platform.claude.com/docs/en"
OPUS = "claude-opus-4-8"
SONNET = "claude-sonnet-4-5-20250929"  # manual thinking, and answers that a client begins
FABLE = "claude-fable-5-1"  # binds each thinking block to what stands before it

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAIAAAASFvFNAAAADElEQVR4nGNgIAkAAAAmAAEzwzTfAAAAAElFTkSuQmCC"
PDF = "JVBERi0xLjQKJeLjz9MKdHJhaWxlcgo8PC9Sb290IDEgMCBSPj4KJSVFT0YK"
FILE = "file_011CNha8iCJcU1wXNR6q4V8w"
SIGNATURE = "EqQBCgIYAhIkc2lnbmF0dXJlIG9mIHRoaW5raW5nLCBmaXJzdA=="
MORE = "EqQBCgIYAhIkc2lnbmF0dXJlIG9mIHRoaW5raW5nLCBzZWNvbmQ="
MARK = {"type": "ephemeral"}
SUMMARY = "The parser was ported to the new grammar; the service listens on port 8443. The tests are next."


def _body(*messages: dict[str, Any], model: str = OPUS, **rest: Any) -> dict[str, Any]:
    return {"model": model, "max_tokens": 16_000, "messages": list(messages), **rest}


def _feature(name: str, page: str, *messages: dict[str, Any], model: str = OPUS, **rest: Any) -> Feature:
    return Feature(name, f"{DOCS}/{page}", model, _body(*messages, model=model, **rest))


def _user(*content: Any) -> dict[str, Any]:
    if len(content) == 1 and isinstance(content[0], str):
        return {"role": "user", "content": content[0]}
    return {"role": "user", "content": [_block(each) for each in content]}


def _assistant(*content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": [_block(each) for each in content]}


def _system(*content: Any, **rest: Any) -> dict[str, Any]:
    if len(content) == 1 and isinstance(content[0], str):
        return {"role": "system", "content": content[0], **rest}
    return {"role": "system", "content": [_block(each) for each in content], **rest}


def _block(content: Any) -> dict[str, Any]:
    return {"type": "text", "text": content} if isinstance(content, str) else content


def _thinking(text: str = "Perhaps a connection leaks.", signature: str = SIGNATURE) -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, "signature": signature}


def _use(id: str, name: str, *, rest: dict[str, Any] | None = None, **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{id}", "name": name, "input": given, **(rest or {})}


def _result(id: str, content: Any = None, **rest: Any) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": f"toolu_{id}"}
    return {**block, **({} if content is None else {"content": content}), **rest}


def _served(id: str, name: str, *, rest: dict[str, Any] | None = None, **given: Any) -> dict[str, Any]:
    return {"type": "server_tool_use", "id": f"srvtoolu_{id}", "name": name, "input": given, **(rest or {})}


def _answered(id: str, kind: str, content: Any, **rest: Any) -> dict[str, Any]:
    return {"type": f"{kind}_tool_result", "tool_use_id": f"srvtoolu_{id}", "content": content, **rest}


def _tool(name: str, **rest: Any) -> dict[str, Any]:
    properties = {"path": {"type": "string", "description": "Which one."}}
    schema = {"type": "object", "properties": properties, "required": ["path"]}
    return {"name": name, "description": f"Runs {name}.", "input_schema": schema, **rest}


def _reference(name: str) -> dict[str, Any]:
    return {"type": "tool_reference", "tool_name": name}


def _found(title: str, url: str) -> dict[str, Any]:
    return {
        "type": "web_search_result",
        "title": title,
        "url": url,
        "encrypted_content": "EpMBCioIARgBIiQ3YTAwMjY1Mi1mZjM5LTQ1NGUtODgxNC1kNjNjNTk1ZWI3Y",
        "page_age": "April 30, 2026",
    }


def _png(**rest: Any) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}, **rest}


def _search_result(**rest: Any) -> dict[str, Any]:
    return {
        "type": "search_result",
        "source": "https://docs.example.com/limits",
        "title": "Limits",
        "content": [{"type": "text", "text": "The pool holds at most 40 connections."}],
        **rest,
    }


READ = _tool("read_file")
SEARCH = {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}
CODE = {"type": "code_execution_20250825", "name": "code_execution"}
CITED = {"citations": {"enabled": True}}

THINKING = (
    _feature(
        "adaptive-thinking-after-text",
        "build-with-claude/adaptive-thinking",
        _user("Fix the failing test."),
        _assistant("I look at the pool first.", _thinking(), _use("01A", "read_file", path="pool.py")),
        _user(_result("01A", "class Pool: ...")),
        thinking={"type": "adaptive"},
        tools=[READ],
    ),
    _feature(
        "thinking-between-calls",
        "build-with-claude/adaptive-thinking",
        _user("Fix the failing test."),
        _assistant(_thinking(), _use("02A", "read_file", path="pool.py")),
        _user(_result("02A", "class Pool: ...")),
        _assistant("Now its test.", _thinking("The test opens two.", MORE), _use("02B", "read_file", path="test.py")),
        _user(_result("02B", "def test_pool(): ...")),
        _assistant(_thinking("That is all.", SIGNATURE), "The pool leaks a connection."),
        _user("Fix it."),
        thinking={"type": "adaptive", "display": "summarized"},
        output_config={"effort": "high"},
        tools=[READ],
    ),
    _feature(
        "manual-thinking-in-a-tool-loop",
        "build-with-claude/extended-thinking",
        _user("Fix the failing test."),
        _assistant(_thinking(), "I look at the pool.", _use("03A", "read_file", path="pool.py")),
        _user(_result("03A", "class Pool: ...")),
        model=SONNET,
        thinking={"type": "enabled", "budget_tokens": 4096},
        tools=[READ],
    ),
    _feature(
        "redacted-thinking",
        "build-with-claude/extended-thinking",
        _user("Fix the failing test."),
        _assistant(
            _thinking(),
            {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix/LafPsn4aDFIT2Xlxh0L5L8rLVyIwxtE3rAFBa8cr3qpP"},
            _use("04A", "read_file", path="pool.py"),
        ),
        _user(_result("04A", "class Pool: ...")),
        model=SONNET,
        thinking={"type": "enabled", "budget_tokens": 4096},
        tools=[READ],
    ),
    _feature(
        "thinking-whose-text-is-omitted",
        "build-with-claude/adaptive-thinking",
        _user("Fix the failing test."),
        _assistant(_thinking(""), _use("05A", "read_file", path="pool.py")),
        _user(_result("05A", "class Pool: ...")),
        thinking={"type": "adaptive", "display": "omitted"},
        tools=[READ],
    ),
    _feature(
        "thinking-bound-to-its-prefix",
        "build-with-claude/preserved-thinking",
        _user("Fix the failing test."),
        _assistant(_thinking(), _use("06A", "read_file", path="pool.py")),
        _user(_result("06A", "class Pool: ...")),
        _assistant(_thinking("So it leaks.", MORE), "It leaks."),
        _user("Fix it."),
        model=FABLE,
        thinking={"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}},
        tools=[READ],
    ),
    _feature(
        "effort-set-for-one-turn",
        "build-with-claude/effort",
        _user("List the open orders."),
        _assistant("There are four."),
        _user("Why so few?"),
        {"role": "system", "content": [], "output_config": {"effort": "max"}},
        thinking={"type": "adaptive"},
    ),
)

TALK = (
    _feature(
        "strings-as-content",
        "build-with-claude/working-with-messages",
        _user("Hello."),
        {"role": "assistant", "content": "Hello. How can I help?"},
        _user("Which planet is the largest?"),
        system="Be brief.",
    ),
    _feature(
        "consecutive-messages-of-one-role",
        "build-with-claude/working-with-messages",
        _user("Hello."),
        _user("Are you there?"),
        _assistant("Hello."),
        _assistant("I am."),
        _user("Which planet is the largest?"),
    ),
    _feature(
        "answer-begun-by-the-client",
        "build-with-claude/working-with-messages",
        _user("What is the Greek name of the sun? (A) Sol (B) Helios"),
        {"role": "assistant", "content": "The best answer is ("},
        model=SONNET,
    ),
    _feature(
        "answer-as-the-sdk-dumps-it",
        "build-with-claude/working-with-messages",
        _user("Which planet is the largest?"),
        _assistant({"type": "text", "text": "Jupiter.", "citations": None}),
        _user("And the smallest?"),
        metadata={"user_id": "u-1"},
        stop_sequences=["###"],
        stream=True,
        service_tier="auto",
    ),
    _feature(
        "structured-output",
        "build-with-claude/structured-outputs",
        _user("Name a planet."),
        output_config={
            "format": {
                "type": "json_schema",
                "schema": {"type": "object", "properties": {"name": {"type": "string"}}, "additionalProperties": False},
            },
            "task_budget": {"type": "tokens", "total": 50_000},
        },
    ),
    _feature(
        "system-message-in-the-middle",
        "build-with-claude/mid-conversation-system-messages",
        _user("Hello."),
        _assistant("Hello."),
        _user("List the open orders."),
        _system("From now on answer in JSON."),
        thinking={"type": "adaptive"},
    ),
    _feature(
        "system-message-within-a-tool-loop",
        "build-with-claude/mid-conversation-system-messages",
        _user("Fix the failing test."),
        _assistant(_use("07A", "read_file", path="pool.py")),
        _user(_result("07A", "class Pool: ...")),
        _system("The file was changed meanwhile: read it again.", clear_at="next_user_message"),
        _assistant(_use("07B", "read_file", path="pool.py")),
        _user(_result("07B", "class Pool: pass")),
        tools=[READ],
    ),
    _feature(
        "fallback-to-another-model",
        "build-with-claude/refusals-and-fallback",
        _user("Explain this stack trace."),
        _assistant(
            "The trace shows",
            {"type": "fallback", "from": {"model": "claude-fable-5-1"}, "to": {"model": OPUS}},
            "a missing key.",
        ),
        _user("Where is it read?"),
        fallbacks=[{"model": OPUS}],
        model="claude-fable-5-1",
    ),
)

TOOLS = (
    _feature(
        "parallel-calls",
        "agents-and-tools/tool-use/parallel-tool-use",
        _user("Compare both files."),
        _assistant("Both.", _use("10A", "read_file", path="a.py"), _use("10B", "read_file", path="b.py")),
        _user(_result("10B", "b = 2"), _result("10A", "a = 1"), "Mind the names."),
        tools=[READ],
        tool_choice={"type": "auto", "disable_parallel_tool_use": False},
    ),
    _feature(
        "failed-and-empty-results",
        "agents-and-tools/tool-use/handle-tool-calls",
        _user("Read all three."),
        _assistant(*(_use(f"11{id}", "read_file", path=f"{id}.py") for id in "ABC")),
        _user(_result("11A", "no such file", is_error=True), _result("11B"), _result("11C", [])),
        tools=[READ],
    ),
    _feature(
        "results-with-pictures-documents-and-search-results",
        "agents-and-tools/tool-use/handle-tool-calls",
        _user("Look at the page."),
        _assistant(_use("12A", "read_file", path="page")),
        _user(
            _result(
                "12A",
                [
                    {"type": "text", "text": "The page, its picture and its manual."},
                    _png(),
                    {"type": "image", "source": {"type": "url", "url": "https://example.com/page.png"}},
                    {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF}},
                    {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Page one."}},
                ],
            )
        ),
        _assistant(_use("12B", "read_file", path="limits")),
        _user(_result("12B", [_search_result(**CITED)])),
        tools=[READ],
    ),
    _feature(
        "computer-use",
        "agents-and-tools/tool-use/computer-use-tool",
        _user("Open the settings."),
        _assistant(_use("13A", "computer", action="screenshot")),
        _user(_result("13A", [_png()])),
        _assistant(_use("13B", "computer", action="left_click", coordinate=[120, 40])),
        _user(_result("13B", [{"type": "text", "text": "Clicked."}, _png()])),
        tools=[{"type": "computer_20251124", "name": "computer", "display_width_px": 1280, "display_height_px": 800}],
    ),
    _feature(
        "browser-toolset",
        "agents-and-tools/tool-use/browser-toolset",
        _user("Open the status page."),
        _assistant(_use("14A", "list_tabs", rest={"toolset_name": "browser"})),
        _user(
            _result(
                "14A",
                [
                    {"type": "text", "text": "One tab."},
                    {
                        "type": "browser_state",
                        "tabs": [{"tab_id": "1", "title": "Status", "url": "https://example.com", "active": True}],
                        "state_changes": [{"type": "tab_opened", "tab_id": "1"}],
                    },
                ],
                toolset_name="browser",
            )
        ),
        tools=[{"type": "browser_toolset_20260801"}],
    ),
    _feature(
        "bash-and-text-editor",
        "agents-and-tools/tool-use/bash-tool",
        _user("Run the tests."),
        _assistant(_use("15A", "bash", command="make test")),
        _user(_result("15A", "2 failed")),
        _assistant(_use("15B", "str_replace_based_edit_tool", command="view", path="/src/pool.py")),
        _user(_result("15B", "1: class Pool")),
        tools=[
            {"type": "bash_20250124", "name": "bash"},
            {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool", "max_characters": 10_000},
        ],
    ),
    _feature(
        "memory-tool",
        "agents-and-tools/tool-use/memory-tool",
        _user("Go on with yesterday's work."),
        _assistant("I look into my memory.", _use("16A", "memory", command="view", path="/memories")),
        _user(_result("16A", "Directory: /memories\n- /memories/progress.md")),
        _assistant(_use("16B", "memory", command="view", path="/memories/progress.md")),
        _user(_result("16B", "The parser is ported.")),
        tools=[{"type": "memory_20250818", "name": "memory"}],
        context_management={"edits": [{"type": "clear_tool_uses_20250919", "exclude_tools": ["memory"]}]},
    ),
    _feature(
        "deferred-tools-that-a-client-loads",
        "agents-and-tools/tool-use/tool-search-tool",
        _user("Find customer 7 and her orders."),
        _assistant(_use("17A", "find_tools", path="crm orders")),
        _user(_result("17A", [_reference("crm_get"), _reference("orders_list")])),
        _assistant(_use("17B", "crm_get", path="7")),
        _user(_result("17B", "Ada")),
        tools=[
            _tool("find_tools"),
            *(_tool(name, defer_loading=True) for name in ("crm_get", "orders_list", "crm_put", "orders_cancel")),
        ],
    ),
    _feature(
        "hosted-tool-search",
        "agents-and-tools/tool-use/tool-search-tool",
        _user("Find customer 7."),
        _assistant(
            "I look for a tool.",
            _served("18A", "tool_search_tool_regex", query="crm"),
            _answered(
                "18A",
                "tool_search",
                {
                    "type": "tool_search_tool_search_result",
                    "tool_references": [_reference("crm_get"), _reference("crm_put")],
                },
            ),
            _use("18B", "crm_get", path="7"),
        ),
        _user(_result("18B", "Ada")),
        tools=[SEARCH, _tool("crm_get", defer_loading=True), _tool("crm_put", defer_loading=True)],
    ),
    _feature(
        "hosted-tool-search-that-failed",
        "agents-and-tools/tool-use/tool-search-tool",
        _user("Find customer 7."),
        _assistant(
            _served("19A", "tool_search_tool_bm25", query="crm"),
            _answered("19A", "tool_search", {"type": "tool_search_tool_result_error", "error_code": "unavailable"}),
            "No tool was found.",
        ),
        _user("Try again."),
        tools=[
            {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
            _tool("crm_get", defer_loading=True),
        ],
    ),
    _feature(
        "tools-added-and-removed-in-the-middle",
        "build-with-claude/mid-conversation-system-messages",
        _user("Find customer 7."),
        _assistant("Which shop?"),
        _user("The one in Turin."),
        _system(
            "The shop's tools are there.",
            {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "crm_get"}},
            {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "read_file"}},
        ),
        _assistant(_use("20A", "crm_get", path="7")),
        _user(_result("20A", "Ada")),
        tools=[READ, _tool("crm_get", defer_loading=True)],
    ),
    _feature(
        "tool-defined-in-the-middle",
        "build-with-claude/mid-conversation-system-messages",
        _user("Find customer 7."),
        _system({"type": "tool_addition", "tool": {"type": "tool_definition", "definition": _tool("crm_find")}}),
        _assistant(_use("21A", "crm_find", path="7")),
        _user(_result("21A", "Ada")),
        _system(
            {"type": "tool_removal", "tool": {"type": "mcp_tool_reference", "server_name": "shop", "name": "pay"}},
            {"type": "tool_addition", "tool": {"type": "mcp_toolset_reference", "server_name": "shop"}},
        ),
        tools=[READ, {"type": "mcp_toolset", "mcp_server_name": "shop"}],
        mcp_servers=[{"type": "url", "name": "shop", "url": "https://mcp.example.com/sse"}],
    ),
    _feature(
        "tool-input-streamed-eagerly",
        "agents-and-tools/tool-use/fine-grained-tool-streaming",
        _user("Write the file."),
        _assistant(_use("22A", "write_file", path="a.md", INVALID_JSON='{"text": "half a te')),
        _user(_result("22A", "the input is no JSON", is_error=True)),
        tools=[_tool("write_file", eager_input_streaming=True, strict=False)],
    ),
    _feature(
        "programmatic-calls",
        "agents-and-tools/tool-use/programmatic-tool-calling",
        _user("Sum the sales of all regions."),
        _assistant(
            "I ask each region.",
            _served("23A", "code_execution", code="print(sum(await query(r) for r in regions))"),
            _use(
                "23B",
                "query",
                rest={"caller": {"type": "code_execution_20260120", "tool_id": "srvtoolu_23A"}},
                path="west",
            ),
        ),
        _user(_result("23B", "[{'sales': 45000}]")),
        _assistant(
            _answered(
                "23A",
                "code_execution",
                {
                    "type": "code_execution_result",
                    "stdout": "45000\n",
                    "stderr": "",
                    "return_code": 0,
                    "content": [],
                },
            ),
            "45,000 in all.",
        ),
        _user("And last year?"),
        tools=[
            {"type": "code_execution_20260120", "name": "code_execution"},
            _tool("query", allowed_callers=["code_execution_20260120"]),
        ],
        container="container_011CPR5CNjB747bTd36fQLFk",
    ),
)

SERVED = (
    _feature(
        "web-search-with-citations",
        "agents-and-tools/tool-use/web-search-tool",
        _user("When was Claude Shannon born?"),
        _assistant(
            "I look it up.",
            _served("30A", "web_search", query="claude shannon birth date"),
            _answered("30A", "web_search", [_found("Claude Shannon", "https://en.wikipedia.org/wiki/Claude_Shannon")]),
            {
                "type": "text",
                "text": "Claude Shannon was born on April 30, 1916.",
                "citations": [
                    {
                        "type": "web_search_result_location",
                        "url": "https://en.wikipedia.org/wiki/Claude_Shannon",
                        "title": "Claude Shannon",
                        "encrypted_index": "Eo8BCioIAhgBIiQyYjQ0OWJmZi1lNm..",
                        "cited_text": "Claude Elwood Shannon (April 30, 1916) was an American mathematician",
                    }
                ],
            },
        ),
        _user("Where?"),
        tools=[{"type": "web_search_20250305", "name": "web_search", "max_uses": 5}],
    ),
    _feature(
        "web-search-that-failed",
        "agents-and-tools/tool-use/web-search-tool",
        _user("When was Claude Shannon born?"),
        _assistant(
            _served("31A", "web_search", query="claude shannon birth date"),
            _answered("31A", "web_search", {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}),
            "I cannot look it up.",
        ),
        _user("Guess."),
        tools=[{"type": "web_search_20250305", "name": "web_search"}],
    ),
    _feature(
        "web-fetch",
        "agents-and-tools/tool-use/web-fetch-tool",
        _user("Summarize https://example.com/article"),
        _assistant(
            _served("32A", "web_fetch", url="https://example.com/article"),
            _answered(
                "32A",
                "web_fetch",
                {
                    "type": "web_fetch_result",
                    "url": "https://example.com/article",
                    "content": {
                        "type": "document",
                        "source": {"type": "text", "media_type": "text/plain", "data": "The full text of the article."},
                        "title": "Article",
                        **CITED,
                    },
                    "retrieved_at": "2026-08-25T10:30:00Z",
                },
            ),
            _served("32B", "web_fetch", url="https://example.com/other"),
            _answered("32B", "web_fetch", {"type": "web_fetch_tool_result_error", "error_code": "url_not_accessible"}),
            {
                "type": "text",
                "text": "It says so.",
                "citations": [
                    {
                        "type": "char_location",
                        "document_index": 0,
                        "document_title": "Article",
                        "start_char_index": 0,
                        "end_char_index": 29,
                        "cited_text": "The full text of the article.",
                    }
                ],
            },
        ),
        _user("Thanks. And its author?"),
        tools=[{"type": "web_fetch_20250910", "name": "web_fetch", **CITED}],
    ),
    _feature(
        "code-execution-in-a-container",
        "agents-and-tools/tool-use/code-execution-tool",
        _user("Plot the sales.", {"type": "container_upload", "file_id": FILE}),
        _assistant(
            _served("33A", "bash_code_execution", command="ls"),
            _answered(
                "33A",
                "bash_code_execution",
                {
                    "type": "bash_code_execution_result",
                    "stdout": "sales.csv\n",
                    "stderr": "",
                    "return_code": 0,
                    "content": [{"type": "bash_code_execution_output", "file_id": FILE}],
                },
            ),
            _served("33B", "text_editor_code_execution", command="create", path="plot.py", file_text="print(1)"),
            _answered(
                "33B",
                "text_editor_code_execution",
                {"type": "text_editor_code_execution_create_result", "is_file_update": False},
            ),
            _served("33C", "text_editor_code_execution", command="view", path="plot.py"),
            _answered(
                "33C",
                "text_editor_code_execution",
                {
                    "type": "text_editor_code_execution_view_result",
                    "file_type": "text",
                    "content": "print(1)",
                    "num_lines": 1,
                    "start_line": 1,
                    "total_lines": 1,
                },
            ),
            _served(
                "33D", "text_editor_code_execution", command="str_replace", path="plot.py", old_str="1", new_str="2"
            ),
            _answered(
                "33D",
                "text_editor_code_execution",
                {
                    "type": "text_editor_code_execution_str_replace_result",
                    "old_start": 1,
                    "old_lines": 1,
                    "new_start": 1,
                    "new_lines": 1,
                    "lines": ["-print(1)", "+print(2)"],
                },
            ),
            "The plot is ready.",
        ),
        _user("In red, please."),
        tools=[CODE],
        container="container_011CPR5CNjB747bTd36fQLFk",
    ),
    _feature(
        "code-execution-of-the-first-release",
        "agents-and-tools/tool-use/code-execution-tool",
        _user("What is 2 ** 100?"),
        _assistant(
            _served("34A", "code_execution", code="print(2 ** 100)"),
            _answered(
                "34A",
                "code_execution",
                {
                    "type": "code_execution_result",
                    "stdout": "1267650600228229401496703205376\n",
                    "stderr": "",
                    "return_code": 0,
                    "content": [{"type": "code_execution_output", "file_id": FILE}],
                },
            ),
            _served("34B", "code_execution", code="raise SystemExit"),
            _answered(
                "34B",
                "code_execution",
                {"type": "code_execution_tool_result_error", "error_code": "execution_time_exceeded"},
            ),
            "1267650600228229401496703205376.",
        ),
        _user("And 2 ** 101?"),
        tools=[{"type": "code_execution_20250522", "name": "code_execution"}],
    ),
    _feature(
        "code-execution-with-encrypted-output",
        "agents-and-tools/tool-use/web-search-tool",
        _user("Who scored most?"),
        _assistant(
            _served("35A", "code_execution", code="rows = await web_search('scores')"),
            _served(
                "35B",
                "web_search",
                rest={"caller": {"type": "code_execution_20260120", "tool_id": "srvtoolu_35A"}},
                query="scores",
            ),
            _answered(
                "35B",
                "web_search",
                [_found("Scores", "https://example.com/scores")],
                caller={"type": "code_execution_20260120", "tool_id": "srvtoolu_35A"},
            ),
            _answered(
                "35A",
                "code_execution",
                {
                    "type": "encrypted_code_execution_result",
                    "encrypted_stdout": "EpMBCioIARgBIiQ3YTAwMjY1Mi1mZjM5",
                    "stderr": "",
                    "return_code": 0,
                    "content": [],
                },
            ),
            "Ada did.",
        ),
        _user("How many?"),
        tools=[
            {"type": "web_search_20260209", "name": "web_search"},
            {"type": "code_execution_20260120", "name": "code_execution"},
        ],
    ),
    _feature(
        "skills-in-a-container",
        "agents-and-tools/agent-skills/overview",
        _user("Make slides of it.", {"type": "container_upload", "file_id": FILE}),
        tools=[CODE],
        container={
            "id": "container_011CPR5CNjB747bTd36fQLFk",
            "skills": [{"type": "anthropic", "skill_id": "pptx", "version": "latest"}],
        },
    ),
    _feature(
        "advisor",
        "agents-and-tools/tool-use/advisor-tool",
        _user("Plan the migration."),
        _assistant(
            "I ask first.",
            _served("36A", "advisor"),
            _answered("36A", "advisor", {"type": "advisor_result", "text": "Move the reads before the writes."}),
            _served("36B", "advisor"),
            _answered(
                "36B", "advisor", {"type": "advisor_redacted_result", "encrypted_content": "EpMBCioIARgBIiQ3YTAw"}
            ),
            "Reads first.",
        ),
        _user("Go."),
        tools=[{"type": "advisor_20260301", "name": "advisor", "model": FABLE}],
    ),
    _feature(
        "paused-turn",
        "build-with-claude/handling-stop-reasons",
        _user("Compare the three papers."),
        _assistant(
            "I look for them.",
            _served("37A", "web_search", query="paper one"),
            _answered("37A", "web_search", [_found("One", "https://example.com/1")]),
            _served("37B", "web_search", query="paper two"),
        ),
        tools=[{"type": "web_search_20250305", "name": "web_search"}],
    ),
    _feature(
        "paused-turn-that-went-on",
        "build-with-claude/handling-stop-reasons",
        _user("Compare the papers."),
        _assistant("I look for them.", _served("38A", "web_search", query="paper one")),
        _assistant(_answered("38A", "web_search", [_found("One", "https://example.com/1")]), "One says yes."),
        _user("And two?"),
        tools=[{"type": "web_search_20250305", "name": "web_search"}],
    ),
    _feature(
        "calls-of-both-sides-in-one-answer",
        "agents-and-tools/tool-use/server-tools",
        _user("Compare our limit with theirs."),
        _assistant(
            _thinking(),
            _served("39A", "web_search", query="their limit"),
            _answered("39A", "web_search", [_found("Limits", "https://example.com/limits")]),
            _thinking("Now ours.", MORE),
            _use("39B", "read_file", path="limits.md"),
        ),
        _user(_result("39B", "40 connections")),
        thinking={"type": "adaptive"},
        tools=[READ, {"type": "web_search_20250305", "name": "web_search"}],
    ),
    _feature(
        "mcp-connector",
        "agents-and-tools/mcp-connector",
        _user("What is in the cart?"),
        _assistant(
            "I look.",
            {"type": "mcp_tool_use", "id": "mcptoolu_40A", "name": "cart", "server_name": "shop", "input": {}},
            {
                "type": "mcp_tool_result",
                "tool_use_id": "mcptoolu_40A",
                "is_error": False,
                "content": [{"type": "text", "text": "Two books."}],
            },
            "Two books.",
        ),
        _user("Pay."),
        mcp_servers=[{"type": "url", "name": "shop", "url": "https://mcp.example.com/sse", "authorization_token": "t"}],
        tools=[
            {
                "type": "mcp_toolset",
                "mcp_server_name": "shop",
                "default_config": {"defer_loading": True},
                "configs": {"cart": {"defer_loading": False}},
            },
            SEARCH,
        ],
    ),
    _feature(
        "mcp-tools-as-a-server-listed-them",
        "agents-and-tools/mcp-connector",
        _user("What is in the cart?"),
        _assistant(
            {
                "type": "mcp_tool_listing",
                "mcp_server_name": "shop",
                "tools": [{"name": "cart", "description": "Shows the cart.", "input_schema": {"type": "object"}}],
            },
            {"type": "mcp_tool_use", "id": "mcptoolu_41A", "name": "cart", "server_name": "shop", "input": {}},
            {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_41A", "is_error": True, "content": "timed out"},
            "The shop does not answer.",
        ),
        _user("Try again."),
        mcp_servers=[{"type": "url", "name": "shop", "url": "https://mcp.example.com/sse"}],
        tools=[{"type": "mcp_toolset", "mcp_server_name": "shop"}],
    ),
)

CONTENT = (
    _feature(
        "pictures-by-bytes-address-and-file",
        "build-with-claude/vision",
        _user(
            "What differs?",
            _png(transformations={"oversized_image": "error"}),
            {"type": "image", "source": {"type": "url", "url": "https://example.com/ant.jpg"}},
            {"type": "image", "source": {"type": "file", "file_id": FILE}},
        ),
    ),
    _feature(
        "documents-of-every-source",
        "build-with-claude/pdf-support",
        _user(
            {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF}},
            {"type": "document", "source": {"type": "url", "url": "https://example.com/manual.pdf"}},
            {"type": "document", "source": {"type": "file", "file_id": FILE}, "title": "Manual", "context": "2026"},
            {
                "type": "document",
                "source": {"type": "content", "content": [{"type": "text", "text": "Chunk one."}, _png()]},
            },
            {"type": "document", "source": {"type": "content", "content": "The whole."}, "title": "Whole"},
            "What do they say?",
        ),
    ),
    _feature(
        "citations-of-documents",
        "build-with-claude/citations",
        _user(
            {
                "type": "document",
                "source": {"type": "text", "media_type": "text/plain", "data": "The grass is green. The sky is blue."},
                "title": "Colors",
                **CITED,
            },
            {
                "type": "document",
                "source": {"type": "base64", "media_type": "application/pdf", "data": PDF},
                "title": "Manual",
                **CITED,
            },
            {
                "type": "document",
                "source": {"type": "content", "content": [{"type": "text", "text": "Chunk one."}]},
                "title": "Chunks",
                **CITED,
            },
            "Which color is the grass?",
        ),
        _assistant(
            "By the documents, ",
            {
                "type": "text",
                "text": "the grass is green",
                "citations": [
                    {
                        "type": "char_location",
                        "cited_text": "The grass is green.",
                        "document_index": 0,
                        "document_title": "Colors",
                        "start_char_index": 0,
                        "end_char_index": 20,
                    },
                    {
                        "type": "page_location",
                        "cited_text": "Grass: green.",
                        "document_index": 1,
                        "document_title": "Manual",
                        "start_page_number": 1,
                        "end_page_number": 2,
                    },
                    {
                        "type": "content_block_location",
                        "cited_text": "Chunk one.",
                        "document_index": 2,
                        "document_title": "Chunks",
                        "start_block_index": 0,
                        "end_block_index": 1,
                    },
                ],
            },
            ".",
        ),
        _user("And the sky?"),
    ),
    _feature(
        "search-results-and-their-citations",
        "build-with-claude/search-results",
        _user(_search_result(**CITED), "How many connections may the pool hold?"),
        _assistant(
            {
                "type": "text",
                "text": "Forty.",
                "citations": [
                    {
                        "type": "search_result_location",
                        "source": "https://docs.example.com/limits",
                        "title": "Limits",
                        "cited_text": "The pool holds at most 40 connections.",
                        "search_result_index": 0,
                        "start_block_index": 0,
                        "end_block_index": 1,
                    }
                ],
            }
        ),
        _user("Thanks. Since when?"),
    ),
    _feature(
        "cache-marks",
        "build-with-claude/prompt-caching",
        _user({"type": "text", "text": "Fix the failing test.", "cache_control": MARK}),
        _assistant(_use("50A", "read_file", path="pool.py")),
        _user(_result("50A", "class Pool: ...", cache_control={"type": "ephemeral", "ttl": "5m"})),
        system=[{"type": "text", "text": "You mend code.", "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
        tools=[{**READ, "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
    ),
    _feature(
        "cache-mark-set-by-the-provider",
        "build-with-claude/prompt-caching",
        _user("Hello."),
        _assistant("Hello."),
        _user("Which planet is the largest?"),
        cache_control=MARK,
    ),
)

COMPACTED = (
    _feature(
        "compaction-block",
        "build-with-claude/compaction-threshold",
        _user("Port the parser."),
        _assistant({"type": "compaction", "content": SUMMARY}, "The parser is ported."),
        _user("Now the tests."),
        context_management={
            "edits": [{"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 150_000}}]
        },
    ),
    _feature(
        "compaction-block-behind-a-tool-loop",
        "build-with-claude/compaction-threshold",
        _user("Port the parser."),
        _assistant(_use("60A", "read_file", path="parser.py")),
        _user(_result("60A", "class Parser: ...")),
        _assistant(
            {"type": "compaction", "content": SUMMARY, "encrypted_content": "EqUBCkYIBxgC"},
            _thinking(),
            _use("60B", "read_file", path="test_parser.py"),
        ),
        _user(_result("60B", "def test_parser(): ...")),
        tools=[READ],
        thinking={"type": "adaptive"},
        context_management={"edits": [{"type": "compact_20260112", "pause_after_compaction": False}]},
    ),
    _feature(
        "compaction-block-in-the-middle-of-an-answer",
        "build-with-claude/compaction-threshold",
        _user("Compare the papers."),
        _assistant(
            _served("61A", "web_search", query="paper one"),
            _answered("61A", "web_search", [_found("One", "https://example.com/1")]),
            {"type": "compaction", "content": SUMMARY},
            "Both say yes.",
        ),
        _user("And three?"),
        tools=[{"type": "web_search_20250305", "name": "web_search"}],
        context_management={"edits": [{"type": "compact_20260112"}]},
    ),
    _feature(
        "two-compaction-blocks",
        "build-with-claude/compaction-threshold",
        _user("Port the parser."),
        _assistant({"type": "compaction", "content": "The parser was read."}, "I port it."),
        _user("Go on."),
        _assistant({"type": "compaction", "content": SUMMARY}, "It is ported."),
        _user("Now the tests."),
        context_management={"edits": [{"type": "compact_20260112"}]},
    ),
    _feature(
        "compaction-that-failed",
        "build-with-claude/compaction-threshold",
        _user("Port the parser."),
        _assistant({"type": "compaction", "content": None}, "I port it."),
        _user("Go on."),
        context_management={"edits": [{"type": "compact_20260112"}]},
    ),
    _feature(
        "signed-compaction-block",
        "build-with-claude/compaction-on-demand",
        _assistant({"type": "compaction", "content": SUMMARY, "signature": SIGNATURE, "cache_control": MARK}),
        _user("Now the tests."),
    ),
    _feature(
        "signed-compaction-block-before-recent-turns",
        "build-with-claude/compaction-keep-recent-turns",
        _assistant(
            {
                "type": "compaction",
                "content": SUMMARY,
                "signature": SIGNATURE,
                "tool_changes": [{"type": "tool_addition", "tool": {"type": "tool_reference", "name": "crm_get"}}],
            }
        ),
        _user("Now the tests."),
        _assistant(_thinking(), _use("62A", "read_file", path="test_parser.py")),
        _user(_result("62A", "def test_parser(): ...")),
        model="claude-fable-5-1",
        thinking={"type": "adaptive"},
        tools=[READ, _tool("crm_get", defer_loading=True)],
    ),
    _feature(
        "compaction-on-demand",
        "build-with-claude/compaction-on-demand",
        _user("Port the parser."),
        _assistant("It is ported."),
        _user("Now the tests."),
        compaction={"type": "summarize", "instructions": "Keep all names of files."},
    ),
    _feature(
        "context-editing",
        "build-with-claude/context-editing",
        _user("Fix the failing test."),
        _assistant(_thinking(), _use("63A", "read_file", path="pool.py")),
        _user(_result("63A", "class Pool: ...")),
        thinking={"type": "adaptive"},
        tools=[READ],
        context_management={
            "edits": [
                {"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns", "value": 2}},
                {
                    "type": "clear_tool_uses_20250919",
                    "trigger": {"type": "input_tokens", "value": 30_000},
                    "keep": {"type": "tool_uses", "value": 3},
                    "clear_at_least": {"type": "input_tokens", "value": 5_000},
                    "clear_tool_inputs": False,
                },
            ]
        },
    ),
)

FEATURES = (*THINKING, *TALK, *TOOLS, *SERVED, *CONTENT, *COMPACTED)

# What cannot be combined: marks beyond four, a list that another feature's block opens or ends, options that exclude
# each other, models that differ.
APART = frozenset(
    {
        "answer-begun-by-the-client", "cache-marks", "cache-mark-set-by-the-provider", "paused-turn",
        "compaction-block", "compaction-block-behind-a-tool-loop", "compaction-block-in-the-middle-of-an-answer",
        "two-compaction-blocks", "signed-compaction-block", "signed-compaction-block-before-recent-turns",
        "compaction-on-demand", "manual-thinking-in-a-tool-loop", "redacted-thinking", "thinking-bound-to-its-prefix",
    }
)  # fmt: skip


def _together() -> dict[str, Any]:
    """Return one body with all that can be combined: a compaction block first, then every conversation in turn."""
    bodies = [feature.body for feature in FEATURES if feature.name not in APART]
    messages = [
        _user("Port the parser."),
        _assistant({"type": "compaction", "content": SUMMARY}, "The parser is ported."),
    ]
    tools: dict[str, Any] = {}
    for body in bodies:
        for message in body["messages"]:
            if message["role"] == messages[-1]["role"] == "user":
                messages.append(_assistant("Yes."))
            messages.append(message)
        for tool in body.get("tools", ()):
            tools.setdefault(tool.get("name") or tool["type"], tool)
    return _body(
        *messages,
        system=[{"type": "text", "text": "You mend code.", "cache_control": MARK}],
        tools=[*tools.values()],
        thinking={"type": "adaptive"},
        container="container_011CPR5CNjB747bTd36fQLFk",
        mcp_servers=[{"type": "url", "name": "shop", "url": "https://mcp.example.com/sse"}],
        context_management={"edits": [{"type": "clear_tool_uses_20250919"}, {"type": "compact_20260112"}]},
    )


EVERYTHING = _together()
