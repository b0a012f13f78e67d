"""An oversized new output through every way a conversation is sent."""

import asyncio

import pytest

import refold
from refold.aio import acompact
from refold.sessions import MemoryStore, Session

LINES = "\n".join(f"src/part_{n}.py:{n}: value_{n}" for n in range(2_000))
NEXT = [{"role": "assistant", "content": "There."}, {"role": "user", "content": "Thanks. Never do it again."}]


def chat():
    call = {"id": "c1", "type": "function", "function": {"name": "grep", "arguments": '{"pattern": "value_777"}'}}
    return [
        {"role": "user", "content": "Where is it?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": LINES},
    ]


def anthropic():
    use = {"type": "tool_use", "id": "c1", "name": "grep", "input": {"pattern": "value_777"}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": LINES}]}
    return [
        {"role": "user", "content": "Where is it?"},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result, {"type": "text", "text": LINES}]},
    ]


@pytest.mark.parametrize(("messages", "window"), [(chat(), 40_000), (anthropic(), 80_000)], ids=["chat", "anthropic"])
def test_where_it_alone_reaches_the_trigger_it_alone_is_cut_and_all_else_stays_the_same_objects(messages, window):
    result = refold.compact(messages, window=window)
    assert result.plan.stages_used == ("new output",)
    assert all(new is old for new, old in zip(result.messages[:2], messages[:2], strict=True))
    assert result.sizes.after < result.sizes.before - 8_000
    assert "value_777" in str(result.messages[2])


def test_below_the_trigger_it_stays_whole_and_every_message_is_the_same_object():
    messages = chat()
    result = refold.compact(messages, window=200_000)
    assert result.plan.empty
    assert all(new is old for new, old in zip(result.messages, messages, strict=True))


def test_what_a_person_wrote_beside_it_stays_whole():
    result = refold.compact(anthropic(), window=80_000)
    assert result.messages[2]["content"][1]["text"] == LINES


def test_later_calls_send_the_same_bytes_with_the_plans_or_with_the_messages_sent():
    first = refold.compact(chat(), window=40_000)
    planned = refold.compact([*chat(), *NEXT], window=40_000, plans=first.plans)
    assert planned.plan.empty
    assert planned.messages[:3] == first.messages
    again = refold.compact([*first.messages, *NEXT], window=40_000)
    assert again.plan.empty
    assert all(new is old for new, old in zip(again.messages, first.messages, strict=False))


def test_both_drivers_and_both_runs_make_one_plan():
    plan = refold.compact(chat(), window=40_000).plan
    assert refold.compact(chat(), window=40_000).plan == plan
    assert asyncio.run(acompact(chat(), window=40_000)).plan == plan


def test_rewinding_brings_the_whole_back():
    result = refold.compact(chat(), window=40_000)
    assert refold.rewind(result) == chat()


def test_a_budget_to_be_filled_takes_it_whole_where_it_fits():
    assert refold.compact(chat(), budget=100_000).plan.empty


def test_a_session_sends_it_cut_and_recalls_the_whole():
    session = Session(MemoryStore(), window=40_000)
    ids = session.append(chat())
    assert session.needs_compaction()
    assert session.compact() is not None
    assert not session.needs_compaction()
    cut = session.view()[2]["content"]
    assert len(cut) < len(LINES) // 2
    id = cut.split("\n")[0].split("recall ")[1]
    assert id == ids[2]
    (found,) = session.recall(id)
    assert found.message["content"] == LINES
    session.append(NEXT)
    session.compact()
    assert session.view()[2]["content"] == cut
    assert len(session.plans) == 1


def test_a_later_compaction_chooses_from_the_whole_output_and_not_from_what_was_left_of_it():
    first = refold.compact(chat(), window=40_000)
    later = [*chat(), *NEXT]
    for n in range(60):
        used = {"id": f"d{n}", "type": "function", "function": {"name": "read", "arguments": f'{{"path": "p{n}.py"}}'}}
        later += [
            {"role": "assistant", "content": f"And part {n}; see value_{1_000 + n}.", "tool_calls": [used]},
            {"role": "tool", "tool_call_id": f"d{n}", "content": f"def part_{n}(value):\n    return value\n" * 100},
        ]
    result = refold.compact(later, window=60_000, plans=first.plans)
    assert "fit" in result.plan.stages_used
    shown = str(result.messages)
    assert "[parts of the output] [parts of the output]" not in shown
    assert shown.count("all of it is kept, recall") <= 1
