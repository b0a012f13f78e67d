import asyncio
import json
from itertools import pairwise

import pytest
from msgspec.structs import replace
from openai.types.chat import ChatCompletionMessage

import refold
from refold import policies
from refold.adapt import Track, rewind_state
from refold.core.budget import Share
from refold.errors import CannotFit, ContextOverflow, StalePlan, UnknownOption, UnreadablePlan, UsageError
from tests.compaction.test_meter import Counting

WINDOW = 16_000


def output(number, lines=120):
    return "\n".join(f"{line}: module_{number} defines handler_{number * line % 89}" for line in range(lines))


def call(number):
    function = {"name": "read", "arguments": json.dumps({"path": f"src/module_{number}.py"})}
    calls = [{"id": f"call_{number}", "type": "function", "function": function}]
    return [
        {"role": "assistant", "content": f"I look at module {number}.", "tool_calls": calls},
        {"role": "tool", "tool_call_id": f"call_{number}", "content": output(number)},
    ]


def history(calls):
    start = [{"role": "system", "content": "You fix code."}, {"role": "user", "content": "Fix the handlers."}]
    return [*start, *(message for number in range(calls) for message in call(number))]


def conversation(track, calls, **options):
    """Fold before every call of a growing history, and return the history and the views."""
    messages, views = history(0), []
    for number in range(calls):
        views.append(track.fold(messages, **options))
        messages = [*messages, *call(number)]
    return messages, [*views, track.fold(messages, **options)]


def test_what_is_sent_stays_valid_and_within_the_window_and_keeps_its_beginning_between_compactions():
    _, views = conversation(Track(window=WINDOW), 40)
    assert sum(len(view.plans) for view in views) >= 3
    for before, view in pairwise(views):
        assert refold.violations(view.messages) == ()
        assert refold.count(view.messages) <= WINDOW
        if not view.plans:
            assert view.messages[: len(before.messages)] == before.messages


def test_untouched_messages_are_the_very_objects_and_origins_name_the_others():
    track = Track(window=WINDOW)
    messages, views = conversation(track, 20)
    view = views[-1]
    for native, origin, untouched in zip(view.messages, view.origins, view.untouched, strict=True):
        assert untouched == (origin is not None and messages[origin] is native)
    assert {None, True, False} <= {*view.origins, *view.untouched}


def test_a_turn_counts_what_is_new_and_not_what_is_old():
    counter = Counting()
    track = Track(window=1_000_000, counter=counter)
    conversation(track, 30)
    early = counter.counted
    messages = history(300)
    track.fold(messages)
    before = counter.counted
    for number in range(300, 310):
        messages = [*messages, *call(number)]
        track.fold(messages)
    assert early == len(history(30))
    assert counter.counted - before == 20


def test_a_view_that_ends_in_a_message_which_a_plan_edited_grows_as_one_that_is_made_anew():
    track, messages, edited = Track(window=WINDOW), history(4), 0
    for number in range(4, 12):
        asked, answer = call(number)
        messages = [*messages, asked, {**answer, "content": output(number, 2_500 if number % 3 == 0 else 20)}]
        view = track.fold(messages)
        edited += not view.untouched[-1]
        again = Track.load(track.dump(), window=WINDOW).fold(messages)
        assert (view.messages, view.origins, view.untouched) == (again.messages, again.origins, again.untouched)
    assert edited


def test_items_are_converted_once_and_known_by_their_keys():
    converted = []

    def convert(item):
        converted.append(item["id"])
        return item["native"]

    track = Track(window=WINDOW)
    messages = history(30)
    for size in range(2, len(messages), 2):
        items = [{"id": at, "native": native} for at, native in enumerate(messages[:size])]  # new objects each time
        view = track.fold(items, keys=[item["id"] for item in items], convert=convert)
    assert converted == list(range(len(items)))
    assert track.plans
    assert all(view.items[origin] is items[origin] for origin in view.origins if origin is not None)


def test_items_with_several_native_messages_or_none_come_back_as_the_frameworks_own():
    messages = history(20)
    note = {"comment": "only for the framework"}
    items = [messages[:1], note, messages[1:2], *([*messages[at : at + 2]] for at in range(2, len(messages), 2)), note]
    written = []

    def write(natives, item):
        written.append((natives, item))
        return [natives]

    view = Track(window=WINDOW).fold(items, convert=lambda item: () if item is note else item)
    out = view.as_items(write)
    assert out[0] is items[0]
    assert out[-2] is items[-2]
    assert [at for at, item in enumerate(out) if item is note] == [1, len(out) - 1]
    assert [native for item in out if item is not note for native in item] == view.messages
    assert any(item is None for _, item in written)
    assert all(item is None or any(item is each for each in items) for _, item in written)


class Array:
    """An array of numbers, which compares each with each."""

    def __eq__(self, other):
        raise ValueError("the truth value of an array is ambiguous")

    __hash__ = None


def test_what_was_written_for_messages_that_are_as_before_is_not_written_again():
    track, items, written = Track(window=WINDOW), history(0), []

    def write(natives, item):
        written.append((natives, item))
        return [dict(native) for native in natives]

    before, edited, added = [], 0, 0
    for number in range(20):
        items = [*items, *call(number)]
        view, earlier = track.fold(items), len(written)
        sent = view.as_items(write)
        if not view.plans:
            assert len(written) == earlier
            assert all(old is new for old, new in zip(before, sent, strict=False))
        edited, added, before = len(written), sum(item is None for _, item in written), sent
    assert 0 < added < edited
    copies = track.fold([dict(item) for item in items]).as_items(write)
    assert copies == before
    assert len(written) == edited
    others = track.fold([{**item, "time": 1} for item in items], keys=items).as_items(write)
    assert sum("time" in item for item in others if item) > 0
    assert len(written) > edited  # with other fields it is another message
    with_arrays = [[{**item, "rows": Array()} for item in items] for _ in range(2)]
    first, second = (track.fold(each, keys=items).as_items(write) for each in with_arrays)
    assert len(first) == len(second)


def test_a_state_goes_on_in_another_process_under_the_same_plans():
    track = Track(window=WINDOW)
    messages, views = conversation(track, 20)
    again = Track.load(track.dump(), window=WINDOW)
    assert again.fold(messages).messages == views[-1].messages
    assert again.plans == track.plans
    assert Track.load("", window=WINDOW).plans == ()


def test_plans_taken_back_bring_the_originals_back_in_the_track_and_in_its_state():
    track = Track(window=WINDOW)
    messages, _ = conversation(track, 20)
    again = Track.load(rewind_state(track.dump(), 0), window=1_000_000)
    assert again.fold(messages).messages == messages
    larger = Track.load(track.dump(), window=1_000_000)
    assert larger.fold(messages).messages != messages
    assert larger.rewind(0) == track.plans
    assert larger.fold(messages).messages == messages
    assert larger.dump() == ""


def test_more_plans_than_there_are_cannot_stay_or_be_taken_back():
    track = Track(window=WINDOW)
    conversation(track, 20)
    plans, state = track.plans, track.dump()
    for to in (len(plans) + 1, -len(plans) - 1):
        with pytest.raises(UsageError, match=f"to={to}, but .* in force"):
            track.rewind(to)
        with pytest.raises(UsageError, match=f"to={to}, but .* in force"):
            rewind_state(state, to)
    assert track.plans == plans
    assert Track(window=WINDOW).rewind() == ()
    assert rewind_state("") == ""


def test_a_history_that_was_edited_is_refused_and_leaves_the_track_as_it_was():
    track = Track(window=WINDOW)
    messages, views = conversation(track, 20)
    with pytest.raises(StalePlan, match=r"these plans do not fit this history: .* only the first 2 are as they were"):
        track.fold([*messages[:2], *messages[4:]])
    assert track.fold(messages).messages == views[-1].messages


def test_the_longest_beginning_of_plans_that_still_fit_is_kept_where_that_is_asked_for():
    track = Track(window=WINDOW, stale_plans="drop")
    messages, _ = conversation(track, 30)
    first, *others = track.plans
    assert others
    edited = [*messages[: first.base.length], {"role": "user", "content": "Stop."}]
    view = track.fold(edited)
    assert view.dropped == tuple(others)
    assert track.plans == (first,)
    assert view.messages[-1] == edited[-1]
    assert refold.violations(view.messages) == ()


def test_messages_taken_from_the_end_that_no_plan_was_made_for_are_no_misuse():
    track = Track(window=WINDOW)
    messages, _ = conversation(track, 20)
    shorter = messages[: track.plans[-1].base.length]
    assert track.fold(shorter).messages == Track.load(track.dump(), window=WINDOW).fold(shorter).messages


def test_a_refused_request_becomes_smaller_until_it_is_accepted_and_the_window_is_remembered():
    track = Track(window=200_000)
    messages, views = conversation(track, 20)
    limit = 12_000
    refusal = f"This model's maximum context length is {limit} tokens. However, your messages resulted in 30000 tokens."
    assert refold.count(views[-1].messages) > limit
    view = track.recover(RuntimeError(refusal))
    assert refold.count(view.messages) <= limit
    assert [plan.cause for plan in view.plans] == ["overflow"]
    again = Track.load(track.dump(), window=200_000)
    for number in range(20, 40):
        messages = [*messages, *call(number)]
        assert refold.count(again.fold(messages).messages) <= limit
    assert refold.count(again.recover(RuntimeError(refusal)).messages) <= limit
    again.recover(RuntimeError(refusal))
    with pytest.raises((CannotFit, ContextOverflow)):
        again.recover(RuntimeError(refusal))


def test_a_window_that_a_refusal_told_never_widens_a_smaller_one_that_is_configured():
    track = Track(window=200_000)
    messages, _ = conversation(track, 20)
    track.recover(RuntimeError("This model's maximum context length is 12000 tokens. However, you sent 30000 tokens."))
    again = Track.load(track.dump(), window=6_000)
    assert again.settings["window"] == 6_000
    assert refold.count(again.fold([*messages, *call(20)]).messages) < 6_000


def test_a_call_is_sent_again_with_less_until_it_is_accepted():
    refusal = RuntimeError("This model's maximum context length is 12000 tokens. However, you requested 20000 tokens.")
    sent = []

    def send(view):
        sent.append(refold.count(view.messages))
        if sent[-1] > 12_000:
            raise refusal
        return "Done."

    async def send_later(view):
        return send(view)

    assert Track(window=200_000).call(send, history(20)) == "Done."
    assert asyncio.run(Track(window=200_000).acall(send_later, history(20))) == "Done."
    assert [size > 12_000 for size in sent] == [True, False] * 2


def test_an_error_that_a_smaller_request_does_not_avoid_is_raised():
    track = Track(window=WINDOW)
    track.fold(history(1))
    error = RuntimeError("the disk is full")
    with pytest.raises(RuntimeError) as raised:
        track.recover(error)
    assert raised.value is error


def test_a_report_of_the_provider_is_believed_until_a_plan_changes_what_is_sent():
    track = Track(window=WINDOW)
    messages = history(3)
    assert not track.fold(messages).plans
    messages += call(3)
    track.report({"prompt_tokens": 15_000, "completion_tokens": 50})
    assert len(track.fold(messages).plans) == 1
    assert not track.fold(messages).plans  # the report is of what was sent before the plan
    messages += call(4)
    track.report({"prompt_tokens": 2_000, "completion_tokens": 50})
    assert not track.fold(messages).plans


def test_the_system_prompt_and_tools_of_a_call_are_counted_and_no_message_again():
    counter = Counting()
    track = Track(window=WINDOW, counter=counter)
    messages = history(5)
    track.fold(messages)
    counted = counter.counted
    assert not track.plans
    track.fold(messages, system="Obey. " * 2_000, tools=[{"name": "read", "parameters": {}}])
    assert len(track.plans) == 1
    fresh = Track(window=WINDOW, counter=Counting())
    fresh.fold(messages, system="Obey. " * 2_000, tools=[{"name": "read", "parameters": {}}])
    assert fresh.plans == track.plans
    assert counted == len(messages)


def test_a_compaction_in_vain_is_not_tried_again_before_the_request_has_grown():
    started = []
    policy = replace(policies.find("opal"), trigger=Share(0.3), steps=())
    track = Track(window=WINDOW, policy=policy, observers=[lambda event: started.append(type(event).__name__)])
    messages = [{"role": "user", "content": output(1, 600)}]
    for number in range(5):
        track.fold(messages)
        messages = [
            *messages,
            {"role": "assistant", "content": f"Yes {number}."},
            {"role": "user", "content": "Go on."},
        ]
    assert not track.plans
    assert started.count("CompactionStarted") == 1


def test_a_summarizer_is_awaited():
    async def summarize(need):
        await asyncio.sleep(0)
        return "GOAL: fix the handlers."

    async def run():
        track = Track(window=WINDOW, policy="claude-code", summarize=summarize)
        messages = history(12)
        with pytest.raises(UsageError, match="afold"):
            track.fold(messages)
        return track, await track.afold(messages)

    track, view = asyncio.run(run())
    assert "fix the handlers" in json.dumps(view.messages)
    assert track.plans == view.plans


def test_what_is_no_option_item_or_state_is_refused():
    with pytest.raises(UnknownOption, match="did you mean window"):
        Track(windows=WINDOW)
    with pytest.raises(UsageError, match="stale_plans"):
        Track(window=WINDOW, stale_plans="longest")
    with pytest.raises(UsageError, match="1 keys for 2 items"):
        Track(window=WINDOW).fold(history(0), keys=["one"])
    with pytest.raises(UnreadablePlan, match="not the state of a track"):
        Track.load("{}", window=WINDOW)
    with pytest.raises(UnreadablePlan, match="version 3"):
        Track.load('{"refold_track": 3}', window=WINDOW)
    assert Track(window=WINDOW).fold([]).messages == []


def test_an_answer_that_is_appended_as_the_object_of_an_sdk_is_a_message():
    said = ChatCompletionMessage(role="assistant", content="Hello.")  # lists its fields when it is iterated
    assert Track(window=WINDOW).fold([{"role": "user", "content": "Hello."}, said]).messages[1] is said


def test_plans_made_before_the_format_showed_itself_go_where_messages_have_other_ids_in_it():
    texts = [[{"type": "text", "text": output(number)}] for number in range(31)]
    messages = [
        {"role": "user" if place % 2 == 0 else "assistant", "content": text} for place, text in enumerate(texts)
    ]
    track = Track(window=WINDOW)
    (plan,) = track.fold(messages).plans
    call = {"type": "function_call", "call_id": "c", "name": "read", "arguments": "{}"}
    messages += [call, {"type": "function_call_output", "call_id": "c", "output": "ok"}]
    view = track.fold(messages)
    assert view.dropped == (plan,)
    assert refold.violations(view.messages, format="openai-responses") == ()
    assert view.origins.count(None) == len(view.plans) == 1
    assert Track.load(track.dump(), window=WINDOW).fold(messages).messages == view.messages
