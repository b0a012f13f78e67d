"""Vibe, also called OpenClaw (seed 004): one test a row of its behaviour, with the document's own numbers."""

from __future__ import annotations

import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from time import monotonic, sleep

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from refold import check, compact, violations
from refold._cli.main import cli
from refold._rules.pairing import GroupPairing
from refold.agent._heartbeat import Heartbeat
from refold.agent._session_log import SessionLog
from refold.agent._statistics import Statistics
from refold.agent.cards import DoneCard, StartedCard
from refold.agent.event_names import named
from refold.agent.events import SessionRenewed, TurnEnded, UsageReported, Warned
from refold.agent.middleware import (
    Action,
    AutoCompact,
    ContextWarning,
    MiddlewareVerdict,
    Pipeline,
    Reset,
    Situation,
)
from refold.clients import _factory as factory
from refold.clients import _sdk as sdk
from refold.config import Settings
from refold.core._engine import due
from refold.core.budget import Budget, Exactly, Never, Usage
from refold.core.edits import Insert
from refold.core.messages import Image, Message, Note, Text, text_of
from refold.core.needs import CountNeed, SummaryNeed
from refold.core.token_units import EstimatedTokens, ReportedTokens
from refold.core.transcript import Transcript
from refold.core.usage_gauges import LastTotal
from refold.core.view import Cause
from refold.errors import SummaryRefused
from refold.policies import find, threshold
from refold.sessions import MemoryStore, Session, open_store
from refold.testing import talk, view_of
from refold.testing.provider import ScriptedReply
from tests.agent.kit import Watched, calls
from tests.conformance.chains import FORMATS, TASK, chained, step, times, user
from tests.conformance.chats import READ, chat
from tests.conformance.drive import Asked, absent, after, drive, shown

POLICY = find("vibe")
CLEAN = POLICY.steps[0].stage
HEADING = "[Conversation summary — everything before it was compacted]"


def work(*more):
    return talk(
        "s: be brief",
        "u: first wish",
        "a: l | bash(x) as c1",
        "t: c1 = " + "x" * 3_000,
        "a: done",
        "u: second wish",
        *more,
    )


@pytest.mark.parametrize(("prompt", "completion", "expected"), [(190_000, 9_999, False), (190_000, 10_000, True)])
def test_v01_the_threshold_is_200_000_on_prompt_and_completion_of_the_last_call(prompt, completion, expected):
    assert POLICY.gauge == LastTotal()
    assert POLICY.trigger == Exactly(200_000, inclusive=True)
    tokens = POLICY.gauge.measure(EstimatedTokens(1), EstimatedTokens(1), Usage(prompt, completion)).count
    assert POLICY.trigger.reached(tokens, Budget(10**6)) is expected
    view = replace(view_of(work(), cause=Cause.THRESHOLD, window=10**6), measured=ReportedTokens(tokens))
    assert due(POLICY, view) is expected


@pytest.mark.parametrize("tokens", [0, -1])
def test_v01_a_threshold_of_zero_or_less_disables(tokens):
    assert threshold(tokens) == Never()
    assert not threshold(tokens).reached(10**9, Budget(1_000))
    assert threshold(1).reached(1, Budget(1_000))


@pytest.mark.parametrize("completion", [9_999, 10_000])
def test_v01_a_check_is_due_at_200_000_tokens_of_the_last_call_s_prompt_and_completion(completion):
    messages = [user("openai-chat", TASK), *step("openai-chat", 1)]
    reported = {"prompt_tokens": 190_000, "completion_tokens": completion}
    assert check(messages, policy="vibe", window=1_000_000, usage=reported).due is (completion == 10_000)


NOTES = "".join(f"line {number} of the notes\n" for number in range(230))


@pytest.mark.parametrize("threshold", ["0", "-5", "0.0"])
def test_v01_zero_or_less_is_accepted_by_chat_and_disables(tmp_path, threshold):
    done, provider = chat(
        tmp_path,
        ["READ"] * (5 if threshold == "0" else 1),
        "-p",
        "vibe",
        f"--trigger={threshold}",
        notes=NOTES,
        REFOLD_CONTEXT_WARNINGS="1",
    )
    assert "Compact" not in done.output.replace("compaction is switched off", "")
    assert "Warning" not in done.output
    assert "from which on it is compacted" not in done.output
    sizes = [received.tokens for received in provider.received]
    assert sizes == sorted(sizes)


def test_v01_a_number_of_tokens_compacts_in_chat_from_the_last_call_s_total_on(tmp_path):
    done, provider = chat(tmp_path, ["READ"] * 5, "-p", "vibe", "--trigger", "4000", notes=NOTES)
    assert "Compaction complete" in done.output
    totals = [received.tokens for received in provider.received if received.body.get("tools")]
    first = next(place for place, size in enumerate(totals) if place and size < totals[place - 1])
    assert totals[first - 1] >= 4_000 > totals[first - 2]


def test_v02_the_warning_comes_at_half_of_the_window_s_budget_where_that_triggers_before_200_000(tmp_path):
    done, _ = chat(tmp_path, ["READ"] * 3, "-p", "vibe", notes=NOTES, REFOLD_CONTEXT_WARNINGS="1")
    warned = [line for line in done.output.splitlines() if "from which on it is compacted" in line]
    assert len(warned) == 1
    tokens, share, budget = (int(each.replace(",", "")) for each in re.findall(r"[\d,]*\d", warned[0])[:3])
    assert budget == 12_000 - 4_200  # the input budget, of which the original knows nothing
    assert 50 <= share <= 100
    assert tokens >= budget / 2
    quiet, _ = chat(tmp_path, ["READ"] * 3, "-p", "vibe", notes=NOTES)
    assert "from which on it is compacted" not in quiet.output  # off by default


def test_v05_all_but_the_system_message_becomes_a_summary_with_the_last_request():
    view = view_of(work("a: l | bash(y) as c2", "t: c2 = y"), goal=POLICY.goal)
    seen = after(POLICY, view, Asked("what happened"))
    assert seen.messages[0] is view.messages[0]
    assert [message.role for message in seen.messages] == ["system", "user"]
    assert shown(seen)[1] == f"{HEADING}\n\nwhat happened\n\nLast request from user was: second wish"


def test_v05_the_steps_run_in_order_clean_summarize_replace_recount():
    assert [step.name for step in POLICY.steps] == [
        "clean",
        "compact",
        "truncate to goal",
        "fit",
        "repair messages",
        "recount",
    ]
    assert POLICY.renews_session
    asked = Asked("what happened")
    drive(POLICY, view_of(work(), goal=POLICY.goal), asked)
    assert [type(need) for need in asked.needs] == [SummaryNeed, CountNeed]


def test_v05_an_earlier_summary_is_never_the_last_request_and_is_updated_instead():
    old = Message("made:1", "user", (Text("old facts\n\nLast request from user was: first wish"),), Note("summary"))
    transcript = Transcript((*work().messages[:2], old, *talk("a: went on " + "x" * 900).messages))
    asked = Asked("new facts")
    seen = after(POLICY, view_of(transcript, goal=POLICY.goal), asked)
    assert shown(seen)[1] == f"{HEADING}\n\nnew facts\n\nLast request from user was: first wish"
    assert asked.summaries[0].previous == "old facts"
    assert "old facts" not in asked.summaries[0].text


def test_v05_on_an_error_nothing_is_changed_and_it_is_raised():
    view = view_of(work(), goal=POLICY.goal)
    with pytest.raises(SummaryRefused, match="nothing was changed: scripted refusal"):
        drive(POLICY, view, Asked(None))


def test_v05_without_anybody_to_ask_a_digest_takes_the_summary_s_place():
    view = view_of(work(*["a: " + "y" * 20_000]), window=200_000, goal=POLICY.goal)
    last = after(POLICY, view, absent).messages[-1]
    assert last.note is not None
    assert last.note.kind == "digest"
    assert text_of(last).endswith("Last request from user was: second wish")


def test_v05_a_last_request_with_a_picture_stays_a_message():
    picture = Message("m9", "user", (Text("what is this?", ("content", 0)), Image(at=("content", 1))))
    transcript = Transcript((*work().messages, picture))
    seen = after(POLICY, view_of(transcript, goal=POLICY.goal), Asked("short"))
    assert seen.messages[-1] is picture
    assert len(seen.messages) == 3


def test_v05_a_last_request_larger_than_the_goal_is_fitted():
    view = view_of(work("a: ok", "u: " + "z" * 50_000), window=20_000, goal=POLICY.goal)
    assert after(POLICY, view, Asked("short")).tokens <= 10_000


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("plans", [False, True])
@pytest.mark.parametrize("task", [TASK, f"{TASK}\n\nLast request from user was: nothing at all.\n\nReally."])
def test_v05_the_request_outlives_every_chain_word_for_word_and_nothing_nests(format, plans, task):
    needs = []

    def summarize(need):
        needs.append(need)
        return f"summary {len(needs)}, in which the\n\nLast request from user was: to be quoted by a model"

    results = chained(("vibe",) * 4, format, plans=plans, task=task, summarize=summarize)
    for number, result in enumerate(results, 1):
        assert times(result, f"\n\nLast request from user was: {task}") == times(result, TASK) == 1
        assert (times(result, HEADING), times(result, f"summary {number},")) == (1, 1)
        assert times(result, ", in which the") == 1
        assert len(result.messages) == 1
    assert all(task in need.text for need in needs)  # the summarizer knows what the work is for
    assert [need.previous for need in needs[:2]] == [
        None,
        "summary 1, in which the\nLast request from user was: to be quoted by a model",
    ]


@pytest.mark.parametrize("plans", [False, True])
@pytest.mark.parametrize("format", FORMATS)
def test_v05_the_request_outlives_a_chain_without_a_model(format, plans):
    for result in chained(("vibe",) * 4, format, plans=plans):
        assert times(result, f"Last request from user was: {TASK}") == 1
        assert times(result, TASK) == 2  # the digest names the goal as well


@pytest.mark.parametrize("plans", [False, True])
@pytest.mark.parametrize("second", ["wolffish", "neurolink", "opal", "claude-code", "vibe", "refold"])
@pytest.mark.parametrize("first", ["opal", "vibe"])
def test_v05_the_request_outlives_a_change_of_the_policy(first, second, plans):
    for summarize in (None, lambda need: "what happened"):
        for result in chained((first, second, "vibe"), "anthropic", plans=plans, summarize=summarize):
            assert times(result, TASK) >= 1


def test_v05_a_later_request_takes_the_place_of_an_earlier_one():
    first = compact([user("openai-chat", TASK), *step("openai-chat", 1)], policy="vibe", force=True, window=6_000)
    more = [*first.messages, {"role": "assistant", "content": "Counted."}, user("openai-chat", "Now paint it.")]
    last = compact(
        [*more, *step("openai-chat", 2)], policy="vibe", force=True, window=6_000, summarize=lambda need: "S"
    )
    assert last.messages == [
        {"role": "user", "content": f"{HEADING}\n\nS\n\nLast request from user was: Now paint it."}
    ]


@pytest.mark.parametrize(
    "words",
    [
        "I read this in the log:\n\nLast request from user was: delete all. Why?",
        "Last request from user was: delete all",
        f"What does {HEADING} mean?\n\nLast request from user was: delete all",
        "[Conversation summary of mine]\n\nLast request from user was: delete all",
    ],
)
def test_v05_a_message_of_the_user_that_holds_the_words_of_ours_is_a_request(words):
    needs = []
    messages = [user("openai-chat", TASK), {"role": "assistant", "content": "Done."}, user("openai-chat", words)]
    result = compact(
        [*messages, *step("openai-chat", 1)], policy="vibe", force=True, window=6_000,
        summarize=lambda need: needs.append(need) or "S",
    )  # fmt: skip
    assert result.messages[-1]["content"] == f"{HEADING}\n\nS\n\nLast request from user was: {words}"
    assert needs[0].previous is None
    assert words.split("\n")[0] in needs[0].text


def test_v05_the_command_line_keeps_the_request_on_its_own_output(tmp_path):
    path = tmp_path / "talk.json"
    messages = [{"role": "system", "content": "Be brief."}, user("openai-chat", TASK)]
    for number in range(3):
        path.write_text(json.dumps([*messages, *step("openai-chat", number), *step("openai-chat", number + 9)]))
        done = CliRunner().invoke(cli, ["compact", str(path), "-p", "vibe", "-w", "6000", "--force", "-o", str(path)])
        assert done.exit_code == 0
        messages = json.loads(path.read_text())
        assert [message["role"] for message in messages] == ["system", "user"]
        assert messages[1]["content"].endswith(f"\n\nLast request from user was: {TASK}")


def test_v06_the_prompt_has_seven_sections():
    asked = Asked("short")
    drive(POLICY, view_of(work(), goal=POLICY.goal), asked)
    for section in (
        "1. User's Primary Goals and Intent",
        "2. Conversation Timeline and Progress",
        "3. Technical Context and Decisions",
        "4. Files and Code Changes",
        "5. Active Work and Last Actions (CRITICAL)",
        "6. Unresolved Issues and Pending Tasks",
        "7. Immediate Next Step",
    ):
        assert section in asked.summaries[0].instructions


def test_v06_the_model_is_sent_the_seven_sections_over_the_wire(tmp_path):
    _, provider = chat(tmp_path, ["READ"] * 2, "-p", "vibe", "--trigger", "2000", notes=NOTES)
    asked = [received.body for received in provider.received if not received.body.get("tools")]
    assert asked
    words = str(asked[0]["messages"])
    places = [words.index(f"{number}. ") for number in range(1, 8)]
    assert places == sorted(places)
    assert "Active Work and Last Actions (CRITICAL)" in words
    assert "notes" in words


def test_v07_compact_closes_calls_and_a_trailing_result_and_leaves_a_valid_list():
    call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
    both = {"role": "assistant", "content": None, "tool_calls": [call, {**call, "id": "c2"}]}
    messages = [user("openai-chat", TASK), both, {"role": "tool", "tool_call_id": "c1", "content": "x"},
                user("openai-chat", "and?"), *step("openai-chat", 3)]  # fmt: skip
    result = compact(messages, policy="vibe", window=6_000, force=True, summarize=lambda need: "S")
    texts = [text for edit in result.plan.edits if isinstance(edit, Insert) for text in shown_of(edit.message)]
    assert "Tool no response" in texts
    assert "Understood." in texts
    assert violations(result.messages, format="openai-chat") == ()
    alone = compact([user("openai-chat", TASK)], policy="vibe", window=6_000, force=True)
    assert not any("Understood." in shown_of(edit.message) for edit in alone.plan.edits if isinstance(edit, Insert))


def test_v07_every_tool_call_gets_a_response():
    view = view_of(
        talk("u: go", "a: l | bash(x) as c1 | bash(y) as c2", "t: c1 = x", "u: and?"), rules=(GroupPairing(),)
    )
    seen = view.after(CLEAN.edits(view, ()))
    assert GroupPairing().broken(seen.messages) == ()
    assert "Tool no response" in shown(seen)


def test_v07_an_assistant_message_follows_tool_results():
    view = view_of(talk("u: go", "a: l | bash(x) as c1", "t: c1 = x"), rules=(GroupPairing(),))
    seen = view.after(CLEAN.edits(view, ()))
    assert (seen.messages[-1].role, text_of(seen.messages[-1])) == ("assistant", "Understood.")


def test_v07_nothing_is_cleaned_under_2_messages():
    view = view_of(talk("u: go"), rules=(GroupPairing(),))
    assert CLEAN.edits(view, ()) == ()


def test_v08_the_view_is_recounted_by_a_call_of_16_output_tokens():
    asked = Asked("what happened")
    view = view_of(work(), goal=POLICY.goal)
    plan = drive(POLICY, view, asked)
    count = asked.needs[-1]
    assert isinstance(count, CountNeed)
    assert count.max_tokens == 16
    assert count.messages == view.after(plan.edits).messages


def situation(tokens):
    return Situation(Statistics(context_tokens=tokens), 1, 1)


@pytest.mark.parametrize(("tokens", "warned"), [(99_999, 0), (100_000, 1)])
def test_v02_a_warning_comes_at_half_of_the_threshold(tokens, warned):
    said = []
    ContextWarning(200_000, said.append).before_turn(situation(tokens))
    assert len(said) == warned
    assert all("100,000 tokens, 50% of the 200,000" in text for text in said)


def test_v02_it_comes_once_until_it_is_reset():
    said = []
    warning = ContextWarning(200_000, said.append)
    for _ in range(3):
        assert warning.before_turn(situation(150_000)).action is Action.CONTINUE
    assert len(said) == 1
    warning.reset(Reset.COMPACT)
    warning.before_turn(situation(150_000))
    assert len(said) == 2


@pytest.mark.parametrize(("asked", "count"), [({}, 0), ({"context_warnings": True}, 1)])
def test_v02_it_is_off_unless_asked_for(asked, count):
    full = [ScriptedReply("", [("echo", {"text": "a"})], usage=Usage(120_000, 10)) for _ in range(2)]
    run = Watched([*full, "Done."], settings=Settings.load(asked, environ={}), policy="vibe", budget=Budget(400_000))
    run.agent.run("go")
    assert len(run.told(Warned)) == count


@pytest.mark.parametrize(
    ("wishes", "result"),
    [
        ([Action.CONTINUE, Action.CONTINUE], Action.CONTINUE),
        ([Action.CONTINUE, Action.COMPACT], Action.COMPACT),
        ([Action.COMPACT, Action.STOP], Action.COMPACT),  # the first, as in mistral-vibe 1.3.3
        ([Action.CONTINUE, Action.STOP, Action.COMPACT], Action.STOP),
    ],
)
def test_v03_a_pipeline_before_and_after_each_turn_continues_compacts_or_stops(wishes, result):
    class Wish:
        def __init__(self, action):
            self.action, self.resets = action, []

        def before_turn(self, situation):
            return MiddlewareVerdict(self.action)

        after_turn = before_turn

        def reset(self, reason):
            self.resets.append(reason)

    middlewares = [Wish(action) for action in wishes]
    pipeline = Pipeline(middlewares)
    assert pipeline.before_turn(situation(0)).action is result
    assert pipeline.after_turn(situation(0)).action is result
    pipeline.reset(Reset.COMPACT)
    assert [each.resets for each in middlewares] == [["compact"]] * len(wishes)


def shown_of(message):
    """The texts of one message: its words, and those of its results."""
    return [text_of(message), *(result.text for result in message.results)]


class Wish:
    """A middleware that asks for one thing once, before or after a step."""

    def __init__(self, action, step, *, after):
        self.action, self.step, self.after, self.seen = action, step, after, []

    def before_turn(self, situation):
        return self._say(situation, after=False)

    def after_turn(self, situation):
        return self._say(situation, after=True)

    def reset(self, reason):
        self.seen.append(reason)

    def _say(self, situation, *, after):
        now = situation.step == self.step and after is self.after
        return MiddlewareVerdict(self.action if now else Action.CONTINUE)


@pytest.mark.parametrize(("after", "step"), [(False, 2), (True, 1), (True, 2), (True, 3)])
def test_v03_compact_from_a_middleware_compacts_also_after_a_turn(after, step):
    wish = Wish(Action.COMPACT, step, after=after)
    run = Watched([calls("word " * 900), calls("word " * 900), "Done."], policy="vibe", middlewares=[wish],
                  summarize=lambda need: "1. Goals: say it")  # fmt: skip
    run.agent.run("go")
    assert len(run.told(StartedCard)) == len(run.told(DoneCard)) == len(run.agent.plans) == 1
    assert wish.seen == [Reset.COMPACT]
    answered = [event for event in run.events if isinstance(event, UsageReported | DoneCard)]
    assert [type(event) for event in answered].index(DoneCard) == (step if after else step - 1)


@pytest.mark.parametrize(("first", "second"), [(Action.COMPACT, Action.STOP), (Action.STOP, Action.COMPACT)])
def test_v03_the_first_wish_wins_in_an_agent(first, second):
    wishes = [Wish(first, 2, after=False), Wish(second, 2, after=False)]
    run = Watched([calls("word " * 900), "Done."], policy="vibe", middlewares=wishes, summarize=lambda need: "S")
    run.agent.run("go")
    compacts = first is Action.COMPACT
    assert (len(run.told(DoneCard)), len(run.client.received)) == ((1, 2) if compacts else (0, 1))
    assert run.told(TurnEnded)[0].ending == ("answered" if compacts else "stopped")


@pytest.mark.parametrize(("tokens", "action"), [(199_999, "continue"), (200_000, "compact")])
def test_v03_the_auto_compact_middleware_compacts_from_its_threshold_on(tokens, action):
    assert AutoCompact(200_000).before_turn(situation(tokens)).action == action


def test_v04_statistics_after_each_call():
    used = Statistics().after(Usage(1_000, 50), 2.0).after(Usage(1_200, 80), 4.0)
    assert (used.prompt, used.completion) == (1_200, 80)
    assert (used.session_prompt, used.session_completion) == (2_200, 130)
    assert used.context_tokens == 1_280
    assert used.tokens_per_second == 20.0


def test_v04_an_agent_keeps_them():
    ticks = iter(range(1_000))
    run = Watched([calls("a"), "Done."], policy="vibe", clock=lambda: float(next(ticks)))
    run.agent.run("go")
    sizes = [received.tokens for received in run.client.received]
    assert run.agent.statistics.steps == 2
    assert run.agent.statistics.prompt == sizes[1]
    assert run.agent.statistics.session_prompt == sum(sizes)
    assert run.agent.statistics.tokens_per_second > 0


def compacted(tmp_path=None, **named):
    logs = (SessionLog(tmp_path, "first", system="vibe"),) if tmp_path else ()
    run = Watched([*(calls("word " * 1_500) for _ in range(12)), "Done."], policy="vibe", observers=logs,
                  budget=Budget(20_000, 1_000), summarize=lambda need: "1. Goals: say it", **named)  # fmt: skip
    run.agent.run("go")
    return run


def test_v09_a_compaction_begins_a_new_session_and_a_new_log_and_resets_the_middlewares(tmp_path):
    class Counts:
        resets = 0

        def before_turn(self, situation):
            return MiddlewareVerdict()

        after_turn = before_turn

        def reset(self, reason):
            self.resets += 1

    counts = Counts()
    run = compacted(tmp_path, middlewares=[counts])
    renewed = run.told(SessionRenewed)
    assert renewed
    assert all(event.old != event.new for event in renewed)
    assert run.agent.session.id == renewed[-1].new
    assert (tmp_path / f"session-{renewed[-1].new}.jsonl").exists()
    assert counts.resets == len(renewed) == len(run.told(DoneCard))
    assert len(run.agent.originals) == 1 + 12 * 2 + 1  # the conversation went on


def test_v09_v10_a_chat_goes_on_in_a_new_session_and_says_the_line_of_its_figures(tmp_path):
    done, _ = chat(tmp_path, ["READ"] * 4, "-p", "vibe", "--trigger", "3000", "--session", "first", notes=NOTES)
    assert "Compacting conversation history…" in done.output
    lines = re.findall(r"Compaction complete: ([\d,]+) → ([\d,]+) tokens \((-\d+)%\)", done.output)
    assert lines
    for old, new, change in lines:
        before, after = int(old.replace(",", "")), int(new.replace(",", ""))
        assert before >= 3_000 > after
        assert int(change) == round((after - before) / before * 100)
    with open_store(tmp_path / "data" / "refold" / "sessions.db") as store:
        heads = {head.id: head for head in store.sessions()}
        assert len(heads) == 1 + len(lines)
        newest, lineage = "first", []
        while newest:
            lineage.append(newest)
            newest = heads[newest].next
        assert sorted(lineage) == sorted(heads)
        assert all(heads[new].parent == old for old, new in pairwise(lineage))


def test_v10_events_and_the_line_at_the_end():
    run = compacted()
    started, done = run.told(StartedCard)[0], run.told(DoneCard)[0]
    figures = {"current_context_tokens": started.tokens, "threshold": started.threshold}
    assert named(started, "vibe") == ("CompactStartEvent", figures)
    name, figures = named(done, "vibe")
    assert name == "CompactEndEvent"
    assert figures["old_context_tokens"] == started.tokens > figures["new_context_tokens"] > 0
    assert figures["summary_length"] >= len("1. Goals: say it")
    assert started.line.startswith("Compacting conversation history")
    exact = DoneCard((), 200_000, 15_000, 9, 2, 256_000)
    assert exact.line == "Compaction complete: 200,000 → 15,000 tokens (-92%)"


def test_v11_a_health_check_is_answered_and_nothing_runs_in_the_background(tmp_path):
    import threading

    (tmp_path / "HEARTBEAT.md").write_text("Look whether the disk is full.")
    run = Watched(["HEARTBEAT_OK", "Hello."], policy="vibe", heartbeat=Heartbeat(tmp_path))
    threads = threading.active_count()
    assert run.agent.run("heartbeat") == "HEARTBEAT_OK"
    assert threading.active_count() == threads
    assert "Look whether the disk is full." in str(run.client.received[0].body["messages"][0])
    assert run.agent.originals == []
    assert run.agent.run("hi") == "Hello."


CHECKS = [
    "heartbeat",
    "ping",
    "Ping?",
    "Are you alive?",
    "are you still there",
    "Health check.",
    "Read HEARTBEAT.md if it exists (workspace context). Follow it strictly. Do not infer or repeat old tasks from prior "
    "chats. If nothing needs attention, reply HEARTBEAT_OK.",
]
OTHERS = [
    "ping example.com",
    "Are you alive to the risk of a race here?",
    "Read HEARTBEAT.md and mend its list",
    "Add a health check to the server",
    "pings are lost, why?",
]


@pytest.mark.parametrize("text", CHECKS)
def test_v11_a_health_check_in_any_of_its_wordings_is_answered_outside_of_the_conversation(tmp_path, text):
    run = Watched(["never"], policy="vibe", heartbeat=Heartbeat(tmp_path))
    assert run.agent.run(text) == "HEARTBEAT_OK"
    assert (run.client.received, run.agent.originals) == ([], [])


@pytest.mark.parametrize("text", OTHERS)
def test_v11_what_only_sounds_like_one_is_a_request(tmp_path, text):
    run = Watched(["An answer."], policy="vibe", heartbeat=Heartbeat(tmp_path))
    assert run.agent.run(text) == "An answer."


@pytest.mark.parametrize("format", ["openai-chat", "anthropic"])
def test_v11_the_system_prompt_has_a_section_and_the_notes_can_use_tools(tmp_path, format):
    (tmp_path / "HEARTBEAT.md").write_text("Say the word disk with echo, and report what it says.")
    run = Watched([calls("the disk is full"), "The disk is full.", "Hello."], policy="vibe", format=format,
                  system="Be brief.", heartbeat=Heartbeat(tmp_path))  # fmt: skip
    assert run.agent.run("Are you alive?") == "The disk is full."
    assert run.agent.run("hi") == "Hello."
    asked, answered, ordinary = (received.body for received in run.client.received)
    assert "the disk is full" in str(answered["messages"][-1])
    assert asked["tools"] == ordinary["tools"]
    for body in (asked, ordinary):
        system = str(body.get("system") or body["messages"][0])
        assert "Be brief." in system
        assert "## Heartbeat" in system
        assert "HEARTBEAT_OK" in system
    assert "Say the word disk" in str(asked)
    assert "Say the word disk" not in str(ordinary)
    assert len(run.agent.originals) == 2  # the health check is no part of it


def test_v11_a_chat_answers_by_its_folder_s_notes_with_its_tools(tmp_path):
    def behave(received):
        last = received.body["messages"][-1]
        return READ if last["role"] == "user" else f"Seen: {last['content'][:6]}"

    (tmp_path / "work").mkdir()
    done, _ = chat(tmp_path, ["ping"], behave=behave)
    assert done.output.strip() == "HEARTBEAT_OK"
    (tmp_path / "work" / "HEARTBEAT.md").write_text("Read notes.txt and say what it begins with.")
    done, provider = chat(tmp_path, ["Are you alive?", "/context"], behave=behave, notes="all is well")
    assert "Seen: all is" in done.output
    assert len(provider.received) == 2


def test_v12_calls_may_take_720_seconds_over_5_kept_of_10_connections():
    assert (factory.TIMEOUT, sdk.KEPT_ALIVE, sdk.CONNECTIONS) == (720.0, 5, 10)
    model = factory.client("m", "http://127.0.0.1:9/v1", "key", "openai-chat")
    assert model.sdk.timeout == 720.0
    model.close()


def test_v12_twenty_calls_at_once_open_10_connections_of_which_5_stay():
    answer = json.dumps(
        {"id": "a", "object": "chat.completion", "created": 1, "model": "m", "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Done."}}
        ]}
    ).encode()  # fmt: skip
    open_now: set[int] = set()
    most: list[int] = []
    together = threading.Barrier(10)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self):
            super().setup()
            open_now.add(id(self))
            most.append(len(open_now))

        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            together.wait(10)  # ten are answered at once, so as many connections are needed
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def finish(self):
            super().finish()
            open_now.discard(id(self))

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    model = factory.client("m", f"http://127.0.0.1:{server.server_port}/v1", "key", "openai-chat")
    with ThreadPoolExecutor(20) as pool:
        replies = list(pool.map(lambda _: model.complete([{"role": "user", "content": "Hi"}]), range(20)))
    deadline = monotonic() + 10
    while len(open_now) != 5 and monotonic() < deadline:
        sleep(0.01)
    stay = len(open_now)
    model.close()
    server.shutdown()
    server.server_close()
    assert [reply.text for reply in replies] == ["Done."] * 20
    assert (max(most), stay) == (10, 5)


def test_v13_both_settings_work_from_the_environment_and_from_a_file(tmp_path):
    names = {"REFOLD_AUTO_COMPACT_THRESHOLD": "2000", "REFOLD_CONTEXT_WARNINGS": "true"}
    done, _ = chat(tmp_path, ["READ"] * 2, "-p", "vibe", notes=NOTES, **names)
    assert "Compaction complete" in done.output
    assert "% of the 2,000 from which on it is compacted" in done.output
    file = tmp_path / "refold.toml"
    file.write_text("auto_compact_threshold = 2000\ncontext_warnings = true\n")
    again, _ = chat(tmp_path, ["READ"] * 2, "-p", "vibe", notes=NOTES, REFOLD_CONFIG=str(file))
    assert "Compaction complete" in again.output
    assert "% of the 2,000 from which on it is compacted" in again.output


def test_v13_two_settings_with_their_defaults_and_what_they_do():
    settings = Settings()
    assert (settings.auto_compact_threshold, settings.context_warnings) == (200_000, False)
    low = Settings.load({"auto_compact_threshold": 5_000}, environ={})
    assert low.apply_to(POLICY).trigger == Exactly(5_000, inclusive=True)
    off = Settings.load({"auto_compact_threshold": 0}, environ={})
    assert isinstance(off.apply_to(POLICY).trigger, Never)


def test_v09_a_session_goes_on_under_a_new_id_with_a_log_of_its_own():
    session = Session(MemoryStore(), "first", format="openai-chat", policy="vibe", window=10_000)
    session.append([{"role": "user", "content": f"wish {n} " + "word " * 80} for n in range(20)])
    done = session.compact(force=True, summarize=lambda need: "short")
    assert POLICY.renews_session
    assert (done.previous, session.lineage) == ("first", (session.id, "first"))
    assert session.store.load(session.id).head.seq == 1
    assert session.store.load("first").head.next == session.id
    assert len(session.view()) == 1
    assert len(session.messages) == 20
