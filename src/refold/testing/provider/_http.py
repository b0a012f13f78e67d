"""The server of a scripted provider: Starlette under uvicorn in a thread, on a free port of the loopback interface."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from refold.core._json import Json
from refold.testing.provider._wire import WireError, dumped
from refold.testing.provider._wire_anthropic import AnthropicWire
from refold.testing.provider._wire_gemini import GeminiWire, named
from refold.testing.provider._wire_openai import OpenAIChatWire
from refold.testing.provider._wire_responses import OpenAIResponsesWire

if TYPE_CHECKING:
    from refold.testing.provider._responder import Responder, ScriptedOutcome
    from refold.testing.provider._wire import Wire, WireTurn

__all__ = ["Server"]

ANTHROPIC = AnthropicWire()
CHAT = OpenAIChatWire()
GEMINI = GeminiWire()
WIRES: tuple[Wire, ...] = (CHAT, OpenAIResponsesWire(), ANTHROPIC)
CREATED = "2026-01-01T00:00:00Z"
# Seconds for which an idle connection stays open: with uvicorn's five, a client that is slow between two calls, on a
# busy machine, sends into one that is just being closed, and its call fails.
KEEP_ALIVE = 120


class _CutError(Exception):
    """Raised in the middle of a body, so that the connection is closed there."""


class _Loop(uvicorn.Server):
    """Uvicorn that reports when it has begun and is notified when to end, so that nothing polls."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()
        self.loop: asyncio.AbstractEventLoop
        self.closing: asyncio.Event

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self.loop, self.closing = asyncio.get_running_loop(), asyncio.Event()
        await super().startup(sockets)
        self.ready.set()

    async def main_loop(self) -> None:
        await self.closing.wait()


class Server:
    """Serves one `Responder`; `start` returns the port."""

    def __init__(self, answering: Responder, models: tuple[str, ...]) -> None:
        self._answering = answering
        self._models = models
        self._failed: list[Exception] = []
        config = uvicorn.Config(
            self._app(), log_config=None, log_level="critical", access_log=False, lifespan="off", ws="none",
            http="h11", loop="asyncio", timeout_graceful_shutdown=1, timeout_keep_alive=KEEP_ALIVE,
        )  # fmt: skip
        self._loop = _Loop(config)
        self._thread = threading.Thread(target=self._serve, name="scripted-provider", daemon=True)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # else no TCP_NODELAY

    def start(self) -> int:
        """Serve in a thread of its own, and return the port when requests are taken."""
        self._socket.bind(("127.0.0.1", 0))
        port: int = self._socket.getsockname()[1]
        self._thread.start()
        self._loop.ready.wait()
        if not self._loop.started:
            raise OSError("the scripted provider could not be started")
        return port

    def stop(self) -> None:
        """End, and raise what the behaviour raised."""
        self._loop.loop.call_soon_threadsafe(self._loop.closing.set)
        self._thread.join()
        if self._failed:
            raise self._failed[0]

    def _serve(self) -> None:
        try:
            self._loop.run(sockets=[self._socket])
        finally:
            self._socket.close()
            self._loop.ready.set()

    def _app(self) -> Starlette:
        routes = [Route(wire.path, self._endpoint(wire), methods=["POST"]) for wire in WIRES]
        routes.append(Route(f"{ANTHROPIC.path}/count_tokens", self._count, methods=["POST"]))
        routes += [Route(f"/{v}/models/{{called:path}}", self._gemini, methods=["POST"]) for v in ("v1", "v1beta")]
        routes.append(Route("/v1/models", self._list, methods=["GET"]))
        routes.append(Route("/v1/models/{model:path}", self._model, methods=["GET"]))
        return Starlette(routes=routes, exception_handlers={HTTPException: self._nowhere})

    def _endpoint(self, wire: Wire) -> Any:
        async def answer(request: Request) -> Response:
            return await self._answer(wire, await request.body(), request)

        return answer

    async def _answer(self, wire: Wire, raw: bytes, request: Request) -> Response:
        try:
            outcome = self._answering.take(wire, raw, request.headers)
        except Exception as error:
            self._failed.append(error)
            return _refusal(wire, WireError("server_error", str(error)), 0)
        if outcome.fault is not None and outcome.fault.kind == "timeout":
            await self._silence(request)
        return _response(wire, outcome)

    async def _gemini(self, request: Request) -> Response:
        model, _, verb = request.path_params["called"].partition(":")
        raw = named(await request.body(), model, streaming=verb == "streamGenerateContent")
        match verb:
            case "generateContent" | "streamGenerateContent":
                return await self._answer(GEMINI, raw, request)
            case "countTokens":
                counted = self._answering.count(GEMINI, raw, request.headers)
                if isinstance(counted, WireError):
                    return _refusal(GEMINI, counted, 0)
                return JSONResponse({"totalTokens": counted})
            case _:
                return _refusal(GEMINI, WireError("path", f"there is no {verb or 'such path'}"), 0)

    async def _silence(self, request: Request) -> None:
        """Wait until the client gives up or the server ends."""
        disconnected = asyncio.ensure_future(request.receive())
        over = asyncio.ensure_future(self._loop.closing.wait())
        await asyncio.wait((disconnected, over), return_when=asyncio.FIRST_COMPLETED)
        disconnected.cancel()
        over.cancel()

    async def _count(self, request: Request) -> Response:
        counted = self._answering.count(ANTHROPIC, await request.body(), request.headers)
        if isinstance(counted, WireError):
            return _refusal(ANTHROPIC, counted, 0)
        return JSONResponse({"input_tokens": counted})

    async def _list(self, request: Request) -> Response:
        wire = _spoken(request)
        if not self._answering.allowed(request.headers):
            return _refusal(wire, WireError("auth", "wrong key"), 0)
        listed = [_listed(wire, name) for name in self._models]
        if wire is ANTHROPIC:
            return JSONResponse(
                {"data": listed, "has_more": False, "first_id": self._models[0], "last_id": self._models[-1]}
            )
        return JSONResponse({"object": "list", "data": listed})

    async def _model(self, request: Request) -> Response:
        wire, name = _spoken(request), request.path_params["model"]
        if not self._answering.allowed(request.headers):
            return _refusal(wire, WireError("auth", "wrong key"), 0)
        if name not in self._models:
            return _refusal(wire, WireError("model", name, "model"), 0)
        return JSONResponse(_listed(wire, name))

    async def _nowhere(self, request: Request, error: Exception) -> Response:
        """Answer a path or method that there is none of, in the shape of the provider that the request is meant for."""
        refusal = WireError("path", f"Invalid URL ({request.method} {request.url.path})")
        return _refusal(_spoken(request), refusal, 0)


def _spoken(request: Request) -> Wire:
    """Return the wire that a request without one seems to speak."""
    anthropic = "anthropic-version" in request.headers or "x-api-key" in request.headers
    return ANTHROPIC if anthropic or request.url.path.startswith(ANTHROPIC.path) else CHAT


def _listed(wire: Wire, name: str) -> Json:
    if wire is ANTHROPIC:
        return {"type": "model", "id": name, "display_name": name, "created_at": CREATED}
    return {"id": name, "object": "model", "created": 0, "owned_by": "refold"}


def _refusal(wire: Wire, refusal: WireError, number: int) -> Response:
    headers = _headers(number)
    if refusal.retry_after is not None:
        headers["retry-after"] = f"{refusal.retry_after:g}"
    return JSONResponse(wire.error(refusal, number), wire.status(refusal), headers)


def _headers(number: int) -> dict[str, str]:
    return {"x-request-id": f"req_{number:06}", "request-id": f"req_{number:06}"}


def _response(wire: Wire, outcome: ScriptedOutcome) -> Response:
    number = outcome.number
    if outcome.refusal is not None:
        return _refusal(wire, outcome.refusal, number)
    if outcome.turn is None:  # it hung until the client gave up
        return Response(status_code=408)
    kind = outcome.fault.kind if outcome.fault else ""
    if outcome.turn.received.streaming:
        body, media = _spoiled(_lines(wire, outcome.turn), kind), "text/event-stream"
        return StreamingResponse(body, 200, _headers(number), media)
    whole = dumped(wire.reply(outcome.turn)).encode()
    if kind == "cut_stream":
        cut = {**_headers(number), "content-length": str(len(whole))}
        return StreamingResponse(_torn([whole[: len(whole) // 2]]), 200, cut, "application/json")
    if kind == "malformed":
        whole = whole[: len(whole) // 2]
    return Response(whole, 200, _headers(number), "application/json")


def _lines(wire: Wire, turn: WireTurn) -> list[bytes]:
    """Return the events of a stream as they go over the wire."""
    lines = [
        f"event: {name}\ndata: {dumped(data)}\n\n" if name else f"data: {dumped(data)}\n\n"
        for name, data in wire.events(turn)
    ]
    if wire.closing:
        lines.append(f"data: {wire.closing}\n\n")
    return [line.encode() for line in lines]


async def _spoiled(lines: list[bytes], kind: str) -> AsyncIterator[bytes]:
    """Yield a stream whole, torn in the middle, or with an event in the middle that is no JSON."""
    middle = len(lines) // 2
    for place, line in enumerate(lines):
        if place == middle and kind == "cut_stream":
            raise _CutError
        if place == middle and kind == "malformed":
            line = line.rstrip()[:-2] + b"\n\n"
        yield line
        await asyncio.sleep(0)


async def _torn(chunks: list[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk
        await asyncio.sleep(0)
    raise _CutError
