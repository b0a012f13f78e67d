"""The loop: tools in order, one place to compact, refusals answered, and a valid conversation whatever happens."""

import asyncio

import pytest
from msgspec.structs import replace

import refold
from refold.agent import Agent, Tool, tool
from refold.agent._compaction_log import Decision
from refold.agent._loop import INTERRUPTED, SKIPPED, UNANSWERED
from refold.agent._messages import open_calls
from refold.agent.cards import DoneCard, FailedCard, StartedCard
from refold.agent.event_names import named
from refold.agent.events import ToolFinished, ToolStarted, TurnEnded, UsageReported
from refold.agent.middleware import Action, MiddlewareVerdict
from refold.config import Settings
from refold.core.budget import Budget, Usage
from refold.errors import ContextOverflow, SummaryRefused, UsageError
from refold.testing.client import ScriptedClient, ScriptedRefusal
from refold.testing.provider import ScriptedReply
from tests.agent.kit import FORMATS, Watched, calls, echo, results


@pytest.mark.parametrize("format", FORMATS)
def test_an_answer_without_calls_ends_the_turn(format):
    run = Watched(["Hello."], format=format)
    assert run.agent.run("Hi") == "Hello."
    assert [message["role"] for message in run.agent.messages] == ["user", "assistant"]
    assert run.told(TurnEnded)[0].ending == "answered"


@pytest.mark.parametrize("format", FORMATS)
def test_tools_are_done_in_order_and_their_results_go_back(format):
    run = Watched([calls("a", "b"), calls("c"), "Done."], format=format)
    assert run.agent.run("go") == "Done."
    assert results(run.agent.messages) == ["a", "b", "c"]
    names = [type(event).__name__ for event in run.events if isinstance(event, ToolStarted | ToolFinished)]
    assert names == ["ToolStarted", "ToolFinished"] * 3
    assert not refold.violations(run.agent.messages, format=format)


def test_text_is_streamed_to_the_function_that_was_given():
    pieces = []
    Watched(["Hello."], on_text=pieces.append).agent.run("Hi")
    assert "".join(pieces) == "Hello."


@pytest.mark.parametrize("said", ["", " \n"])
@pytest.mark.parametrize("format", FORMATS)
def test_an_empty_answer_ends_the_turn_and_the_conversation_goes_on(format, said):
    run = Watched([calls("a"), ScriptedReply(said), "Fine."], format=format)
    assert run.agent.run("go") == said
    assert run.agent.run("Still there?") == "Fine."
    assert not refold.violations(run.agent.originals, format=format)


class Odd(ScriptedClient):
    def complete(self, messages, **named):
        reply = super().complete(messages, **named)
        for call in reply.message.get("tool_calls") or ():
            call["id"] = "same"
            if "cut" in call["function"]["arguments"]:
                call["function"]["arguments"] = '{"text": "cut'
        return replace(reply, calls=open_calls(self.format, reply.message))


def test_two_calls_of_one_id_and_arguments_that_were_cut_off_leave_a_valid_conversation():
    client = Odd([calls("a", "cut", "b"), "Done."])
    agent = Agent(client, tools=[echo], budget=Budget(100_000, 4_000))
    assert agent.run("go") == "Done."
    first, second, third = results(agent.originals)
    assert (first, third) == ("a", "b")
    assert second.startswith("The arguments do not fit echo")
    assert not refold.violations(agent.originals)


def test_a_turn_in_which_nothing_is_said_is_refused_and_changes_nothing():
    run = Watched(["Fine."])
    with pytest.raises(UsageError, match="message is empty"):
        run.agent.run(" ")
    assert (run.agent.originals, run.events) == ([], [])


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_can_be_all_that_is_said(format, tmp_path):
    (tmp_path / "a.txt").write_text("words")
    run = Watched(["Fine."], format=format)
    assert run.agent.run("", [tmp_path / "a.txt"]) == "Fine."
    assert not refold.violations(run.agent.originals, format=format)


@pytest.mark.parametrize("format", FORMATS)
def test_a_tool_that_fails_is_told_to_the_model_as_an_error(format):
    run = Watched([calls("no luck", name="fail"), calls("x", name="gone"), "Done."], format=format)
    run.agent.run("go")
    assert results(run.agent.messages) == ["ValueError: no luck", "No tool is called 'gone'; there are echo, fail."]
    assert all(event.is_error for event in run.told(ToolFinished))


def test_each_call_of_the_model_is_preceded_by_exactly_one_check():
    run = Watched([calls("a"), calls("b"), "Done."])
    run.agent.run("go")
    kinds = [type(event) for event in run.events if isinstance(event, Decision | UsageReported)]
    assert kinds == [Decision, UsageReported] * 3
    assert [decision.step for decision in run.told(Decision)] == [1, 2, 3]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("policy", ["claude-code", "neurolink", "opal", "refold", "vibe", "wolffish"])
def test_a_long_task_stays_inside_a_small_window_under_every_policy(policy, format):
    run = Watched(
        [*(calls("word " * 1_000 + str(n)) for n in range(30)), "Done."],
        window=16_000, format=format, policy=policy, budget=Budget(16_000, 2_000),
        summarize=lambda need: "TASK: go on",
    )  # fmt: skip
    assert run.agent.run("Say thirty things.") == "Done."
    assert run.told(DoneCard)
    assert all(received.tokens < 16_000 for received in run.client.received if received.status == 200)
    assert len(run.agent.originals) == 1 + 30 * 2 + 1
    assert not refold.violations(run.agent.messages, format=format)


def test_a_started_card_is_followed_by_a_done_card():
    run = Watched([*(calls("word " * 1_000) for _ in range(12)), "Done."], window=16_000, budget=Budget(16_000, 2_000))
    run.agent.run("go")
    cards = [type(event) for event in run.events if isinstance(event, StartedCard | DoneCard | FailedCard)]
    assert cards == [StartedCard, DoneCard] * (len(cards) // 2)
    assert len(cards) >= 2


def test_a_done_card_says_what_the_compaction_costs_and_from_which_call_it_pays():
    run = Watched([*(calls("word " * 1_000) for _ in range(12)), "Done."], window=16_000, budget=Budget(16_000, 2_000))
    run.agent.run("go")
    card = run.told(DoneCard)[0]
    assert card.break_even == run.agent.plans[0].break_even
    name, figures = named(card)
    assert name == "compaction_applied"
    assert figures["cost"] > figures["saving"] > 0
    assert figures["pays_from"] == card.break_even.calls


@pytest.mark.parametrize("format", FORMATS)
def test_a_refusal_for_size_is_answered_and_the_window_it_told_is_kept_to(format):
    run = Watched(
        [*(calls("word " * 1_500) for _ in range(10)), "Done."], window=10_000, format=format, budget=Budget(50_000)
    )
    assert run.agent.run("go") == "Done."
    refused = [received.number for received in run.client.received if received.status != 200]
    assert len(refused) == 1
    assert run.told(DoneCard)[0].plan == run.agent.plans[0].id
    assert run.agent.statistics.window <= 10_000


def test_a_refusal_that_no_compaction_mends_is_raised_with_what_is_too_large():
    run = Watched(["never"], window=500, budget=Budget(50_000), system="word " * 1_000)
    with pytest.raises(ContextOverflow, match="system prompt and tools alone"):
        run.agent.run("hi")
    assert run.told(TurnEnded)[0].ending == "failed"


def test_another_refusal_is_raised_at_once_as_it_is():
    class Strict(ScriptedClient):
        def complete(self, *messages, **named):
            self.asked = getattr(self, "asked", 0) + 1
            raise ScriptedRefusal(401, {"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}})

    client = Strict()
    agent = Agent(client, budget=Budget(10_000))
    with pytest.raises(ScriptedRefusal):
        agent.run("hi")
    assert client.asked == 1


def test_a_rate_limit_is_waited_for():
    run = Watched(["Hello."], faults={1: "rate_limit", 2: "server_error"})
    assert run.agent.run("hi") == "Hello."
    assert run.slept == [1.0, 2.0]


def test_a_prompt_that_was_cut_in_silence_makes_the_next_call_compact_first():
    run = Watched(
        [*(calls("word " * 4_000) for _ in range(4)), ScriptedReply("", [("echo", {"text": "x"})], usage=Usage(60_000)), "Done."],
        budget=Budget(50_000),
    )  # fmt: skip
    run.agent.run("go")
    assert [decision.force for decision in run.told(Decision)] == [False] * 5 + [True]
    assert run.agent.plans[0].cause == "silent_overflow"


def test_a_report_that_cannot_be_true_does_not_end_the_turn():
    run = Watched([ScriptedReply("", [("echo", {"text": "x"})], usage=Usage(60_000)), "Done."], budget=Budget(50_000))
    assert run.agent.run("go") == "Done."


def test_a_policy_that_finds_no_summary_gives_way_to_one_that_needs_none():
    def refuse(need):
        raise RuntimeError("no model")

    run = Watched(
        [*(calls("word " * 1_000) for _ in range(30)), "Done."],
        window=16_000, policy="vibe", budget=Budget(16_000, 1_000), summarize=refuse,
    )  # fmt: skip
    assert run.agent.run("go") == "Done."
    assert run.told(FailedCard)
    assert "refold" in {plan.policy for plan in run.agent.plans}


@pytest.mark.parametrize("format", FORMATS)
def test_an_interruption_leaves_a_result_for_every_call(format):
    @tool
    def hang() -> str:
        raise KeyboardInterrupt

    run = Watched(
        [ScriptedReply("", [("echo", {"text": "a"}), ("hang", {}), ("echo", {"text": "b"})]), "Again."],
        format=format, tools=(echo, hang),
    )  # fmt: skip
    with pytest.raises(KeyboardInterrupt):
        run.agent.run("go")
    assert results(run.agent.messages) == ["a", INTERRUPTED, INTERRUPTED]
    assert run.told(TurnEnded)[0].ending == "interrupted"
    assert run.agent.run("go on") == "Again."
    assert run.client.received[-1].status == 200


@pytest.mark.parametrize("format", FORMATS)
def test_an_interruption_while_the_model_answers_keeps_the_conversation_valid(format):
    def interrupted(text):
        raise KeyboardInterrupt

    run = Watched(["One.", "Two."], format=format, on_text=interrupted)
    with pytest.raises(KeyboardInterrupt):
        run.agent.run("first")
    run.agent._on_text = None
    assert run.agent.run("second") == "Two."
    assert [message["content"] for message in run.agent.originals] == [
        "first",
        UNANSWERED,
        "second",
        run.agent.originals[-1]["content"],
    ]


def test_stop_ends_the_turn_after_the_call_that_is_being_done():
    run = Watched([calls("a", "b", "c"), "never"], tools=())
    holder = [run.agent]
    stopping = Tool("echo", "", {"type": "object"}, lambda text: holder[0].stop() or text)
    run.agent._tools["echo"] = stopping
    assert run.agent.run("go") == ""
    assert results(run.agent.messages) == ["a", SKIPPED, SKIPPED]
    assert run.told(TurnEnded)[0].ending == "stopped"


def test_a_turn_ends_after_so_many_calls_of_the_model():
    run = Watched([calls("again")], max_steps=5)
    run.agent.run("go")
    assert len(run.client.received) == 5
    assert run.told(TurnEnded)[0].ending == "steps"


class Wishes:
    def __init__(self, before=(), after=()):
        self.before, self.after, self.resets = list(before), list(after), []

    def before_turn(self, situation):
        return MiddlewareVerdict(self.before.pop(0)) if self.before else MiddlewareVerdict()

    def after_turn(self, situation):
        return MiddlewareVerdict(self.after.pop(0)) if self.after else MiddlewareVerdict()

    def reset(self, reason):
        self.resets.append(reason)


def test_a_middleware_can_stop_before_the_model_is_asked_and_after_its_tools():
    run = Watched(["never"], middlewares=[Wishes(before=[Action.STOP])])
    assert run.agent.run("go") == ""
    assert not run.client.received
    run = Watched([calls("a"), "never"], middlewares=[Wishes(after=[Action.STOP])])
    run.agent.run("go")
    assert len(run.client.received) == 1
    assert results(run.agent.messages) == ["a"]


def test_a_middleware_can_have_the_conversation_compacted_and_is_reset_after_it():
    wishes = Wishes(before=[Action.CONTINUE, Action.CONTINUE, Action.COMPACT])
    run = Watched([calls("word " * 3_000), calls("word " * 3_000), "Done."], middlewares=[wishes], policy="vibe")
    run.agent.run("go")
    assert len(run.told(DoneCard)) == 1
    assert wishes.resets == ["compact"]


def test_two_tools_of_one_name_are_refused():
    with pytest.raises(UsageError, match="two tools have one name"):
        Watched(tools=(echo, echo))


def test_an_observer_that_fails_changes_nothing():
    def broken(event):
        raise RuntimeError("observer")

    assert Watched(["Hello."], observers=(broken,)).agent.run("hi") == "Hello."


def test_a_manual_compaction_that_gets_no_summary_says_so_and_changes_nothing():
    def refuse(need):
        raise RuntimeError("no model")

    run = Watched([calls("word " * 3_000), "Done."], policy="vibe", summarize=refuse)
    run.agent.run("go")
    before = run.agent.messages
    with pytest.raises(SummaryRefused):
        run.agent.compact()
    assert run.agent.messages == before


@pytest.mark.parametrize(
    ("options", "shown"),
    [({}, False), ({"redact": False}, True), ({"settings": Settings(redact_secrets=False)}, True)],
)
def test_an_agents_summarizer_is_sent_secrets_only_where_that_is_said(options, shown):
    key, needs = "sk-" + "proj-AbCd1234EfGh5678IjKl9012", []
    run = Watched([*(calls(f"{key} " + "word " * 1_000) for _ in range(12)), "Done."], window=16_000, policy="vibe",
                  budget=Budget(16_000, 2_000), summarize=lambda need: needs.append(need) or "They echoed.", **options)  # fmt: skip
    run.agent.run("go")
    assert needs
    assert (key in needs[0].text) == shown
    assert key in str(run.agent.originals)


def test_an_agent_inside_an_event_loop_waits_for_an_asynchronous_summarizer():
    async def later(need):
        return "They echoed."

    async def run():
        made = Watched([*(calls("word " * 1_000) for _ in range(12)), "Done."], window=16_000, policy="vibe",
                      budget=Budget(16_000, 2_000), summarize=later)  # fmt: skip
        return made, made.agent.run("go")

    done, answer = asyncio.run(run())
    assert answer == "Done."
    assert "They echoed." in str(done.agent.messages)
