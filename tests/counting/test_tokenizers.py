import pickle
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refold import formats
from refold._counting import ExactCounter, counter_for
from refold.core.counting import Counter, count_all
from refold.core.messages import (
    File,
    Image,
    Message,
    MessageId,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from refold.errors import UnknownModel

FAMILIES = {
    "gpt-4o": ("gpt-4o", "o200k_base", True),
    "gpt-4o-mini": ("gpt-4o-mini", "o200k_base", True),
    "openai/gpt-4.1": ("gpt-4o", "o200k_base", True),
    "gpt-4": ("gpt-4", "cl100k_base", True),
    "gpt-4-turbo-2024-04-09": ("gpt-4", "cl100k_base", True),
    "gpt-3.5-turbo": ("gpt-4", "cl100k_base", True),
    "gpt-5.2-codex": ("gpt-5", "o200k_base", True),
    "o3": ("o1", "o200k_base", True),
    "gpt-oss-120b": ("gpt-oss", "o200k_harmony", True),
    "claude-3-5-sonnet-20241022": ("claude", "o200k_base", False),
    "claude-opus-4-20250514": ("claude", "o200k_base", False),
    "anthropic/claude-opus-4.6": ("claude", "o200k_base", False),
    "claude-opus-4": ("claude", "o200k_base", False),
    "claude-3-7-sonnet-latest": ("claude", "o200k_base", False),
    "claude-haiku-4-5@20251001": ("claude", "o200k_base", False),
    "claude-opus-4-7": ("claude-4.7", "o200k_base", False),
    "claude-sonnet-latest": ("claude-4.7", "o200k_base", False),
    "us.anthropic.claude-sonnet-5-v1:0": ("claude-4.7", "o200k_base", False),
    "gemini-2.5-pro": ("gemini", "gemma3", False),
    "gemini-1.5-flash-latest": ("gemini", "gemma3", False),
    "gemini-3-pro-preview": ("gemini-3", "gemma3", False),
    "gemini-flash-latest": ("gemini-3", "gemma3", False),
    "deepseek-chat": ("deepseek", "deepseek_v3", True),
    "Qwen/Qwen3-Coder-480B": ("qwen", "qwen3", True),
    "qwen3.5-plus": ("qwen-3.5", "qwen3", False),
    "z-ai/glm-4.6": ("glm", "glm4", True),
    "moonshotai/Kimi-K2-Instruct": ("kimi", "kimi_k2", True),
    "meta-llama/Llama-3.3-70B-Instruct": ("llama-3", "llama3", True),
    "mistral-large-latest": ("mistral", "mistral_v3", True),
    "grok-4": ("grok", "o200k_base", False),
    "gemma-3-27b-it": ("gemma-3", "gemma3", True),
    "wholly-unknown": ("unknown", "o200k_base", False),
}
PROSE = "The reader wants to know what happened and why it matters. " * 40
CODE = "def total(rows):\n    return {row.key: row.n for row in rows if row.n > 0}\n" * 40


def message(*parts: object, role: str = "user") -> Message:
    return Message(MessageId("m"), role, tuple(parts))  # type: ignore[arg-type]


@pytest.mark.parametrize("model", FAMILIES)
def test_a_model_has_the_vocabulary_of_its_family(model: str) -> None:
    counter = counter_for(model)
    assert (counter.family, counter.encoding, counter.exact) == FAMILIES[model]


@pytest.mark.parametrize("model", FAMILIES)
def test_every_vocabulary_named_is_there(model: str) -> None:
    assert counter_for(model).text("hello world") >= 2


def test_without_a_model_the_provider_tells() -> None:
    assert counter_for(None, "anthropic").family == "claude-4.7"
    assert counter_for(None, "google-ai").family == "gemini-3"
    assert counter_for(None, "bedrock").family == "unknown"
    assert counter_for("next-big-thing", "openai").exact is False
    assert counter_for(None).encoding == "o200k_base"


def test_without_model_and_provider_the_format_tells() -> None:
    families = {name: counter_for(None, None, name).family for name in formats.names()}
    assert families == {
        "anthropic": "claude-4.7",
        "bedrock": "unknown",
        "gemini": "gemini-3",
        "openai-chat": "unknown",
        "openai-responses": "unknown",
    }


def test_a_model_wins_over_provider_and_format_and_a_provider_over_the_format() -> None:
    assert counter_for("gpt-4o", "anthropic", "anthropic").family == "gpt-4o"
    assert counter_for("claude-opus-4-5", None, "anthropic").family == "claude"
    assert counter_for(None, "deepseek", "anthropic").family == "deepseek"
    assert counter_for(None, "bedrock", "anthropic").family == "claude-4.7"


def test_an_unknown_model_is_counted_as_the_newest_of_its_maker_and_not_as_exact() -> None:
    counter = counter_for("my-alias", None, "anthropic")
    assert (counter.family, counter.exact) == ("claude-4.7", False)
    assert counter_for("openai/next-big-thing", None, "anthropic").family == "gpt-5"


def test_newer_claude_models_count_a_third_more_than_older_ones() -> None:
    plain, old, new = (counter_for(name) for name in ("gpt-4o", "claude-opus-4-6", "claude-opus-4-7"))
    for text, least, most in ((PROSE, 1.10, 1.50), (CODE, 1.15, 1.55)):
        assert old.text(text) / plain.text(text) == pytest.approx(least, abs=0.08)
        assert new.text(text) / plain.text(text) == pytest.approx(most, abs=0.08)


def test_a_message_counts_calls_arguments_results_and_reasoning() -> None:
    counter = counter_for("gpt-4o")
    words = "alpha beta gamma delta " * 50
    bare = counter.message(message())
    whole = counter.text(words)
    for part in (
        Text(words),
        ToolCall("c", "write", words),
        ToolResult("c", (Text(words),)),
        Reasoning(words),
        File(text=words),
    ):
        assert whole <= counter.message(message(part)) - bare <= whole + 20
    assert counter.message(message(Opaque("hologram", 300))) == bare + 100
    assert counter.message(message(Reasoning(size=4_000))) == bare + 1_000


def test_thinking_costs_the_larger_of_what_is_readable_and_what_is_sealed() -> None:
    counter = counter_for("claude-opus-4-7")
    words = "alpha beta gamma delta " * 50
    bare = counter.message(message())
    assert counter.message(message(Reasoning(words, sealed=True, size=300))) == bare + counter.text(words)
    assert counter.message(message(Reasoning("short", sealed=True, size=7_250))) == bare + 2_000


def test_a_picture_costs_its_pixels_and_not_its_base64() -> None:
    counter = counter_for("claude-opus-4-6")
    picture = Image("image/png", bytes=900_000, width=1_092, height=1_092)
    assert counter.message(message(ToolResult("c", (picture,)))) < 1_700


def test_a_list_is_the_sum_of_its_messages_and_the_frame() -> None:
    counter = counter_for("gpt-4o")
    talk = [message(Text("hello")), message(Text("hi there"), role="assistant")]
    assert count_all(counter, talk) == 3 + (3 + 1) + (3 + 2)


def test_tools_cost_their_schema_and_what_goes_with_them() -> None:
    counter = counter_for("claude-opus-4-6")
    assert counter.tools("") == 0
    assert counter.tools('{"name": "read"}') > 346


def test_a_counter_is_a_value() -> None:
    counter = counter_for("claude-opus-4-7")
    assert pickle.loads(pickle.dumps(counter)) == counter
    assert hash(counter) == hash(counter_for("anthropic/claude-opus-4.7"))
    checked: Counter = counter
    assert checked.text("") == 0


def test_a_vocabulary_that_is_not_there_is_named() -> None:
    with pytest.raises(UnknownModel, match="no-such"):
        ExactCounter("no-such").text("hello")


def test_scale_multiplies_every_text() -> None:
    plain = ExactCounter()
    assert ExactCounter(scale=2.0).text(PROSE) == 2 * plain.text(PROSE)


@given(st.text(st.characters(), max_size=300))
def test_any_text_can_be_counted(text: str) -> None:
    for model in ("gpt-4o", "claude-opus-4-7", "gemini-2.5-pro"):
        count = counter_for(model).text(text)
        assert 0 <= count <= 2 * len(text.encode("utf-8", "surrogatepass")) + 2
        assert (count == 0) == (not text)


def test_importing_and_choosing_a_counter_loads_no_vocabulary() -> None:
    script = "import sys, refold._counting as c; c.counter_for('gpt-4o'); sys.exit('splintr' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
