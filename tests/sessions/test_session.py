import copy

import pytest
from openai.types.chat import ChatCompletionMessage

import refold
from refold import formats, policies
from refold.core.events import CompactionApplied, CompactionFailed, CompactionStarted
from refold.errors import (
    BadMessages,
    SessionNotFound,
    StalePlan,
    SummaryRefused,
    UnknownFormat,
    UsageError,
    WriteConflict,
)
from refold.sessions import Compacted, MemoryStore, Session, SessionUsageReported
from tests.sessions.talks import (
    answer,
    exchange,
    session,
    summarize,
    talk,
    user,
)


def compacted(store, count=30, **settings):
    opened = session(store, **settings)
    opened.append(talk(count))
    done = opened.compact(summarize=summarize)
    assert done.compacted
    return opened


def test_untouched_messages_come_out_as_the_very_objects_that_went_in(store):
    opened = session(store, window=100_000)
    messages = talk(3)
    before = copy.deepcopy(messages)
    opened.append(messages)
    assert all(seen is given for seen, given in zip(opened.view(), messages, strict=True))
    assert messages == before


def test_a_session_opened_again_shows_the_same(store):
    opened = compacted(store)
    opened.append([user("more")])
    again = session(store, opened.id)
    assert again.view() == opened.view()
    assert again.messages == opened.messages
    assert again.ids == opened.ids
    assert again.plans == opened.plans
    assert again.check() == opened.check()


def test_two_that_begin_the_same_session_at_once_collide_and_damage_nothing(store):
    one, other = (Session(store, "x", format="openai-chat", window=100_000) for _ in range(2))
    one.append([user("mine")])
    with pytest.raises(WriteConflict):
        other.append([user("theirs")])
    other.refresh()
    other.append([user("theirs")])
    one.refresh()
    assert one.messages == other.messages == [user("mine"), user("theirs")]
    assert Session(store, "x").messages == one.messages


def test_a_plan_is_what_a_compaction_would_do_and_changes_nothing(store):
    opened = session(store)
    opened.append(talk(30))
    before = opened.view()
    planned = opened.plan(summarize=summarize)
    assert (opened.view(), opened.plans) == (before, ())
    assert opened.compact(summarize=summarize).plan == planned
    again = opened.plan(force=True, summarize=summarize)
    assert again == opened.compact(force=True, summarize=summarize).plan


def test_a_plan_made_elsewhere_is_adopted_and_one_for_other_messages_is_not(store):
    opened = session(store)
    opened.append(talk(30))
    result = refold.compact(opened.messages, policy="opal", window=4_000, force=True, summarize=summarize)
    done = opened.adopt(result.plan)
    assert (done.compacted, done.plan, opened.plans) == (True, result.plan, (result.plan,))
    assert opened.view() == result.messages
    assert session(store, opened.id).view() == result.messages
    other = session(store)
    other.append([user("something else"), *talk(30)])
    with pytest.raises(StalePlan):
        other.adopt(result.plan)
    assert other.plans == ()


def test_what_is_shown_is_the_view_with_ids_and_notes(store):
    opened = compacted(store)
    shape = formats.find(opened.format)
    assert formats.assemble(shape, opened.view_messages) == opened.view()
    assert any(message.note is not None for message in opened.view_messages)


@pytest.mark.parametrize("policy", policies.names())
@pytest.mark.parametrize("format", ["openai-chat", "anthropic"])
def test_a_view_that_grows_turn_by_turn_is_the_fold_of_all_plans(policy, format):
    store = MemoryStore()
    opened = session(store, policy=policy, format=format)
    count = 0
    for number in range(80):
        messages = exchange(number) if format == "openai-chat" else anthropic(number)
        for message in messages:
            opened.append([message])
        if opened.needs_compaction():
            count += opened.compact(summarize=summarize).compacted
        assert opened.view() == folded_anew(opened)
        assert opened.check().tokens <= opened.check().limit
    assert count >= 2
    again = session(store, opened.id, policy=policy)
    assert again.view() == opened.view()
    every = session(store, opened.id, policy=policy).messages
    assert len(every) == 320


def folded_anew(opened):
    if not opened.plans:
        return opened.messages
    *earlier, last = opened.plans
    return refold.apply(last, opened.messages, format=opened.format, plans=earlier).messages


def anthropic(number):
    return [
        user(f"Step {number}"),
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": f"c{number}", "name": "read", "input": {"path": "x"}}],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": f"c{number}", "content": f"w{number} " * 80}],
        },
        answer(f"Step {number} is done."),
    ]


def test_json_text_is_kept_as_it_was_received(store):
    text = '{"role": "user",  "content": "1.10 and \\u00e9", "n": 1.10}'
    opened = session(store)
    (id,) = opened.append([text])
    assert store.natives([id]) == {id: text}
    assert opened.view() == [{"role": "user", "content": "1.10 and é", "n": 1.10}]
    opened.append([text.encode()])
    assert store.load(opened.id).natives[opened.ids[1]] == text


@pytest.mark.parametrize(
    "text", ["half \ud83d alone", "two halves \ud83d\ude00", "nul \x00", "漢字 ünïcödé", "\u2028 line"]
)
def test_odd_text_survives_a_reload(store, text):
    opened = session(store)
    opened.append([user(text), answer("ok")])
    again = session(store, opened.id)
    assert again.view()[0]["content"].encode("utf-16", "surrogatepass") == text.encode("utf-16", "surrogatepass")
    assert again.ids == opened.ids


@pytest.mark.parametrize("content", [({"type": "text", "text": "hi"},), [{"type": "x", "at": {1: 2}}]])
def test_what_json_has_no_word_for_is_the_same_here_as_after_a_reload(store, content):
    opened = session(store)
    opened.append([{"role": "user", "content": content}])
    assert opened.view() == session(store, opened.id).view()
    assert opened.check().tokens == session(store, opened.id).check().tokens


@pytest.mark.parametrize(
    "message", [{"role": "user", "content": object()}, {"role": "user", "content": {1, 2}}, "no json", b"\xff", 7]
)
def test_what_cannot_be_kept_is_refused_and_named_and_nothing_is_kept(store, message):
    opened = session(store)
    opened.append([user("hi")])
    with pytest.raises(BadMessages, match=r"message [12]"):
        opened.append([user("fine"), message])
    assert len(session(store, opened.id).messages) == 1


def test_a_message_of_an_sdk_is_kept_as_the_json_that_the_sdk_sends(store):
    said = ChatCompletionMessage(role="assistant", content="Hello.")
    opened = session(store)
    opened.append([user("hi"), said])
    assert opened.view()[1] == session(store, opened.id).view()[1] == {"role": "assistant", "content": "Hello."}


def test_one_message_instead_of_a_list_is_refused(store):
    with pytest.raises(BadMessages, match="list"):
        session(store).append(user("hi"))


def test_a_format_that_cannot_be_told_is_asked_for(store):
    with pytest.raises(UnknownFormat):
        session(store).append([{"strange": 1}])


def test_nothing_appended_is_nothing_written(store):
    opened = session(store)
    assert opened.append([]) == ()
    assert opened.head is None
    assert store.sessions() == ()


def test_a_session_that_must_exist_does(store):
    with pytest.raises(SessionNotFound, match="'nobody'"):
        session(store, "nobody", must_exist=True)
    session(store, "somebody").append([user("hi")])
    assert session(store, "somebody", must_exist=True).view() == [user("hi")]


def test_two_writers_collide_and_go_on_after_a_refresh(store):
    one = session(store)
    one.append(talk(1))
    other = session(store, one.id)
    one.append([user("mine")])
    with pytest.raises(WriteConflict):
        other.append([user("yours")])
    assert len(other.messages) == 4
    other.refresh()
    other.append([answer("both")])
    one.refresh()
    assert one.messages == other.messages == [*talk(1), user("mine"), answer("both")]


def test_a_conflict_keeps_nothing_of_what_was_refused(store):
    one = session(store)
    one.append(talk(1))
    other = session(store, one.id)
    one.append([user("mine")])
    with pytest.raises(WriteConflict):
        other.append([user("yours")])
    assert not one.search("yours")
    assert session(store, one.id).messages == one.messages


def test_messages_that_arrive_while_a_summary_is_written_are_kept(store):
    opened = session(store)
    opened.append(talk(30))
    other = session(store, opened.id)

    def slowly(request):
        other.refresh()
        other.append([user("arrived meanwhile")])
        return "A summary."

    done = opened.compact(summarize=slowly)
    assert done.compacted
    assert opened.view()[-1] == user("arrived meanwhile")
    assert session(store, opened.id).view() == opened.view()
    other.refresh()
    assert other.view() == opened.view()


def test_only_one_compaction_of_a_session_runs_at_a_time(store):
    opened = session(store)
    opened.append(talk(30))
    other = session(store, opened.id)
    seen = []

    def slowly(request):
        with pytest.raises(WriteConflict, match="being compacted"):
            other.compact(summarize=summarize)
        seen.append(True)
        return "A summary."

    opened.compact(summarize=slowly)
    assert seen
    assert other.compact(force=True, summarize=summarize) is not None


def test_a_plan_recorded_meanwhile_makes_the_compaction_fail_loudly(store):
    events = []
    opened = session(store, observers=[events.append])
    opened.append(talk(30))
    other = session(store, opened.id)

    def slowly(request):
        other.condense(other.ids[0], other.ids[3], "by hand")
        return "A summary."

    with pytest.raises(WriteConflict):
        opened.compact(summarize=slowly)
    opened.refresh()
    assert [plan.policy for plan in opened.plans] == ["manual"]
    assert [type(event) for event in events] == [CompactionStarted, CompactionFailed]


def test_a_compaction_that_fails_gives_the_lease_back_and_keeps_nothing(store):
    opened = session(store, policy="vibe", window=3_000)
    opened.append(talk(30))

    def broken(request):
        raise RuntimeError("no model")

    with pytest.raises(SummaryRefused):
        opened.compact(force=True, summarize=broken)
    assert opened.plans == ()
    assert opened.compact(force=True, summarize=summarize).compacted


def test_a_compaction_that_is_not_due_does_nothing(store):
    events = []
    opened = session(store, window=100_000, observers=[events.append])
    opened.append(talk(2))
    done = opened.compact()
    assert not done.compacted
    assert done.plan.empty
    assert opened.plans == ()
    assert events == []


def test_observers_hear_of_a_compaction_when_it_is_kept(store):
    heard = []

    def observer(event):
        heard.append((type(event), len(session(store, opened.id).plans)))

    opened = session(store, observers=[observer])
    opened.append(talk(30))
    opened.compact(summarize=summarize)
    assert heard == [(CompactionStarted, 0), (CompactionApplied, 1), (Compacted, 1)]


def test_an_observer_that_raises_breaks_nothing(store):
    def angry(event):
        raise RuntimeError

    opened = session(store, observers=[angry])
    opened.append(talk(30))
    assert opened.compact(summarize=summarize).compacted


def test_a_report_calibrates_until_the_next_plan(store):
    opened = session(store, window=400_000)
    opened.append(talk(2))
    opened.view()
    opened.report({"prompt_tokens": 70_000, "completion_tokens": 9})
    assert opened.check().tokens == 70_000
    opened.append([user("x" * 400)])
    assert 70_100 <= opened.check().tokens <= 70_120
    assert session(store, opened.id, window=400_000).check().tokens == opened.check().tokens
    opened.compact(force=True, summarize=summarize)
    assert opened.check().tokens < 5_000
    assert session(store, opened.id, window=400_000).check().tokens == opened.check().tokens


def test_a_report_of_any_provider_is_kept_as_it_came(store):
    heard = []
    opened = session(store, observers=[heard.append])
    opened.append(talk(1))
    raw = {
        "input_tokens": 10,
        "cache_read_input_tokens": 90,
        "cache_creation_input_tokens": 0,
        "output_tokens": 5,
        "new": {"x": 1},
    }
    opened.report(raw)
    entry = store.load(opened.id).entries[-1].entry
    assert (entry.prompt, entry.completion, entry.cached, entry.native) == (100, 5, 90, raw)
    opened.report(refold.Usage(50, 5))
    assert (opened.billed.calls, opened.billed.prompt, opened.billed.completion, opened.billed.cached) == (
        2,
        150,
        10,
        90,
    )
    assert [type(event) for event in heard] == [SessionUsageReported, SessionUsageReported]


def test_a_report_on_a_session_that_is_not_there_is_refused(store):
    with pytest.raises(SessionNotFound, match="append"):
        session(store).report({"prompt_tokens": 1})


def test_settings_change_from_the_next_check_on(store):
    opened = session(store)
    opened.append(talk(30))
    assert opened.needs_compaction()
    opened.configure(window=100_000, policy="neurolink")
    assert not opened.needs_compaction()
    assert opened.policy.name == "neurolink"
    system = opened.check().breakdown.system
    opened.configure(system="be brief " * 50)
    assert opened.check().breakdown.system > system
    with pytest.raises(UsageError, match="openai-chat"):
        opened.configure(format="anthropic")


def test_an_existing_session_says_its_own_format(store):
    opened = session(store, format="anthropic")
    opened.append(anthropic(1))
    assert session(store, opened.id).format == "anthropic"
    assert Session(store, opened.id, window=1_000).view() == anthropic(1)


def test_new_ids_differ_and_sort_by_time():
    from refold.sessions import new_id

    ids = [new_id() for _ in range(50)]
    assert len(set(ids)) == 50
    assert sorted(id[:15] for id in ids) == [id[:15] for id in ids]


def test_a_session_is_rewound_only_to_as_many_messages_as_it_has(store):
    session = Session(store, "few", format="openai-chat")
    session.append([{"role": "user", "content": text} for text in ("one", "two")])
    for beyond in (99, -99):
        with pytest.raises(UsageError, match=r"has 2 messages"):
            session.rewind_messages(beyond)
    session.rewind_messages(2)
    assert len(session.messages) == 2
    session.rewind_messages(-2)
    assert session.messages == []


def test_a_session_counts_from_the_providers_own_compaction_on_and_rewinds_to_all_originals(store):
    log = "a line of the log of a build that took a while\n"
    block = {"type": "compaction", "content": "Earlier the parser was ported to port 8443."}
    opened = session(store, format="anthropic", window=10_000)
    said = [{"role": "user", "content": log * 2_000}, {"role": "assistant", "content": [block]}, user("Go on.")]
    opened.append(said)
    assert opened.check().tokens < 1_000
    for number in range(12):
        use = {"type": "tool_use", "id": f"t{number}", "name": "read", "input": {}}
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": log * 60}
        said += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    opened.append(said[3:])
    assert opened.compact(force=True).compacted
    assert opened.view()[0]["content"] == [block]
    assert opened.check().tokens < 10_000
    opened.rewind(to=0)
    assert opened.view() == said


def long_running(format):
    """A tool that answers "pending" at once and the real thing later, under the same id."""
    talk = "The nightly build compiles every package and then runs the full test suite. "
    if format == "gemini":

        def response(status):
            return {"functionResponse": {"id": "lr-1", "name": "export", "response": {"status": status}}}

        call = {"functionCall": {"id": "lr-1", "name": "export", "args": {"t": "orders"}}}
        said = [("user", {"text": "Export the table."}), ("model", call), ("user", response("pending"))]
        said += [("model", {"text": talk * 30}), ("user", {"text": "Meanwhile explain the columns."})]
        said += [("model", {"text": talk * 50})]
        return [{"role": role, "parts": [part]} for role, part in said], {"role": "user", "parts": [response("done")]}
    call = {"type": "tool_use", "id": "lr-1", "name": "export", "input": {"t": "orders"}}
    results = [[{"type": "tool_result", "tool_use_id": "lr-1", "content": text}] for text in ("pending", "done")]
    said = [("user", "Export the table."), ("assistant", [call]), ("user", results[0]), ("assistant", talk * 30)]
    said += [("user", "Meanwhile explain the columns."), ("assistant", talk * 50)]
    return [{"role": role, "content": content} for role, content in said], {"role": "user", "content": results[1]}


@pytest.mark.parametrize("policy", policies.names())
@pytest.mark.parametrize("format", ["anthropic", "gemini"])
def test_an_answer_to_a_call_that_a_plan_took_away_is_no_orphan(format, policy):
    messages, late = long_running(format)
    opened = Session(MemoryStore(), format=format, window=1_500, policy=policy)
    opened.append(messages)
    opened.compact(force=True, summarize=lambda need: "The export was started and the build explained. " * 3)
    opened.append([late])
    view = opened.view()
    assert refold.violations(view, format=format) == ()
    assert "done" in str(view)
    opened.rewind(0)
    assert opened.view() == [*messages, late]


def test_a_repr_has_the_counts_and_no_text(store):
    opened = Session(store, "s", window=1_000)
    assert repr(opened) == "<Session 's': messages=0, plans=0, format=None, policy='refold'>"
    opened.append([user("a secret")])
    assert repr(opened) == "<Session 's': messages=1, plans=0, format='openai-chat', policy='refold'>"


def calls_of_anthropic():
    asked = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "/src/a.py"}}
    found = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "a line of the file"}
    return [{"role": "assistant", "content": [asked]}, {"role": "user", "content": [found]}]


def test_a_session_takes_the_format_of_the_first_messages_that_show_one(store):
    opened = session(store)
    other = session(store, opened.append([user("Read the file.")]) and opened.id)
    assert opened.format == "openai-chat"
    opened.append(calls_of_anthropic())
    assert opened.format == "anthropic"
    assert opened.view() == [user("Read the file."), *calls_of_anthropic()]
    assert refold.violations(opened.view()) == ()
    assert opened.check().tokens == refold.check(opened.view(), window=4_000, policy="opal").tokens
    other.refresh()
    again = session(store, opened.id)
    assert other.format == again.format == "anthropic"
    assert again.view() == other.view() == opened.view()
    assert again.check().tokens == other.check().tokens == opened.check().tokens


def test_a_session_keeps_the_format_that_it_was_opened_with(store):
    opened = session(store, format="openai-chat")
    opened.append([user("Read the file.")])
    opened.append(calls_of_anthropic())
    assert opened.format == "openai-chat"


def test_a_session_whose_stored_ids_would_change_keeps_its_format(store):
    opened = session(store)
    opened.append([{"role": "user", "content": [{"type": "text", "text": "Read the file."}]}])
    opened.append([{"type": "function_call", "call_id": "c", "name": "read", "arguments": "{}"}])
    assert session(store, opened.id).view() == opened.view()
