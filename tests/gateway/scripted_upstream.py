"""Plain HTTP for tests: what the gateway sends and gets, byte for byte."""

import asyncio
import http.client
import json
import re
import socket
import threading
from contextlib import contextmanager
from urllib.parse import urlsplit

ADMIN = "the token of an administrator"
CONTROL = re.compile(r"/(metrics|v1/(recall|sessions))\b")


def call(url, method="POST", path="/v1/chat/completions", body=None, headers=None):
    """Send one request on a connection of its own; return status, headers in small letters, and the body.

    Requests to control routes have an administrator's token, unless they have another.
    """
    if CONTROL.match(path):
        headers = {"x-refold-token": ADMIN, **(headers or {})}
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    raw = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    connection.request(method, path, raw, {"content-type": "application/json", **(headers or {})})
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, data


def raw(url, data, wait=5.0):
    """Send bytes as they are and return whatever comes back until the end or the wait is over."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=wait) as sock:
        sock.sendall(data)
        found = b""
        try:
            while chunk := sock.recv(65_536):
                found += chunk
        except TimeoutError:
            found += b"<still open>"
        except ConnectionResetError:
            pass
        return found


def chat(count, size=400, model="gpt-4o", **more):
    """A body of OpenAI chat with so many exchanges of tool calls; longer ones begin with the same messages."""
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Read all files."}]
    for number in range(count):
        text = " ".join(f"word{number}x{place}" for place in range(size))
        function = {"name": "read", "arguments": json.dumps({"path": f"f{number}.py"})}
        messages.append(
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"c{number}", "type": "function", "function": function}],
            }
        )
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": text})
    return {"model": model, "messages": messages, **more}


@contextmanager
def upstream(answer):
    """A server that hands every request, whole and raw, to a function and sends what it returns, then closes.

    The function may be a coroutine function that takes reader and writer instead, to break off where it likes.
    """
    seen = []
    ready = threading.Event()
    place = {}

    async def serve(reader, writer):
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            lines = head.lower().split(b"\r\n")
            length = next((int(line[15:]) for line in lines if line.startswith(b"content-length:")), 0)
            body = await reader.readexactly(length)
            seen.append((head, body))
            if asyncio.iscoroutinefunction(answer):
                await answer(reader, writer)
            else:
                writer.write(answer(head, body))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            seen.append((b"gone", b""))
        finally:
            writer.close()

    async def main():
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        place["port"] = server.sockets[0].getsockname()[1]
        place["loop"], place["end"] = asyncio.get_running_loop(), asyncio.Event()
        ready.set()
        await place["end"].wait()
        server.close()

    thread = threading.Thread(target=asyncio.run, args=(main(),), daemon=True)
    thread.start()
    ready.wait()
    try:
        yield f"http://127.0.0.1:{place['port']}", seen
    finally:
        place["loop"].call_soon_threadsafe(place["end"].set)
        thread.join(timeout=5)


def whole(body, status=b"200 OK", kind=b"application/json"):
    """An answer with a body of known length."""
    return b"HTTP/1.1 %s\r\ncontent-type: %s\r\ncontent-length: %d\r\n\r\n" % (status, kind, len(body)) + body
