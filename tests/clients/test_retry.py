import asyncio
import json

import httpx2
import pytest

from refold.clients._factory import async_client, client
from refold.clients._protocol import BadReply
from refold.clients._retry import WAITS, may_retry, retrying
from refold.core.needs import Refused
from refold.errors import BadBudget
from refold.testing.provider import Fault, ScriptedProvider


class Failing:
    """Fails as told, then answers; the waits are noted and not waited."""

    def __init__(self, *outcomes):
        self.outcomes = list(outcomes)
        self.waits = []
        self.tries = 0

    def __call__(self, need):
        self.tries += 1
        outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def again(failing, **options):
    return retrying(failing, sleep=failing.waits.append, **options)


class Told(Exception):
    def __init__(self, status, message="no", **flags):
        super().__init__(message)
        self.status_code = status
        self.__dict__.update(flags)


def test_the_waits_are_1_2_4_8_16_seconds_and_there_are_five_retries():  # W09
    failing = Failing(Told(503))
    with pytest.raises(Told):
        again(failing)(None)
    assert failing.waits == [1, 2, 4, 8, 16] == list(WAITS)
    assert failing.tries == 6


def test_it_stops_at_the_first_success():
    failing = Failing(Told(429, "rate limit"), ConnectionError("reset"), "summary")
    assert again(failing)(None) == "summary"
    assert failing.waits == [1, 2]


def test_other_waits_may_be_given_and_none():
    failing = Failing(Told(500))
    with pytest.raises(Told):
        again(failing, waits=(3, 5))(None)
    assert failing.waits == [3, 5]
    failing = Failing(Told(500))
    with pytest.raises(Told):
        again(failing, waits=())(None)
    assert failing.tries == 1


@pytest.mark.parametrize(
    "error",
    [
        Told(400, "invalid_request_error: bad field"),
        Told(400, "prompt is too long: 210000 tokens > 200000 maximum"),
        Told(401, "invalid api key"),
        Told(404, "model not found"),
        Told(413, "request too large"),
        Told(422, "unprocessable"),
        Told(503, is_retryable=False),
        Told(500, retryable=False),
        TypeError("no such argument"),
        BadBudget("no window"),
    ],
    ids=str,
)
def test_what_cannot_succeed_is_not_tried_again(error):  # N12
    failing = Failing(error, "summary")
    with pytest.raises(type(error)):
        again(failing)(None)
    assert (failing.tries, failing.waits) == (1, [])


@pytest.mark.parametrize(
    "error",
    [
        Told(408),
        Told(429, "rate limit"),
        Told(500),
        Told(502),
        Told(503, "overloaded", is_retryable=True),
        Told(529, "overloaded"),
        TimeoutError("timed out"),
        ConnectionError("reset"),
        json.JSONDecodeError("no", "<", 0),
        BadReply("the stream ended before the answer was complete"),
    ],
    ids=str,
)
def test_what_passes_is_tried_again(error):
    assert may_retry(error)


def test_a_header_that_forbids_it_is_heeded():
    error = Told(503, response=httpx2.Response(503, headers={"x-should-retry": "false"}))
    assert not may_retry(error)
    assert may_retry(Told(503, response=httpx2.Response(503)))


def test_an_interruption_is_never_a_reason_to_try_again():
    assert not may_retry(KeyboardInterrupt())


def test_empty_answers_and_passing_refusals_are_tried_again_and_others_are_not():
    failing = Failing("", Refused("down"), Refused("nothing", "empty"), "summary")
    assert again(failing)(None) == "summary"
    for kind in ("overflow", "rejected", "absent"):
        failing = Failing(Refused("no", kind), "summary")
        assert again(failing)(None) == Refused("no", kind)


def test_the_last_refusal_is_given_back():
    assert again(Failing(Refused("down")))(None) == Refused("down")


def test_a_coroutine_function_is_waited_for_and_its_waits_too():
    waits, tries = [], []

    async def ask(need):
        tries.append(need)
        if len(tries) < 3:
            raise Told(503)
        return "summary"

    async def sleep(seconds):
        waits.append(seconds)

    assert asyncio.run(retrying(ask, sleep=sleep)("need")) == "summary"
    assert (waits, tries) == ([1, 2], ["need"] * 3)


@pytest.mark.parametrize("wire", ["openai-chat", "anthropic"])
@pytest.mark.parametrize("fault", ["rate_limit", "server_error", "overloaded", "cut_stream", "malformed"])
def test_faults_of_a_provider_pass_behind_the_real_sdk(wire, fault):
    waits = []
    with ScriptedProvider(["Hello"], faults=[Fault(fault), Fault(fault)]) as provider:
        ours = client("m", provider.url if wire == "anthropic" else provider.openai_url, wire=wire)
        ask = retrying(lambda text: ours.complete([{"role": "user", "content": text}], on_text=str), sleep=waits.append)
        assert ask("Hello?").text == "Hello"
        ours.close()
    assert waits == [1, 2]


@pytest.mark.parametrize("wire", ["openai-chat", "anthropic"])
def test_a_provider_that_does_not_answer_is_asked_again(wire):
    waits = []
    with ScriptedProvider(["Hello"], faults=[Fault("timeout")]) as provider:
        ours = client("m", provider.url if wire == "anthropic" else provider.openai_url, wire=wire, timeout=0.5)
        ask = retrying(lambda text: ours.complete([{"role": "user", "content": text}]), sleep=waits.append)
        assert ask("Hello?").text == "Hello"
        ours.close()
    assert waits == [1]


@pytest.mark.parametrize("wire", ["openai-chat", "anthropic"])
def test_an_overflow_of_a_provider_stops_at_once(wire):  # N12
    with ScriptedProvider(["Hello"], window=100) as provider:
        ours = client("m", provider.url if wire == "anthropic" else provider.openai_url, wire=wire)
        with pytest.raises(Exception, match=r"too long|maximum context"):
            retrying(lambda text: ours.complete([{"role": "user", "content": text}]), sleep=pytest.fail)("word " * 500)
        ours.close()
        assert len(provider.received) == 1


@pytest.mark.parametrize("wire", ["openai-chat", "anthropic"])
@pytest.mark.parametrize("kind", ["rate_limit", "overloaded"])
def test_a_provider_that_says_how_long_to_wait_is_waited_for(wire, kind):
    waits = []
    faults = [Fault(kind, retry_after=7), Fault(kind), Fault(kind, retry_after=3_600), Fault(kind, retry_after=0.25)]
    with ScriptedProvider(["Hello"], faults=faults) as provider:
        ours = client("m", provider.url if wire == "anthropic" else provider.openai_url, wire=wire)
        ask = retrying(lambda text: ours.complete([{"role": "user", "content": text}]), sleep=waits.append, longest=45)
        assert ask("Hello?").text == "Hello"
        ours.close()
    assert waits == [7, 2, 45, 0.25]


def test_a_date_is_held_against_the_clock():
    told = httpx2.Response(503, headers={"retry-after": "Fri, 28 Nov 2025 12:00:30 GMT"})
    failing = Failing(Told(503, response=told), "summary")
    assert again(failing, now=lambda: 1_764_331_210.0)(None) == "summary"
    assert failing.waits == [20]


def test_a_provider_that_asks_for_no_wait_is_waited_for_as_long_as_ever():
    failing = Failing(Told(503, response=httpx2.Response(503, headers={"retry-after": "0"})), "summary")
    assert again(failing)(None) == "summary"
    assert failing.waits == [1]


def test_a_coroutine_function_waits_as_long_as_it_is_told():
    waits = []

    async def sleep(seconds):
        waits.append(seconds)

    async def ask(url):
        ours = async_client("m", url)
        again = retrying(ours.complete, sleep=sleep)
        reply = await again([{"role": "user", "content": "Hello?"}])
        await ours.close()
        return reply

    with ScriptedProvider(["Hello"], faults=[Fault("rate_limit", retry_after=11), Fault("server_error")]) as provider:
        assert asyncio.run(ask(provider.openai_url)).text == "Hello"
    assert waits == [11, 2]
