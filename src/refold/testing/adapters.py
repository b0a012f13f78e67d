"""Laws that an adapter for an agent framework keeps, against the scripted provider; for any framework, without pytest.

The author of an adapter writes one class, an `AdapterHarness`, that builds an agent and runs it. Each law runs that
agent over real HTTP, with a model that calls a tool again and again, until the conversation is several windows long:

    for law in LAWS.values():
        law(MyHarness)  # raises LawBroken
"""

from __future__ import annotations

import struct
import zlib
from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from msgspec import Struct

from refold._counting import counter_for
from refold.core.messages import Image, Reasoning
from refold.testing.provider import ReceivedRequest, ScriptedProvider, ScriptedReply

if TYPE_CHECKING:
    from refold.core.counting import Counter
    from refold.core.messages import Message

__all__ = ["LAWS", "AdapterHarness", "AgentSetup", "Law", "LawBroken", "turn_costs_what_is_new"]

WINDOW = 16_000  # tokens: a compaction is due after about six outputs
LARGE = 1_000_000
STEPS = 16  # calls of the model in a turn, together about 1.5 windows
TURNS = 16  # of the conversation in which the cost of a turn is measured
LINES = 100  # of an output, about 1,400 tokens
STANDARD = str.maketrans("-_", "+/")  # Google's SDK writes the URL-safe alphabet of base64
NAMES = ("alpha", "beta")  # of conversations; every path that a tool reads begins with one


class LawBroken(AssertionError):
    """An adapter breaks a law; the message says which request or text shows it."""


class AgentSetup(Struct, frozen=True):
    """What an agent is built from.

    `url` is the base URL for OpenAI's SDK, `root_url` for Anthropic's and Google's. `model` is the model to call and
    `system` the system prompt. `read` is the only tool: its argument is `path`, its description is for the author to
    write, and it may raise, which the framework reports to the model. What must survive a restart is stored in
    `folder`. `options` are options of the adapter, all to be passed on.
    """

    url: str
    root_url: str
    model: str
    system: str
    read: Callable[[str], str]
    folder: Path
    options: dict[str, Any]


class AdapterHarness(ABC):
    """Builds an agent of one framework with the adapter, and runs it; another object on the same folder is a restart.

    `format` is the format of the requests that the agent sends. Retries of the SDK are off, and the framework allows
    at least 200 calls a turn.
    """

    format: ClassVar[str]
    model: ClassVar[str] = "gpt-5"

    @abstractmethod
    def __init__(self, setup: AgentSetup) -> None:
        """Build the agent."""

    @abstractmethod
    def run(self, conversation: str, text: str, *, image: bytes | None = None, stream: bool = False) -> str:
        """Run one turn of a conversation, which begins with its first turn; return the final text.

        `image` is a PNG to attach to the user's message. With `stream` the answers of the model are streamed. Several
        conversations may run at once in threads.
        """

    @abstractmethod
    def history(self, conversation: str) -> Sequence[Any]:
        """Return the messages that the framework has stored, as its own objects."""

    @abstractmethod
    def undo(self, conversation: str) -> None:
        """Take all compactions of a conversation back, as a user would."""

    def close(self) -> None:
        """Release what the agent has opened."""
        return


Law: TypeAlias = Callable[[type[AdapterHarness]], None]


def valid_requests(harness: type[AdapterHarness]) -> None:
    """Every request is one that the provider accepts, over several turns and compactions."""
    with _bench(harness) as bench, bench.agent() as agent:
        for _ in range(2):
            bench.turn(agent)
        bench.check(compactions=2)


def running_turn_bounded(harness: type[AdapterHarness]) -> None:
    """A single turn that is longer than the window never sends more than the window holds."""
    with _bench(harness) as bench, bench.agent() as agent:
        bench.turn(agent, steps=2 * STEPS)
        bench.check(compactions=3)
        written = sum(map(counter_for("gpt-5").text, bench.outputs.values()))
        _require(written > 1.5 * WINDOW, f"the outputs of the turn have {written:,} tokens, too few for the window")


def prefix_stable(harness: type[AdapterHarness]) -> None:
    """Between two compactions each request begins with the last one, byte for byte, so that the cache holds."""
    with _bench(harness) as bench, bench.agent() as agent:
        for _ in range(3):
            bench.turn(agent)
        requests = bench.check(compactions=3)
        breaks = sum(not _continues(*pair) for pair in pairwise(requests))
        _require(breaks <= len(requests) // 4, f"{breaks} of {len(requests)} requests begin otherwise than the last")


def originals_kept(harness: type[AdapterHarness]) -> None:
    """The history of the framework has every output whole, whatever was sent."""
    with _bench(harness) as bench, bench.agent() as agent:
        bench.turn(agent)
        bench.check(compactions=1)
        bench.check_originals(agent)


def undo_after_restart(harness: type[AdapterHarness]) -> None:
    """After a restart the plans are in force as before, and can be taken back."""
    with _bench(harness) as bench:
        with bench.agent() as agent:
            bench.turn(agent)
        before = bench.check(compactions=1)
        with bench.agent(window=LARGE) as agent:
            bench.turn(agent, steps=1)
            after = bench.requests()[len(before) :]
            _require(_continues(before[-1], after[0]), "the first request after a restart begins otherwise")
        with bench.agent(window=LARGE) as agent:
            agent.undo(NAMES[0])
            bench.turn(agent, steps=1)
            last = _sent(bench.requests()[-1])
            for path, text in bench.outputs.items():
                _require(any(text in each for each in last), f"the output of {path} is not sent after the undo")
        _check_valid(bench.requests())


def parallel_calls(harness: type[AdapterHarness]) -> None:
    """Several calls in one answer keep their results, each with its own."""
    with _bench(harness, calls=3) as bench, bench.agent() as agent:
        bench.turn(agent, steps=STEPS // 2)
        bench.check(compactions=1)
        bench.check_originals(agent)


def error_results(harness: type[AdapterHarness]) -> None:
    """Calls that fail have their error as result, before and after compactions."""
    with _bench(harness, failing=3) as bench, bench.agent() as agent:
        bench.turn(agent, steps=2 * STEPS)
        bench.check(compactions=1)
        _require(bench.failed > 1, f"{bench.failed} calls of the tool failed: the script is too short")


def media(harness: type[AdapterHarness]) -> None:
    """An image of the user is sent as it is, and stays valid when what is around it is compacted."""
    with _bench(harness) as bench, bench.agent() as agent:
        bench.turn(agent, image=_png())
        first, *later = bench.check(compactions=1)
        data = b64encode(_png()).decode()
        sent = [any(data in text.translate(STANDARD) for text in _sent(request)) for request in (first, *later)]
        _require(sent[0], "the first request does not have the image")
        for request, whole in zip(later, sent[1:], strict=True):
            images = [part for message in request.messages for part in message.parts if isinstance(part, Image)]
            _require(len(images) == whole, f"request {request.number} has an image that is not the user's")


def reasoning(harness: type[AdapterHarness]) -> None:
    """Reasoning of the model goes back to the provider where its format has that, and is never torn from its call."""
    with _bench(harness, thinking="The limit is set in one of these parts. I read the next one.") as bench:
        with bench.agent() as agent:
            for _ in range(2):
                bench.turn(agent)
        requests = bench.check(compactions=2)
        if harness.format in ("anthropic", "openai-responses"):
            parts = [part for request in requests for message in request.messages for part in message.parts]
            _require(any(isinstance(part, Reasoning) for part in parts), "no reasoning went back to the provider")


def streaming(harness: type[AdapterHarness]) -> None:
    """Answers that are streamed arrive whole, and their requests are compacted alike."""
    with _bench(harness) as bench, bench.agent() as agent:
        bench.turn(agent, stream=True)
        requests = bench.check(compactions=1)
        if harness.format != "gemini":  # it streams by its URL
            _require(all(request.streaming for request in requests), "a request asks for no stream")
        bench.check_originals(agent)


def retry_after_overflow(harness: type[AdapterHarness]) -> None:
    """A request that the provider refuses for its size is sent again with less, and the turn goes on."""
    with _bench(harness, provider_window=WINDOW) as bench, bench.agent(window=8 * WINDOW) as agent:
        bench.turn(agent, steps=2 * STEPS)
        requests = bench.requests()
        refused = [request for request in requests if request.status != 200]
        _require(bool(refused), "no request was refused: the script is too short")
        _require(len(refused) <= 3, f"{len(refused)} of {len(requests)} requests were refused: the window is forgotten")
        _check_valid([request for request in requests if request.status == 200])
        for request in refused:
            _require(not request.problems and not request.violations, f"request {request.number} breaks a rule")
        bench.check_originals(agent)


def two_threads(harness: type[AdapterHarness]) -> None:
    """Two conversations at once do not meet: each has its own messages and plans."""
    with _bench(harness) as bench, bench.agent() as agent:
        with ThreadPoolExecutor(len(NAMES)) as threads:
            list(threads.map(lambda name: bench.turn(agent, name=name), NAMES))
        for name, other in (NAMES, NAMES[::-1]):
            requests = bench.check(compactions=1, name=name)
            texts = [text for request in requests for text in _sent(request)]
            _require(not any(f"{other}/" in text for text in texts), f"a request of {name} has messages of {other}")
            breaks = sum(not _continues(*pair) for pair in pairwise(requests))
            _require(breaks <= len(requests) // 4, f"{breaks} of {len(requests)} requests begin otherwise")
            bench.check_originals(agent, name=name)


def turn_costs_what_is_new(harness: type[AdapterHarness]) -> None:
    """A turn counts the messages that are new in it, however long the history is; measured by work, not by time."""
    counter = _CallCounter()
    costs = []
    with _bench(harness, lines=1) as bench, bench.agent(window=LARGE, counter=counter) as agent:
        for _ in range(TURNS):
            before = counter.counted
            bench.turn(agent, steps=2)
            costs.append(counter.counted - before)
    early, late = max(costs[1:4]), max(costs[-4:])
    _require(0 < late <= early, f"a turn counts {early} messages early, and {late} when the history is long")


LAWS: dict[str, Law] = {
    "valid requests": valid_requests,
    "running turn bounded": running_turn_bounded,
    "prefix stable": prefix_stable,
    "originals kept": originals_kept,
    "undo after a restart": undo_after_restart,
    "parallel calls": parallel_calls,
    "error results": error_results,
    "media": media,
    "reasoning": reasoning,
    "streaming": streaming,
    "retry after overflow": retry_after_overflow,
    "two threads": two_threads,
}


class _Model:
    """A model that reads a part with each step of a turn, and then says that it has finished.

    It knows the conversation by its name, which the user's words and every path begin with.
    """

    def __init__(self, calls: int, thinking: str) -> None:
        self.left = dict.fromkeys(NAMES, 0)
        self._number = dict.fromkeys(NAMES, 0)
        self._calls, self._thinking = calls, thinking

    def __call__(self, received: ReceivedRequest) -> ScriptedReply:
        name = _conversation(received.messages)
        if not self.left[name]:
            return ScriptedReply(f"I have finished {name}.")
        self.left[name] -= 1
        calls = []
        for _ in range(self._calls):
            self._number[name] += 1
            calls.append(("read", {"path": f"{name}/part_{self._number[name]}.py"}))
        return ScriptedReply(f"I read part {self._number[name]}.", calls, thinking=self._thinking)


class _Bench:
    """A scripted provider, a folder and a tool, and the agents that are run on them."""

    def __init__(
        self, harness: type[AdapterHarness], provider: ScriptedProvider, model: _Model, folder: Path, failing: int,
        lines: int,
    ) -> None:  # fmt: skip
        self._harness, self._provider, self._model, self._folder = harness, provider, model, folder
        self._failing, self._lines = failing, lines
        self.outputs: dict[str, str] = {}  # what the tool returned, by path
        self.failed = 0

    @contextmanager
    def agent(self, **options: Any) -> Iterator[AdapterHarness]:
        """Build an agent, and close it."""
        setup = AgentSetup(
            self._provider.openai_url, self._provider.url, self._harness.model, "You read parts of programs.",
            self._read, self._folder, {"window": WINDOW, **options},
        )  # fmt: skip
        agent = self._harness(setup)
        try:
            yield agent
        finally:
            agent.close()

    def turn(self, agent: AdapterHarness, *, name: str = NAMES[0], steps: int = STEPS, **options: Any) -> None:
        """Run a turn of so many steps to its end."""
        self._model.left[name] = steps
        answer = agent.run(name, f"{name}: where is the limit set? Read the next {steps} parts.", **options)
        _require(f"I have finished {name}." in answer, f"the turn ended with {answer!r}")

    def requests(self, name: str | None = None) -> list[ReceivedRequest]:
        """Return the requests so far, of all conversations or of one."""
        received = self._provider.received
        return [each for each in received if name is None or _conversation(each.messages) == name]

    def check(self, *, compactions: int, name: str | None = None) -> list[ReceivedRequest]:
        """Return the requests so far, all valid and within the window, with so many compactions at least."""
        requests = self.requests(name)
        _check_valid(requests)
        largest = max(requests, key=lambda request: request.tokens)
        _require(
            largest.tokens <= WINDOW, f"request {largest.number} has {largest.tokens:,} tokens, of {WINDOW:,} allowed"
        )
        shrunk = sum(after.tokens < before.tokens for before, after in pairwise(requests))
        _require(shrunk >= compactions, f"{shrunk} compactions in {len(requests)} requests, {compactions} expected")
        return requests

    def check_originals(self, agent: AdapterHarness, *, name: str = NAMES[0]) -> None:
        """Find every output of the tool whole in the history of the framework."""
        stored = _strings(agent.history(name))
        for path, text in self.outputs.items():
            if path.startswith(name):
                _require(any(text in each for each in stored), f"the output of {path} is not whole in the history")

    def _read(self, path: str) -> str:
        number = int(path.rpartition("_")[2].removesuffix(".py"))
        if self._failing and number % self._failing == 0:
            self.failed += 1
            raise OSError(f"{path} cannot be opened")
        lines = (f"{line}: limit_{line * number % 97} = {line * 31 % 89}" for line in range(self._lines))
        self.outputs[path] = f"# {path}\n" + "\n".join(lines)
        return self.outputs[path]


@contextmanager
def _bench(
    harness: type[AdapterHarness],
    *,
    calls: int = 1,
    thinking: str = "",
    failing: int = 0,
    lines: int = LINES,
    provider_window: int | None = None,
) -> Iterator[_Bench]:
    model = _Model(calls, thinking)
    with (
        TemporaryDirectory() as folder,
        ScriptedProvider(behave=model, window=provider_window) as provider,
    ):
        yield _Bench(harness, provider, model, Path(folder), failing, lines)


class _CallCounter:
    """An exact counter that counts its calls."""

    exact = True

    def __init__(self) -> None:
        self._inner: Counter = counter_for("gpt-5")
        self.per_conversation = self._inner.per_conversation
        self.counted = 0

    def text(self, text: str) -> int:
        """Return the tokens of a text."""
        return self._inner.text(text)

    def tools(self, text: str) -> int:
        """Return the tokens of tool definitions."""
        return self._inner.tools(text)

    def message(self, message: Message) -> int:
        """Return the tokens of a message, and note that one was counted."""
        self.counted += 1
        return self._inner.message(message)


def _require(condition: bool, broken: str) -> None:
    if not condition:
        raise LawBroken(broken)


def _check_valid(requests: Sequence[ReceivedRequest]) -> None:
    for request in requests:
        reasons = [problem.message for problem in request.problems] + [each.message for each in request.violations]
        _require(not reasons, f"request {request.number} breaks a rule: {'; '.join(reasons[:3])}")
        _require(request.status == 200, f"request {request.number} was answered with {request.status}")


def _continues(before: ReceivedRequest, after: ReceivedRequest) -> bool:
    """Tell whether a request begins with the one before it, system prompt and tools included."""
    sent, following = ([message.native for message in request.messages] for request in (before, after))
    same = (before.system, before.tools) == (after.system, after.tools)
    return same and following[: len(sent)] == sent


def _sent(request: ReceivedRequest) -> list[str]:
    """Return all texts in the messages of a request."""
    return _strings([message.native for message in request.messages])


def _conversation(messages: Sequence[Message]) -> str:
    """Return the name of the conversation that a request is of."""
    for message in reversed(messages):
        for text in _strings(message.native):
            for name in NAMES:
                if f"{name}/" in text or f"{name}:" in text:
                    return name
    raise LawBroken("a request without the words of the user and without paths")


def _strings(value: Any) -> list[str]:
    """Return all texts in a value: of mappings, lists and objects, at any depth."""
    match value:
        case str():
            return [value]
        case None | bool() | int() | float() | bytes():
            return []
        case Mapping():
            return [text for each in value.values() for text in _strings(each)]
        case list() | tuple():
            return [text for each in value for text in _strings(each)]
        case _:
            return [text for each in getattr(value, "__dict__", {}).values() for text in _strings(each)]


def _png() -> bytes:
    """Return a grey image of 64 by 64 pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\x00" + bytes(range(64))) * 64
    header = struct.pack(">IIBBBBB", 64, 64, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
