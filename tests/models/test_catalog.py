import subprocess
import sys

import pytest

from refold.errors import BadBudget
from refold.models import _catalog as catalog
from refold.models._catalog import (
    Window,
    find,
    neurolink_window,
    output_reserve,
    prices,
    window,
    wolffish_allowance,
)
from refold.models._names import candidates, split

WINDOWS = {
    "claude-opus-4.6": 1_000_000,
    "claude-opus-4-6": 1_000_000,
    "anthropic/claude-opus-4.6": 1_000_000,
    "claude-sonnet-4-5-20250929": 200_000,
    "claude-3-5-sonnet-latest": 200_000,
    "us.anthropic.claude-sonnet-4-5-20250929-v1:0": 200_000,
    "anthropic.claude-3-5-sonnet-20241022-v2:0": 200_000,
    "arn:aws:bedrock:us-east-1:123456789012:inference-profile/eu.anthropic.claude-sonnet-4-20250514-v1:0": 200_000,
    "publishers/anthropic/models/claude-sonnet-4@20250514": 200_000,
    "gpt-4": 8_192,
    "gpt-4-0613": 8_192,
    "gpt-4o": 128_000,
    "azure/gpt-4o": 128_000,
    "gpt-4.1": 1_047_576,
    "gpt-4.1-2025-04-14": 1_047_576,
    "gpt-5": 400_000,
    "gpt-5.2": 400_000,
    "o3": 200_000,
    "o4-mini": 200_000,
    "gpt-3.5-turbo": 16_385,
    "ft:gpt-4o-mini-2024-07-18:acme::abc123": 128_000,
    "ft:gpt-4.1-2025-04-14:acme:tag:xyz": 1_047_576,
    "ft:gpt-3.5-turbo-0125:acme::q": 16_385,
    "gemini-2.5-pro": 1_048_576,
    "models/gemini-2.5-flash": 1_048_576,
    "gemini-3-pro-preview": 1_048_576,
    "deepseek/deepseek-v4-pro": 1_000_000,
    "moonshotai/Kimi-K2-Instruct": 131_072,
    "ollama/qwen3-coder:30b": 262_144,
    "gpt-oss-120b": 131_072,
    "claude-sonnet-4-5[1m]": 1_000_000,
}


@pytest.mark.parametrize("model", WINDOWS)
def test_a_model_is_found_however_it_is_written(model: str) -> None:
    assert window(model).window == WINDOWS[model]


def test_input_cap_and_output_cap_are_apart_from_the_window() -> None:
    found = window("gpt-5")
    assert (found.window, found.input_cap, found.output_cap) == (400_000, 272_000, 128_000)
    assert found.reserve == 128_000
    assert window("gpt-4o").reserve == 16_384


@pytest.mark.parametrize("model", ["wholly-unknown", "", "gpt-4.9", "claude-opus-9-9", "   ", "a/b/c:d"])
def test_an_unknown_model_gets_128000_marked_as_assumed(model: str) -> None:
    assert window(model) == Window(128_000, source="default", assumed=True)


def test_no_model_at_all_gets_the_same() -> None:
    assert window(None).assumed


def test_a_shorter_name_is_a_guess_and_never_crosses_a_version() -> None:
    found = window("gpt-4-custom")
    assert (found.window, found.source, found.assumed) == (8_192, "prefix", True)
    assert window("gpt-4.7").window != 8_192


def test_what_the_user_says_wins() -> None:
    assert window("deepseek-v4-flash", override=32_768) == Window(32_768)
    assert window("gpt-4o", override={"window": 16_000, "output_cap": 2_000}) == Window(16_000, output_cap=2_000)
    assert window("gpt-4o", override={"gpt-4o": 16_000, "other": 5}).window == 16_000
    assert window("openai/gpt-4o-latest", override={"gpt-4o-latest": 16_000}).window == 16_000
    assert window("gpt-4o", override={"other": 5}).window == 128_000
    assert window("gpt-4o", override=Window(9_000, 8_000)).input_cap == 8_000


@pytest.mark.parametrize("override", [0, -1, True, 10**9, "128k", {"window": 0}, {"window": 100, "input_cap": 200}, {"gpt-4o": -5}])  # fmt: skip
def test_an_override_that_cannot_be_is_refused(override: object) -> None:
    with pytest.raises(BadBudget):
        window("gpt-4o", override=override)  # type: ignore[arg-type]


def test_what_a_server_set_aside_caps_the_window() -> None:
    assert window("ollama/qwen3-coder:30b", allocated=32_768) == Window(32_768, source="allocated")
    assert window("unknown", allocated=4_096) == Window(4_096, source="allocated")
    assert window("unknown", allocated=500_000) == Window(500_000, source="allocated")
    assert window("gpt-4o", allocated=500_000).window == 128_000
    assert window("gpt-4o", override=16_000, allocated=8_000).window == 8_000
    with pytest.raises(BadBudget):
        window("gpt-4o", allocated=0)


def test_a_deployment_is_mapped_to_its_model() -> None:
    assert window("our-big-one", "azure", deployments={"our-big-one": "gpt-4.1"}).window == 1_047_576


def test_the_hosts_own_row_wins_over_the_vote() -> None:
    assert window("gpt-4.1", "github-copilot").source == "table:github-copilot"
    assert window("gpt-4.1", "github-copilot").window == 128_000
    assert window("github_copilot/gpt-4.1").window == 128_000
    assert window("gpt-4.1", "nobody").window == 1_047_576


def test_prices_are_per_million_and_dated() -> None:
    found = prices("claude-sonnet-4-5")
    assert found is not None
    assert (found.input, found.output, found.cache_read, found.cache_write) == (3, 15, 0.3, 3.75)
    assert len(found.dated) == 10
    assert prices("claude-3-5-sonnet-latest") is not None
    assert prices("wholly-unknown") is None
    assert prices("gpt-4-custom") is None


def test_a_search_finds_by_words() -> None:
    names = [found.model for found in find("claude opus 4.6")]
    assert "claude-opus-4-6" in names
    assert all("claude" in name and "opus" in name for name in names)
    assert find("no-such-model-anywhere") == []
    assert len(find("", limit=7)) == 7


def test_a_window_holds_its_caps_for_every_row() -> None:
    table = catalog.table()
    assert len(table.models) > 1_500
    for name in table.models:
        found = window(name)
        assert found.window > 0, name
        assert 0 <= found.input_cap <= found.window, name
        assert 0 <= found.output_cap <= found.window, name
        assert 0 < found.reserve < found.window, name


def test_an_id_is_split_into_host_and_name() -> None:
    assert split("openrouter/anthropic/claude-sonnet-4.5:free") == ("openrouter", "claude-sonnet-4-5-free")
    assert split("us.anthropic.claude-opus-4-6-v1:0") == ("bedrock", "claude-opus-4-6")
    assert split("GPT-4.1") == ("", "gpt-4-1")
    assert candidates("gpt-4o-2024-08-06") == ("gpt-4o-2024-08-06", "gpt-4o")
    assert candidates("gemini-2-5-pro-preview-05-06")[-1] == "gemini-2-5-pro"


@pytest.mark.parametrize(
    ("model", "size", "reserve", "budget"),
    [
        ("DeepSeek V4 Pro", 1_000_000, 32_768, 967_232),
        ("Claude Opus 4.6", 1_000_000, 0, 1_000_000),
        ("Claude Sonnet 4.6", 1_000_000, 0, 1_000_000),
        ("Grok 4.3", 1_000_000, 65_536, 934_464),
        ("GPT-5", 400_000, 65_536, 334_464),
        ("GPT-4.1", 1_000_000, 32_768, 967_232),
        ("Kimi K2", 262_144, 65_536, 196_608),
        ("Qwen 3.7 Max", 1_000_000, 65_536, 934_464),
    ],
)
def test_w14_gives_the_input_budget_of_its_eight_models(model: str, size: int, reserve: int, budget: int) -> None:
    found = wolffish_allowance(model.replace(" ", "-").replace("Qwen-3", "Qwen3"))
    assert found is not None
    assert (found.window, found.reserve, found.input) == (size, reserve, budget)


def test_w14_counts_later_opus_models_in_and_others_not() -> None:
    later = wolffish_allowance("claude-opus-4-8")
    assert later is not None
    assert later.input == 1_000_000
    assert wolffish_allowance("claude-opus-4-5") is None
    assert wolffish_allowance("gpt-4o") is None


@pytest.mark.parametrize(
    ("provider", "model", "size"),
    [
        ("openai", "gpt-5", 1_047_576),
        ("openai", "gpt-4", 8_192),
        ("openai", "gpt-4-0613", 8_192),
        ("openai", "gpt-4.1-2025-04-14", 1_047_576),
        ("openai", "gpt-4.1-mini-2025-04-14", 1_047_576),
        ("openai", "gpt-4o-mini-2024-07-18", 128_000),
        ("openai", "gpt-4.5-preview", 128_000),
        ("openai", "o1-mini", 128_000),
        ("openai", None, 128_000),
        ("anthropic", "claude-opus-4-20250514", 200_000),
        ("google-ai", "gemini-1.5-pro-002", 2_097_152),
        ("vertex", "unknown", 1_048_576),
        ("bedrock", "amazon.nova-lite-v1:0", 300_000),
        ("bedrock", "anything", 200_000),
        ("mistral", "mistral-medium-latest", 32_000),
        ("mistral", "codestral-latest", 256_000),
        ("huggingface", "x", 32_000),
        ("nobody", "gpt-4", 128_000),
        ("openai", "_default", 128_000),
    ],
)
def test_n10_looks_up_exact_then_prefix_then_provider_then_128000(provider: str, model: str | None, size: int) -> None:
    assert neurolink_window(provider, model) == size


def test_n20_holds_the_whole_registry() -> None:
    table = catalog._overlays().neurolink
    assert {name: len(rows) for name, rows in table.items()} == {
        "anthropic": 9, "openai": 16, "google-ai": 8, "vertex": 6, "bedrock": 8, "azure": 5, "mistral": 5,
        "ollama": 1, "litellm": 1, "huggingface": 1, "sagemaker": 1,
    }  # fmt: skip


def test_n10_reserve_is_the_given_maximum_or_35_per_cent_up_to_64000() -> None:
    assert output_reserve(200_000, 8_000) == 8_000
    assert output_reserve(128_000) == 44_800
    assert output_reserve(182_857) == 63_999
    assert output_reserve(1_000_000) == 64_000


def test_no_table_is_read_before_it_is_asked_for() -> None:
    script = "import refold.models._catalog as m; assert m.table.cache_info().currsize == 0; m.window('gpt-4o'); assert m.table.cache_info().currsize == 1"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
