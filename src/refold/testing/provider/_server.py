"""A scripted provider on the loopback interface, for the real SDKs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args

from refold.errors import UsageError
from refold.testing.provider._responder import Responder, Rules
from refold.testing.provider._script import Fault, FaultKind, ReceivedRequest, Script

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from refold.core.counting import Counter
    from refold.testing.provider._script import Behave, Step

__all__ = ["ScriptedProvider"]


class ScriptedProvider:
    """A provider that speaks OpenAI chat and Responses, Anthropic and Gemini, answers by script, and counts tokens.

    Use it as a context manager: `with ScriptedProvider(["Hello"]) as provider`, then point a client at `provider.url`
    (Anthropic, Gemini) or `provider.openai_url`.

    `answers` are given in turn, the last one for ever; `behave` is asked for each answer instead, with what was
    received. Both may give a `Fault`; `faults` are by number of the call, counted from 1, or a list for the first
    calls. `window` is in tokens, prompt and answer together (prompt alone with `output_apart`); a longer request is
    refused as the provider does, or cut without a word with `silent_truncation`. `counter` counts; by default that of
    the model a request names. `key` and `models` are those that are accepted, any where not given; `model` is what
    `/v1/models` lists then. With `strict` a request is refused for every reason that `refold.testing.judge` finds,
    which needs the SDK of the protocol in use; without it only this library's own rules are demanded. Without
    `native_compaction` it refuses, as many servers do, whatever belongs to Anthropic's and OpenAI's own compaction. An
    exception of `behave` is answered with a 500 and raised when the context ends.

    Raises:
        UsageError: answers and behave together, a fault that there is none of, or starlette and uvicorn not installed.
    """

    def __init__(
        self,
        answers: Sequence[Step] | None = None,
        *,
        behave: Behave | None = None,
        window: int | None = None,
        faults: Mapping[int, Fault | FaultKind] | Sequence[Fault | FaultKind | None] = (),
        model: str = "scripted",
        models: Sequence[str] = (),
        key: str | None = None,
        counter: Counter | None = None,
        output_apart: bool = False,
        silent_truncation: bool = False,
        max_bytes: int = 32 * 1024 * 1024,
        strict: bool = True,
        native_compaction: bool = True,
    ) -> None:
        if answers is not None and behave is not None:
            raise UsageError("give answers or behave, not both")
        rules = Rules(window, key, tuple(models), max_bytes, output_apart, silent_truncation, strict, native_compaction)
        steps = Script(answers if answers is not None else ["OK."])
        self.models = tuple(models) or (model,)
        self._answering = Responder(behave or steps, rules, _numbered(faults), counter)
        self._server: Any = None
        self._port = 0

    @property
    def url(self) -> str:
        """The address of the server, without a path: the base URL of the Anthropic SDK."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def openai_url(self) -> str:
        """The base URL of the OpenAI SDK."""
        return f"{self.url}/v1"

    @property
    def received(self) -> list[ReceivedRequest]:
        """Every call so far, in order, the refused ones too."""
        return self._answering.received

    def start(self) -> None:
        """Begin to serve; returns when requests are taken."""
        try:
            from refold.testing.provider._http import Server
        except ImportError as error:
            raise UsageError(f"the scripted provider needs {error.name}: pip install 'refold[testing]'") from error
        self._server = Server(self._answering, self.models)
        self._port = self._server.start()

    def stop(self) -> None:
        """Stop serving, with calls that hang cut off; an exception of `behave` is raised here."""
        server, self._server = self._server, None
        if server is not None:
            server.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _numbered(faults: Mapping[int, Fault | FaultKind] | Sequence[Fault | FaultKind | None]) -> dict[int, Fault]:
    """Return faults by number of the call."""
    pairs = faults.items() if isinstance(faults, Mapping) else enumerate(faults, 1)
    faults_by_number = {
        number: Fault(fault) if isinstance(fault, str) else fault for number, fault in pairs if fault is not None
    }
    for number, fault in faults_by_number.items():
        if fault.kind not in (kinds := get_args(FaultKind)):
            raise UsageError(f"call {number}: there is no fault {fault.kind!r}; faults are {', '.join(kinds)}")
    return faults_by_number
