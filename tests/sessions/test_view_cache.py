from typing import ClassVar

import pytest
from msgspec import Struct
from msgspec.structs import replace

from refold import policies
from refold.adapt import Track
from refold.core.policy import Step
from refold.sessions import MemoryStore, Session
from tests.sessions.talks import talk

WINDOW = 4_000


class Looking(Struct, frozen=True):
    """A stage that notes which messages it looked at as they arrived, and which of a compaction's it had not."""

    seen: list
    unseen: list

    grows: ClassVar[bool] = False

    def arrived(self, message):
        self.seen.append(message)

    def needs(self, view):
        return ()

    def edits(self, view, answers):
        seen = {id(message) for message in self.seen}
        for messages in (view.transcript.messages, [message for message in view.messages if message.native]):
            self.unseen.append([message for message in messages if not message.patches and id(message) not in seen])
        return ()


def looking():
    stage = Looking([], [])
    refold = policies.find("refold")
    return stage, replace(refold, steps=(Step(stage), *refold.steps))


def grow_session(policy, messages):
    session = Session(MemoryStore(), window=WINDOW, policy=policy)
    for message in messages:
        session.append([message])
        if session.needs_compaction():
            session.compact()
        yield session.plans


def grow_track(policy, messages):
    track, history = Track(window=WINDOW, policy=policy), []
    for message in messages:
        history.append(message)
        track.fold(history)
        yield track.plans


@pytest.mark.parametrize("grow", [grow_session, grow_track])
def test_a_compaction_plans_on_the_messages_that_were_looked_at_as_they_arrived_also_after_an_earlier_one(grow):
    stage, policy = looking()
    plans = list(grow(policy, talk(60)))[-1]
    assert len(plans) >= 3
    assert len(stage.unseen) >= 2 * len(plans)
    assert not any(stage.unseen)


@pytest.mark.parametrize("grow", [grow_session, grow_track])
def test_each_message_is_looked_at_once_as_it_arrives_whatever_compactions_change_of_the_view(grow):
    stage, policy = looking()
    list(grow(policy, talk(60)))
    assert len(stage.seen) == len({message.id for message in stage.seen})
