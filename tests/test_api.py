import asyncio
import copy
import pickle

import pytest

import refold
from refold import policies
from refold._compaction.options import CompactOptions, Options
from refold.core.messages import MessageId
from refold.core.view import Cause
from refold.errors import (
    BadBudget,
    BadMessages,
    BrokenConversation,
    CannotFit,
    StalePlan,
    UnknownFormat,
    UnknownOption,
    UnknownPolicy,
    UsageError,
)
from refold.sessions import MemoryStore

SYSTEM = {"role": "system", "content": "You mend programs."}
TOOL = {"type": "function", "function": {"name": "read_file", "description": "Reads a file", "parameters": {}}}


def conversation(rounds=12, size=400):
    messages = [SYSTEM, {"role": "user", "content": "Find why orders are paid twice. Never touch migrations/."}]
    for number in range(rounds):
        call = {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": "read_file", "arguments": f'{{"path": "src/orders_{number}.py"}}'},
        }
        lines = "\n".join(
            f"def handler_{number}_{line}(order): return order.total_{line}" for line in range(size // 10)
        )
        messages += [
            {"role": "assistant", "content": f"Reading file {number}.", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call_{number}", "content": lines},
        ]
    return [*messages, {"role": "user", "content": "What did you find?"}]


MESSAGES = conversation()
ALL = refold.count(MESSAGES, format="openai-chat")
HALF = ALL // 2
PLAN = refold.plan(MESSAGES, budget=HALF)


class Said:
    def model_dump(self, **_):
        return {"role": "user", "content": "Hello", "prompt_tokens": 9_000}


def test_nothing_happens_while_nothing_is_due():
    result = refold.compact(MESSAGES, budget=10 * ALL)
    assert result.plan.empty
    assert all(new is old for new, old in zip(result.messages, MESSAGES, strict=True))


def test_a_conversation_is_brought_into_a_number_of_tokens():
    result = refold.compact(MESSAGES, budget=HALF)
    assert refold.count(result.messages, format="openai-chat") <= HALF
    assert refold.violations(result.messages, format="openai-chat") == ()
    assert result.sizes.before > HALF >= result.sizes.after


def test_untouched_messages_are_the_same_objects_and_the_input_is_not_changed():
    before = copy.deepcopy(MESSAGES)
    result = refold.compact(MESSAGES, budget=HALF)
    known = {id(message) for message in MESSAGES}
    assert result.messages[0] is SYSTEM
    assert sum(id(message) in known for message in result.messages) > 2
    assert before == MESSAGES


def test_the_originals_come_back():
    result = refold.compact(MESSAGES, budget=HALF)
    back = refold.rewind(result)
    assert all(new is old for new, old in zip(back, MESSAGES, strict=True))


def test_a_plan_can_be_made_printed_kept_and_applied_with_the_same_result():
    plan = refold.plan(MESSAGES, budget=HALF)
    kept = refold.load_plan(refold.dump_plan(plan))
    assert refold.apply(kept, MESSAGES).messages == refold.compact(MESSAGES, budget=HALF).messages


def test_a_plan_still_applies_when_the_conversation_has_grown():
    plan = refold.plan(MESSAGES, budget=HALF)
    grown = [*MESSAGES, {"role": "assistant", "content": "Nothing yet."}]
    out = refold.apply(plan, grown).messages
    assert out[:-1] == refold.apply(plan, MESSAGES).messages
    assert out[-1] is grown[-1]


def test_a_plan_is_refused_for_another_conversation():
    with pytest.raises(StalePlan):
        refold.apply(refold.plan(MESSAGES, budget=HALF), conversation(3))


def test_a_second_compaction_stands_on_the_first_and_each_is_taken_back_alone():
    first = refold.compact(MESSAGES, budget=HALF)
    grown = [*MESSAGES, *conversation(8)[2:]]
    second = refold.compact(grown, budget=HALF, plans=first.plans)
    assert refold.count(second.messages, format="openai-chat") <= HALF
    assert refold.rewind(second) == refold.apply(first.plan, grown).messages
    assert refold.rewind(second, to=0) == grown


@pytest.mark.parametrize("to", [2, 99, -2])
def test_going_back_to_more_plans_than_are_in_force_is_refused(to):
    result = refold.compact(MESSAGES, budget=HALF)
    with pytest.raises(UsageError, match=f"to={to}, but 1 plan is in force"):
        refold.rewind(result, to=to)


def test_a_plan_that_changes_nothing_is_not_in_force_and_going_back_takes_the_one_before():
    first = refold.compact(MESSAGES, budget=HALF)
    again = refold.compact(MESSAGES, budget=10 * ALL, plans=first.plans)
    assert (again.plan.empty, again.plans) == (True, first.plans)
    assert refold.rewind(again) == MESSAGES
    assert refold.compact(MESSAGES, budget=10 * ALL).plans == ()
    assert refold.apply(again.plan, MESSAGES, plans=first.plans).plans == first.plans


def test_force_compacts_although_it_is_not_due():
    assert refold.plan(MESSAGES, budget=refold.Budget(ALL * 10), goal=HALF).empty
    assert not refold.plan(MESSAGES, budget=refold.Budget(ALL * 10), goal=HALF, force=True).empty


def test_a_goal_is_a_number_of_tokens_or_a_share_of_the_input():
    budget = refold.Budget(ALL * 2)
    for goal in (HALF, 0.25, refold.Exactly(HALF), refold.Share(0.25)):
        plan = refold.plan(MESSAGES, budget=budget, goal=goal, force=True, counter="exact")
        assert plan.sizes.after <= plan.sizes.goal
        assert abs(plan.sizes.goal - HALF) <= 1


def test_the_check_says_what_the_request_is_made_of():
    check = refold.check(MESSAGES, budget=HALF, tools=[TOOL], system="Be brief.")
    assert check.due
    assert check.ratio > 1
    parts = check.breakdown
    assert check.tokens == parts.total
    assert parts.tools > 0
    assert parts.system > 0
    assert sum(parts.roles.values()) + 3 == parts.messages  # what frames a list of chat messages
    assert {"text", "call", "result"} <= set(parts.kinds)


@pytest.mark.parametrize(
    "limits",
    [
        {"window": 1_000, "system": "word " * 5_000},
        {"window": 1_000, "tools": [{"name": "read", "description": "word " * 5_000}]},
        {"window": 1_000, "max_output": 1_000},
        {"window": 1_000, "max_output": 64_000},
        {"budget": 10},
        {"budget": refold.Budget(100, 99)},
    ],
)
@pytest.mark.parametrize("policy", policies.names())
def test_a_request_that_cannot_fit_is_measured_all_the_same(policy, limits):
    check = refold.check(MESSAGES, policy=policy, **limits)
    assert check.ratio > 1
    assert check.due
    assert refold.Meter(policy=policy, **limits).check(MESSAGES).tokens == check.tokens


def test_a_usage_report_calibrates_the_check():
    covers = len(MESSAGES) - 1
    check = refold.check(MESSAGES, budget=ALL * 2, usage=refold.Usage(ALL * 2, covers=covers))
    assert check.tokens > ALL * 2
    assert check.due


def test_a_model_gives_window_and_tokenizer():
    check = refold.check(MESSAGES, model="gpt-4.1")
    assert check.limit <= 1_047_576
    assert refold.window("gpt-4.1").window == 1_047_576


def test_repair_of_a_valid_conversation_changes_nothing():
    result = refold.repair(MESSAGES)
    assert result.plan.empty
    assert all(new is old for new, old in zip(result.messages, MESSAGES, strict=True))


def test_repair_pairs_calls_and_results():
    broken = [message for message in MESSAGES if message.get("tool_call_id") != "call_3"]
    assert refold.violations(broken)
    result = refold.repair(broken)
    assert refold.violations(result.messages) == ()
    assert refold.rewind(result) == broken


def test_what_was_broken_before_is_not_held_against_a_compaction():
    broken = [*MESSAGES[:2], {"role": "tool", "tool_call_id": "lost", "content": "orphan"}, *MESSAGES[2:]]
    assert refold.compact(broken, budget=HALF).sizes.after <= HALF


def test_what_cannot_shrink_is_named_in_a_typed_error():
    with pytest.raises(CannotFit) as caught:
        refold.compact([{"role": "system", "content": "word " * 4_000}, {"role": "user", "content": "hi"}], budget=500)
    assert caught.value.sizes["system messages"] > 500
    assert "system messages" in str(caught.value)
    assert caught.value.plan.sizes.limit == 500
    passed_on = pickle.loads(pickle.dumps(caught.value))
    assert (str(passed_on), passed_on.plan) == (str(caught.value), caught.value.plan)
    assert passed_on.sizes == caught.value.sizes


def test_observers_are_told_and_cannot_break_a_compaction():
    seen = []

    def failing(event):
        raise RuntimeError

    refold.compact(MESSAGES, budget=HALF, observers=(failing, seen.append))
    assert [type(event).__name__ for event in seen] == ["CompactionStarted", "CompactionApplied"]


def test_an_overflow_uses_the_deeper_goal():
    budget = refold.Budget(ALL)
    usual = refold.plan(MESSAGES, budget=budget, force=True)
    forced = refold.plan(MESSAGES, budget=budget, cause=Cause.OVERFLOW)
    assert forced.sizes.goal < usual.sizes.goal
    assert forced.cause == "overflow"


def test_the_asynchronous_verbs_give_what_the_synchronous_ones_give():
    async def both():
        return await refold.acompact(MESSAGES, budget=HALF), await refold.aplan(MESSAGES, budget=HALF)

    result, plan = asyncio.run(both())
    assert result == refold.compact(MESSAGES, budget=HALF)
    assert plan == result.plan


def test_the_asynchronous_verbs_take_a_meter_too():
    meter = refold.Meter(budget=HALF)
    made = asyncio.run(refold.acompact(MESSAGES, budget=HALF, meter=meter))
    assert made.messages == refold.compact(MESSAGES, budget=HALF).messages
    assert asyncio.run(refold.aplan(MESSAGES, budget=HALF, meter=meter)) == made.plan


def test_an_asynchronous_summarizer_is_awaited():
    async def summarize(need):
        return "GOAL: find double payments."

    result = asyncio.run(refold.acompact(MESSAGES, budget=HALF, policy="opal", summarize=summarize))
    assert any("find double payments" in str(message["content"]) for message in result.messages)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({}, BadBudget, "budget=, window= or model="),
        ({"budget": 0}, BadBudget, "positive"),
        ({"budget": -5}, BadBudget, "positive"),
        ({"window": 10**12}, BadBudget, "positive"),
        ({"window": 1_000, "max_output": 1_000}, BadBudget, "leaves nothing"),
        ({"budget": True}, BadBudget, "positive"),
        ({"budget": 1_000, "goal": 2_000}, BadBudget, "input budget"),
        ({"budget": 1_000, "goal": 1.5}, BadBudget, "share"),
        ({"budget": 1_000, "goal": 40}, BadBudget, "for 40 % of the input budget give 0.4"),
        ({"budget": 1_000, "policy": "nope"}, UnknownPolicy, "nope"),
        ({"budget": 1_000, "format": "nope"}, UnknownFormat, "nope"),
        ({"budget": 1_000, "counter": "nope"}, UsageError, "nope"),
        ({"budget": 1_000, "cause": "nope"}, UsageError, "nope"),
        ({"budget": 100, "system": "word " * 500}, BadBudget, "system prompt and tools"),
        ({"budget": 1_000, "usage": {"prompt_tokens": -1}}, UsageError, "usage"),
        ({"budget": 1_000, "usage": 5}, UsageError, "usage report of type int"),
        ({"budget": 1_000, "goal": "80%"}, UsageError, "goal is of type str: give a number"),
        ({"budget": 1_000, "policy": None}, UsageError, "policy is of type NoneType: give a policy's name"),
        ({"budget": 1_000, "model": ["gpt-4o"]}, UsageError, "model is of type list: give a model's id"),
        ({"window": 1_000, "max_output": "100"}, BadBudget, "max_output='100'"),
        ({"window": 1_000, "max_output": -1}, BadBudget, "max_output=-1"),
        ({"budget": 1_000, "counter": 4}, UsageError, "counter of type int"),
        ({"budget": 1_000, "plans": PLAN}, UsageError, "plans is of type Plan: give a list"),
        ({"budget": 1_000, "pinned": [{}]}, UsageError, r"pinned\[0\] is of type dict: give the id of a message"),
        ({"budget": 1_000, "plans": ["plan:x"]}, UsageError, "holds a value of type str"),
        ({"budget": 1_000, "handlers": print}, UsageError, "a function as summarize="),
    ],
)
def test_an_argument_that_cannot_be_is_named_with_its_remedy(arguments, error, words):
    with pytest.raises(error, match=words):
        refold.compact(MESSAGES, **arguments)


@pytest.mark.parametrize("messages", ["text", {"role": "user"}, 7, None])
def test_what_is_no_list_is_refused(messages):
    with pytest.raises(UsageError, match="list"):
        refold.compact(messages, budget=100)


def test_an_entry_that_is_no_message_is_named_by_its_position():
    with pytest.raises(BadMessages, match="message 1"):
        refold.compact([MESSAGES[1], "hello"], budget=100, format="openai-chat")


def test_a_usage_report_of_an_sdk_is_read_as_its_fields_are():
    plain = refold.check(MESSAGES, window=100_000, usage={"prompt_tokens": 9_000})
    assert refold.check(MESSAGES, window=100_000, usage=Said()) == plain


def test_an_empty_conversation_is_left_alone():
    assert refold.compact([], budget=100, format="openai-chat").messages == []


def test_a_text_is_counted_by_the_models_own_tokenizer():
    assert refold.count("hello world", model="gpt-4o") == 2
    assert refold.count("hello \ud83d world") > 0


def test_ids_do_not_depend_on_the_process():
    plan = refold.plan(MESSAGES, budget=HALF)
    assert plan.base.tip == refold.plan(copy.deepcopy(MESSAGES), budget=HALF).base.tip
    assert plan.base.tip.startswith(MessageId("b2:"))


def test_a_breach_that_no_repair_mends_is_an_error_and_not_a_result():
    said = [{"role": "user", "content": [{"text": "a"}]}, {"role": "narrator", "content": [{"text": "b"}]}]
    with pytest.raises(BrokenConversation, match="two user messages in a row") as caught:
        refold.repair(said, format="bedrock")
    assert {(violation.rule, violation.at) for violation in caught.value.violations} == {
        ("role", (1,)),
        ("order", (1,)),
    }


def test_arguments_with_half_an_emoji_are_as_valid_as_their_json_is():
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path": "\\ud83d"}'}}
    said = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "x"},
    ]
    assert refold.violations(said) == ()
    assert refold.repair(said).plan.empty


def test_a_call_with_two_faults_is_mended_of_both():
    calls = [
        {"id": "same", "type": "function", "function": {"name": "read", "arguments": arguments}}
        for arguments in ('{"path": "a.py"}', '{"path": "b.')
    ]
    said = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": None, "tool_calls": calls},
        *({"role": "tool", "tool_call_id": "same", "content": name} for name in "ab"),
    ]
    assert refold.violations(refold.repair(said).messages) == ()


@pytest.mark.parametrize(
    "call",
    [
        lambda **options: refold.compact(MESSAGES, budget=1_000, **options),
        lambda **options: refold.plan(MESSAGES, budget=1_000, **options),
        lambda **options: refold.check(MESSAGES, budget=1_000, **options),
        lambda **options: refold.Meter(budget=1_000, **options),
        lambda **options: asyncio.run(refold.acompact(MESSAGES, budget=1_000, **options)),
        lambda **options: asyncio.run(refold.aplan(MESSAGES, budget=1_000, **options)),
        lambda **options: refold.recovering(print, MESSAGES, budget=1_000, **options),
        lambda **options: refold.Session(MemoryStore(), budget=1_000, **options),
    ],
)
def test_a_misspelt_option_is_refused_with_the_nearest_one(call):
    with pytest.raises(UnknownOption, match='has no option "polcy"; did you mean policy'):
        call(polcy="opal")
    with pytest.raises(TypeError, match='has no option "quux"; its options are'):
        call(quux=1)


def test_the_typed_options_are_those_that_are_read():
    for name, written in Options.__annotations__.items():
        assert CompactOptions.__annotations__[name].__forward_arg__ == written, name
    apart = {"summarize", "handlers", "redact", "meter", "alternate", "observers"}
    assert set(Options.__struct_fields__) == CompactOptions.__optional_keys__ - apart


def test_a_value_prints_as_one_short_line_of_numbers_and_ids_without_text_of_messages():
    result = refold.compact(MESSAGES, budget=HALF)
    session = refold.Session(MemoryStore(), "talk", budget=HALF)
    session.append(MESSAGES)
    for value in (result, result.plan, refold.check(MESSAGES, budget=HALF), session):
        line = repr(value)
        assert line.startswith(f"<{type(value).__name__} ")
        assert "\n" not in line
        assert len(line) < 160
        assert "orders" not in line
    assert result.plan.id in repr(result)
    assert f"messages={len(MESSAGES)}, plans=0" in repr(session)
