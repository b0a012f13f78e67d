"""The servers that benchmarks/gateway.py measures, each a process of its own on the loopback interface."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from tools.recording.run import free_port

CHUNK = '{"id":"c","object":"chat.completion.chunk","created":1,"model":"gpt-4o","choices":[%s]%s}'
DELTA = '{"index":0,"delta":{"content":"word %d "},"finish_reason":null}'
PIECES = [CHUNK % (DELTA % number, "") for number in range(40)]
PIECES.append(CHUNK % ('{"index":0,"delta":{},"finish_reason":"stop"}', ""))
PIECES.append(CHUNK % ("", ',"usage":{"prompt_tokens":8000,"completion_tokens":41,"total_tokens":8041}'))
EVENTS = "".join(f"data: {piece}\n\n" for piece in [*PIECES, "[DONE]"]).encode()

UPSTREAM = """
import asyncio, re, sys
EVENTS = sys.stdin.buffer.read()
HEAD = b"HTTP/1.1 200 OK\\r\\ncontent-type: text/event-stream\\r\\ncontent-length: %d\\r\\n\\r\\n" % len(EVENTS)
class Protocol(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.got, self.need = transport, bytearray(), 0
    def data_received(self, data):
        self.got += data
        while True:
            if not self.need:
                end = self.got.find(b"\\r\\n\\r\\n")
                if end < 0: return
                length = re.search(rb"(?i)content-length: (\\d+)", self.got[:end])
                if not length and b"chunked" in self.got[:end].lower():  # as LiteLLM sends
                    last = self.got.find(b"\\r\\n0\\r\\n\\r\\n", end)
                    if last < 0: return
                    self.need = last + 7
                else:
                    self.need = end + 4 + (int(length[1]) if length else 0)
            if len(self.got) < self.need: return
            del self.got[: self.need]
            self.need = 0
            self.transport.write(HEAD + EVENTS)
async def main():
    server = await asyncio.get_running_loop().create_server(Protocol, "127.0.0.1", 0)
    print("http://127.0.0.1:%d" % server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
import uvloop
uvloop.run(main())
"""

BARE = """
import socket, sys
import aiohttp, uvicorn
HOP = {b"host", b"content-length", b"connection", b"keep-alive", b"transfer-encoding"}
class Bare:
    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan":
            await receive()
            self.session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0), auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_read=720),
                skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"))
            await send({"type": "lifespan.startup.complete"}); await receive(); await self.session.close()
            await send({"type": "lifespan.shutdown.complete"}); return
        parts, more = [], True
        while more:
            message = await receive(); parts.append(message.get("body", b"")); more = message.get("more_body", False)
        headers = [(name.decode(), value.decode()) for name, value in scope["headers"] if name not in HOP]
        async with self.session.post(
            sys.argv[1] + scope["path"], headers=headers, data=b"".join(parts), allow_redirects=False
        ) as answer:
            headers = [(name, value) for name, value in answer.raw_headers if name.lower() not in HOP - {b"content-length"}]
            await send({"type": "http.response.start", "status": answer.status, "headers": headers})
            async for chunk in answer.content.iter_any():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
listening.bind(("127.0.0.1", 0))
listening.listen(2048)
config = uvicorn.Config(
    Bare(), log_config=None, log_level="critical", access_log=False, lifespan="on", ws="none", http="httptools",
    loop="uvloop", server_header=False, date_header=False, proxy_headers=False)
print("http://127.0.0.1:%d" % listening.getsockname()[1], flush=True)
uvicorn.Server(config).run(sockets=[listening])
"""

GATEWAY = """
import sys
from refold._gateway.server.serving import Serving
from refold._gateway.settings import GatewaySettings
window = int(sys.argv[2])
gateway = Serving(GatewaySettings(upstreams={"openai": sys.argv[1]}, port=0, window=window, memory=256 * 1024 * 1024))
print(gateway.url, flush=True)
gateway.run()
"""

# the gateway of revision e976836, whose modules had other names
BEFORE = (
    GATEWAY.replace("_gateway.server.", "gateway.")
    .replace("_gateway.", "gateway.")
    .replace("import GatewaySettings", "import Settings as GatewaySettings")
)

LITELLM = """
model_list:
  - model_name: gpt-4o
    litellm_params: {model: openai/gpt-4o, api_base: "%s/v1", api_key: none}
"""
TICKS, PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")


def resident(process: int) -> int:
    """Return the bytes of a process that are resident, by its id."""
    with open(f"/proc/{process}/statm") as file:
        return int(file.read().split()[1]) * PAGE


class Process:
    """A program in a process of its own, that prints its address in its first line; `source` is imported from first."""

    def __init__(self, program: str, *arguments: str, given: bytes = b"", source: str = "") -> None:
        environment = {**os.environ, "PYTHONPATH": source} if source else None
        self.child = subprocess.Popen(
            [sys.executable, "-c", program, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        self.child.stdin.write(given)
        self.child.stdin.close()
        self.url = self.child.stdout.readline().decode().strip()

    def memory(self) -> int:
        """Return the bytes that are resident."""
        return resident(self.child.pid)

    def seconds(self) -> float:
        """Return the processor time used so far."""
        with open(f"/proc/{self.child.pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def stop(self) -> None:
        self.child.terminate()
        self.child.wait()


class LiteLLM(Process):
    """The LiteLLM proxy with one model, one worker and its other defaults, from an environment of its own."""

    def __init__(self, python: str, upstream: str) -> None:
        self._config = tempfile.NamedTemporaryFile("w", suffix=".yaml")  # noqa: SIM115 # it lives as long as the proxy
        self._config.write(LITELLM % upstream)
        self._config.flush()
        port = str(free_port())
        program = "from litellm import run_server; run_server()"
        options = ["--config", self._config.name, "--host", "127.0.0.1", "--port", port, "--num_workers", "1"]
        quiet = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_TELEMETRY": "False", "LITELLM_LOG": "ERROR"}
        quiet["LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY"] = "true"  # newer ones do not start without a key
        self.child = subprocess.Popen(
            [python, "-c", program, *options], env={**os.environ, **quiet}, cwd=tempfile.gettempdir(),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.url = f"http://127.0.0.1:{port}"
        self._ready()

    def _ready(self) -> None:
        for _ in range(120):
            time.sleep(1)
            try:
                with urlopen(f"{self.url}/health/liveliness", timeout=1):
                    return
            except (URLError, OSError):
                if self.child.poll() is not None:
                    break
        self.child.kill()
        raise RuntimeError("the LiteLLM proxy does not start")

    def stop(self) -> None:
        super().stop()
        self._config.close()


def _apart(servers: dict[str, Process]) -> None:
    """Give what is measured one core, and upstream and this process another: whose neighbor it is is not left to chance."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if len(cores) < 2:
        return
    os.sched_setaffinity(0, {cores[1]})
    for name, server in servers.items():
        os.sched_setaffinity(server.child.pid, {cores[1 if name == "upstream" else 0]})


def servers(litellm: str, before: str = "") -> dict[str, Process]:
    """Start the scripted upstream and all servers in front of it, by name.

    LiteLLM is started if there is an environment, and the gateway of e976836 if `before` is a checkout of it.
    """
    upstream = Process(UPSTREAM, given=EVENTS)
    started = {
        "upstream": upstream,
        "bare": Process(BARE, upstream.url),
        "gateway": Process(GATEWAY, upstream.url, "10000000"),
        "sticky": Process(GATEWAY, upstream.url, "16000"),
    }
    if before:
        source = str(Path(before).resolve() / "src")
        started["before"] = Process(BEFORE, upstream.url, "10000000", source=source)
        started["sticky, before"] = Process(BEFORE, upstream.url, "16000", source=source)
    if litellm and Path(litellm).exists():
        started["litellm"] = LiteLLM(litellm, upstream.url)
    else:
        print(f"LiteLLM is left out: {litellm or 'no --litellm'} is no python with its proxy", file=sys.stderr)
    _apart(started)
    return started
