import json
from pathlib import Path

import pytest

from refold.errors import UnknownFormat, UsageError
from refold.testing import judge

RECORDED = sorted((Path(__file__).parents[2] / "formats" / "recorded").glob("*/*.json"))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_recorded_request_has_no_problem_but_the_kinds_of_tomorrow(path):
    found = judge.problems(path.parent.name, json.loads(path.read_text()))
    assert [problem for problem in found if problem.rule != "unknown"] == []


def test_a_problem_names_the_rule_the_place_the_words_and_the_source():
    call = {"type": "tool_use", "id": "a b", "name": "read", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "a b", "content": "ok"}
    messages = [{"role": "user", "content": "Go."}, {"role": "assistant", "content": [call]}]
    messages.append({"role": "user", "content": [result]})
    first, second = judge.problems("anthropic", {"model": "claude-opus-4-8", "max_tokens": 10, "messages": messages})
    assert first.rule == second.rule == "ids"
    assert first.at == ("messages", 1, "content", 0, "id")
    assert first.message == "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
    assert first.source.startswith("https://platform.claude.com/docs/")


def test_the_version_of_the_model_decides_where_it_matters():
    body = {"max_tokens": 10, "messages": [{"role": "user", "content": "Go."}, {"role": "assistant", "content": "{"}]}
    assert judge.problems("anthropic", body) == ()
    assert judge.problems("anthropic", body, model="claude-sonnet-4-5") == ()
    assert [problem.rule for problem in judge.problems("anthropic", body, model="claude-opus-4-8")] == ["prefill"]


def test_a_format_that_there_is_none_of_is_named():
    with pytest.raises(UnknownFormat, match="anthropic, bedrock"):
        judge.problems("cohere", {})


def test_an_sdk_that_is_not_installed_is_named_with_its_extra(monkeypatch):
    from refold.testing.judge import _bedrock as bedrock

    def missing():
        raise ImportError(name="botocore")

    monkeypatch.setattr(bedrock, "_shape", missing)
    with pytest.raises(UsageError, match=r"needs botocore: pip install 'refold\[testing\]'"):
        judge.problems("bedrock", {"messages": []})


def test_what_codex_sends_with_each_item_to_openai_is_no_problem_and_other_unknown_keys_are():
    item = {"type": "message", "role": "user", "content": "Go.", "internal_chat_message_metadata_passthrough": {}}
    assert not judge.problems("openai-responses", {"model": "gpt-5", "input": [item]})
    (found,) = judge.problems("openai-responses", {"model": "gpt-5", "input": [{**item, "internal_note": 1}]})
    assert found.at == ("input", 0, "internal_note")
