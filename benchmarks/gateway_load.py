"""Many conversations at once through a gateway whose upstream fails now and then; used by the tests and by gateway.py.

    python benchmarks/gateway_load.py                    200 of them for two minutes, memory in steps of 15 seconds
    python benchmarks/gateway_load.py --seconds 600 --conversations 50 --memory 32
    python benchmarks/gateway_load.py --recall           with the recall tool, for which the model calls now and then

The gateway is a process of its own, whose resident memory is looked at every second. It may hold as many megabytes of
conversations as `--memory` says; a client begins a new task, which is a new conversation, after `--messages` messages.

Every conversation has a mark of its own in all it says. The upstream checks that a request holds one mark alone and
answers with it and the turn; the client checks that the answer is its own, and sends the same turn again after an error.
With `--recall` the upstream calls the tool in a third of the answers to requests that offer it, with words before it or
without, alone or beside a tool of the client's, and looks for the mark in what comes back; faults meet these rounds as
well. The client is shown calls of its own tool alone, and answers them.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import aiohttp

MARK = re.compile(rb"mark-(\d+)-")
TURN = re.compile(rb"mark-\d+-turn-(\d+)-")
FAULTS = ("rate_limit", "server_error", "cut", "stall", "reset", "overflow")
GATEWAY = """
import sys
from refold._gateway.server.serving import Serving
from refold._gateway.settings import GatewaySettings
upstreams, memory, recall = {"openai": sys.argv[1]}, int(sys.argv[2]), sys.argv[3] == "recall"
gateway = Serving(GatewaySettings(upstreams=upstreams, port=0, window=16_000, memory=memory, recall_tool=recall,
                                  admin_token="admin"))
print(gateway.url, flush=True)
gateway.run()
"""
RECALLED = 1 / 3  # of the answers to requests that offer the tool begin with a call of it
LOOKED_UP = 2  # the turn whose words are asked for, from the next one on
BESIDE = 1 / 2  # of these calls stand beside one of the client's own tool
WORDS = "I look it up."  # before every second call
LOOK: dict[str, Any] = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
STALL = 0.3  # seconds; longer than the silence that the gateway of a storm allows would be an error of its own


@dataclass
class Seen:
    """What happened in a storm."""

    answers: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    compacted: int = 0
    recalls: Counter[str] = field(default_factory=Counter)
    received: Counter[tuple[int, int]] = field(default_factory=Counter)  # requests by mark and turn
    repeated: Counter[tuple[int, int]] = field(
        default_factory=Counter
    )  # of these, faults that a gateway answers itself
    turns: dict[int, set[int]] = field(default_factory=dict)
    memory: list[int] = field(default_factory=list)
    figures: list[dict[str, int]] = field(default_factory=list)


class Upstream:
    """Speaks OpenAI chat, streamed and not, and fails at a given share of calls, but of none below the path /quiet.

    `judge` gets the body of each request, but of those below /quiet. The id of an answer is its number, and that it
    was late.
    """

    def __init__(
        self, seen: Seen, share: float, seed: int, judge: Callable[[bytes], object] = lambda body: None
    ) -> None:
        self.seen, self.share, self.dice, self.judge = seen, share, random.Random(seed), judge
        self.numbers = itertools.count(1)
        self.overflowed: set[bytes] = set()
        self.url = ""

    async def __aenter__(self) -> Upstream:
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=2**26)
        self.url = f"http://127.0.0.1:{self.server.sockets[0].getsockname()[1]}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                found = re.search(rb"content-length: (\d+)", head)
                body = await reader.readexactly(int(found[1]) if found else 0)
                if not await self._answer(body, writer, quiet=b" /quiet/" in head[:32]):
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        except asyncio.CancelledError:  # the end of the run; a stream's server reports it as a fault
            pass
        finally:
            writer.close()

    async def _answer(self, body: bytes, writer: asyncio.StreamWriter, *, quiet: bool) -> bool:
        marks = set(MARK.findall(body))
        turns = TURN.findall(body)
        if len(marks) != 1 or not turns:
            self.seen.wrong.append(f"a request with the marks {sorted(marks)[:5]}")
        mark, turn = next(iter(marks), b"0"), max(map(int, turns), default=0)
        fault = self.dice.choice(FAULTS) if not quiet and self.dice.random() < self.share else ""
        if fault == "overflow" and len(body) < 10_000:  # what is short anyway cannot be made shorter
            fault = ""
        if not quiet:
            self.judge(body)
            self.seen.faults[fault or "none"] += 1
            self.seen.received[int(mark), turn] += 1
            self.seen.repeated[int(mark), turn] += fault in ("overflow", "reset")
        words = b"mark-%s-answer-%d-" % (mark, turn)
        match fault:
            case "rate_limit":
                return await _whole(
                    writer, b"429 Too Many Requests", _error("rate limit reached", words, "rate_limit_exceeded")
                )
            case "server_error":
                return await _whole(
                    writer, b"500 Internal Server Error", _error("server had an error", words, "server_error")
                )
            case "overflow":
                # Without a number: one that is not true would be reckoned with.
                text = "Your input exceeds the context window of this model. Please adjust your input and try again."
                return await _whole(writer, b"400 Bad Request", _error(text, words, "context_length_exceeded"))
            case "reset":
                writer.transport.abort()
                return False
            case "stall":
                await asyncio.sleep(STALL)
        streaming = b'"stream": true' in body
        if self._asks(body, mark, turn):
            asked = _calls(mark, turn, self.dice)
            return await _said(writer, "answer", asked, streaming, fault == "cut")
        self.seen.turns.setdefault(int(mark), set()).add(turn)
        id = f"answer-{next(self.numbers)}" + "-late" * (fault == "stall")
        return await _said(writer, id, [{"content": words[at : at + 6].decode()} for at in range(0, len(words), 6)],
                           streaming, fault == "cut")  # fmt: skip

    def _asks(self, body: bytes, mark: bytes, turn: int) -> bool:
        """Tell whether the model calls the recall tool; where it has, look at what came back."""
        if b'"name":"recall"' not in body or turn <= LOOKED_UP:
            return False
        before, last = json.loads(body)["messages"][-2:]
        if last["role"] == "tool":
            found = f"mark-{mark.decode()}-turn-" in last["content"] and last["tool_call_id"].startswith("call_recall")
            how = "beside, " if before["role"] == "tool" or not last["tool_call_id"].startswith("call_recall") else ""
            self.seen.recalls[f"{how}found" if found else f"{how}not found"] += 1
            return False
        asks = self.dice.random() < RECALLED
        self.seen.recalls["asked"] += asks
        return asks


def _calls(mark: bytes, turn: int, dice: random.Random) -> list[dict[str, Any]]:
    """Return the deltas of an answer that calls the recall tool, in half of the cases beside the client's own."""
    query = json.dumps({"query": f"mark-{mark.decode()}-turn-{LOOKED_UP}-"})
    asked = [("recall", query)]
    if dice.random() < BESIDE:
        asked.insert(dice.randrange(2), ("look", "{}"))
    calls = [
        {"tool_calls": [{"index": place, "id": f"call_{name}_{turn}", "type": "function",
                         "function": {"name": name, "arguments": arguments}}]}
        for place, (name, arguments) in enumerate(asked)
    ]  # fmt: skip
    return [*([{"content": WORDS}] if dice.random() < 0.5 else []), *calls]


def _error(text: str, words: bytes, code: str) -> bytes:
    return json.dumps(
        {"error": {"message": f"{text} {words.decode()}", "type": "t", "param": None, "code": code}}
    ).encode()


async def _whole(writer: asyncio.StreamWriter, status: bytes, body: bytes) -> bool:
    writer.write(
        b"HTTP/1.1 %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (status, len(body), body)
    )
    await writer.drain()
    return True


async def _said(
    writer: asyncio.StreamWriter, id: str, deltas: list[dict[str, Any]], streaming: bool, cut: bool
) -> bool:
    calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
    reason = "tool_calls" if calls else "stop"
    if not streaming:
        text = "".join(delta.get("content", "") for delta in deltas)
        message = {"role": "assistant", "content": text or None, **({"tool_calls": calls} if calls else {})}
        choice = {"index": 0, "message": message, "finish_reason": reason}
        body = json.dumps({"id": id, "choices": [choice]}).encode()
        if cut:
            writer.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s"
                % (len(body), body[:9])
            )
            await writer.drain()
            return False
        return await _whole(writer, b"200 OK", body)
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
    for place, delta in enumerate(deltas):
        if cut and place > 1:
            return False
        await _event(writer, {"id": id, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    if cut:
        return False
    await _event(writer, {"id": id, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    writer.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
    await writer.drain()
    return True


async def _event(writer: asyncio.StreamWriter, held: dict[str, Any]) -> None:
    event = b"data: %s\n\n" % json.dumps(held).encode()
    writer.write(b"%x\r\n%s\r\n" % (len(event), event))
    await writer.drain()


class Talker:
    """One client: says a turn, takes the answer, and says it again when there was none."""

    def __init__(self, number: int, seen: Seen, url: str, size: int, messages: int = 120) -> None:
        self.number, self.seen, self.url, self.size, self.longest = number, seen, url, size, messages
        self.streaming = number % 2 == 0
        self.messages: list[dict[str, Any]] = [{"role": "system", "content": f"mark-{number}-system"}]
        self.dice = random.Random(number)

    async def run(self, session: aiohttp.ClientSession, goes_on: Callable[[], bool]) -> None:
        turn = 0
        while goes_on():
            turn += 1
            filler = " ".join(f"w{self.dice.randrange(10_000)}" for _ in range(self.size))
            self.messages.append({"role": "user", "content": f"mark-{self.number}-turn-{turn}- {filler}"})
            answer = await self._asked(session, turn)
            if answer is None:
                self.seen.lost.append(f"{self.number}: turn {turn}")
                return
            self.messages.append({"role": "assistant", "content": answer})
            if len(self.messages) > self.longest:  # a new task
                del self.messages[1:]
                turn = 0

    async def _asked(self, session: aiohttp.ClientSession, turn: int) -> str | None:
        wanted = f"mark-{self.number}-answer-{turn}-"
        for _ in range(20):
            asked = {"model": "gpt-4o", "messages": self.messages, "stream": self.streaming, "tools": [LOOK]}
            body = json.dumps(asked).encode()
            try:
                async with session.post(self.url, data=body, headers={"content-type": "application/json"}) as answer:
                    text = await answer.read()
                    self.seen.compacted += "x-refold-plan" in answer.headers
                    if answer.status != 200:
                        failed = answer.headers.get("x-refold-failed", "")
                        self._error(f"{answer.status} {failed}".strip(), text, wanted)
                        continue
            except (aiohttp.ClientPayloadError, aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
                self.seen.errors[type(error).__name__] += 1
                continue
            if b"recall" in text:
                self.seen.wrong.append(f"{self.number} was shown a call of the recall tool")
            said, calls, error = read_answer(text, self.streaming)
            if error is not None:
                self._error("an event of the stream", error, wanted)
                continue
            if calls and not said.removeprefix(WORDS):
                self._looked(said, calls, turn)
                continue
            if said.removeprefix(WORDS).strip() == wanted:
                self.seen.answers += 1
                return wanted
            self.seen.wrong.append(f"{wanted} was answered by {said}")
        return None

    def _error(self, status: str, text: bytes, wanted: str) -> None:
        """An error is the upstream's own, of this very turn, or says that upstream could not be reached."""
        error = json.loads(text)["error"]
        self.seen.errors[status] += 1
        if wanted not in error["message"] and error["code"] not in ("upstream_down", "upstream_timeout"):
            self.seen.wrong.append(f"{wanted} was answered by the error {error}")

    def _looked(self, said: str, calls: list[dict[str, Any]], turn: int) -> None:
        """Answer calls of the client's own tool."""
        self.messages.append({"role": "assistant", "content": said or None, "tool_calls": calls})
        looked = f"mark-{self.number}-turn-{turn}- looked"
        self.messages += [{"role": "tool", "tool_call_id": call["id"], "content": looked} for call in calls]


def read_answer(text: bytes, streaming: bool) -> tuple[str, list[dict[str, Any]], bytes | None]:
    """Return what an answer says and calls, and an error in it."""
    if not streaming:
        message = json.loads(text)["choices"][0]["message"]
        return message["content"] or "", message.get("tool_calls", []), None
    events = [line[6:] for line in text.split(b"\n") if line.startswith(b"data: {")]
    error = next((event for event in events if "error" in json.loads(event)), None)
    deltas = [json.loads(event)["choices"][0]["delta"] for event in events if event is not error]
    calls = [
        {key: call[key] for key in ("id", "type", "function")}
        for delta in deltas
        for call in delta.get("tool_calls", ())
    ]
    return "".join(delta.get("content") or "" for delta in deltas), calls, error


async def storm(
    gateway: str,
    seen: Seen,
    conversations: int,
    seconds: float,
    size: int = 300,
    messages: int = 120,
    enough: Callable[[Seen], bool] = lambda seen: False,
) -> None:
    """Talk to a gateway from many clients at once, for so many seconds or until enough was seen."""
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=60)
    until = monotonic() + seconds
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        url = f"{gateway}/v1/chat/completions"
        talkers = [Talker(number, seen, url, size, messages) for number in range(conversations)]
        await asyncio.gather(
            *(talker.run(session, lambda: monotonic() < until and not enough(seen)) for talker in talkers)
        )


async def _watched(pid: int, url: str, seen: Seen) -> None:
    """Look at the gateway's memory every second, and at its own figures with it."""
    wanted = re.compile(r"^(refold_conversations|refold_conversation_bytes) ([\d.e+]+)$", re.M)
    begun = monotonic()
    async with aiohttp.ClientSession() as session:
        while True:
            await asyncio.sleep(1)
            async with session.get(f"{url}/metrics", headers={"x-refold-token": "admin"}) as answer:
                found = dict(wanted.findall(await answer.text()))
            with open(f"/proc/{pid}/statm") as file:
                resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
            figures = {name: int(float(value)) for name, value in found.items()}
            at = int(monotonic() - begun)
            seen.figures.append({"at": at, "resident": resident, "answers": seen.answers, **figures})


async def _run(given: argparse.Namespace) -> Seen:
    seen = Seen()
    async with Upstream(seen, share=given.share, seed=1) as upstream:
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            GATEWAY,
            upstream.url,
            str(given.memory * 2**20),
            "recall" if given.recall else "",
            stdout=subprocess.PIPE,
        )
        assert child.stdout is not None
        url = (await child.stdout.readline()).decode().strip()
        watch = asyncio.create_task(_watched(child.pid, url, seen))
        try:
            await storm(url, seen, given.conversations, given.seconds, given.size, given.messages)
        finally:
            watch.cancel()
            child.send_signal(signal.SIGTERM)
            await child.wait()
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--conversations", type=int, default=200)
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--step", type=int, default=15, help="seconds of one line")
    parser.add_argument("--share", type=float, default=0.05, help="of calls that fail upstream")
    parser.add_argument("--memory", type=int, default=48, help="MB of conversations that the gateway holds")
    parser.add_argument("--size", type=int, default=300, help="words of one turn")
    parser.add_argument("--messages", type=int, default=40, help="after so many a client begins a new task")
    parser.add_argument("--recall", action="store_true", help="offer the recall tool, and have it called")
    given = parser.parse_args()
    seen = asyncio.run(_run(given))
    print("seconds   resident MB (highest)   held MB   conversations   answers")
    for end in range(given.step, given.seconds + 1, given.step):
        step = [each for each in seen.figures if end - given.step <= each["at"] < end]
        if step:
            last, highest = step[-1], max(each["resident"] for each in step)
            held, known = last["refold_conversation_bytes"], last["refold_conversations"]
            print(f"{end:7} {highest / 1e6:23.0f} {held / 1e6:9.0f} {known:15,} {last['answers']:9,}")
    for name in ("answers", "compacted", "recalls", "faults", "errors", "wrong", "lost"):
        value = getattr(seen, name)
        print(f"{name:>10}: {dict(value) if isinstance(value, Counter) else value}")


if __name__ == "__main__":
    main()
