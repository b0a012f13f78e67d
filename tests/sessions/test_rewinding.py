import pytest

import refold
from refold.errors import BrokenConversation, UsageError, WriteConflict
from tests.sessions.talks import answer, session, summarize, talk, user


@pytest.fixture
def planned(store):
    """A session with two plans, and the views before and after each."""
    opened = session(store)
    opened.append(talk(30))
    opened.compact(summarize=summarize)
    opened.append(talk(30))
    opened.compact(summarize=summarize)
    assert len(opened.plans) == 2
    return opened


def reloaded(opened):
    return session(opened.store, opened.id)


def test_no_plan_left_shows_every_original(planned):
    planned.rewind(0)
    assert planned.view() == planned.messages == [*talk(30), *talk(30)]
    assert reloaded(planned).view() == planned.messages


def test_the_newest_plan_comes_off_and_goes_on_again(planned):
    both = planned.view()
    first = refold.apply(planned.plans[0], planned.messages, format="openai-chat").messages
    planned.rewind()
    assert planned.view() == first == reloaded(planned).view()
    planned.forward()
    assert planned.view() == both == reloaded(planned).view()
    with pytest.raises(UsageError, match="not rewound"):
        planned.forward()


def test_several_rewinds_are_taken_back_one_by_one_also_after_a_reload(planned):
    views = [planned.view()]
    for to in (1, 0, planned.ids[7]):
        planned.rewind(to)
        views.append(planned.view())
    again = reloaded(planned)
    for view in reversed(views[:-1]):
        again.forward()
        assert again.view() == view


def test_a_rewind_to_a_plan_keeps_the_messages_and_that_plan(planned):
    first = planned.plans[0]
    planned.rewind(first.id)
    assert planned.plans == (first,)
    assert len(planned.messages) == 240
    planned.rewind(first.id)
    assert planned.plans == (first,)


def test_a_rewind_to_a_message_ends_there_with_the_plans_made_before_it(planned):
    planned.rewind(planned.ids[123])
    assert planned.messages == [*talk(30), *talk(1)]
    assert len(planned.plans) == 1
    planned.append([user("another way")])
    assert planned.view()[-1] == user("another way")
    assert reloaded(planned).view() == planned.view()


def test_a_plan_or_message_of_an_abandoned_way_can_be_gone_back_to(planned):
    ids, plans, view = planned.ids, planned.plans, planned.view()
    planned.rewind(ids[3])
    planned.append([user("another way")])
    planned.rewind(plans[1].id)
    assert planned.view() == view
    planned.rewind(ids[3])
    planned.append([user("a third way")])
    planned.rewind(ids[-1])
    assert planned.messages == [*talk(30), *talk(30)]


def test_ids_may_be_shortened_while_they_are_the_only_ones(planned):
    plan = planned.plans[0]
    planned.rewind(plan.id[:14])
    assert planned.plans == (plan,)
    planned.rewind(planned.ids[9].removeprefix("b2:")[:12])
    assert len(planned.messages) == 10
    with pytest.raises(UsageError, match="ids start with it"):
        planned.rewind("b2:")
    with pytest.raises(UsageError, match="'nothing'"):
        planned.rewind("nothing")


def test_a_rewind_from_a_stale_session_collides(planned):
    other = reloaded(planned)
    planned.append([user("more")])
    with pytest.raises(WriteConflict):
        other.rewind(0)


def test_a_message_ends_what_could_be_gone_forward_to(planned):
    planned.rewind()
    planned.append([user("more")])
    with pytest.raises(UsageError, match="not rewound"):
        planned.forward()


def test_a_report_does_not_end_it(planned):
    view = planned.view()
    planned.rewind()
    planned.report({"prompt_tokens": 5})
    planned.forward()
    assert planned.view() == view


def test_an_inner_plan_comes_off_and_the_outer_one_stays(store):
    opened = session(store)
    opened.append([user("one"), answer("two"), user("three"), answer("four"), user("five")])
    inner = opened.condense(opened.ids[0], opened.ids[1], "the first two")
    outer = opened.condense(opened.ids[2], opened.ids[3], "the next two")
    opened.untag(inner.id)
    assert opened.plans == (outer,)
    assert [message["content"] for message in opened.view()] == ["one", "two", "the next two", "five"]
    assert reloaded(opened).view() == opened.view()
    opened.append(talk(40))
    assert opened.compact(summarize=summarize).compacted


def test_what_stood_on_a_plan_that_came_off_is_void(store):
    opened = session(store)
    opened.append([user("one"), answer("two"), user("three"), answer("four"), user("five")])
    inner = opened.condense(opened.ids[0], opened.ids[1], "inner")
    summary = next(iter(opened.tags()))
    opened.condense(summary, opened.ids[2], "outer")
    assert [message["content"] for message in opened.view()] == ["outer", "four", "five"]
    opened.untag(inner.id)
    opened.append(talk(40))
    assert opened.compact(summarize=summarize).compacted
    assert reloaded(opened).view() == opened.view()


def test_a_range_that_would_part_a_call_from_its_result_is_refused(store):
    opened = session(store)
    opened.append(talk(2))
    with pytest.raises(BrokenConversation):
        opened.condense(opened.ids[0], opened.ids[1], "half a call")
    assert opened.plans == ()
    with pytest.raises(UsageError, match="is not a range"):
        opened.truncate(opened.ids[3], opened.ids[0])
    with pytest.raises(UsageError, match="is not an active plan"):
        opened.untag(opened.ids[0])


def test_an_empty_session_has_nothing_to_tag(store):
    with pytest.raises(UsageError, match="no messages"):
        session(store).condense("b2:x", "b2:y", "z")


def test_plans_in_flight_are_not_kept(store):
    opened = session(store, in_flight=True)
    opened.append(talk(30))
    opened.report({"prompt_tokens": 2_500})
    assert opened.compact(force=True, summarize=summarize).compacted
    assert len(opened.view()) < 120
    assert opened.check().tokens < 2_500
    opened.append([user("more")])
    assert opened.view()[-1] == user("more")
    assert opened.messages == [*talk(30), user("more")]
    assert reloaded(opened).view() == opened.messages
    opened.append(talk(30))
    assert opened.compact(summarize=summarize).compacted
    assert len(opened.plans) == 2
    opened.rewind(1)
    assert len(opened.plans) == 1
    opened.rewind(opened.ids[5])
    assert opened.view() == talk(30)[:6]


def test_a_policy_that_renews_sessions_goes_on_as_another_with_its_past(store):
    opened = session(store, policy="vibe", window=3_000)
    opened.append(talk(30))
    first = opened.id
    done = opened.compact(force=True, summarize=summarize)
    assert (done.previous, done.session) == (first, opened.id)
    assert opened.id != first
    assert opened.lineage == (opened.id, first)
    assert opened.head.parent == first
    opened.append([user("on we go")])
    again = session(store, opened.id, policy="vibe", window=3_000)
    assert again.view() == opened.view()
    assert again.messages == [*talk(30), user("on we go")]
    assert opened.search("word7")
    assert opened.search("we go")
    with pytest.raises(WriteConflict, match=f"continues as {opened.id}"):
        session(store, first).append([user("too late")])
    second = opened.id
    opened.append(talk(30))
    opened.compact(force=True, summarize=summarize)
    assert opened.lineage == (opened.id, second, first)
    third = session(store, opened.id, policy="vibe", window=3_000)
    assert third.view() == opened.view()
    third.rewind(0)
    assert third.view() == [*talk(30), user("on we go"), *talk(30)]


def test_messages_that_arrive_while_a_session_is_renewed_go_with_it(store):
    opened = session(store, policy="vibe", window=3_000)
    opened.append(talk(30))
    other = session(store, opened.id)

    def slowly(request):
        other.append([user("arrived meanwhile")])
        return "A summary."

    opened.compact(force=True, summarize=slowly)
    assert opened.view()[-1]["content"].endswith("arrived meanwhile")
    assert opened.messages[-1] == user("arrived meanwhile")
    assert session(store, opened.id).view() == opened.view()
