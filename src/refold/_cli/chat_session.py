"""A conversation on a terminal: a session in a store, and the agent that works on it."""

from __future__ import annotations

import time
from importlib.resources import files
from math import inf
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from refold import api, formats
from refold._cli.provider_errors import failure, unreachable
from refold.agent import Agent, DailyLog, Snapshots, TaskFiles, subagent
from refold.agent._changed_files import Files
from refold.agent._heartbeat import Heartbeat
from refold.agent._loop import INTERRUPTED
from refold.agent._messages import result_messages
from refold.agent._private_files import file_name
from refold.agent._profiles import profile_for
from refold.agent._shell import shell
from refold.agent._statistics import context_line
from refold.agent._tool_output import saving
from refold.agent._tools import definitions
from refold.agent._workspace import Workspace
from refold.core.budget import Budget, Never
from refold.errors import RefoldError
from refold.recovery._learned_windows import LearnedWindows
from refold.sessions import Session, default_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from refold._cli.chat_screen import Screen
    from refold._compaction.result import Check
    from refold.agent import AgentOptions
    from refold.agent.events import AgentObserver
    from refold.clients._protocol import Client, OnText, Reply
    from refold.config import Settings
    from refold.core.messages import Message
    from refold.core.policy import Policy
    from refold.sessions import Store
    from refold.summaries.summarizers import SummaryCost

__all__ = ["Chat", "RespondingClient", "data_folder"]

ANSWER = 16_384  # tokens an answer may have in a large window
DAILY_LOG, SNAPSHOTS, TASK_FILES = "Daily log", "Snapshots", "Task files"
PROVIDER_PACKAGES = frozenset(
    {"openai", "anthropic", "httpx", "httpcore", "json", "pydantic_core"}
)  # whose errors are a provider's


def data_folder() -> Path:
    """Return the folder for what is kept beside sessions: history, outputs, learned windows."""
    return default_path().parent


class RespondingClient:
    """A client that knows whether its model ever answered; a server that never did is not asked again at once."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.model, self.base_url, self.format = client.model, client.base_url, client.format
        self.answered = False

    def complete(
        self, messages: Sequence[object], *, system: object = None, tools: Sequence[Any] | None = None,
        max_tokens: int | None = None, on_text: OnText | None = None,
    ) -> Reply:  # fmt: skip
        """Ask for the next message."""
        try:
            reply = self._client.complete(messages, system=system, tools=tools, max_tokens=max_tokens, on_text=on_text)
        except Exception as error:
            if not self.answered and unreachable(error):
                error.is_retryable = False  # type: ignore[attr-defined]
            raise
        self.answered = True
        return reply

    def count(self, messages: Sequence[object], system: object = None, tools: Sequence[Any] | None = None) -> int:
        """Return the input tokens by the provider's own count."""
        return self._client.count(messages, system, tools)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


class Chat:
    """What a chat works with; `configure` exchanges its settings, and the session stays.

    Raises:
        RefoldError: the settings contradict each other, the store cannot be read, the model has no window.
    """

    def __init__(
        self, store: Store, session: str, settings: Settings, client: Client, folder: str, screen: Screen
    ) -> None:
        self.store, self.screen = store, screen
        self.client = RespondingClient(client)
        self._outputs_folder = _folder_of("outputs", session)
        self.records = _record_folders(settings, session)
        self._task_files = TaskFiles(self.records[TASK_FILES]) if settings.task_files else None
        self.workspace = Workspace(
            folder, max_bytes=settings.max_tool_output_bytes, max_lines=settings.max_tool_output_lines,
            also_read=(self._outputs_folder, *([self._task_files.folder] if self._task_files else ())),
        )  # fmt: skip
        save = saving(self._outputs_folder)
        self._plain_tools = (
            *self.workspace.tools(),
            shell(
                self.workspace.root, screen.allow, max_bytes=settings.max_tool_output_bytes,
                max_lines=settings.max_tool_output_lines, save=save,
            ),
        )  # fmt: skip
        self.tools = (*self._plain_tools, subagent(self._subagent)) if settings.subagents else self._plain_tools
        about = files("refold._cli").joinpath("chat_system.md").read_text("utf-8").strip()
        self.system = f"{about}\n\nThe folder: {self.workspace.root}"
        self._files, self._heartbeat = Files(self.workspace.root), Heartbeat(self.workspace.root)
        self._windows = LearnedWindows(data_folder() / "windows.json")
        self._newest_subagent: Agent | None = None
        self.session = Session(store, session, format=client.format)
        self.configure(settings)

    def configure(self, settings: Settings) -> None:
        """Go on with other settings."""
        policy = settings.chosen()
        in_flight = not profile_for(policy.name).durable
        if self.session.in_flight != in_flight:
            self.session = Session(self.store, self.session.id, format=self.client.format, in_flight=in_flight)
        self.settings = settings
        options = self._agent_options(policy) | {
            "session": self.session, "tools": self.tools, "heartbeat": self._heartbeat, "files": self._files,
            "task_files": self._task_files, "observers": (self.screen, *self._log_observers(policy.name)),
            "on_text": self.screen.text,
        }  # fmt: skip
        self.agent = Agent(self.client, **options)

    def choose(self, policy: str) -> None:
        """Go on by another policy; the other settings stay.

        Raises:
            UnknownPolicy: there is none of that name.
        """
        self.configure(replace(self.settings, policy=policy, sources=self.settings.sources | {"policy": "argument"}))

    def turn(self, text: str) -> None:
        """Say something and see the answer; the line or warning about the context follows (N18).

        Raises:
            KeyboardInterrupt: the person wants no answer; what was said so far is kept.
            RefoldError: there is none.
        """
        checked = self._heartbeat.is_health_check(text)  # answered outside of the conversation (V11)
        if not checked:
            self.answer_open_calls()
        self.screen.on_stop = self._stop
        self.screen.waiting("Thinking…")
        try:
            answer = self.agent.run(text)
        except RefoldError:
            self.session.refresh()
            raise
        except Exception as error:
            if type(error).__module__.split(".")[0] not in PROVIDER_PACKAGES and not isinstance(error, OSError):
                raise
            raise failure(error, self.client) from error
        finally:
            self.screen.on_stop = None
            self.screen.idle()
        if checked:
            self.screen.line(answer)
        else:
            self.show_fill()

    def compact(self, focus: str | None, keep_recent: int | None) -> bool:
        """Compact now; tell whether anything became smaller."""
        self.answer_open_calls()
        try:
            return self.agent.compact(focus, keep_recent=keep_recent) is not None
        finally:
            self.screen.idle()

    def answer_open_calls(self) -> None:
        """Take over what others wrote, and answer calls that a process which died left open."""
        self.session.refresh()
        messages = self.read()
        last = messages[-1] if messages else None
        if last is not None and last.role == "assistant" and last.calls:
            self.session.append(result_messages(self.client.format, [(call, INTERRUPTED, True) for call in last.calls]))

    def read(self) -> tuple[Message, ...]:
        """Return everything that was said, read."""
        return formats.read(formats.find(self.client.format), self.session.messages).messages

    def show_fill(self) -> None:
        """Say how full the context is, where that is worth a line."""
        check, threshold, window = self.session.check(), self.threshold, self.session.context_window
        due = threshold / check.limit if threshold is not None else inf  # switched off: nothing to warn of (N18)
        line = context_line(check.tokens, check.limit, due)
        if line:
            prompt = self.agent.statistics.prompt or check.expected  # as the provider said (O01)
            meter = f"; the last prompt is {prompt / window:.0%} of the window ({prompt:,} of {window:,} tokens)"
            off = "; compaction is switched off" if threshold is None else ""
            self.screen.note(f"{line}{meter}{off}", "yellow" if check.ratio >= due else "dim")

    @property
    def threshold(self) -> int | None:
        """From how many tokens on compaction is due; None where it never is."""
        trigger, limit = self.session.policy.trigger, self.session.check().limit
        if isinstance(trigger, Never):
            return None
        window = self.session.context_window
        return min(trigger.tokens(Budget(window, window - limit)), limit)

    def check(self) -> Check:
        """Measure the request with what it is made of."""
        return api.check(self.session.view(), **self.request())

    def request(self) -> dict[str, Any]:
        """Return what a request consists of beside the messages, as arguments of `refold.check` and `refold.plan`."""
        window, limit = self.session.context_window, self.session.check().limit
        return {
            "format": self.client.format, "policy": self.session.policy, "budget": Budget(window, window - limit),
            "model": self.client.model, "system": self._heartbeat.in_system(self.system),
            "tools": definitions(self.tools, self.client.format),
        }  # fmt: skip

    def _log_observers(self, system: str) -> Iterator[AgentObserver]:
        if DAILY_LOG in self.records:
            yield DailyLog(self.records[DAILY_LOG], system=system)
        if SNAPSHOTS in self.records:
            yield Snapshots(self.records[SNAPSHOTS])

    def _agent_options(self, policy: Policy) -> AgentOptions:
        """Return the options that every agent of this chat has."""
        return {
            "policy": policy, "settings": self.settings, "system": self.system, "folder": self._outputs_folder,
            "summarize": self._summarizer(), "windows": self._windows, "sleep": self._wait,
            "max_output": self._answer_cap(policy),
        }  # fmt: skip

    def _subagent(self) -> Agent:
        """Return an agent for one task, with the chat's client and tools and a conversation of its own (L09)."""
        options = self._agent_options(self.settings.chosen()) | {
            "tools": self._plain_tools, "files": Files(self.workspace.root), "observers": (self.screen,),
        }  # fmt: skip
        self._newest_subagent = Agent(self.client, **options)
        return self._newest_subagent

    def _stop(self) -> None:
        self.agent.stop()
        if self._newest_subagent is not None:
            self._newest_subagent.stop()

    def _answer_cap(self, policy: Policy) -> int | None:
        """Return the tokens an answer may have, where a request must say it: within what the window keeps for it."""
        if self.client.format != "anthropic":
            return None
        known = self.settings.window_of(self.client.model)
        most = min(ANSWER, known.output_cap or ANSWER)
        return min(most, policy.reserve(known.window, None)) or most

    def _wait(self, seconds: float) -> None:
        message = f"The provider did not answer; trying again in {seconds:.0f} s"
        if self.screen.live:
            self.screen.waiting(f"{message}…")
        else:
            self.screen.note(message)
        time.sleep(seconds)

    def _summarizer(self) -> Any:
        """Return the model that is set to write summaries; None leaves it to the agent: its own, or nobody."""
        from refold.summaries.summarizers import summarizer

        settings, model = self.settings, self.settings.summarizer_model
        if not model:
            return None
        return summarizer(
            model, settings.summarizer_base_url, provider=settings.summarizer_provider,
            observers=(self._bill_summary,),
        )  # fmt: skip

    def _bill_summary(self, cost: SummaryCost) -> None:
        self.agent.bill_summary(cost)


def _record_folders(settings: Settings, session: str) -> dict[str, Path]:
    """Return the folders of the files that the settings ask for, by what is in them."""
    folders = {
        DAILY_LOG: (settings.daily_log, data_folder() / "logs"),
        SNAPSHOTS: (settings.snapshots, _folder_of("snapshots", session)),
        TASK_FILES: (settings.task_files, _folder_of("tasks", session)),
    }
    return {name: folder for name, (wanted, folder) in folders.items() if wanted}


def _folder_of(kind: str, session: str) -> Path:
    return data_folder() / kind / file_name(session)
