"""Requests of the OpenAI Responses API, one or more for each documented feature."""

from __future__ import annotations

from typing import Any

from tests.healthy import Feature

__all__ = ["EVERYTHING", "FEATURES"]

DOCS = "https://developers.openai.com/api/docs/guides"
MODEL = "gpt-6-astra"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
PICTURE = f"data:image/png;base64,{PIXEL}"
SEALED = "gAAAAABpK3Vw" + "c2VhbGVkIHRob3VnaHQg" * 12
ALONE = frozenset(
    {
        "previous-response-begins-with-outputs",
        "conversation-begins-with-an-output",
        "prompt-as-a-string",
        "compact-window",
        "compaction-item-in-an-untrimmed-list",
        "compaction-item-twice",
        "approval-just-given",
        "call-awaits-its-output",
        "async-call-still-open",
        "safety-check-acknowledged-in-a-chain",
        "approval-in-a-chain",
    }
)  # an end of its own, a chain on the server, or a second compaction item


def _feature(name: str, page: str, *items: dict[str, Any], model: str = MODEL, **rest: Any) -> Feature:
    return Feature(name, f"{DOCS}/{page}", model, {"model": model, "input": list(items), **rest})


def _user(*content: Any) -> dict[str, Any]:
    return {
        "type": "message",
        "role": "user",
        "content": [_text(part) if isinstance(part, str) else part for part in content],
    }


def _text(text: str) -> dict[str, Any]:
    return {"type": "input_text", "text": text}


def _words(text: str, **rest: Any) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], **rest}


def _assistant(id: str, *content: Any, **rest: Any) -> dict[str, Any]:
    parts = [_words(part) if isinstance(part, str) else part for part in content]
    return {"type": "message", "id": f"msg_{id}", "role": "assistant", "status": "completed", "content": parts, **rest}


def _call(id: str, name: str, arguments: str = "{}", **rest: Any) -> dict[str, Any]:
    return {
        "type": "function_call",
        "id": f"fc_{id}",
        "call_id": f"call_{id}",
        "name": name,
        "arguments": arguments,
        "status": "completed",
        **rest,
    }


def _output(id: str, output: Any, **rest: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": f"call_{id}", "output": output, **rest}


def _thought(id: str, *summary: str, **rest: Any) -> dict[str, Any]:
    texts = [{"type": "summary_text", "text": text} for text in summary]
    return {"type": "reasoning", "id": f"rs_{id}", "summary": texts, "encrypted_content": f"{SEALED}{id}", **rest}


def _tool(name: str, **rest: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    return {
        "type": "function",
        "name": name,
        "description": f"Tool {name}.",
        "parameters": schema,
        "strict": False,
        **rest,
    }


def _compaction(id: str) -> dict[str, Any]:
    return {"type": "compaction", "id": f"cmp_{id}", "encrypted_content": f"{SEALED}{SEALED}{id}"}


MESSAGES = (
    Feature("prompt-as-a-string", f"{DOCS}/text", MODEL, {"model": MODEL, "input": "Write a haiku about tests."}),
    _feature(
        "easy-messages",
        "text",
        {"role": "developer", "content": "Answer in one sentence."},
        {"role": "user", "content": "What is a mutex?"},
        {"role": "assistant", "content": "A lock that one thread holds at a time."},
        {"role": "user", "content": "And a semaphore?"},
    ),
    _feature(
        "instructions-beside-the-list",
        "text",
        {"role": "user", "content": "List the three states of matter."},
        instructions="Answer as a pirate.",
    ),
    _feature(
        "system-and-developer-in-the-middle",
        "text",
        {"role": "system", "content": "You are terse."},
        {"role": "user", "content": "Start the review."},
        _assistant("rev1", "Started."),
        {"type": "message", "role": "developer", "content": [_text("From now on answer in JSON.")]},
        {"role": "user", "content": "Go on."},
    ),
    _feature(
        "message-status-and-ids",
        "conversation-state",
        {"type": "message", "role": "user", "status": "completed", "content": [_text("Count to three.")]},
        _assistant("cnt1", "One, two, three."),
        {"role": "user", "content": "Further."},
    ),
    _feature(
        "assistant-speaks-twice",
        "conversation-state",
        {"role": "user", "content": "Think aloud."},
        _assistant("aloud1", "First thought."),
        _assistant("aloud2", "Second thought."),
        {"role": "user", "content": "Good."},
    ),
    _feature(
        "users-in-a-row",
        "conversation-state",
        {"role": "user", "content": "One more thing."},
        {"role": "user", "content": "Two more things."},
    ),
    _feature(
        "phase-on-messages",
        "reasoning",
        {"role": "user", "content": "Fix the failing test."},
        _assistant("phase1", "I look at the pool first.", phase="commentary"),
        _call("phase1", "read_file", '{"path":"pool.py"}'),
        _output("phase1", "class Pool: ..."),
        _assistant("phase2", "The pool leaked a connection; it is fixed.", phase="final_answer"),
        {"role": "user", "content": "Now the docs."},
        model="gpt-5.4",
        tools=[_tool("read_file")],
    ),
    _feature(
        "phase-on-an-easy-message",
        "reasoning",
        {"role": "user", "content": "Is it done?"},
        {"role": "assistant", "content": "Almost.", "phase": "commentary"},
        {"role": "user", "content": "Tell me when."},
        model="gpt-5.4",
    ),
    _feature(
        "refusal",
        "structured-outputs",
        {"role": "user", "content": "How do I pick this lock?"},
        _assistant("ref1", {"type": "refusal", "refusal": "I cannot help with that."}),
        {"role": "user", "content": "It is my own lock."},
    ),
    _feature(
        "annotations-of-every-kind",
        "tools-web-search",
        {"role": "user", "content": "What is new?"},
        _assistant(
            "ann1",
            _words(
                "See the page, the file and the plot.",
                annotations=[
                    {
                        "type": "url_citation",
                        "url": "https://example.com/a",
                        "title": "A",
                        "start_index": 0,
                        "end_index": 8,
                    },
                    {"type": "file_citation", "file_id": "file-1", "filename": "notes.md", "index": 14},
                    {
                        "type": "container_file_citation",
                        "container_id": "cntr_1",
                        "file_id": "cfile_1",
                        "filename": "plot.png",
                        "start_index": 20,
                        "end_index": 28,
                    },
                    {"type": "file_path", "file_id": "file-2", "index": 30},
                ],
            ),
        ),
        {"role": "user", "content": "Thanks."},
    ),
    _feature(
        "log-probabilities",
        "text",
        {"role": "user", "content": "Yes or no?"},
        _assistant(
            "lp1", _words("Yes", logprobs=[{"token": "Yes", "bytes": [89], "logprob": -0.1, "top_logprobs": []}])
        ),
        {"role": "user", "content": "Sure?"},
        include=["message.output_text.logprobs"],
    ),
    _feature(
        "item-reference",
        "conversation-state",
        {"role": "user", "content": "Look it up again."},
        {"type": "item_reference", "id": "msg_stored_1"},
        {"id": "msg_stored_2"},
        {"role": "user", "content": "Compare both."},
    ),
    _feature(
        "message-steers-a-running-turn",
        "conversation-state",
        {"role": "user", "content": "Write the report."},
        _call("steer1", "read_file", '{"path":"a.md"}'),
        {"role": "user", "content": "Use British spelling."},
        _output("steer1", "Notes."),
        _assistant("steer1", "Done."),
        {"role": "user", "content": "Thanks."},
        tools=[_tool("read_file")],
    ),
)
INPUTS = (
    _feature(
        "pictures",
        "images-vision",
        _user(
            "What differs?",
            {"type": "input_image", "detail": "auto", "image_url": "https://example.com/cat.png"},
            {"type": "input_image", "detail": "high", "image_url": PICTURE},
            {"type": "input_image", "detail": "low", "file_id": "file-picture-1"},
            {"type": "input_image", "detail": "original", "image_url": PICTURE},
        ),
    ),
    _feature(
        "files",
        "file-inputs",
        _user(
            {
                "type": "input_file",
                "filename": "a.pdf",
                "file_data": "data:application/pdf;base64,JVBERi0xLjQKJSVFT0Y=",
            },
            {"type": "input_file", "file_id": "file-report-1"},
            {"type": "input_file", "file_url": "https://example.com/letter.pdf", "detail": "low"},
            "Summarize all three.",
        ),
    ),
    _feature(
        "cache-breakpoints",
        "prompt-caching",
        _user({**_text("A long manual."), "prompt_cache_breakpoint": {"mode": "explicit"}}, "What is on page 3?"),
        model="gpt-5.6-sol",
        prompt_cache_options={"mode": "explicit"},
        prompt_cache_key="manual-1",
    ),
)
CALLS = (
    _feature(
        "function-call-and-output",
        "function-calling",
        {"role": "user", "content": "What is the weather in Paris?"},
        _call("w1", "get_weather", '{"city":"Paris"}'),
        _output("w1", "21 degrees"),
        _assistant("w1", "It is 21 degrees."),
        {"role": "user", "content": "And in Rome?"},
        tools=[_tool("get_weather")],
    ),
    _feature(
        "parallel-calls-answered-out-of-order",
        "function-calling",
        {"role": "user", "content": "Compare Paris and Rome."},
        _call("p1", "get_weather", '{"city":"Paris"}'),
        _call("p2", "get_weather", '{"city":"Rome"}'),
        _output("p2", "25 degrees"),
        _output("p1", "21 degrees"),
        _assistant("p1", "Rome is warmer."),
        {"role": "user", "content": "Thanks."},
        tools=[_tool("get_weather")],
    ),
    _feature(
        "output-as-a-list",
        "function-calling",
        {"role": "user", "content": "Show me the chart."},
        _call("l1", "chart"),
        _output(
            "l1",
            [
                _text("Here are the chart and its data."),
                {"type": "input_image", "detail": "auto", "image_url": PICTURE},
                {"type": "input_file", "filename": "data.csv", "file_data": "data:text/csv;base64,YSxiCjEsMgo="},
                {"type": "input_file", "file_id": "file-data-1"},
            ],
            status="completed",
        ),
        {"role": "user", "content": "Explain it."},
        tools=[_tool("chart")],
    ),
    _feature(
        "output-without-words",
        "function-calling",
        {"role": "user", "content": "Run the formatter."},
        _call("e1", "format"),
        _output("e1", ""),
        {"role": "user", "content": "And?"},
        tools=[_tool("format")],
    ),
    _feature(
        "call-without-arguments-or-item-id",
        "function-calling",
        {"role": "user", "content": "What time is it?"},
        {"type": "function_call", "call_id": "call_now1", "name": "now", "arguments": ""},
        {"type": "function_call_output", "call_id": "call_now1", "output": "12:00"},
        {"role": "user", "content": "Thanks."},
        tools=[_tool("now")],
    ),
    _feature(
        "call-id-comes-again-in-a-later-turn",
        "function-calling",
        {"role": "user", "content": "Ping."},
        {"type": "function_call", "call_id": "call_0", "name": "ping", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_0", "output": "pong"},
        {"role": "user", "content": "Again."},
        {"type": "function_call", "call_id": "call_0", "name": "ping", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_0", "output": "pong pong"},
        {"role": "user", "content": "Good."},
        tools=[_tool("ping")],
    ),
    _feature(
        "call-awaits-its-output",
        "function-calling",
        {"role": "user", "content": "Book the blue room."},
        _call("open1", "book", '{"room":"blue"}'),
        tools=[_tool("book")],
    ),
    _feature(
        "namespaced-call",
        "tools-tool-search",
        {"role": "user", "content": "Open the ticket."},
        _call("ns1", "open_ticket", namespace="crm"),
        _output("ns1", "opened", name="open_ticket", namespace="crm"),
        {"role": "user", "content": "Close it."},
        tools=[{"type": "namespace", "name": "crm", "description": "CRM.", "tools": [_tool("open_ticket")]}],
    ),
    _feature(
        "output-arrives-late",
        "async-tool-calling",
        {"role": "user", "content": "Start the long build, and tell me what to pack for Oslo."},
        _call("late1", "build", **{"async": True}),
        _assistant("late1", "The build runs. Pack a coat."),
        {"role": "user", "content": "Anything else?"},
        _assistant("late2", "Gloves."),
        _output("late1", "build finished in 14 minutes"),
        {"role": "user", "content": "And the build?"},
        tools=[_tool("build", **{"async": True})],
    ),
    _feature(
        "async-call-still-open",
        "async-tool-calling",
        {"role": "user", "content": "Start the long build, and tell me what to pack for Oslo."},
        _call("run1", "build", **{"async": True}),
        _assistant("run1", "The build runs. Pack a coat."),
        {"role": "user", "content": "Anything else?"},
        tools=[_tool("build", **{"async": True})],
    ),
    _feature(
        "async-custom-call",
        "async-tool-calling",
        {"role": "user", "content": "Render the film in the background."},
        {
            "type": "custom_tool_call",
            "id": "ctc_async1",
            "call_id": "call_async1",
            "name": "render",
            "input": "film.blend",
            "async": True,
        },
        _assistant("async1", "It renders."),
        {"type": "custom_tool_call_output", "call_id": "call_async1", "output": "film.mp4"},
        {"role": "user", "content": "Is it done?"},
        tools=[{"type": "custom", "name": "render", "async": True}],
    ),
    _feature(
        "custom-tool",
        "function-calling",
        {"role": "user", "content": "Print hello."},
        {
            "type": "custom_tool_call",
            "id": "ctc_1",
            "call_id": "call_ctc1",
            "name": "code_exec",
            "input": "print('hello')",
        },
        {"type": "custom_tool_call_output", "call_id": "call_ctc1", "output": "hello"},
        _assistant("ctc1", "Printed."),
        {"role": "user", "content": "Again."},
        tools=[{"type": "custom", "name": "code_exec", "description": "Runs Python."}],
    ),
    _feature(
        "custom-tool-output-as-a-list",
        "function-calling",
        {"role": "user", "content": "Draw it."},
        {"type": "custom_tool_call", "call_id": "call_ctc2", "name": "draw", "input": "circle 3"},
        {
            "type": "custom_tool_call_output",
            "id": "ctco_2",
            "call_id": "call_ctc2",
            "output": [_text("A circle."), {"type": "input_image", "detail": "auto", "image_url": PICTURE}],
        },
        {"role": "user", "content": "Larger."},
        tools=[{"type": "custom", "name": "draw"}],
    ),
    _feature(
        "local-shell",
        "tools-local-shell",
        {"role": "user", "content": "List the files."},
        {
            "type": "local_shell_call",
            "id": "lsh_1",
            "call_id": "call_lsh1",
            "status": "completed",
            "action": {"type": "exec", "command": ["ls", "-l"], "env": {"LANG": "C"}, "working_directory": "/src"},
        },
        {
            "type": "local_shell_call_output",
            "id": "lsh_1",
            "output": '{"output":"a.py\\nb.py","metadata":{"exit_code":0}}',
        },
        {"role": "user", "content": "Which is larger?"},
        model="codex-mini-latest",
        tools=[{"type": "local_shell"}],
    ),
    _feature(
        "shell-with-chunks",
        "tools-shell",
        {"role": "user", "content": "Run the checks."},
        {
            "type": "shell_call",
            "id": "sh_1",
            "call_id": "call_sh1",
            "status": "completed",
            "action": {"commands": ["make check", "git status"], "timeout_ms": 120000, "max_output_length": 4096},
        },
        {
            "type": "shell_call_output",
            "call_id": "call_sh1",
            "max_output_length": 4096,
            "output": [
                {"stdout": "12 passed\n", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}},
                {"stdout": "", "stderr": "killed\n", "outcome": {"type": "timeout"}},
            ],
        },
        {"role": "user", "content": "Try again."},
        tools=[{"type": "shell"}],
    ),
    _feature(
        "shell-in-a-hosted-container",
        "tools-shell",
        {"role": "user", "content": "Which Python is there?"},
        {
            "type": "shell_call",
            "id": "sh_2",
            "call_id": "call_sh2",
            "status": "completed",
            "action": {"commands": ["python --version"]},
            "environment": {"type": "container_reference", "container_id": "cntr_shell1"},
        },
        {
            "type": "shell_call_output",
            "id": "sho_2",
            "call_id": "call_sh2",
            "status": "completed",
            "output": [{"stdout": "Python 3.14\n", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
        },
        {"role": "user", "content": "Install numpy."},
        tools=[{"type": "shell", "environment": {"type": "container_reference", "container_id": "cntr_shell1"}}],
    ),
    _feature(
        "patches-of-every-kind",
        "tools-apply-patch",
        {"role": "user", "content": "Rename the module."},
        {
            "type": "apply_patch_call",
            "id": "apc_1",
            "call_id": "call_apc1",
            "status": "completed",
            "operation": {"type": "create_file", "path": "new.py", "diff": "+x = 1\n"},
        },
        {
            "type": "apply_patch_call",
            "id": "apc_2",
            "call_id": "call_apc2",
            "status": "completed",
            "operation": {"type": "update_file", "path": "main.py", "diff": "@@\n-import old\n+import new\n"},
        },
        {
            "type": "apply_patch_call",
            "id": "apc_3",
            "call_id": "call_apc3",
            "status": "completed",
            "operation": {"type": "delete_file", "path": "old.py"},
        },
        {"type": "apply_patch_call_output", "call_id": "call_apc1", "status": "completed", "output": "created new.py"},
        {"type": "apply_patch_call_output", "call_id": "call_apc2", "status": "failed", "output": "context not found"},
        {"type": "apply_patch_call_output", "call_id": "call_apc3", "status": "completed"},
        {"role": "user", "content": "Retry the second."},
        tools=[{"type": "apply_patch"}],
    ),
)
COMPUTER = (
    _feature(
        "computer-call-and-screenshot",
        "tools-computer-use",
        {"role": "user", "content": "Click the button."},
        _thought("cu1"),
        {
            "type": "computer_call",
            "id": "cu_1",
            "call_id": "call_cu1",
            "action": {"type": "click", "button": "left", "x": 10, "y": 20},
            "pending_safety_checks": [],
            "status": "completed",
        },
        {
            "type": "computer_call_output",
            "call_id": "call_cu1",
            "output": {"type": "computer_screenshot", "image_url": PICTURE},
        },
        _assistant("cu1", "Clicked."),
        {"role": "user", "content": "Good."},
        model="computer-use-preview",
        tools=[
            {"type": "computer_use_preview", "display_width": 1024, "display_height": 768, "environment": "browser"}
        ],
        truncation="auto",
    ),
    _feature(
        "computer-batched-actions-and-file-screenshot",
        "tools-computer-use",
        {"role": "user", "content": "Fill in the form."},
        {
            "type": "computer_call",
            "id": "cu_2",
            "call_id": "call_cu2",
            "actions": [
                {"type": "move", "x": 1, "y": 2},
                {"type": "double_click", "x": 1, "y": 2, "keys": None},
                {"type": "type", "text": "Ada"},
                {"type": "keypress", "keys": ["ENTER"]},
                {"type": "drag", "path": [{"x": 1, "y": 2}, {"x": 3, "y": 4}]},
                {"type": "scroll", "x": 0, "y": 0, "scroll_x": 0, "scroll_y": 100},
                {"type": "wait"},
                {"type": "screenshot"},
            ],
            "pending_safety_checks": [],
            "status": "completed",
        },
        {
            "type": "computer_call_output",
            "id": "cuo_2",
            "call_id": "call_cu2",
            "status": "completed",
            "output": {"type": "computer_screenshot", "file_id": "file-screenshot-2"},
        },
        {"role": "user", "content": "Send it."},
        tools=[{"type": "computer"}],
    ),
    _feature(
        "safety-check-acknowledged",
        "tools-computer-use",
        {"role": "user", "content": "Delete the draft."},
        {
            "type": "computer_call",
            "id": "cu_3",
            "call_id": "call_cu3",
            "action": {"type": "click", "button": "left", "x": 5, "y": 5},
            "pending_safety_checks": [{"id": "cu_sc_1", "code": "irrelevant_domain", "message": "Unusual page."}],
            "status": "completed",
        },
        {
            "type": "computer_call_output",
            "call_id": "call_cu3",
            "acknowledged_safety_checks": [{"id": "cu_sc_1", "code": "irrelevant_domain", "message": "Unusual page."}],
            "output": {"type": "computer_screenshot", "image_url": PICTURE},
        },
        {"role": "user", "content": "Is it gone?"},
        tools=[{"type": "computer"}],
    ),
)
HOSTED = (
    _feature(
        "web-search",
        "tools-web-search",
        {"role": "user", "content": "What changed in Python 3.14?"},
        {
            "type": "web_search_call",
            "id": "ws_1",
            "status": "completed",
            "action": {
                "type": "search",
                "query": "python 3.14 changes",
                "queries": ["python 3.14 changes"],
                "sources": [{"type": "url", "url": "https://docs.python.org"}],
            },
        },
        {"type": "web_search_call", "id": "ws_2", "status": "completed", "action": {"type": "open_page", "url": None}},
        {
            "type": "web_search_call",
            "id": "ws_3",
            "status": "completed",
            "action": {"type": "find_in_page", "url": "https://docs.python.org", "pattern": "template"},
        },
        _assistant("ws1", "Template strings are new."),
        {"role": "user", "content": "Show one."},
        tools=[{"type": "web_search"}],
        include=["web_search_call.action.sources"],
    ),
    _feature(
        "file-search",
        "tools-file-search",
        {"role": "user", "content": "What does the handbook say?"},
        {"type": "file_search_call", "id": "fs_1", "status": "completed", "queries": ["holidays"], "results": None},
        {
            "type": "file_search_call",
            "id": "fs_2",
            "status": "completed",
            "queries": ["holidays", "leave"],
            "results": [
                {
                    "file_id": "file-handbook",
                    "filename": "handbook.pdf",
                    "score": 0.91,
                    "text": "Thirty days of leave.",
                    "attributes": {"year": 2026},
                }
            ],
        },
        _assistant("fs1", "Thirty days."),
        {"role": "user", "content": "From when on?"},
        tools=[{"type": "file_search", "vector_store_ids": ["vs_1"]}],
        include=["file_search_call.results"],
    ),
    _feature(
        "code-interpreter-logs-and-pictures",
        "tools-code-interpreter",
        {"role": "user", "content": "Plot the data."},
        {
            "type": "code_interpreter_call",
            "id": "ci_1",
            "container_id": "cntr_code1",
            "status": "completed",
            "code": "plt.plot([1, 2])",
            "outputs": [{"type": "logs", "logs": "drawn\n"}, {"type": "image", "url": PICTURE}],
        },
        {
            "type": "code_interpreter_call",
            "id": "ci_2",
            "container_id": "cntr_code1",
            "status": "completed",
            "code": "1 + 1",
            "outputs": None,
        },
        _assistant("ci1", "Plotted."),
        {"role": "user", "content": "In red."},
        tools=[{"type": "code_interpreter", "container": {"type": "auto"}}],
        include=["code_interpreter_call.outputs"],
    ),
    _feature(
        "image-generation",
        "tools-image-generation",
        {"role": "user", "content": "Draw a cat."},
        {
            "type": "image_generation_call",
            "id": "ig_1",
            "status": "completed",
            "result": PIXEL,
            "revised_prompt": "A grey cat.",
            "output_format": "png",
            "size": "1024x1024",
        },
        _assistant("ig1", "Here."),
        {"role": "user", "content": "Now a dog."},
        {"type": "image_generation_call", "id": "ig_2", "status": "failed", "result": None},
        {"role": "user", "content": "Try again."},
        tools=[{"type": "image_generation"}],
    ),
    _feature(
        "hosted-tool-search",
        "tools-tool-search",
        {"role": "user", "content": "Find the customer."},
        {
            "type": "tool_search_call",
            "id": "tsc_1",
            "call_id": None,
            "execution": "server",
            "status": "completed",
            "arguments": {"paths": ["crm"]},
        },
        {
            "type": "tool_search_output",
            "id": "tso_1",
            "call_id": None,
            "execution": "server",
            "status": "completed",
            "tools": [_tool("crm_get", defer_loading=True)],
        },
        _call("ts1", "crm_get"),
        _output("ts1", "found"),
        {"role": "user", "content": "And her orders?"},
        tools=[{"type": "tool_search"}, _tool("crm_get", defer_loading=True)],
    ),
    _feature(
        "hosted-tool-search-twice",
        "tools-tool-search",
        {"role": "user", "content": "Find the order, then the invoice."},
        {"type": "tool_search_call", "call_id": None, "execution": "server", "arguments": {"paths": ["orders"]}},
        {"type": "tool_search_output", "call_id": None, "execution": "server", "tools": [_tool("order_get")]},
        {"type": "tool_search_call", "call_id": None, "execution": "server", "arguments": {"paths": ["bills"]}},
        {"type": "tool_search_output", "call_id": None, "execution": "server", "tools": [_tool("bill_get")]},
        _call("ts2", "bill_get"),
        _output("ts2", "4711"),
        {"role": "user", "content": "Pay it."},
        tools=[{"type": "tool_search"}],
    ),
    _feature(
        "client-tool-search",
        "tools-tool-search",
        {"role": "user", "content": "Find the supplier."},
        {
            "type": "tool_search_call",
            "call_id": "call_tsc3",
            "execution": "client",
            "status": "completed",
            "arguments": {"goal": "suppliers"},
        },
        {
            "type": "tool_search_output",
            "call_id": "call_tsc3",
            "execution": "client",
            "status": "completed",
            "tools": [_tool("supplier_get")],
        },
        _call("ts3", "supplier_get"),
        _output("ts3", "found"),
        {"role": "user", "content": "Call them."},
        tools=[{"type": "tool_search", "execution": "client"}],
    ),
    _feature(
        "additional-tools",
        "tools-tool-search",
        {"type": "additional_tools", "role": "developer", "tools": [_tool("refund")]},
        {"role": "user", "content": "Refund it."},
        _call("at1", "refund"),
        _output("at1", "refunded"),
        {"role": "user", "content": "Thanks."},
    ),
    _feature(
        "program-and-its-calls",
        "tools-programmatic-tool-calling",
        {"role": "user", "content": "Which of the two is in stock?"},
        _thought("prog1"),
        {
            "type": "program",
            "id": "prog_1",
            "call_id": "call_prog1",
            "code": "const a = await tools.stock({sku: 'a'}); text(a);",
            "fingerprint": "fp_4f1d",
        },
        _call("prog1a", "stock", '{"sku":"a"}', caller={"type": "program", "caller_id": "call_prog1"}),
        _call("prog1b", "stock", '{"sku":"b"}', caller={"type": "program", "caller_id": "call_prog1"}),
        _output("prog1a", "3", caller={"type": "program", "caller_id": "call_prog1"}),
        _output("prog1b", "0", caller={"type": "program", "caller_id": "call_prog1"}),
        {
            "type": "program_output",
            "id": "prog_out_1",
            "call_id": "call_prog1",
            "result": "a: 3",
            "status": "completed",
        },
        _assistant("prog1", "Only the first."),
        {"role": "user", "content": "Order it."},
        tools=[{"type": "programmatic_tool_calling"}, _tool("stock", allowed_callers=["programmatic"])],
    ),
)
MCP = (
    _feature(
        "mcp-list-and-call",
        "tools-connectors-mcp",
        {"role": "user", "content": "Roll two dice."},
        {
            "type": "mcp_list_tools",
            "id": "mcpl_1",
            "server_label": "dice",
            "tools": [
                {"name": "roll", "description": "Rolls.", "input_schema": {"type": "object"}, "annotations": None}
            ],
        },
        {
            "type": "mcp_call",
            "id": "mcp_1",
            "server_label": "dice",
            "name": "roll",
            "arguments": '{"dice":"2d6"}',
            "output": "7",
            "error": None,
            "approval_request_id": None,
            "status": "completed",
        },
        _assistant("mcp1", "Seven."),
        {"role": "user", "content": "Again."},
        tools=[
            {
                "type": "mcp",
                "server_label": "dice",
                "server_url": "https://example.com/mcp",
                "require_approval": "never",
            }
        ],
    ),
    _feature(
        "mcp-call-fails",
        "tools-connectors-mcp",
        {"role": "user", "content": "Roll three dice."},
        {
            "type": "mcp_call",
            "id": "mcp_2",
            "server_label": "dice",
            "name": "roll",
            "arguments": "{}",
            "output": None,
            "error": {"type": "http_error", "code": 503, "message": "unavailable"},
            "status": "failed",
        },
        {"role": "user", "content": "Again."},
        tools=[
            {
                "type": "mcp",
                "server_label": "dice",
                "server_url": "https://example.com/mcp",
                "require_approval": "never",
            }
        ],
    ),
    _feature(
        "mcp-list-fails",
        "tools-connectors-mcp",
        {"role": "user", "content": "Which tools are there?"},
        {"type": "mcp_list_tools", "id": "mcpl_2", "server_label": "wiki", "tools": [], "error": "timed out"},
        _assistant("mcpl2", "None answered."),
        {"role": "user", "content": "Again."},
        tools=[{"type": "mcp", "server_label": "wiki", "server_url": "https://example.com/wiki"}],
    ),
    _feature(
        "mcp-approval-given-and-used",
        "tools-connectors-mcp",
        {"role": "user", "content": "Look up refold."},
        {
            "type": "mcp_approval_request",
            "id": "mcpr_1",
            "server_label": "wiki",
            "name": "search",
            "arguments": '{"q":"refold"}',
        },
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
        {
            "type": "mcp_call",
            "id": "mcp_3",
            "server_label": "wiki",
            "name": "search",
            "arguments": '{"q":"refold"}',
            "output": "one page",
            "approval_request_id": "mcpr_1",
            "status": "completed",
        },
        _assistant("mcp3", "One page."),
        {"role": "user", "content": "Read it."},
        tools=[{"type": "mcp", "server_label": "wiki", "server_url": "https://example.com/wiki"}],
    ),
    _feature(
        "mcp-approval-denied",
        "tools-connectors-mcp",
        {"role": "user", "content": "Delete the page."},
        {"type": "mcp_approval_request", "id": "mcpr_2", "server_label": "wiki", "name": "delete", "arguments": "{}"},
        {
            "type": "mcp_approval_response",
            "id": "mcpa_2",
            "approval_request_id": "mcpr_2",
            "approve": False,
            "reason": "Not that one.",
        },
        _assistant("mcpr2", "Left as it is."),
        {"role": "user", "content": "Good."},
        tools=[{"type": "mcp", "server_label": "wiki", "server_url": "https://example.com/wiki"}],
    ),
    _feature(
        "approval-just-given",
        "tools-connectors-mcp",
        {"role": "user", "content": "Look it up."},
        {"type": "mcp_approval_request", "id": "mcpr_3", "server_label": "wiki", "name": "search", "arguments": "{}"},
        {"type": "mcp_approval_request", "id": "mcpr_4", "server_label": "wiki", "name": "search", "arguments": "{}"},
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_3", "approve": True},
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_4", "approve": True},
        tools=[{"type": "mcp", "server_label": "wiki", "server_url": "https://example.com/wiki"}],
    ),
)
REASONING = (
    _feature(
        "encrypted-reasoning-before-a-call",
        "reasoning",
        {"role": "user", "content": "What is in the file?"},
        _thought("r1", "Reading the file."),
        _call("r1", "read_file", '{"path":"a.txt"}'),
        _output("r1", "hello"),
        _thought("r2"),
        _assistant("r2", "It says hello."),
        {"role": "user", "content": "Append a line."},
        tools=[_tool("read_file")],
        store=False,
        include=["reasoning.encrypted_content"],
    ),
    _feature(
        "reasoning-before-parallel-calls",
        "reasoning",
        {"role": "user", "content": "Read both files."},
        _thought("r3"),
        _call("r3a", "read_file", '{"path":"a.txt"}'),
        _call("r3b", "read_file", '{"path":"b.txt"}'),
        _output("r3a", "a"),
        _output("r3b", "b"),
        {"role": "user", "content": "Merge them."},
        tools=[_tool("read_file")],
    ),
    _feature(
        "reasoning-twice-in-a-row",
        "reasoning",
        {"role": "user", "content": "Prove it."},
        _thought("r4", "First part.", "Second part."),
        _thought("r5"),
        _assistant("r5", "Proved."),
        {"role": "user", "content": "Shorter."},
    ),
    _feature(
        "reasoning-before-commentary-and-a-call",
        "reasoning",
        {"role": "user", "content": "Find the bug."},
        _thought("r6"),
        _assistant("r6", "I search first.", phase="commentary"),
        _call("r6", "grep", '{"pattern":"TODO"}'),
        _output("r6", "none"),
        {"role": "user", "content": "Look deeper."},
        tools=[_tool("grep")],
    ),
    _feature(
        "reasoning-before-every-kind-of-item",
        "reasoning",
        {"role": "user", "content": "Use every tool."},
        _thought("k1"),
        {"type": "web_search_call", "id": "ws_k1", "status": "completed", "action": {"type": "search", "query": "a"}},
        _thought("k2"),
        {"type": "file_search_call", "id": "fs_k2", "status": "completed", "queries": ["a"], "results": None},
        _thought("k3"),
        {
            "type": "code_interpreter_call",
            "id": "ci_k3",
            "container_id": "cntr_k3",
            "status": "completed",
            "code": "1",
            "outputs": [],
        },
        _thought("k4"),
        {"type": "image_generation_call", "id": "ig_k4", "status": "completed", "result": PIXEL},
        _thought("k5"),
        {"type": "custom_tool_call", "call_id": "call_k5", "name": "exec", "input": "x"},
        {"type": "custom_tool_call_output", "call_id": "call_k5", "output": "y"},
        _thought("k6"),
        {"type": "mcp_approval_request", "id": "mcpr_k6", "server_label": "wiki", "name": "s", "arguments": "{}"},
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_k6", "approve": True},
        _thought("k7"),
        {
            "type": "mcp_call",
            "id": "mcp_k7",
            "server_label": "wiki",
            "name": "s",
            "arguments": "{}",
            "output": "z",
            "approval_request_id": "mcpr_k6",
        },
        _thought("k8"),
        {"type": "tool_search_call", "call_id": None, "execution": "server", "arguments": {}},
        {"type": "tool_search_output", "call_id": None, "execution": "server", "tools": [_tool("found")]},
        _thought("k9"),
        _assistant("k9", "Used all."),
        {"role": "user", "content": "Well done."},
        tools=[{"type": "custom", "name": "exec"}],
    ),
    _feature(
        "reasoning-with-readable-content",
        "reasoning",
        {"role": "user", "content": "Why?"},
        {
            "type": "reasoning",
            "id": "rs_c1",
            "summary": [],
            "content": [{"type": "reasoning_text", "text": "Because of the pool."}],
            "status": "completed",
        },
        _assistant("c1", "The pool."),
        {"role": "user", "content": "Fix it."},
        model="gpt-oss-120b",
    ),
    _feature(
        "reasoning-stored-on-the-server",
        "reasoning",
        {"role": "user", "content": "Why not?"},
        {"type": "reasoning", "id": "rs_s1", "summary": []},
        _assistant("s1", "No reason."),
        {"role": "user", "content": "Then do it."},
        store=True,
    ),
    _feature(
        "reasoning-of-a-turn-that-was-cut",
        "reasoning",
        {"role": "user", "content": "Write a novel."},
        _thought("cut1", status="incomplete"),
        _assistant("cut1", "Chapter one.", status="incomplete"),
        {"role": "user", "content": "Go on."},
    ),
)
COMPACTION = (
    _feature(
        "compaction-item",
        "compaction",
        _compaction("1"),
        {"role": "user", "content": "Go on with the port."},
        _thought("cmp1"),
        _call("cmp1", "sh", '{"cmd":"make"}'),
        _output("cmp1", "ok"),
        {"role": "user", "content": "Now the tests."},
        tools=[_tool("sh")],
        store=False,
        context_management=[{"type": "compaction", "compact_threshold": 200000}],
    ),
    _feature(
        "configuration-update-after-compaction",
        "compaction",
        _compaction("2"),
        {
            "type": "configuration_update",
            "id": "cu_cfg1",
            "reasoning": {"effort": "low"},
            "text": {"format": {"type": "text"}},
        },
        {"role": "user", "content": "Quickly now."},
    ),
    _feature(
        "compact-window",
        "compaction",
        _user("Port the parser."),
        {"role": "developer", "content": "Use Rust."},
        _user("Then the printer."),
        _compaction("3"),
        {"role": "user", "content": "And now the linter."},
    ),
    _feature(
        "compaction-item-in-an-untrimmed-list",
        "compaction",
        {"role": "user", "content": "Port the parser."},
        _call("old1", "sh", '{"cmd":"ls"}'),
        _output("old1", "parser.py"),
        _assistant("old1", "Ported."),
        _compaction("4"),
        _assistant("new1", "Next is the printer."),
        {"role": "user", "content": "Go on."},
        tools=[_tool("sh")],
        context_management=[{"type": "compaction", "compact_threshold": 200000}],
    ),
    _feature(
        "compaction-item-twice",
        "compaction",
        _user("Port the parser."),
        _compaction("6"),
        _assistant("two1", "Ported."),
        _user("Then the printer."),
        _compaction("7"),
        _user("And the linter."),
    ),
    _feature(
        "compaction-trigger",
        "compaction",
        {"role": "user", "content": "Port it."},
        _assistant("trig1", "Half is done."),
        {"role": "user", "content": "Go on."},
        {"type": "compaction_trigger"},
        stream=True,
    ),
)
STATE = (
    _feature(
        "previous-response-begins-with-outputs",
        "conversation-state",
        _output("stored1", "21 degrees"),
        _output("stored2", "25 degrees"),
        {"role": "user", "content": "Which is warmer?"},
        previous_response_id="resp_1",
        tools=[_tool("get_weather")],
    ),
    _feature(
        "conversation-begins-with-an-output",
        "conversation-state",
        {"type": "custom_tool_call_output", "call_id": "call_stored3", "output": "done"},
        conversation="conv_1",
    ),
    _feature(
        "safety-check-acknowledged-in-a-chain",
        "tools-computer-use",
        {
            "type": "computer_call_output",
            "call_id": "call_stored4",
            "acknowledged_safety_checks": [{"id": "cu_sc_9"}],
            "output": {"type": "computer_screenshot", "image_url": PICTURE},
        },
        previous_response_id="resp_2",
        tools=[{"type": "computer"}],
    ),
    _feature(
        "approval-in-a-chain",
        "tools-connectors-mcp",
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_stored5", "approve": True},
        previous_response_id="resp_3",
        tools=[{"type": "mcp", "server_label": "wiki", "server_url": "https://example.com/wiki"}],
    ),
    _feature(
        "background",
        "background",
        {"role": "user", "content": "Research the topic for an hour."},
        background=True,
        store=True,
    ),
)
FEATURES = (*MESSAGES, *INPUTS, *CALLS, *COMPUTER, *HOSTED, *MCP, *REASONING, *COMPACTION, *STATE)


def _everything() -> dict[str, Any]:
    """Return one body of all features that combine: the compaction item first, its trigger last."""
    start = ("compaction-item", "configuration-update-after-compaction")
    combined = [feature for feature in FEATURES if feature.name not in ALONE]
    combined.sort(key=lambda feature: (feature.name not in start[:1], feature.name == "compaction-trigger"))
    items: list[Any] = []
    tools: dict[str, Any] = {}
    body: dict[str, Any] = {"model": MODEL}
    for feature in combined:
        given = feature.body["input"]
        items += [item for item in given if feature.name != start[1] or item.get("type") != "compaction"]
        tools |= {repr(tool): tool for tool in feature.body.get("tools", ())}
        body |= {key: value for key, value in feature.body.items() if key not in ("model", "input", "tools", "include")}
    return {**body, "input": items, "tools": list(tools.values())}


EVERYTHING = _everything()
