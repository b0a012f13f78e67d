import gzip
import http.client
import json
import threading
import time
from itertools import pairwise

import pytest

import refold
from refold.testing.provider import Fault, ScriptedProvider, ScriptedReply
from tests.gateway.conftest import standing
from tests.gateway.scripted_upstream import ADMIN, call, chat, upstream, whole

OK = b'{"choices":[{"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":1}}'


LARGE = {"type": "function", "function": {"name": "t", "description": " ".join(f"w{n}" for n in range(4_000))}}


def told(headers):
    return {name[9:]: value for name, value in headers.items() if name.startswith("x-refold-")}


def test_below_the_trigger_both_bodies_pass_byte_for_byte():
    odd = b'{ "model":"gpt-4o" ,"messages":[{"role":"user","content":"1.10 \\/ \\u00e9"}],"x":1.0e3, "x":2 }'
    answer = b'{"weird" : 1.10,  "usage":{"prompt_tokens":5,"completion_tokens":1}}'
    with upstream(lambda head, body: whole(answer)) as (url, seen):
        from refold._gateway.server.serving import Serving
        from refold._gateway.settings import GatewaySettings

        with Serving(GatewaySettings(upstreams={"openai": url}, port=0)) as serving:
            status, _, data = call(serving.url, body=odd, headers={"authorization": "Bearer sk-1", "x-own": "yes"})
    assert (status, data) == (200, answer)
    assert seen[0][1] == odd
    assert b"bearer sk-1" in seen[0][0].lower()
    assert b"x-own: yes" in seen[0][0].lower()


@pytest.mark.parametrize("kind", ["text/event-stream", "application/json"])
def test_streams_are_never_reframed(kind):
    pieces = [b'data: {"a":\r\n', b"data: 1}\n\n: comment\n\nda", b"ta: [DONE]\n", b"\n\n\n"]

    async def drip(reader, writer):
        import asyncio

        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: %s\r\ntransfer-encoding: chunked\r\n\r\n" % kind.encode())
        for piece in pieces:
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
            await asyncio.sleep(0.02)
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    with upstream(drip) as (url, _):
        from refold._gateway.server.serving import Serving
        from refold._gateway.settings import GatewaySettings

        with Serving(GatewaySettings(upstreams={"openai": url}, port=0)) as serving:
            _, _, data = call(serving.url, body=chat(1, stream=True))
    assert data == b"".join(pieces)


def test_untouched_messages_keep_their_bytes_in_a_compacted_request():
    body = json.dumps(chat(10), indent=1).replace("word9x0 ", "1.10\\/ ").encode()
    with upstream(lambda head, body: whole(OK)) as (url, seen):
        from refold._gateway.server.serving import Serving
        from refold._gateway.settings import GatewaySettings

        with Serving(GatewaySettings(upstreams={"openai": url}, port=0, window=16_000, background=False)) as own:
            _, headers, _ = call(own.url, body=body)
    assert told(headers)["done"] == "compacted"
    sent = seen[0][1]
    newest = (
        json.dumps(chat(10)["messages"][-1], indent=1).replace("word9x0 ", "1.10\\/ ").replace("\n", "\n  ").encode()
    )
    assert newest in sent
    assert sent.startswith(b'{\n "model": "gpt-4o",\n "messages": [')


def test_a_resent_history_gives_the_same_bytes_and_only_the_tail_is_new(gateway):
    serving, provider = gateway(window=16_000, background=False)
    first = call(serving.url, body=chat(9))[1]
    again = call(serving.url, body=chat(9))[1]
    longer = call(serving.url, body=chat(10))[1]
    plans = {told(headers)["plan"] for headers in (first, again, longer)}
    assert len(plans) == 1
    one, two, three = (each.body["messages"] for each in provider.received)
    assert one == two == three[: len(one)]
    assert three[len(one) :] == chat(10)["messages"][-2:]


def test_branches_and_other_agents_have_plans_of_their_own(gateway):
    serving, provider = gateway(window=16_000, background=False)
    kept = told(call(serving.url, body=chat(9))[1])
    branch = chat(9)
    branch["messages"][-3]["content"] = "another answer"
    other = told(call(serving.url, body=branch)[1])
    assert kept["conversation"] != other["conversation"]
    assert kept["plan"] != other["plan"]
    assert "another answer" in json.dumps(provider.received[-1].body)
    assert told(call(serving.url, body=chat(9))[1])["plan"] == kept["plan"]


def test_newer_instructions_go_out_with_the_plans_of_the_conversation(gateway):
    serving, provider = gateway(window=16_000, background=False)
    plans = []
    for count in range(8, 20):
        body = chat(count)
        body["messages"][0]["content"] = f"It is {count} o'clock." + " pad" * (count % 3 * 50)
        headers = told(call(serving.url, body=body)[1])
        plans.append(headers.get("plan"))
        assert provider.received[-1].body["messages"][0] == body["messages"][0]
    assert 2 < len(set(plans)) < 7
    assert not [each for each in provider.received if each.violations or each.tokens > 16_000]


def test_a_plan_made_beside_the_traffic_is_swapped_in(gateway):
    serving, provider = gateway(window=16_000)
    headers = call(serving.url, body=chat(8, max_tokens=100))[1]
    assert told(headers)["reason"] == "background"
    assert "plan" not in told(headers)
    assert provider.received[0].body == chat(8, max_tokens=100)
    for conversation in serving.gateway.tracker.all():
        while not conversation.plans:
            pass
    assert "plan" in told(call(serving.url, body=chat(8, max_tokens=100))[1])
    assert provider.received[1].tokens < provider.received[0].tokens


@pytest.mark.parametrize("streaming", [False, True])
def test_an_overflow_is_answered_by_one_shorter_request_that_the_client_never_sees(gateway, streaming):
    serving, provider = gateway(limit=6_000, window=100_000)
    status, headers, data = call(serving.url, body=chat(10, stream=streaming))
    assert status == 200, data
    assert [each.status for each in provider.received] == [400, 200]
    assert told(headers)["done"] == "recovered"
    status, headers, _ = call(serving.url, body=chat(11, stream=streaming))
    assert status == 200
    assert len(provider.received) == 3, "the window that the refusal told is reckoned with from then on"


def test_a_refusal_that_says_nothing_but_that_the_request_is_too_large_is_answered_without_pictures():
    refusal = b"HTTP/1.1 413 Content Too Large\r\ncontent-length: 0\r\n\r\n"
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "iVBOR" * 2_000}}
    body = chat(2)
    body["messages"].insert(1, {"role": "user", "content": [{"type": "text", "text": "Look."}, picture]})
    with upstream(lambda head, body: refusal if b"iVBOR" in body else whole(OK)) as (url, seen):
        from refold._gateway.server.serving import Serving
        from refold._gateway.settings import GatewaySettings

        with Serving(GatewaySettings(upstreams={"openai": url}, port=0)) as own:
            status, headers, _ = call(own.url, body=body)
    assert (status, told(headers)["done"], len(seen)) == (200, "recovered", 2)


def test_what_cannot_be_rescued_comes_back_as_the_provider_said_it(gateway):
    serving, provider = gateway(limit=3_000, window=100_000)
    body = chat(1, tools=[LARGE])
    status, headers, data = call(serving.url, body=body)
    direct = call(provider.url, body=body)
    assert (status, data) == (direct[0], direct[2])
    assert "failed" in told(headers)


def test_more_input_than_the_window_makes_the_next_call_compact_first(gateway):
    from refold.core.budget import Usage

    answers = [ScriptedReply("ok", usage=Usage(17_000, 5)), "fine"]
    serving, provider = gateway(answers, window=16_000, background=False)
    call(serving.url, body=chat(5))
    headers = call(serving.url, body=chat(6))[1]
    assert told(headers)["reason"] == "silent_overflow"
    assert provider.received[1].tokens < provider.received[0].tokens


@pytest.mark.parametrize("strict", [False, True])
def test_a_compaction_that_fails_lets_the_original_pass_unless_the_gateway_is_strict(gateway, strict):
    serving, provider = gateway(window=3_000, background=False, strict=strict)
    body = chat(1, tools=[LARGE])
    status, headers, data = call(serving.url, body=body)
    if strict:
        assert status == 503
        assert json.loads(data)["error"]["code"] == "compaction"
        assert not provider.received
    else:
        assert status == 200
        assert told(headers)["failed"] == "BadBudget"
        assert provider.received[0].body == body
    assert b"refold_compaction_failures_total" in call(serving.url, "GET", "/metrics")[2]


def test_a_shadow_refuses_nothing_however_strict_it_is(gateway):
    serving, provider = gateway(window=3_000, shadow=True, strict=True)
    status, headers, _ = call(serving.url, body=chat(1, tools=[LARGE]))
    assert (status, told(headers)["failed"]) == (200, "BadBudget")
    assert provider.received[0].body == chat(1, tools=[LARGE])


def test_shadow_reports_and_changes_nothing(gateway):
    serving, provider = gateway(window=8_000, shadow=True)
    headers = call(serving.url, body=chat(10))[1]
    assert int(told(headers)["shadow-tokens-after"]) < int(told(headers)["shadow-tokens-before"])
    assert provider.received[0].body == chat(10)


def test_a_client_can_ask_to_be_left_alone_or_for_another_policy(gateway):
    serving, provider = gateway(window=8_000, background=False)
    assert told(call(serving.url, body=chat(10), headers={"x-refold-bypass": "1"})[1]) == {"done": "bypassed"}
    assert provider.received[0].body == chat(10)
    assert not [name for name in provider.received[0].headers if name.startswith("x-refold")]
    headers = call(serving.url, body=chat(10), headers={"x-refold-policy": "neurolink", "x-refold-session": "n1"})[1]
    assert told(headers)["policy"] == "neurolink"


def test_compressed_bodies_are_looked_into_and_pass_as_they_came(gateway):
    serving, _provider = gateway(window=16_000, background=False)
    small, large = (gzip.compress(json.dumps(chat(count)).encode()) for count in (1, 12))
    with upstream(lambda head, body: whole(OK)) as (url, seen):
        from refold._gateway.server.serving import Serving
        from refold._gateway.settings import GatewaySettings

        with Serving(GatewaySettings(upstreams={"openai": url}, port=0, admin_token=ADMIN)) as own:
            call(own.url, body=small, headers={"content-encoding": "gzip"})
    assert seen[0][1] == small
    assert b"content-encoding: gzip" in seen[0][0].lower()
    status, headers, _ = call(serving.url, body=large, headers={"content-encoding": "gzip"})
    assert status == 200
    assert told(headers)["done"] == "compacted"


def test_usage_of_a_compressed_answer_is_read():
    packed = gzip.compress(OK)
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n"
    with upstream(lambda _, body: head % len(packed) + packed) as (url, _):
        from refold._gateway.server.serving import Serving
        from refold._gateway.settings import GatewaySettings

        with Serving(GatewaySettings(upstreams={"openai": url}, port=0, admin_token=ADMIN)) as serving:
            assert call(serving.url, body=chat(1))[2] == packed
            assert b'refold_tokens_total{kind="input"} 9.0' in call(serving.url, "GET", "/metrics")[2]


@pytest.mark.parametrize("kind", ["rate_limit", "server_error", "overloaded"])
def test_errors_of_the_provider_reach_the_client_as_they_are(gateway, kind):
    serving, provider = gateway(faults=[Fault(kind, retry_after=3), Fault(kind, retry_after=3)])
    through, direct = call(serving.url, body=chat(1)), call(provider.url, body=chat(1))
    assert (through[0], through[2]) == (direct[0], direct[2])
    assert through[1]["retry-after"] == "3"


def test_a_count_of_tokens_is_of_what_would_be_sent(gateway):
    serving, provider = gateway(window=8_000, background=False)
    body = {"model": "claude-opus-4-6", "max_tokens": 50, "messages": []}
    for number in range(8):
        text = " ".join(f"w{number}x{place}" for place in range(400))
        body["messages"] += [{"role": "user", "content": text}, {"role": "assistant", "content": f"noted {number}"}]
    body["messages"].append({"role": "user", "content": "Go on."})
    assert told(call(serving.url, path="/v1/messages", body=body)[1])["done"] == "compacted"
    del body["max_tokens"]
    counted = json.loads(call(serving.url, path="/v1/messages/count_tokens", body=body)[2])["input_tokens"]
    assert counted == provider.received[0].tokens


def test_a_compaction_goes_on_without_the_client_that_waited_for_it(gateway, controlled):
    begun, go_on = threading.Event(), threading.Event()
    controlled.actions.append(lambda: (begun.set(), go_on.wait(10)))
    serving, provider = gateway(window=16_000, background=False, policy=controlled.path)
    connection = http.client.HTTPConnection(serving.url.removeprefix("http://"))
    connection.request("POST", "/v1/chat/completions", json.dumps(chat(10)))
    assert begun.wait(10)
    connection.close()
    time.sleep(0.05)
    go_on.set()
    assert told(call(serving.url, body=chat(10))[1])["done"] == "compacted"
    assert serving.gateway.metrics.total_compactions == len(provider.received) == 1


@pytest.mark.parametrize(("betas", "done"), [("context-1m-2025-08-07,x-1", "forwarded"), ("x-1", "compacted")])
def test_who_asks_for_the_long_window_has_it(gateway, betas, done):
    serving, _ = gateway(background=False)
    body = {"model": "claude-sonnet-4-5", "max_tokens": 50, "messages": [{"role": "user", "content": "Hi"}]}
    for number in range(70):
        output = "\n".join(f"{number}.{line}: word{line * number}" for line in range(400))
        body["messages"] += [{"role": "assistant", "content": f"noted {number}"}, {"role": "user", "content": output}]
    headers = call(serving.url, path="/v1/messages", body=body, headers={"anthropic-beta": betas})[1]
    assert told(headers)["done"] == done


def asking(count=8):
    body = {"model": "claude-opus-4-6", "messages": []}
    for number in range(count):
        text = " ".join(f"w{number}x{place}" for place in range(400))
        body["messages"] += [{"role": "user", "content": text}, {"role": "assistant", "content": f"noted {number}"}]
    body["messages"] += [{"role": "user", "content": "Go on."}]
    return body


def test_a_count_is_of_what_another_process_has_planned(tmp_path):
    with ScriptedProvider() as provider:
        for _ in range(2):
            with standing(provider, window=8_000, background=False, store=str(tmp_path / "gateway.db")) as serving:
                counted = json.loads(call(serving.url, path="/v1/messages/count_tokens", body=asking())[2])
                call(serving.url, path="/v1/messages", body={**asking(), "max_tokens": 50})
        assert counted["input_tokens"] == provider.received[0].tokens


def test_what_was_only_counted_is_still_new(gateway):
    serving, provider = gateway(window=25_000)
    output = "\n".join(f"src/part_{n}.py:{n}: value_{n}" for n in range(2_000))
    called = {"type": "tool_use", "id": "t1", "name": "grep", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": output}
    messages = [{"role": "user", "content": "Where?"}, {"role": "assistant", "content": [called]}]
    body = {"model": "claude-opus-4-6", "messages": [*messages, {"role": "user", "content": [result]}]}
    call(serving.url, path="/v1/messages/count_tokens", body=body)
    headers = call(serving.url, path="/v1/messages", body={**body, "max_tokens": 50})[1]
    assert told(headers)["reason"] == "new-output"
    assert provider.received[-1].tokens < 10_000


def searched(lines, *more):
    call = {"id": "c1", "type": "function", "function": {"name": "grep", "arguments": "{}"}}
    output = "\n".join(f"src/part_{n}.py:{n}: value_{n}" for n in range(lines))
    asked = [{"role": "user", "content": "Where?"}, {"role": "assistant", "content": None, "tool_calls": [call]}]
    result = {"role": "tool", "tool_call_id": "c1", "content": output}
    return {"model": "gpt-4o", "messages": [*asked, result, *more]}


@pytest.mark.parametrize("background", [True, False])
def test_an_oversized_new_output_is_cut_before_it_is_sent_and_stays_the_same_bytes(gateway, background):
    serving, provider = gateway(window=40_000, background=background)
    first, headers, _ = call(serving.url, body=searched(2_000))
    assert first == 200
    assert told(headers)["reason"] == "new-output"
    call(serving.url, body=searched(2_000))
    more = ({"role": "assistant", "content": "There."}, {"role": "user", "content": "Thanks."})
    _, headers, _ = call(serving.url, body=searched(2_000, *more))
    assert "reason" not in told(headers)
    sent = [request.body["messages"] for request in provider.received]
    assert len(sent[0][2]["content"]) < 20_000
    assert "recall" in sent[0][2]["content"].split("\n")[0]
    assert sent[1] == sent[0]
    assert sent[2][:3] == sent[0]


def test_an_output_of_ordinary_size_passes_and_so_does_one_that_was_answered_before(gateway):
    serving, provider = gateway(window=100_000)
    more = ({"role": "assistant", "content": "There."}, {"role": "user", "content": "Thanks."})
    for body in (searched(100), searched(2_000, *more)):
        _, headers, _ = call(serving.url, body=body)
        assert told(headers)["done"] == "forwarded"
        assert provider.received[-1].body["messages"] == body["messages"]


def test_a_reminder_at_the_end_of_each_request_alone_does_not_undo_the_plan_of_the_one_before():
    from refold._gateway.server.serving import Serving
    from refold._gateway.settings import UPSTREAMS, GatewaySettings
    from refold.testing.provider import ScriptedProvider

    words = " ".join(f"line {n}: worker {n % 7} handled request {n * 37 % 1009}" for n in range(120))
    reminder = {"role": "system", "content": "You are diligent and tireless."}
    said = [{"role": "system", "content": "Answer questions."}]
    with ScriptedProvider(["ok"], window=12_000) as provider:
        upstreams = {**UPSTREAMS, "openai": provider.openai_url}
        settings = GatewaySettings(upstreams=upstreams, store="memory", window=12_000, port=0, background=False)
        with Serving(settings) as serving:
            for number in range(24):
                said.append({"role": "user", "content": f"Question {number}?"})
                body = json.dumps({"model": "gpt-4o", "messages": [*said, reminder]}).encode()
                assert call(serving.url, body=body, headers={"authorization": "Bearer k"})[0] == 200
                said.append({"role": "assistant", "content": f"Answer {number}. {words}"})
            compactions = serving.gateway.metrics.total_compactions
        received = provider.received
    assert all(each.status == 200 and each.tokens <= 12_000 for each in received)
    assert compactions <= 8
    grown = [(old, new) for old, new in pairwise(received) if new.tokens > old.tokens >= 1_200]
    assert sum(new.cached for _, new in grown) / sum(old.tokens for old, _ in grown) > 0.8


def test_a_compaction_that_does_not_pay_yet_waits_and_the_headers_say_what_it_would_cost(gateway):
    body = chat(10)
    window = int(refold.count(body["messages"], model="gpt-4o") / 0.9 / 0.65)
    own, provider = gateway(window=window, background=False, trigger=None)
    status, headers, _ = call(own.url, body=body)
    assert (status, told(headers)["done"], told(headers)["reason"]) == (200, "forwarded", "waiting")
    assert provider.received[-1].body["messages"] == body["messages"]
    assert int(told(headers)["waiting-cost"]) > int(told(headers)["waiting-saving"]) > 0
    assert told(headers)["waiting-calls-left"] == "10"
    _, headers, _ = call(own.url, body=chat(13))
    assert told(headers)["done"] == "compacted"
    assert int(told(headers)["cost"]) > int(told(headers)["saving"]) > 0
    assert int(told(headers)["pays-from"]) >= 1
    assert "waiting-cost" not in told(headers)


def test_a_trigger_of_the_client_does_not_wait(gateway):
    body = chat(10)
    window = int(refold.count(body["messages"], model="gpt-4o") / 0.9 / 0.65)
    own, _ = gateway(window=window, background=False, trigger=None)
    _, headers, _ = call(own.url, body=body, headers={"x-refold-trigger": "80%"})
    assert told(headers)["done"] == "compacted"
