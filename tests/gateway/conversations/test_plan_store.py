import asyncio
import threading

import pytest
from sqlalchemy import Engine, event

from refold import formats
from refold._gateway.conversations import plan_store
from refold._gateway.conversations.conversation import Conversation
from refold._gateway.conversations.plan_store import PlanStore
from refold._gateway.conversations.store_access import finished
from refold._gateway.conversations.tracker import ConversationTracker
from refold._gateway.observability.metrics import Metrics
from refold._gateway.server.asgi import BodyMemory
from refold._gateway.wire.body import opened
from refold.errors import WriteConflict
from refold.sessions import MemoryStore
from refold.testing.provider import ScriptedProvider, ScriptedReply
from tests.gateway.conftest import standing
from tests.gateway.scripted_upstream import call, chat

BODY = b'{"model":"m","messages":[{"role":"user","content":"a"}]}'


class Leases:
    """A store of which only the reservations are asked for; it says what was done, and can be slow."""

    name = "leases"

    def __init__(self):
        self.done = []
        self.taken = 0
        self.entered, self.going_on = threading.Event(), threading.Event()
        self.going_on.set()

    def create(self, session, format, owner=""):
        pass

    def lease(self, session, owner, seconds):
        self.entered.set()
        assert self.going_on.wait(5)
        if self.taken:
            self.taken -= 1
            raise WriteConflict("x")
        self.done.append("lease")

    def release(self, session, owner):
        self.done.append("release")


@pytest.fixture
def held():
    store = Leases()
    keeper = PlanStore(store, Metrics(ConversationTracker(1_000), BodyMemory(0)))
    return store, keeper, Conversation("conv_1", formats.find("openai-chat"), "", opened(BODY, "messages"))


def test_a_conversation_is_held_for_as_long_as_the_work_on_it_takes(held, monkeypatch):
    store, keeper, conversation = held
    monkeypatch.setattr(plan_store, "LEASE", 0.06)

    async def work():
        async with keeper.lease(conversation):
            while store.done.count("lease") < 4:
                await asyncio.sleep(0.01)

    asyncio.run(work())
    assert store.done.count("lease") >= 4
    assert store.done[-1] == "release"


def test_who_finds_a_conversation_held_waits_for_it(held):
    store, keeper, conversation = held
    store.taken = 3

    async def work():
        async with keeper.lease(conversation):
            store.done.append("work")

    asyncio.run(work())
    assert store.done == ["lease", "work", "release"]


def test_who_leaves_while_a_conversation_is_being_reserved_gives_it_back(held):
    store, keeper, conversation = held
    store.going_on.clear()

    async def work():
        async with keeper.lease(conversation):
            store.done.append("work")

    async def leave():
        task = asyncio.create_task(work())
        await asyncio.to_thread(store.entered.wait, 5)
        task.cancel()
        await asyncio.sleep(0)
        store.going_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(leave())
    assert store.done == ["lease", "release"]


def test_work_in_a_thread_is_waited_for_by_who_is_cancelled():
    going_on, said = threading.Event(), []

    def slow():
        going_on.wait(5)
        said.append("done")

    async def leave():
        task = asyncio.create_task(finished(asyncio.to_thread(slow)))
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.sleep(0.01)
        assert not task.done()
        going_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert said == ["done"]

    asyncio.run(leave())


def test_a_conversation_that_another_session_continues_keeps_no_other_from_its_end():
    now = [0.0]
    with MemoryStore(lambda: now[0]) as store:
        keeper = PlanStore(store, Metrics(ConversationTracker(1_000), BodyMemory(0)))
        for id in ("conv_a", "conv_b", "conv_c"):
            store.create(id, "openai-chat")
        store.write("conv_b", (), renew="mine")
        now[0] = 100.0
        assert asyncio.run(keeper.expired(50.0, 10.0, [])) == {"conv_a", "conv_c"}
        assert {head.id for head in store.sessions()} == {"conv_b", "mine"}


def test_a_request_under_a_plan_asks_the_store_once_for_what_others_have_written(tmp_path, monkeypatch):
    statements, questions = [], []

    def note(connection, cursor, statement, *_):
        statements.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        with (
            ScriptedProvider([ScriptedReply("ok")] * 9) as provider,
            standing(provider, store=str(tmp_path / "s.db"), window=8_000, background=False) as serving,
        ):
            body = chat(9)
            _, headers, _ = call(serving.url, body=body)
            plan, store = headers["x-refold-plan"], serving.gateway._keeper._store
            aversion = store.aversion
            monkeypatch.setattr(store, "aversion", lambda session: questions.append(session) or aversion(session))
            for words in ("Go on.", "And now?"):
                body["messages"].append({"role": "user", "content": words})
                statements.clear()
                questions.clear()
                _, headers, _ = call(serving.url, body=body, headers={"x-refold-trigger": "0.1"})
                looks = [each for each in statements if each.startswith("SELECT created, seq FROM sessions")]
                assert (headers["x-refold-plan"], looks) == (plan, [])
                assert questions == [headers["x-refold-conversation"]]
    finally:
        event.remove(Engine, "before_cursor_execute", note)
