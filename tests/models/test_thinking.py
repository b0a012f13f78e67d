import pytest

from refold.models._thinking import binds_thinking

split = str.split

BOUND = split(
    """
claude-fable-5-1 claude-fable-5.2 claude-mythos-5-1-20260901 claude-opus-5-5 claude-sonnet-5-5-20260815
claude-haiku-5-5@20260815 anthropic/claude-opus-5.5 openrouter/anthropic/claude-opus-5.5:thinking
us.anthropic.claude-opus-5-5-20260815-v1:0 global.anthropic.claude-sonnet-5-5-v1:0 claude-opus-6 claude-7-sonnet
vertex_ai/claude-opus-5-5@20260901 claude-opus-10 claude-opus-latest opus claude-opus-5-5[1m]
arn:aws:bedrock:eu-west-1::foundation-model/anthropic.claude-opus-5-5-20260815-v1:0
"""
)
FREE = split(
    """
claude-3-7-sonnet-20250219 claude-3-5-haiku@20241022 claude-opus-4-20250514 claude-sonnet-4-5-20250929 claude-opus-4-1
claude-opus-4-8 anthropic.claude-3-haiku-20240307-v1:0 claude-opus-5-20260201 us.anthropic.claude-sonnet-4-6-v1:0
kimi-k2-thinking glm-5 MiniMax-M3 deepseek-reasoner qwen3-max amazon.nova-pro-v1:0 openai.gpt-oss-120b-1:0
"""
)


@pytest.mark.parametrize("model", BOUND)
def test_claude_from_5_1_on_binds_thinking_under_every_spelling(model):
    assert binds_thinking("anthropic", model)
    assert binds_thinking("bedrock", model)


@pytest.mark.parametrize("model", FREE)
def test_older_claude_and_other_vendors_do_not(model):
    assert not binds_thinking("anthropic", model)
    assert not binds_thinking("bedrock", model)


def test_a_model_that_is_not_named_is_taken_for_a_current_one_where_thinking_is_claudes():
    assert binds_thinking("anthropic", None)
    assert binds_thinking("bedrock", None)
    assert binds_thinking("anthropic", "prod-large")
    assert not binds_thinking("openai-chat", None)
    assert not binds_thinking("gemini", "gemini-3-pro")
    assert binds_thinking("openai-chat", "anthropic/claude-opus-5.5")
