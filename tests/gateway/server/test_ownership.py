import asyncio

from refold._gateway.server.ownership import Ownership
from refold._gateway.settings import GatewaySettings


class SlowStore:
    """What a store is asked to record; each write takes until `go_on` is set."""

    def __init__(self):
        self.recorded = []
        self.go_on = asyncio.Event()

    async def claim(self, keys, owner):
        await self.go_on.wait()
        self.recorded += keys


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
