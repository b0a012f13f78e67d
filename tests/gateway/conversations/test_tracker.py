import json

import pytest

from refold import formats
from refold._gateway.conversations.tracker import ConversationLocked, ConversationTracker
from refold._gateway.wire.routes import DIALECTS

CHAT, SHAPE = DIALECTS["chat"], formats.find("openai-chat")


def body(*words, **more):
    roles = ("user", "assistant")
    messages = [{"role": roles[place % 2], "content": word} for place, word in enumerate(words)]
    return json.dumps({"model": "m", "messages": messages, **more}).encode()


def found(tracker, raw, session=""):
    return tracker.find(CHAT, SHAPE, session, raw)


def test_a_longer_history_is_the_same_conversation_and_so_is_a_retry():
    tracker = ConversationTracker(10**9)
    first = found(tracker, body("a", "b", "c"))
    assert found(tracker, body("a", "b", "c")) is first
    assert found(tracker, body("a", "b", "c", "d", "e")) is first
    assert len(first.body.raws) == 5


def test_other_keys_or_their_order_make_no_other_conversation():
    tracker = ConversationTracker(10**9)
    first = found(tracker, body("a", "b", "c"))
    again = b'{"temperature":1,' + body("a", "b", "c", "d", "e")[1:]
    assert found(tracker, again) is first


def test_an_edit_and_a_shorter_history_are_branches_and_the_old_one_goes_on():
    tracker = ConversationTracker(10**9)
    first = found(tracker, body("a", "b", "c", "d", "e"))
    edited = found(tracker, body("a", "b", "C", "d", "e"))
    shorter = found(tracker, body("a", "b", "c"))
    assert len({first.id, edited.id, shorter.id}) == 3
    assert found(tracker, body("a", "b", "c", "d", "e", "f")) is first
    assert found(tracker, body("a", "b", "C", "d", "e", "f")) is edited


def test_sub_agents_with_one_beginning_are_told_apart_and_named_sessions_too():
    tracker = ConversationTracker(10**9)
    one, two = found(tracker, body("same", "start", "one")), found(tracker, body("same", "start", "two"))
    other = found(tracker, body("same", "start", "one"), "named")
    assert len({one.id, two.id, other.id}) == 3
    assert found(tracker, body("same", "start", "two", "x")) is two


def test_equal_words_of_different_owners_are_different_conversations():
    tracker = ConversationTracker(10**9)
    ours, theirs = (tracker.find(CHAT, SHAPE, "named", body("same", "start"), owner) for owner in ("ann", "bob"))
    assert (ours.owner, theirs.owner) == ("ann", "bob")
    assert ours.id != theirs.id
    assert tracker.find(CHAT, SHAPE, "named", body("same", "start", "on"), "bob") is theirs
    branch = tracker.find(CHAT, SHAPE, "named", body("same", "other"), "bob")
    assert branch.owner == "bob"


def test_ids_cannot_be_computed_without_the_salt_of_the_store():
    one, two = ConversationTracker(10**9), ConversationTracker(10**9)
    one.salt = b"s" * 32
    assert found(one, body("a", "b")).id != found(two, body("a", "b")).id


def test_a_moved_cache_mark_is_no_edit():
    shape, dialect = formats.find("anthropic"), DIALECTS["anthropic"]
    tracker = ConversationTracker(10**9)

    def marked(count, at):
        messages = [
            {"role": ("user", "assistant")[n % 2], "content": [{"type": "text", "text": f"m{n}"}]} for n in range(count)
        ]
        for place in at:
            messages[place]["content"][0]["cache_control"] = {"type": "ephemeral"}
        return json.dumps({"model": "m", "messages": messages}).encode()

    first = tracker.find(dialect, shape, "", marked(3, [0, 2]))
    assert tracker.find(dialect, shape, "", marked(5, [2, 4])) is first
    assert tracker.find(dialect, shape, "", marked(7, [4, 6])) is first


def test_ids_follow_from_what_was_said_in_every_process():
    one, two = ConversationTracker(10**9), ConversationTracker(10**9)
    assert found(one, body("a", "b")).id == found(two, body("a", "b", "c")).id
    assert found(one, body("a", "x")).id == found(one, body("a", "x", "y")).id


def test_the_oldest_are_forgotten_when_all_together_are_too_much():
    tracker = ConversationTracker(30_000)
    dropped = []
    tracker.on_forget = dropped.append
    for number in range(50):
        found(tracker, body(f"{number} " + "x" * 1_000))
    assert tracker.size <= 30_000
    assert len(tracker) + len(dropped) == 50
    assert dropped[0].body.raws[0] != tracker.all()[0].body.raws[0]
    for conversation in tracker.all():
        tracker.forget(conversation.id)
    assert (len(tracker), tracker.size) == (0, 0)


async def locked(tracker, raw):
    conversation = found(tracker, raw)
    async with conversation.lock:
        with pytest.raises(ConversationLocked):
            found(tracker, raw)
        assert found(tracker, body("another")).id != conversation.id


def test_a_conversation_at_work_is_not_touched():
    import asyncio

    asyncio.run(locked(ConversationTracker(10**9), body("a", "b")))


@pytest.mark.parametrize("name", ["chat", "anthropic"])
def test_a_text_that_becomes_a_list_to_bear_a_cache_mark_is_no_edit(name):
    dialect = DIALECTS[name]
    shape, tracker = formats.find(dialect.format), ConversationTracker(10**9)

    def marked(count, at, **more):
        messages = [{"role": ("user", "assistant")[place % 2], "content": f"m{place}"} for place in range(count)]
        if at < count:
            block = {"type": "text", "text": f"m{at}", "cache_control": {"type": "ephemeral"}, **more}
            messages[at]["content"] = [block]
        return json.dumps({"model": "m", "messages": messages}).encode()

    first = tracker.find(dialect, shape, "", marked(1, 0))
    assert tracker.find(dialect, shape, "", marked(3, 2)) is first
    assert tracker.find(dialect, shape, "", marked(5, 9)) is first
    assert tracker.find(dialect, shape, "", marked(5, 2, citations=[{"title": "t"}])) is not first


def under(instructions, *words):
    roles = ("user", "assistant")
    said = [{"role": roles[place % 2], "content": word} for place, word in enumerate(words)]
    return json.dumps({"model": "m", "messages": [{"role": "system", "content": instructions}, *said]}).encode()


@pytest.mark.parametrize("task", ["Task {}", "One task for all"])
def test_any_number_of_conversations_begin_alike_and_each_is_known_again(task):
    tracker = ConversationTracker(10**9)
    names = [None] * 300
    words = [[task.format(n)] for n in range(300)]
    for turn in range(1, 4):
        for n in range(300):
            words[n] += [f"{turn}. answer to {n}", "Go on."]
            id = found(tracker, under("Be brief. " * 100, *words[n])).id
            names[n] = names[n] or id
            assert names[n] == id
    assert len(tracker) == len(set(names)) == 300


def test_who_comes_first_under_the_same_instructions_changes_no_ids():
    one, two = ConversationTracker(10**9), ConversationTracker(10**9)
    ids = [found(one, under("Be brief.", task)).id for task in ("a", "b", "c")]
    assert [found(two, under("Be brief.", task, "x")).id for task in ("c", "b", "a")] == ids[::-1]


def test_instructions_that_change_with_the_time_of_day_make_no_other_conversation():
    tracker = ConversationTracker(10**9)
    found(tracker, under("It is 1.", "task"))
    first = found(tracker, under("It is 2.", "task", "a", "b"))
    first.transcript = formats.read(SHAPE, [json.loads(bytes(raw)) for raw in first.body.raws])
    ids = [message.id for message in first.transcript.messages]
    assert found(tracker, under("It is 3 and late.", "task", "a", "b", "c", "d")) is first
    assert [message.id for message in first.transcript.messages] == ids
    assert first.transcript.messages[0].native["content"] == "It is 3 and late."
    branch = found(tracker, under("It is 4.", "task", "a", "other"))
    assert branch is not first
    assert branch.transcript.messages[0].native["content"] == "It is 4."
    assert [message.id for message in branch.transcript.messages] == ids[:3]


def test_agents_with_instructions_of_their_own_and_one_task_are_told_apart():
    tracker = ConversationTracker(10**9)
    one, two = found(tracker, under("Plan.", "task")), found(tracker, under("Write.", "task"))
    assert one is not two
    assert found(tracker, under("Plan.", "task", "a", "b")) is one
    assert found(tracker, under("Write.", "task", "x", "y")) is two
    assert found(tracker, under("Plan.", "task", "a", "b", "c")) is one
