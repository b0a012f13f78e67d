import asyncio
import subprocess
import sys
import textwrap
import time

import pytest

from refold.errors import WriteConflict
from refold.sessions import MemoryStore
from refold.sessions._leases import acompaction_lease, chat_lock, compaction_lease, run_in_thread


@pytest.fixture
def store():
    store = MemoryStore()
    store.create("s", "openai-chat")
    return store


def test_a_compaction_lease_excludes_others_until_it_is_released(store):
    with (
        compaction_lease(store, "s"),
        pytest.raises(WriteConflict, match="is being compacted by"),
        compaction_lease(store, "s"),
    ):
        pass
    with compaction_lease(store, "s"):
        pass


def test_a_lease_that_is_waited_for_is_taken_when_it_is_released(store):
    order = []

    async def work(name, seconds):
        async with acompaction_lease(store, "s", wait=5):
            order.append(f"{name} begins")
            await asyncio.sleep(seconds)
            order.append(f"{name} ends")

    async def both():
        await asyncio.gather(work("a", 0.1), work("b", 0))

    asyncio.run(both())
    assert order == ["a begins", "a ends", "b begins", "b ends"]


def test_a_lease_without_waiting_is_refused_at_once(store):
    async def work():
        async with acompaction_lease(store, "s"), acompaction_lease(store, "s"):
            pass

    with pytest.raises(WriteConflict):
        asyncio.run(work())


def test_a_lease_outlasts_its_time_while_the_work_goes_on(store):
    async def work():
        async with acompaction_lease(store, "s", 0.06):
            await asyncio.sleep(0.2)
            with pytest.raises(WriteConflict), compaction_lease(store, "s"):
                pass

    asyncio.run(work())


def test_a_lease_outlasts_its_time_although_the_event_loop_is_busy(store):
    async def work():
        async with acompaction_lease(store, "s", 0.1):
            time.sleep(0.4)  # a loop that is stopped
            with pytest.raises(WriteConflict), compaction_lease(store, "s"):
                pass

    asyncio.run(work())


def test_a_lease_of_the_library_outlasts_its_time_too_and_ends_with_its_block(store):
    with compaction_lease(store, "s", 0.1):
        time.sleep(0.4)
        with pytest.raises(WriteConflict), compaction_lease(store, "s"):
            pass
    time.sleep(0.1)  # what was on its way
    with compaction_lease(store, "s"):
        pass


def test_cancelled_work_in_a_thread_is_finished_first():
    finished = []

    async def cancel():
        task = asyncio.create_task(run_in_thread(lambda: finished.append(1)))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert finished == [1]

    asyncio.run(cancel())


CHAT = """
    import sys, time
    from pathlib import Path
    from refold.sessions._leases import chat_lock

    with chat_lock(Path(sys.argv[1]), "store", "s"):
        print("locked", flush=True)
        time.sleep(60)
"""


def test_a_chat_lock_excludes_other_processes_and_ends_with_its_process_however_that_ends(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(CHAT), str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "locked\n"
        with pytest.raises(WriteConflict, match=str(process.pid)), chat_lock(tmp_path, "store", "s"):
            pass
        with chat_lock(tmp_path, "store", "another session"):
            pass
    finally:
        process.kill()
        process.communicate()
    with chat_lock(tmp_path, "store", "s"):
        pass
