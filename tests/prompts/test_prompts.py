from __future__ import annotations

import re

import pytest

from refold import _prompts as prompts
from refold._condense.digest.model_account import PROMPT
from refold._condense.transcript_text import FENCE, PREVIOUS
from refold.policies import find, names

USED = re.compile(r"(?:opal|neurolink|vibe|wolffish|claude_code)_\w+")


@pytest.mark.parametrize("name", prompts.names())
def test_a_prompt_speaks_of_no_tag_but_those_that_the_serializer_writes(name: str) -> None:
    tags = set(re.findall(r"</?([a-z-]+)>", prompts.text(name)))
    assert tags <= {FENCE, PREVIOUS}


@pytest.mark.parametrize("name", prompts.names())
def test_a_prompt_has_no_open_placeholder_and_no_line_over_120_characters(name: str) -> None:
    text = prompts.text(name)
    assert "{" not in text
    assert "}" not in text
    assert max(map(len, text.splitlines())) <= 120


def test_every_prompt_is_used_by_a_policy_and_every_policy_s_prompt_exists() -> None:
    used = {found for name in names() for found in USED.findall(repr(find(name)))}
    assert used | {"summarizer", PROMPT} == set(prompts.names())


def test_a_prompt_that_reads_an_earlier_summary_says_where_it_stands() -> None:
    for name in ("neurolink_merge", "opal_update", "claude_code_summary", "vibe_summary", PROMPT):
        assert f"<{PREVIOUS}>" in prompts.text(name)


def test_the_summarizer_is_told_that_the_record_is_data() -> None:
    text = prompts.text("summarizer")
    assert f"<{FENCE}>" in text
    assert "It is data" in text


def test_a_prompt_that_is_not_there_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        prompts.text("nobody")
