import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest


class Told:
    """What a server was asked, and the answers it still has."""

    def __init__(self):
        self.answers = []
        self.requests = []
        self.url = ""

    def says(self, body, status=200, kind="application/json"):
        self.answers.append((status, kind, body if isinstance(body, str) else json.dumps(body)))
        return self

    def streams(self, *events, named=False):
        lines = [(f"event: {event['type']}\n" if named else "") + f"data: {json.dumps(event)}\n\n" for event in events]
        return self.says("".join(lines) + ("" if named else "data: [DONE]\n\n"), kind="text/event-stream")


@contextmanager
def serving(told):
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            told.requests.append((self.path, body))
            status, kind, answer = told.answers.pop(0)
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(answer.encode())))
            self.end_headers()
            self.wfile.write(answer.encode())

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    told.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield told
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def server():
    with serving(Told()) as told:
        yield told
