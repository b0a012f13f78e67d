import asyncio

import pytest

from refold._gateway.server.asgi import GatewayError
from refold._gateway.server.ownership import Ownership
from refold._gateway.settings import GatewaySettings
from refold._gateway.wire.stored_ids import StoredId


class SlowStore:
    """What a store is asked to record; each write takes until `go_on` is set."""

    def __init__(self):
        self.recorded = []
        self.go_on = asyncio.Event()

    async def claim(self, keys, owner):
        await self.go_on.wait()
        self.recorded += keys

    async def owners(self, keys):
        return dict.fromkeys(set(keys) & set(self.recorded), "team:red")


async def two_answers():
    store = SlowStore()
    ownership = Ownership(GatewaySettings(), store, b"salt")
    await ownership.claim("team:red", ["resp_1"], write=False)
    first = asyncio.create_task(ownership.claim("team:red", ["resp_2"]))
    second = asyncio.create_task(ownership.claim("team:red", ["resp_1"]))
    await asyncio.sleep(0.02)
    assert not first.done()
    assert not second.done(), "its id is in the write of the first, which is not over"
    store.go_on.set()
    await asyncio.gather(first, second)
    assert len(store.recorded) == 2


def test_no_answer_ends_before_its_ids_are_recorded_be_it_by_another_answers_write():
    asyncio.run(two_answers())


async def claimed_by_another():
    store = SlowStore()
    store.go_on.set()
    stored = StoredId("response", "resp_1")
    await Ownership(GatewaySettings(), store, b"salt").claim("team:red", ["resp_1"])
    ownership = Ownership(GatewaySettings(), store, b"salt")
    await ownership.claim("team:blue", ["resp_1", "resp_2"], write=False)
    with pytest.raises(GatewayError):
        await ownership.check("openai", "team:blue", [stored])
    await ownership.check("openai", "team:red", [stored])
    await ownership.check("openai", "team:blue", [StoredId("response", "resp_2")])
    with pytest.raises(GatewayError):
        await ownership.check("openai", "team:red", [StoredId("response", "resp_2")])


def test_what_is_not_yet_written_takes_no_id_from_the_owner_that_the_store_knows():
    asyncio.run(claimed_by_another())
