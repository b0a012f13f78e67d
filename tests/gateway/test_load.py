import asyncio

import pytest

from benchmarks.gateway import known
from benchmarks.gateway_load import Seen, Upstream, storm
from refold._gateway.server.serving import Serving
from refold._gateway.settings import GatewaySettings

CONVERSATIONS, SECONDS = 50, 8
MEMORY = 24 * 1024 * 1024


async def weather(recall):
    seen = Seen()
    async with Upstream(seen, share=0.05, seed=7) as upstream:
        settings = GatewaySettings(
            upstreams={"openai": upstream.url}, port=0, window=16_000, memory=MEMORY, recall_tool=recall
        )
        serving = await asyncio.to_thread(Serving, settings)
        await asyncio.to_thread(serving.start)
        try:
            await storm(serving.url, seen, CONVERSATIONS, SECONDS)
        finally:
            await asyncio.to_thread(serving.stop)
    return seen, serving


@pytest.mark.parametrize("recall", [False, True], ids=["plain", "recall"])
def test_under_faults_every_client_gets_its_own_answer_or_its_upstreams_own_error(recall):
    seen, serving = asyncio.run(weather(recall))
    assert not seen.wrong
    assert not seen.lost
    assert seen.answers > CONVERSATIONS * 3
    assert seen.compacted
    assert bool(seen.recalls["found"]) == bool(seen.recalls["beside, found"]) == recall
    assert {"rate_limit", "server_error", "cut", "stall", "reset", "overflow"} <= set(seen.faults)
    assert serving.gateway.tracker.size <= MEMORY
    assert all(not conversation.lock.locked() for conversation in serving.gateway.tracker.all())


def test_the_benchmark_measures_known_bodies_with_the_parts_of_the_gateway():
    assert known(50_000)["gateway"] > 0
