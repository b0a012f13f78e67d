"""The stage that the page of stages tells how to write is one that works."""

import re
from pathlib import Path

import refold

PAGE = Path(__file__).parent.parent.parent / "docs" / "stages.md"


def test_the_stage_of_the_page_shortens_what_it_says(tmp_path):
    section = PAGE.read_text("utf-8").partition("## Write a stage")[2]
    block = re.search(r"```python\n(.*?)```", section, re.S)
    assert block is not None
    path = tmp_path / "short.py"
    path.write_text(block[1], "utf-8")
    messages = [
        {"role": "user", "content": "word " * 2_000},
        {"role": "assistant", "content": "ok"},
        {"role": "user", "content": "and?"},
    ]
    result = refold.compact(messages, policy=str(path), budget=1_800, format="openai-chat")
    assert result.plan.stages_used == ("shortenusers",)
    assert [len(message["content"]) for message in result.messages] == [2_000, 2, 4]
    assert result.messages[1:] == messages[1:]
