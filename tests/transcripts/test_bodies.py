"""A usage report in a file is read as everywhere else."""

import pytest

from refold import formats
from refold.models._usage_report import reported as read
from refold.transcripts._bodies import format_of, reported

REPORTS = {
    "bedrock": {"inputTokens": 10, "outputTokens": 5, "cacheReadInputTokens": 80, "cacheWriteInputTokens": 10},
    "gemini": {"promptTokenCount": 100, "candidatesTokenCount": 5, "thoughtsTokenCount": 50},
    "gemini-tools": {"promptTokenCount": 100, "candidatesTokenCount": 5, "toolUsePromptTokenCount": 20},
    "deepseek": {"prompt_tokens": 100, "completion_tokens": 5, "prompt_cache_hit_tokens": 64},
    "anthropic": {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 80},
    "openai": {"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 64}},
}


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_says_the_same_in_a_file_and_from_a_provider(name):
    (found,) = reported(3, REPORTS[name])
    known = read(REPORTS[name])
    assert (found.covers, found.prompt, found.completion) == (3, known.prompt, known.completion)
    assert (found.cache_read, found.cache_write) == (known.cached_read, known.cache_write)


def test_the_cache_of_bedrock_thoughts_of_gemini_and_the_cache_of_deepseek_are_counted():
    assert reported(0, REPORTS["bedrock"])[0].prompt == 100
    assert reported(0, REPORTS["gemini"])[0].completion == 55
    assert reported(0, REPORTS["gemini-tools"])[0].prompt == 120
    assert reported(0, REPORTS["deepseek"])[0].cache_read == 64


@pytest.mark.parametrize(
    "usage", [None, {}, {"cost": 1}, {"input_tokens": 0, "output_tokens": 0}, {"input_tokens": -1}]
)
def test_what_holds_no_figures_is_no_report(usage):
    assert reported(0, usage) == ()


def block(role, kind, **fields):
    return [{"role": "user", "content": "go"}, {"role": role, "content": [{"type": kind, **fields}]}]


def entry(kind, **fields):
    return [{"role": "user", "content": "go"}, {"type": kind, **fields}]


LISTS = {
    "mcp use": block("assistant", "mcp_tool_use", id="m", name="a", server_name="s", input={}),
    "server use": block("assistant", "server_tool_use", id="m", name="web_search", input={}),
    "compaction block": block("assistant", "compaction", content="summary"),
    "search result": block("user", "search_result", source="s", title="t", content=[]),
    "container upload": block("user", "container_upload", file_id="f"),
    "tools in a system message": block("system", "tool_addition", tools=[]),
    "cache mark": block("user", "text", text="x", cache_control={"type": "ephemeral"})[1:],
    "words": block("user", "text", text="x"),
    "picture": block("user", "image_url", image_url={"url": "x"}),
    "function call": entry("function_call", call_id="c", name="a", arguments="{}"),
    "compaction trigger": entry("compaction_trigger"),
    "approval": [*entry("mcp_approval_request", id="a"), {"type": "mcp_approval_response", "approve": True}],
    "program": [*entry("program", id="p"), {"type": "program_output", "id": "p"}],
    "tool use": [{"role": "assistant", "content": [{"toolUse": {"toolUseId": "a", "name": "n", "input": {}}}]}],
    "parts": [{"role": "user", "parts": [{"text": "x"}]}],
}


@pytest.mark.parametrize("name", LISTS)
def test_a_list_in_a_file_is_of_the_format_that_it_has_everywhere(name):
    assert format_of(LISTS[name]) == formats.detect(LISTS[name]).name
