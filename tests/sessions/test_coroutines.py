import asyncio
import threading

import pytest

import refold
from refold.core.events import CompactionApplied
from refold.errors import UsageError, WriteConflict
from refold.sessions import Session
from tests.sessions.talks import answer, session, summarize, talk, user


async def later(need):
    await asyncio.sleep(0)
    return summarize(need)


class Loud:
    """A store that tells in which threads it worked."""

    def __init__(self, store):
        self._store = store
        self.threads = set()

    def __getattr__(self, name):
        found = getattr(self._store, name)
        if not callable(found):
            return found

        def called(*args, **named):
            self.threads.add(threading.get_ident())
            return found(*args, **named)

        return called


def test_a_turn_is_awaited_and_leaves_what_the_blocking_one_leaves(store):
    watched = Loud(store)

    async def turns():
        opened = await Session.aopen(watched, "awaited", format="openai-chat", policy="opal", window=4_000)
        await opened.aappend(talk(30))
        await opened.areport({"prompt_tokens": 900, "completion_tokens": 12})
        planned = await opened.aplan(force=True, summarize=later)
        done = await opened.acompact(force=True, summarize=later)
        assert done.compacted
        assert done.plan.edits == planned.edits
        await opened.arefresh()
        return opened

    opened = asyncio.run(turns())
    blocking = session(store, "blocking")
    blocking.append(talk(30))
    blocking.report({"prompt_tokens": 900, "completion_tokens": 12})
    blocking.compact(force=True, summarize=summarize)
    assert opened.view() == blocking.view()
    assert opened.plans[0].id == blocking.plans[0].id
    assert Session(store, "awaited").view() == opened.view()
    assert threading.get_ident() not in watched.threads
    asyncio.run(opened.arewind(0))
    assert opened.view() == talk(30)


def test_what_is_appended_while_the_summary_is_awaited_follows_it(store):
    async def run():
        opened = session(store)
        await opened.aappend(talk(30))
        asked, told = asyncio.Event(), []

        async def slowly(need):
            asked.set()
            await appended
            return summarize(need)

        async def append():
            await asked.wait()
            await opened.aappend([user("meanwhile"), answer("yes")])

        appended = asyncio.ensure_future(append())
        opened._observers = (told.append,)
        done = await opened.acompact(force=True, summarize=slowly)
        assert done.compacted
        assert opened.view()[-2:] == [user("meanwhile"), answer("yes")]
        assert [type(event) for event in told].count(CompactionApplied) == 1
        assert Session(store, opened.id).view() == opened.view()

    asyncio.run(run())


def test_a_second_compaction_at_the_same_time_is_a_conflict_and_the_lease_is_given_back(store):
    async def run():
        opened, other = session(store, "s"), None
        await opened.aappend(talk(30))
        other = session(store, "s")

        async def slowly(need):
            with pytest.raises(WriteConflict):
                await other.acompact(force=True, summarize=later)
            raise asyncio.CancelledError

        with pytest.raises(asyncio.CancelledError):
            await opened.acompact(force=True, summarize=slowly)
        assert (await other.acompact(force=True, summarize=later)).compacted

    asyncio.run(run())


def test_an_empty_session_is_not_compacted(store):
    assert asyncio.run(session(store).acompact(force=True)) is None


class Writes:
    async def __call__(self, need):
        return "All of it."


@pytest.mark.parametrize("summarizer", [later, Writes()], ids=["function", "object"])
def test_a_blocking_call_with_a_coroutine_function_in_an_event_loop_names_the_one_to_await(store, summarizer):
    async def run():
        opened = session(store)
        await opened.aappend(talk(30))
        with pytest.raises(UsageError, match=r"await session\.acompact"):
            opened.compact(force=True, summarize=summarizer)
        with pytest.raises(UsageError, match=r"await session\.aplan"):
            opened.plan(force=True, handlers=refold.Handlers(summarize=summarizer))
        with pytest.raises(UsageError, match=r"await refold\.acompact"):
            refold.compact(talk(30), policy="opal", window=4_000, force=True, summarize=summarizer)
        assert opened.compact(force=True, summarize=summarize).compacted

    asyncio.run(run())
    opened = session(store)
    opened.append(talk(30))
    assert opened.compact(force=True, summarize=summarizer).compacted
