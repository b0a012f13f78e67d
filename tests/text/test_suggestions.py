import pytest

import refold
from refold import formats, policies
from refold._text.suggestions import did_you_mean
from refold.errors import UnknownFormat, UnknownPolicy, UsageError

MESSAGES = [{"role": "user", "content": "go"}]


def test_the_nearest_known_name_is_named_and_nothing_where_none_is_near():
    assert did_you_mean("Anthropc", ["openai-chat", "anthropic"]) == "; did you mean anthropic?"
    assert did_you_mean("zzz", ["openai-chat", "anthropic"]) == ""
    assert did_you_mean("x" * 10**6, ["openai-chat"]) == ""


@pytest.mark.parametrize(
    ("call", "error", "named"),
    [
        (lambda: formats.find("antropic"), UnknownFormat, "anthropic"),
        (lambda: refold.count(MESSAGES, format="openai_chat"), UnknownFormat, "openai-chat"),
        (lambda: policies.find("claude_code"), UnknownPolicy, "claude-code"),
        (lambda: refold.check(MESSAGES, window=1_000, counter="exakt"), UsageError, "exact"),
        (lambda: refold.compact(MESSAGES, window=1_000, cause="overflw"), UsageError, "overflow"),
    ],
)
def test_a_misspelt_name_is_refused_with_the_one_that_was_meant(call, error, named):
    with pytest.raises(error, match=f"did you mean {named}\\?"):
        call()
