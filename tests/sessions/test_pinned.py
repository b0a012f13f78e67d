"""Messages that a person has pinned stay word for word in every later compaction."""

import pytest

from refold.errors import UsageError
from refold.formats import broken, find
from refold.sessions import MemoryStore, Session
from refold.sessions._entries import Configured
from tests.sessions.talks import WINDOW, session, summarize, talk


def compacted(store, policy, place):
    opened = session(store, policy=policy)
    opened.append(talk(30))
    opened.pin(opened.ids[place])
    opened.compact(force=True, summarize=summarize)
    assert opened.plans
    return opened


@pytest.mark.parametrize("policy", ["refold", "opal", "claude-code", "wolffish", "vibe", "neurolink"])
@pytest.mark.parametrize("place", [0, 1, 2, 3, 42])
def test_a_pinned_message_stays_as_it_is_and_the_conversation_valid(policy, place):
    opened = compacted(MemoryStore(), policy, place)
    pinned = opened.messages[place]
    assert any(message is pinned for message in opened.view())
    assert len(opened.view()) < len(opened.messages)
    assert not broken(find("openai-chat"), opened.view_messages)


def test_without_the_pin_the_same_message_leaves(store):
    opened = compacted(store, "refold", 2)
    assert opened.messages[2] in opened.view()
    opened.rewind(0)
    opened.unpin(opened.ids[2])
    opened.compact(force=True)
    assert opened.messages[2] not in opened.view()


def test_pins_are_remembered_and_recorded_with_who_set_them(store):
    opened = session(store, "one")
    opened.append(talk(3))
    Session(store, "one", actor="ann").pin(opened.ids[4])
    opened.refresh()
    assert opened.pinned == (opened.ids[4],)
    newest = store.load("one").entries[-1].entry
    assert newest == Configured({"pinned": [opened.ids[4]]}, "ann")
    for change in (opened.pin, opened.unpin):
        with pytest.raises(UsageError):
            change("b2:nothing")
    opened.unpin(opened.ids[4][:12])
    assert opened.pinned == ()


def test_a_pinned_message_that_alone_exceeds_the_goal_leaves_the_rest_small():
    opened = session(MemoryStore(), policy="refold", window=WINDOW)
    opened.append(talk(2, 4_000))
    opened.append(talk(20))
    opened.pin(opened.ids[2])
    opened.compact(force=True)
    assert opened.messages[2] in opened.view()
    assert opened.plans[-1].sizes.after <= opened.plans[-1].sizes.limit
