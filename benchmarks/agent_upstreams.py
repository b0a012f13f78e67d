"""A server that compacts by itself, as OpenAI does: its items can be read by itself alone."""

from __future__ import annotations

import base64
import http.client
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

__all__ = ["compacting_upstream"]

NOT_FORWARDED = ("host", "content-length", "accept-encoding", "connection")


@contextmanager
def compacting_upstream(url: str) -> Iterator[str]:
    """Give the address of a server that answers compaction triggers itself and forwards everything else to `url`.

    Its item is opaque to all others. In what it forwards, the item is a message with the user's words.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            items = body.get("input")
            if isinstance(items, list) and items and items[-1].get("type") == "compaction_trigger":
                self._send(200, "text/event-stream", _answer(body))
                return
            if isinstance(items, list):
                body["input"] = [_readable(item) for item in items]
                body.pop("context_management", None)
            parts = urlsplit(url)
            connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
            headers = {name: value for name, value in self.headers.items() if name.lower() not in NOT_FORWARDED}
            connection.request("POST", self.path, json.dumps(body).encode(), headers)
            answer = connection.getresponse()
            self._send(answer.status, answer.getheader("content-type", ""), answer.read())
            connection.close()

        def _send(self, status: int, kind: str, data: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _answer(body: Mapping[str, Any]) -> bytes:
    """Return the stream of a response with an opaque item that stands for the whole input."""
    said = [item for item in body["input"] if item.get("role") == "user"]
    sealed = base64.b64encode(json.dumps(said).encode()).decode()[::-1]
    item = {"type": "compaction", "id": f"cmp_{len(body['input'])}", "encrypted_content": sealed}
    response = {
        "id": "resp_compaction", "object": "response", "created_at": 0, "status": "completed", "model": body["model"],
        "output": [item], "usage": {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0},
    }  # fmt: skip
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": response},
    ]
    return b"".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in events)


def _readable(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item as a model without compaction can read it."""
    if item.get("type") != "compaction":
        return item
    said = base64.b64decode(item["encrypted_content"][::-1]).decode()
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": f"Before: {said}"}]}
