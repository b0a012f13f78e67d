import pytest

from refold.errors import UsageError
from refold.models._usage_report import UsageReport, reported

SHAPES = {
    "openai chat": ({"prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1050, "prompt_tokens_details": {"cached_tokens": 800}}, UsageReport(1000, 50, 800)),
    "openai responses": ({"input_tokens": 1000, "output_tokens": 50, "input_tokens_details": {"cached_tokens": 800}, "total_tokens": 1050}, UsageReport(1000, 50, 800)),
    "anthropic": ({"input_tokens": 10, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 90, "output_tokens": 50}, UsageReport(1000, 50, 900, 90)),
    "anthropic without a cache": ({"input_tokens": 10, "output_tokens": 5}, UsageReport(10, 5)),
    "gemini": ({"usageMetadata": {"promptTokenCount": 1000, "candidatesTokenCount": 40, "thoughtsTokenCount": 10, "cachedContentTokenCount": 500, "totalTokenCount": 1050}}, UsageReport(1000, 50, 500)),
    "bedrock": ({"usage": {"inputTokens": 100, "outputTokens": 50, "totalTokens": 1050, "cacheReadInputTokens": 850, "cacheWriteInputTokens": 50}}, UsageReport(1000, 50, 850, 50)),
    "litellm of anthropic": ({"prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1050, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 90}, UsageReport(1000, 50, 900, 90)),
    "langchain": ({"input_tokens": 1000, "output_tokens": 50, "total_tokens": 1050, "input_token_details": {"cache_read": 900, "cache_creation": 10}}, UsageReport(1000, 50, 900, 10)),
    "pi": ({"input": 10, "output": 50, "cacheRead": 900, "cacheWrite": 90}, UsageReport(1000, 50, 900, 90)),
    "opencode": ({"input": 100, "output": 50, "reasoning": 0, "cache": {"read": 900, "write": 0}}, UsageReport(1000, 50, 900)),
    "deepseek": ({"prompt_tokens": 1000, "completion_tokens": 50, "prompt_cache_hit_tokens": 640, "prompt_cache_miss_tokens": 360}, UsageReport(1000, 50, 640)),
    "a sum over calls": ({"input_tokens": 4000, "output_tokens": 3000, "cache_read_input_tokens": 819_132, "cache_creation_input_tokens": 105_000, "total_tokens": 164_000, "aggregated_calls": 12}, UsageReport(164_000, 3000, 819_132, 105_000)),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_of_report_reads_alike(shape: str) -> None:
    given, meant = SHAPES[shape]
    assert reported(given) == meant


@pytest.mark.parametrize("figure", [-1, "12", True, 1.5])
def test_a_figure_that_cannot_be_is_named(figure: object) -> None:
    with pytest.raises(UsageError, match="prompt_tokens"):
        reported({"prompt_tokens": figure})


def test_a_report_without_figures_is_refused() -> None:
    with pytest.raises(UsageError, match="no token figure"):
        reported({"service_tier": "default"})


def test_a_report_becomes_the_usage_that_gauges_take() -> None:
    usage = UsageReport(1000, 50, 900).usage(covers=7)
    assert (usage.prompt, usage.completion, usage.cached, usage.covers) == (1000, 50, 900, 7)
