"""What a harness puts into users' turns is shortened like output, for the shape of each agent; what was typed stays."""

from itertools import pairwise

import pytest

import refold

NOISE = "\n".join(
    f"line {number}: the report must never mention value_{number} of part{number}.go" for number in range(150)
)
SHAPES = {
    "claude-code": f"<task-notification>\n<summary>Agent done</summary>\n<result>{NOISE}</result>\n</task-notification>",
    "claude-code skill": f"Base directory for this skill: /home/ann/skills/review\n\n{NOISE}",
    "claude-code shell": f"<bash-stdout>{NOISE}</bash-stdout><bash-stderr></bash-stderr>",
    "codex": f"<environment_context>\n{NOISE}\n</environment_context>",
    "codex agent": f"<subagent_notification>\n{NOISE}\n</subagent_notification>",
    "pi": f"Ran `make`\n```\n{NOISE}\n```",
    "gemini-cli": f"<session_context>\nThis is the Gemini CLI.\n{NOISE}\n</session_context>",
    "cline": f"<environment_details>\n{NOISE}\n</environment_details>",
    "droid": f"Contents of /work/a.go (lines 1-150 of 150):\n{NOISE}",
    "mini-swe-agent": f"<returncode>0</returncode>\n<output>\n{NOISE}\n</output>",
    "openhands": f"EXECUTION RESULT of [terminal]:\n{NOISE}",
    "swe-agent": f"{NOISE}\n(Open file: /a.go)\n(Current directory: /)\nbash-$",
}
WORK = "\n".join(f"value_{number} = compute({number})" for number in range(300))
REQUEST = "Mend the parser. Never touch the vault."


def history(*turns, batches=12):
    """Return a conversation in OpenAI's shape: the turns, then calls with long output."""
    messages = [{"role": "user", "content": turn} if isinstance(turn, str) else turn for turn in turns]
    for number in range(batches):
        call = {"name": "read", "arguments": f'{{"path": "src/part{number}.py"}}'}
        calls = [{"id": f"c{number}", "type": "function", "function": call}]
        messages.append({"role": "assistant", "content": f"Step {number}.", "tool_calls": calls})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": f"{number} {WORK}"})
    return [*messages, {"role": "assistant", "content": "That is all."}]


def compacted(messages, budget=1_600):
    return refold.compact(messages, format="openai-chat", policy="refold", budget=budget, force=True).messages


def words(messages):
    return [message["content"] for message in messages if message["role"] == "user"]


@pytest.mark.parametrize("shape", SHAPES)
def test_what_a_harness_says_is_shortened_and_no_line_of_it_is_a_constraint(shape):
    messages = history(REQUEST, {"role": "assistant", "content": "I begin."}, SHAPES[shape])
    left = words(compacted(messages))
    assert left[0].startswith(REQUEST)
    assert sum(text.count("must never mention") for text in left) < 75
    quoted = [line for text in left for line in text.split("\n") if line.startswith('- "')]
    assert not any("must never mention" in line for line in quoted)


@pytest.mark.parametrize(
    "shape", [name for name, text in SHAPES.items() if text.startswith("<") and "returncode" not in text]
)
def test_what_was_typed_beside_it_is_the_request_and_stays_whole(shape):
    typed = "Now rename load_items. Keep store.py as it is, and ask me before you delete anything."
    messages = history(REQUEST, {"role": "assistant", "content": "I begin."}, f"{SHAPES[shape]}\n\n{typed}")
    left = "\n".join(words(compacted(messages)))
    assert typed in left
    assert left.count("must never mention") < 90


def test_a_message_of_instructions_is_not_the_first_request_and_its_file_stays_named():
    agents = f"# AGENTS.md instructions for /work/shop\n\n<INSTRUCTIONS>\n{NOISE}\n</INSTRUCTIONS>"
    both = {"role": "user", "content": [{"type": "text", "text": agents}, {"type": "text", "text": SHAPES["codex"]}]}
    left = compacted(history(both, REQUEST))
    assert left[0]["content"][0]["text"].startswith("# AGENTS.md instructions for /work/shop\n")
    assert len(left[0]["content"][0]["text"]) < len(agents) / 2
    assert left[1]["content"].startswith(REQUEST)


def test_small_instructions_stay_whole_and_only_where_they_are_given_last():
    rules = "\n".join(f"- Rule {number}: always run check_{number} before a commit." for number in range(12))
    agents = f"# AGENTS.md instructions for /work/shop\n\n<INSTRUCTIONS>\n{rules}\n</INSTRUCTIONS>"
    messages = history(agents, REQUEST, {"role": "assistant", "content": "I begin."}, agents, "Go on.")
    left = words(compacted(messages, 12_000))
    assert sum(rules in text for text in left) == 1


def test_the_newest_report_is_shortened_only_where_it_is_large_and_says_what_it_was():
    report = SHAPES["claude-code"]
    large = words(compacted([*history(REQUEST), {"role": "user", "content": report}], 2_600))
    assert "<task-notification>" in large[-1]
    assert len(large[-1]) < len(report)
    small = report.replace(NOISE, NOISE[:400])
    assert words(compacted([*history(REQUEST), {"role": "user", "content": small}], 3_000))[-1] == small


def test_a_list_that_was_compacted_is_compacted_again_with_no_word_of_the_harness_pinned():
    messages = history(REQUEST, {"role": "assistant", "content": "I begin."}, SHAPES["claude-code"], batches=12)
    again = compacted([*compacted(messages), *history("Go on.", batches=12)])
    quoted = [line for text in words(again) for line in text.split("\n") if line.startswith('- "')]
    assert not any("must never mention" in line for line in quoted)
    assert any(text.startswith(REQUEST) for text in words(again))


def test_results_in_plain_words_leave_with_what_they_answer():
    messages = [{"role": "user", "content": REQUEST}]
    for number in range(40):
        messages.append({"role": "assistant", "content": f"```bash\nsed -n 1,9p part{number}.go\n```"})
        output = "\n".join(f"value_{number}_{line}" for line in range(150))
        messages.append({"role": "user", "content": f"<returncode>0</returncode>\n<output>\n{output}\n</output>"})
    left = compacted(messages, 2_500)
    for before, after in pairwise(left):
        if after["content"].startswith("<returncode>"):
            assert before["role"] == "assistant"
    assert sum(message["role"] == "assistant" for message in left) < 40
