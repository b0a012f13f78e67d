"""A server that stores what it makes under ids, for OpenAI's, Anthropic's and Gemini's protocols, whoever asks."""

import gzip
import json
import re

from tests.gateway.scripted_upstream import upstream, whole

MESSAGE = {"type": "message", "role": "assistant", "status": "completed"}
STORED = re.compile(
    r"/(?:v1|v1beta)/(responses|conversations|chat/completions|cachedContents|files|batches|vector_stores)(?:/([^/?]+))?"
)


class Storing:
    """What was stored, by id; `answer` is for `upstream`. An id is known by whoever names it."""

    def __init__(self):
        self.stored = {}
        self.count = 0

    def made(self, prefix, **value):
        self.count += 1
        id = f"{prefix}{self.count:08d}"
        self.stored[id] = {"id": id, **value}
        return self.stored[id]

    def answer(self, head, raw):
        method, path = head.decode().split(" ")[:2]
        raw = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
        body = json.loads(raw) if raw[:1] == b"{" else {}
        path = path.partition("?")[0]
        if path == "/v1/messages":
            container = self.made("container_", expires_at="2026-12-01T00:00:00Z")
            made = self.made("msg_", type="message", role="assistant", content=[{"type": "text", "text": "ok"}],
                             model="m", stop_reason="end_turn", usage={"input_tokens": 1, "output_tokens": 1})  # fmt: skip
            return _json({**made, "container": container})
        if path.endswith(":generateContent"):
            return _json({"candidates": [{"content": {"role": "model", "parts": [{"text": "ok"}]}}]})
        match = STORED.match(path)
        collection, id = match.groups() if match else ("", None)
        if id == "input_tokens":
            return _json({"object": "response.input_tokens", "input_tokens": 1})
        if id is not None and id != "compact":
            if method == "POST" and path.endswith("/items"):
                return _json({"object": "list", "data": body["items"]})
            return self._of(method, collection, id)
        if method == "GET":
            return _json({"object": "list", "data": list(self.stored.values())})
        match collection:
            case "responses":
                return self._response(body)
            case "chat/completions":
                message = {"role": "assistant", "content": "ok"}
                choices = [{"index": 0, "finish_reason": "stop", "message": message}]
                chat = self.made("chatcmpl-", object="chat.completion", created=1, model="m", choices=choices)
                return _json(chat)
            case "cachedContents":
                made = self.made("c", model="models/m")
                return _json({**made, "name": f"cachedContents/{made['id']}"})
            case "batches":
                return _json(self.made("batch_", object="batch", output_file_id=self.made("file-")["id"]))
            case _:
                prefix = {"conversations": "conv_", "files": "file-", "vector_stores": "vs_"}[collection]
                return _json(self.made(prefix, object=collection, created_at=1, name=body.get("name")))

    def _response(self, body):
        message = self.made("msg_", **MESSAGE, content=[{"type": "output_text", "text": "ok", "annotations": []}])
        answer = self.made("resp_", object="response", created_at=1, model="m", status="completed", output=[message],
                           parallel_tool_calls=True, tools=[], tool_choice="auto")  # fmt: skip
        if not body.get("stream"):
            return _json(answer)
        events = [
            {"type": "response.created", "response": {**answer, "output": [], "status": "in_progress"}},
            {"type": "response.output_text.delta", "delta": "ok", "item_id": message["id"]},
            {"type": "response.completed", "response": answer},
        ]
        text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
        return whole(text.encode(), kind=b"text/event-stream")

    def _of(self, method, collection, id):
        if method == "DELETE":
            return _json({"id": id, "deleted": True})
        if id not in self.stored:
            return _json({"error": {"message": "this id was made elsewhere"}}, b"418 Elsewhere")
        return _json(
            {**self.stored[id], **({"name": f"cachedContents/{id}"} if collection == "cachedContents" else {})}
        )


def storing():
    """Return a server as `upstream` does, which stores."""
    return upstream(Storing().answer)


def _json(value, status=b"200 OK"):
    return whole(json.dumps(value).encode(), status)
