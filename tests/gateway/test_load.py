import asyncio
from functools import partial

import pytest

from benchmarks.gateway import known
from benchmarks.gateway_load import Seen, Upstream, storm
from refold._gateway.server.serving import Serving
from refold._gateway.settings import GatewaySettings
from tests.depth import deep

CONVERSATIONS = 50
ANSWERS = CONVERSATIONS * deep(8, 60)
SECONDS = 120  # at most, on a machine that has much else to do; a storm ends when all that is asserted was seen
MEMORY = 24 * 1024 * 1024
FAULTS_SEEN = {"rate_limit", "server_error", "cut", "stall", "reset", "overflow"}


def is_enough(seen, recall):
    recalled = seen.recalls["found"] and seen.recalls["beside, found"]
    return seen.answers > ANSWERS and seen.compacted and (recalled or not recall) and set(seen.faults) >= FAULTS_SEEN


async def weather(recall):
    seen = Seen()
    async with Upstream(seen, share=0.05, seed=7) as upstream:
        settings = GatewaySettings(
            upstreams={"openai": upstream.url}, port=0, window=16_000, memory=MEMORY, recall_tool=recall
        )
        serving = await asyncio.to_thread(Serving, settings)
        await asyncio.to_thread(serving.start)
        try:
            await storm(serving.url, seen, CONVERSATIONS, SECONDS, enough=partial(is_enough, recall=recall))
        finally:
            await asyncio.to_thread(serving.stop)
    return seen, serving


@pytest.mark.parametrize("recall", [False, True], ids=["plain", "recall"])
def test_under_faults_every_client_gets_its_own_answer_or_its_upstreams_own_error(recall):
    seen, serving = asyncio.run(weather(recall))
    assert not seen.wrong
    assert not seen.lost
    assert seen.answers > ANSWERS
    assert seen.compacted
    assert bool(seen.recalls["found"]) == bool(seen.recalls["beside, found"]) == recall
    assert set(seen.faults) >= FAULTS_SEEN
    assert serving.gateway.tracker.size <= MEMORY
    assert all(not conversation.lock.locked() for conversation in serving.gateway.tracker.all())


def test_the_benchmark_measures_known_bodies_with_the_parts_of_the_gateway():
    assert known(50_000)["gateway"] > 0
