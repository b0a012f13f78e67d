import asyncio
import http.client
import json
import time

import pytest

from refold._gateway.server.serving import Serving
from refold._gateway.settings import GatewaySettings
from refold._gateway.wire import response_observer
from tests.gateway.scripted_upstream import call, chat, upstream

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
WORD = b'data: {"choices":[{"delta":{"content":"fine"}}]}\n\n'
SAID = "This model's maximum context length is 8000 tokens. However, your messages resulted in 16000 tokens."
ERROR = b"data: %s\n\n" % json.dumps({"error": {"message": SAID, "code": "context_length_exceeded"}}).encode()


def streaming(pieces, gap=0.02):
    """A provider whose first answer comes in pieces; all later ones are one word."""
    asked = []

    async def answer(reader, writer):
        asked.append(1)
        writer.write(HEAD)
        for piece in pieces if len(asked) == 1 else [WORD]:
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
            await asyncio.sleep(gap)
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    return answer


@pytest.mark.parametrize(
    "pieces", [[ERROR], [ERROR[:3], ERROR[3:90], ERROR[90:]], [b": PROCESSING\n\n", b": PROCESSING\n\n", ERROR]]
)
def test_a_refusal_in_a_stream_is_found_however_its_first_event_comes(pieces):
    with (
        upstream(streaming(pieces)) as (url, seen),
        Serving(GatewaySettings(upstreams={"openai": url}, port=0, window=100_000)) as serving,
    ):
        _, headers, data = call(serving.url, body=chat(10, stream=True))
    assert headers["x-refold-done"] == "recovered"
    assert data == WORD
    assert len(seen[1][1]) < len(seen[0][1])


def test_a_stream_that_says_nothing_yet_is_kept_from_the_client_for_a_while_alone(monkeypatch):
    monkeypatch.setattr(response_observer, "PATIENCE", 0.1)
    pieces = [b": waiting\n\n"] * 20
    begun = time.monotonic()
    with (
        upstream(streaming(pieces, gap=0.05)) as (url, _),
        Serving(GatewaySettings(upstreams={"openai": url}, port=0)) as serving,
    ):
        connection = http.client.HTTPConnection(serving.url.removeprefix("http://"), timeout=5)
        connection.request("POST", "/v1/chat/completions", json.dumps(chat(1, stream=True)))
        answer = connection.getresponse()
        assert time.monotonic() - begun < 0.9, "the head came while the stream went on"
        assert answer.read() == b"".join(pieces)
        connection.close()
