"""The WebSocket mode of the Responses API, spoken by OpenAI's SDK and answered over HTTP."""

import json
import threading
import time
from contextlib import contextmanager, suppress

import openai
import pytest
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from refold._gateway import responses_socket
from refold._gateway.proxy import Exchanges
from refold._gateway.server import tokens
from refold._gateway.server.frames import CONTROL_FRAMES, FRAGMENTS, FRAMES
from refold._gateway.server.serving import Serving
from refold._gateway.server.tokens import TokenFile
from refold._gateway.settings import GatewaySettings
from refold.testing.provider import Fault, ScriptedReply
from tests.gateway.native.upstream import ignorant, responses_turns
from tests.gateway.scripted_upstream import upstream, whole
from tests.gateway.server.test_asgi import body_bytes, until_released
from tests.gateway.talking import opened

GO = {"type": "message", "role": "user", "content": "Go through the modules. Never touch setup.py."}
ON = {"type": "message", "role": "user", "content": "Which module was first?"}
ENDS = ("response.completed", "response.incomplete", "response.failed", "error")


class Socket:
    def __init__(self, connection):
        self.connection = connection

    def ask(self, input, **more):
        """Return the events of an answer."""
        self.send(input, **more)
        return self.answer()

    def send(self, input, **more):
        self.connection.response.create(model="gpt-4o", input=input, **{"store": False, **more})

    def answer(self):
        events = [self.connection.recv()]
        while events[-1].type not in ENDS:
            events.append(self.connection.recv())
        return events


@contextmanager
def socket(url):
    client = opened(openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0))
    with client.responses.connect() as connection:
        yield Socket(connection)


@pytest.fixture
def agent(gateway):
    """Return the address of a gateway before a provider that knows no WebSockets and no compaction, and that provider."""
    serving, provider = gateway(behave=ignorant, window=40_000, limit=40_000)
    return serving, provider


def texts(provider):
    return [received.body["input"] for received in provider.received]


def test_an_answer_has_the_events_of_a_stream_over_http(agent):
    serving, provider = agent
    client = opened(openai.OpenAI(base_url=f"{serving.url}/v1", api_key="k", max_retries=0))
    streamed = [event.type for event in client.responses.create(model="gpt-4o", input=[GO], store=False, stream=True)]
    with socket(serving.url) as one:
        events = one.ask([GO])
    assert [event.type for event in events] == streamed
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert provider.received[1].body == provider.received[0].body


def test_a_continuation_sends_the_whole_history_that_nobody_stores(agent):
    serving, provider = agent
    with socket(serving.url) as one:
        first = one.ask("Remember the word cobalt.")[-1].response
        second = one.ask([ON], previous_response_id=first.id)[-1].response
        one.ask("And now?", previous_response_id=second.id)
    said = [{"type": "message", "role": "user", "content": text} for text in ("Remember the word cobalt.", "And now?")]
    answers = [json.loads(response.output[0].to_json()) for response in (first, second)]
    assert texts(provider)[1:] == [[said[0], answers[0], ON], [said[0], answers[0], ON, answers[1], said[1]]]
    assert all("previous_response_id" not in received.body for received in provider.received)


def test_a_history_that_grows_by_continuations_alone_is_compacted(agent):
    serving, provider = agent
    with socket(serving.url) as one:
        answer = one.ask([GO])[-1].response
        for number in range(0, 90, 10):
            answer = one.ask([*responses_turns(number, number + 10), ON], previous_response_id=answer.id)[-1].response
    assert serving.gateway.metrics.total_compactions
    assert provider.received[-1].tokens < 40_000
    assert GO["content"] in str(texts(provider)[-1])
    assert len(serving.gateway.tracker.all()[0].body.raws) > 180


def test_a_compacted_window_begins_a_new_chain(agent):
    serving, provider = agent
    client = opened(openai.OpenAI(base_url=f"{serving.url}/v1", api_key="k", max_retries=0))
    made = client.responses.compact(model="gpt-4o", input=[GO, *responses_turns(0, 8)])
    window = [item.model_dump(exclude_none=True, warnings=False) for item in made.output]
    with socket(serving.url) as one:
        (event,) = one.ask([*window, ON])[-1:]
    assert event.type == "response.completed"
    assert GO["content"] in str(texts(provider)[0])


def test_a_response_that_is_not_remembered_is_not_found(agent):
    serving, provider = agent
    with socket(serving.url) as one:
        made = one.ask([GO])[-1].response
        (lost,) = one.ask([ON], previous_response_id="resp_of_another_connection")
        assert (lost.type, lost.status, lost.error.code) == ("error", 400, "previous_response_not_found")
        assert one.ask([ON], previous_response_id=made.id)[-1].type == "response.completed"
    with socket(serving.url) as other:
        (lost,) = other.ask([ON], previous_response_id=made.id)
        assert lost.error.code == "previous_response_not_found"
    assert len(provider.received) == 2


def test_a_response_that_the_provider_stores_is_left_to_it(gateway):
    serving, provider = gateway(behave=lambda received: ScriptedReply("Hello."), window=40_000, limit=40_000)
    with socket(serving.url) as one:
        one.ask([ON], previous_response_id="resp_stored", store=True)
    assert provider.received[0].body["previous_response_id"] == "resp_stored"


def test_a_continuation_that_fails_ends_its_chain(gateway):
    def behave(received):
        return Fault("cut_stream") if received.number == 2 else ScriptedReply("Hello.")

    serving, _ = gateway(behave=behave, window=40_000, limit=40_000)
    with socket(serving.url) as one:
        made = one.ask([GO])[-1].response
        failed = one.ask([ON], previous_response_id=made.id)[-1]
        assert (failed.type, failed.status) == ("error", 502)
        (lost,) = one.ask([ON], previous_response_id=made.id)
        assert lost.error.code == "previous_response_not_found"


def test_a_history_is_made_known_without_a_model(agent):
    serving, provider = agent
    with socket(serving.url) as one:
        warm = one.ask([GO], generate=False)
        assert [event.type for event in warm] == ["response.created", "response.in_progress", "response.completed"]
        assert not provider.received
        one.ask([ON], previous_response_id=warm[-1].response.id)
    assert texts(provider) == [[GO, ON]]


def test_messages_that_come_at_once_are_answered_in_their_order(agent):
    serving, _ = agent
    with socket(serving.url) as one:
        for _ in range(4):
            one.send([GO])
        assert [one.answer()[-1].response.output_text for _ in range(4)] == [f"Answer {n}." for n in range(1, 5)]


def test_a_history_for_which_there_is_no_memory_is_not_remembered(gateway):
    serving, _ = gateway(behave=ignorant, window=40_000, limit=40_000, body_memory=1)  # which one may exceed
    with socket(serving.url) as one:
        kept = one.ask([GO])[-1].response
        with socket(serving.url) as other:
            made = other.ask([GO])[-1].response
            (lost,) = other.ask([ON], previous_response_id=made.id)
            assert lost.error.code == "previous_response_not_found"
        assert one.ask([ON], previous_response_id=kept.id)[-1].type == "response.completed"


def test_a_connection_on_which_nothing_is_asked_does_not_delay_the_end_of_a_gateway(agent):
    serving, _ = agent
    with connect(f"{serving.url.replace('http', 'ws')}/v1/responses") as one:
        begun = time.monotonic()
        serving.stop()
        assert time.monotonic() - begun < 3
        with pytest.raises(ConnectionClosed) as closed:
            one.recv()
        assert closed.value.rcvd.code == 1012


def test_a_connection_ends_when_it_is_as_old_as_it_may_be(agent, monkeypatch):
    monkeypatch.setattr(responses_socket, "LONGEST", 0.2)
    with socket(agent[0].url) as one:
        (event,) = one.answer()
    assert event.error.code == "websocket_connection_limit_reached"


CREATE = b'{"type": "response.create", "model": "gpt-4o", '


@pytest.mark.parametrize(
    "message",
    [
        "{", "[]", '{"type": "response.cancel"}', '{"type": "response.create", "input": 3}',
        CREATE + b'"input": ' + b"9" * 5_000 + b"}",
        CREATE + b'"generate": false, "user": "\xff"}',
        CREATE + b'"generate": false, "metadata": ' + b"9" * 5_000 + b"}",
    ],
)  # fmt: skip
def test_a_message_that_is_no_request_is_told_so_and_the_next_one_answered(agent, message):
    serving, _ = agent
    with connect(f"{serving.url.replace('http', 'ws')}/v1/responses") as one:
        one.send(message)
        told = json.loads(one.recv())
        assert (told["type"], told["status"], told["error"]["code"]) == ("error", 400, "bad_body")
        one.send(json.dumps({"type": "response.create", "model": "gpt-4o", "input": [GO]}))
        assert json.loads(one.recv())["type"] == "response.created"


def test_a_token_that_is_revoked_makes_no_history_known_any_more(gateway, tmp_path, monkeypatch):
    monkeypatch.setattr(tokens, "CHECKED", 0.0)
    file = TokenFile(tmp_path / "tokens.jsonl")
    token, text = file.create("team:red")
    serving, _ = gateway(behave=ignorant, tokens=str(tmp_path / "tokens.jsonl"), require_token=True)
    address = f"{serving.url.replace('http', 'ws')}/v1/responses"
    with connect(address, additional_headers={"x-refold-token": text}) as one:
        file.revoke(token.id)
        one.send(json.dumps({"type": "response.create", "model": "gpt-4o", "input": [GO], "generate": False}))
        assert json.loads(one.recv())["status"] == 401


@pytest.mark.parametrize(
    "broken",
    [
        b'{"type": "response.completed"}',
        b'{"type": "response.completed", "response": {"id": "resp_1", "output": null}}',
        b'{"type": "response.output_text.delta", "delta": "\xff"}',
    ],
)
def test_an_event_that_is_not_of_the_api_ends_no_connection(broken):
    end = b'{"type": "response.failed", "response": {"id": "resp_1"}}'
    stream = b"".join(b"data: " + data + b"\n\n" for data in (broken, end))
    with upstream(lambda head, body: whole(stream, kind=b"text/event-stream")) as (url, seen), Serving(
        GatewaySettings(upstreams={"openai": url}, port=0)
    ) as serving, connect(f"{serving.url.replace('http', 'ws')}/v1/responses") as one:  # fmt: skip
        for number in (1, 2):
            one.send(json.dumps({"type": "response.create", "model": "gpt-4o", "input": [GO]}))
            while json.loads(one.recv())["type"] != "response.failed":
                pass
            assert len(seen) == number
    assert b"accept-encoding: identity" in seen[0][0].lower()


def test_a_failure_of_the_gateway_ends_no_connection(agent, monkeypatch):
    async def fails(exchanges, *given):
        raise LookupError

    serving, _ = agent
    with socket(serving.url) as one:
        with monkeypatch.context() as broken:
            broken.setattr(Exchanges, "run", fails)
            (event,) = one.ask([GO])
        assert (event.status, event.error.code) == (500, "internal")
        assert one.ask([GO])[-1].type == "response.completed"


def test_a_fault_of_the_connection_itself_is_logged(agent, monkeypatch, caplog):
    monkeypatch.setattr(responses_socket.ResponsesSocket, "_turn", lambda socket, text: {}["a secret"])
    with connect(f"{agent[0].url.replace('http', 'ws')}/v1/responses") as one:
        one.send("{}")
        with pytest.raises(ConnectionClosed):
            one.recv()
    assert "internal error" in caplog.text
    assert "a secret" not in caplog.text


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/v1/responses", {"origin": "null"}, 403),
        ("/v1/responses", {"origin": "https://other.example"}, 403),
        ("/v1/responses", {"x-refold-token": "no token"}, 401),
        ("/v1/chat/completions", {}, 426),
        ("/v1/responses/compact", {}, 426),
    ],
)
def test_a_handshake_that_is_not_admitted_reaches_nobody(agent, path, headers, status):
    serving, provider = agent
    with pytest.raises(InvalidStatus) as refused:
        connect(f"{serving.url.replace('http', 'ws')}{path}", additional_headers=headers)
    assert refused.value.response.status_code == status
    assert b"message" in refused.value.response.body
    assert not provider.received


@pytest.mark.parametrize("messages", [1, responses_socket.WAITING])
def test_a_client_that_leaves_ends_its_request(gateway, messages):
    left = threading.Event()
    serving, _ = gateway(behave=lambda received: (left.wait(5) and None) or ScriptedReply("Late."), window=40_000)
    with socket(serving.url) as one:
        for _ in range(messages):
            one.send([GO])
        for _ in range(100):
            if serving.gateway.running:
                break
            time.sleep(0.02)
    for _ in range(100):
        if not serving.gateway.running:
            break
        time.sleep(0.02)
    assert not serving.gateway.running
    left.set()


def test_a_client_that_has_more_requests_wait_than_any_has_is_left_with_its_request(gateway):
    left = threading.Event()
    serving, _ = gateway(behave=lambda received: (left.wait(5) and None) or ScriptedReply("Late."), window=40_000)
    with connect(f"{serving.url.replace('http', 'ws')}/v1/responses") as one:
        for _ in range(responses_socket.WAITING + 2):
            one.send(json.dumps({"type": "response.create", "model": "gpt-4o", "input": [GO]}))
        with pytest.raises(ConnectionClosed, match=r"1008.*too many requests wait"):
            one.recv(5)
    for _ in range(100):
        if not serving.gateway.running:
            break
        time.sleep(0.02)
    assert not serving.gateway.running
    left.set()


def test_the_parts_of_messages_count_as_bodies_and_end_where_there_is_no_room(gateway):
    serving, _ = gateway(behave=ignorant, body_memory=400_000)
    address = f"{serving.url.replace('http', 'ws')}/v1/responses"
    stop = threading.Event()
    ended = []

    def send_parts():
        def parts():
            yield "x" * 200_000
            stop.wait(5)

        with suppress(ConnectionClosed), connect(address) as one:
            one.send(parts())
            return
        ended.append(address)

    senders = [threading.Thread(target=send_parts) for _ in range(3)]
    for sender in senders:
        sender.start()
        time.sleep(0.3)
    assert 200_000 < body_bytes(serving.url) <= 300_000
    with socket(serving.url) as one:
        assert one.ask([GO])[-1].type == "response.completed"
    stop.set()
    for sender in senders:
        sender.join()
    assert len(ended) == 2
    assert until_released(serving.url) == 0


PING = b"\x89\x80\0\0\0\0"
PONG = b"\x8a\x80\0\0\0\0"
PART = b"\x00\x80\0\0\0\0"  # of no bytes
WARM_UP = json.dumps({"type": "response.create", "model": "gpt-4o", "input": [GO], "generate": False}).encode()


def masked(opcode, data):
    return bytes([opcode, 0x80 + len(data)]) + bytes(4) + data


@pytest.mark.parametrize(
    ("frames", "reason"),
    [
        (PING * 20_000, "too many pings"),
        (PONG * 20_000, "too many pings"),
        (masked(1, b"{") + PART * FRAGMENTS, "a message has too many parts"),
    ],
)  # fmt: skip
def test_a_client_that_sends_more_frames_than_any_needs_is_left_with_the_reason(agent, frames, reason):
    serving, _ = agent
    with connect(f"{serving.url.replace('http', 'ws')}/v1/responses", ping_interval=None) as one:
        one.socket.sendall(frames)
        with pytest.raises(ConnectionClosed) as closed:
            one.recv(20)
    assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (1008, reason)
    assert serving.gateway.metrics.total_refused == 1


def test_pings_between_the_parts_of_a_message_are_answered_while_there_are_no_more_than_a_client_may_send(agent):
    serving, _ = agent
    parts = b"".join(masked(0, bytes([byte])) for byte in WARM_UP[1:])
    with connect(f"{serving.url.replace('http', 'ws')}/v1/responses", ping_interval=None) as one:
        pong = one.ping(b"the last one")
        one.socket.sendall(masked(1, WARM_UP[:1]) + parts + PING * (CONTROL_FRAMES - 1) + masked(0x80, b""))
        while json.loads(one.recv(20))["type"] != "response.completed":
            pass
        assert pong.wait(20)


def test_the_frames_of_one_client_are_parsed_in_many_turns_of_the_loop_so_that_others_have_theirs(agent, monkeypatch):
    serving, _ = agent
    parse = WebSocketsSansIOProtocol.data_received
    turns = [0]
    parsed = []

    def turn_ends():
        turns[0] += 1

    def data_received(protocol, data):
        parsed.append((turns[0], data))
        protocol.loop.call_soon(turn_ends)
        parse(protocol, data)

    monkeypatch.setattr(WebSocketsSansIOProtocol, "data_received", data_received)
    with connect(f"{serving.url.replace('http', 'ws')}/v1/responses", ping_interval=None) as one:
        one.socket.sendall(masked(1, WARM_UP[:50]) + PART * (20 * FRAMES) + masked(0x80, WARM_UP[50:]))
        while json.loads(one.recv(20))["type"] != "response.completed":
            pass
    frames = [(turn, data.count(PART)) for turn, data in parsed if PART in data]
    assert sum(count for _, count in frames) > 19 * FRAMES  # the rest are parts that two reads divide
    assert max(count for _, count in frames) <= FRAMES
    assert len({turn for turn, _ in frames}) == len(frames)
