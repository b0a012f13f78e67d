"""A small loop around a model: measure, compact in one place, call the model, run the tools in order, repeat (W13)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from refold import formats
from refold._compaction.options import resolve_handlers
from refold.agent._changed_files import attached, changed_notice
from refold.agent._compactor import Compactor, RequestSpec
from refold.agent._messages import error_text, open_calls, repaired_reply, result_messages, text_message
from refold.agent._options import (
    open_session,
    output_limit,
    read_agent_options,
    resolve_budget,
    resolve_policy,
    warning_middleware,
)
from refold.agent._pins import with_pins
from refold.agent._profiles import profile_for
from refold.agent._runtime_block import runtime_block, with_block
from refold.agent._statistics import Statistics
from refold.agent._tools import ToolOutcome, by_name, definitions, perform
from refold.agent._transcript_files import TranscriptFiles, transcripts_folder
from refold.agent.events import (
    AgentEvent,
    AgentObserver,
    Ending,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    UsageReported,
)
from refold.agent.middleware import Action, MiddlewareVerdict, Pipeline, Reset, Situation
from refold.clients._retry import patient, retrying
from refold.core.budget import Usage
from refold.core.view import Cause
from refold.errors import UsageError
from refold.models._catalog import window
from refold.models._file_budget import file_budget
from refold.models._usage_report import reported
from refold.recovery._run import recovering
from refold.summaries.summarizers import guarded, model_summarizer

if TYPE_CHECKING:
    from typing import Unpack

    from refold.agent._options import AgentArguments, AgentOptions
    from refold.agent.cards import DoneCard
    from refold.clients._protocol import Client, Reply
    from refold.core.messages import ToolCall
    from refold.core.needs import CountNeed
    from refold.core.plan import Plan
    from refold.handlers import Handlers
    from refold.summaries.summarizers import SummaryCost

__all__ = ["Agent"]

INTERRUPTED = "[Interrupted before this call was done]"
SKIPPED = "[Not done: the turn was stopped before this call]"
UNANSWERED = "[The turn was stopped before an answer]"
NOTHING = "(no output)"


class Agent:  # L10, L05, L08, V11
    """A conversation with a model that may use tools and never outgrows its window. Not for several threads at once.

    `run` takes a user's message and returns the answer. `stop` may be called from a tool, an observer or another
    thread.

    Args:
        client: a model, from `refold.clients.client`.

    `AgentOptions` says what each of the other options means.

    Raises:
        UsageError: a name that is no option, two tools of one name, a session in another format, or contradicting
            options.
    """

    def __init__(self, client: Client, **options: Unpack[AgentOptions]) -> None:
        arguments = read_agent_options(options)
        settings, budget = arguments.settings, arguments.budget
        chosen = resolve_policy(arguments.policy, arguments.session, settings)
        self._profile = arguments.profile or profile_for(chosen.name)
        chosen = with_pins(chosen) if self._profile.pins else chosen
        self._tools = by_name(arguments.tools)
        heartbeat = arguments.heartbeat
        self._client = client
        self._system = arguments.system if heartbeat is None else heartbeat.in_system(arguments.system)
        self._files, self._heartbeat, self._windows = arguments.files, heartbeat, arguments.windows
        self._on_text, self._clock, self._max_steps = arguments.on_text, arguments.clock, arguments.max_steps
        self._task_files, self._memory = arguments.task_files, ""
        writers = [arguments.task_files] if arguments.task_files else []
        self._observers: tuple[AgentObserver, ...] = (*arguments.observers, *writers)
        # what cannot succeed is not tried again (N12)
        self._call_with_retry = retrying(self._call, arguments.waits, arguments.sleep)
        self._max_output = arguments.max_output or (budget.output_reserve if budget else 0) or None
        budget = budget or resolve_budget(client.model, chosen, settings, arguments.window, arguments.max_output)
        defined = definitions(arguments.tools, client.format) or None
        system = self._system_prompt(0, 0)
        provider = settings.provider if settings else None
        request = RequestSpec(chosen, budget, client.model, system, defined, arguments.max_output, provider)
        self.session = open_session(arguments.session, client.format, in_flight=not self._profile.durable)
        self._durable_plans = len(self.session.plans)  # plans that outlast the turn (W18)
        self._compactor = Compactor(
            self.session, request, self._handlers(arguments, budget.window), self._notify, self._clock
        )
        self._pipeline = Pipeline((*arguments.middlewares, *warning_middleware(settings, request, self._notify)))
        self._file_budget = settings.file_budget if settings else file_budget
        self._output_limit = output_limit(self._profile, request, client.format, arguments.folder, settings)
        self.statistics = Statistics(request.budget.window)
        self._turn = self._step = self._calls_done = 0
        self._unbilled: list[Usage] = []  # calls beside the conversation that its session does not know yet
        self._stopping = False
        self._cause = Cause.THRESHOLD  # why the next check compacts, whatever it measures

    @property
    def format(self) -> str:
        """The format of the messages."""
        return self._client.format

    @property
    def messages(self) -> list[Any]:
        """The messages the model is sent, in the provider's format; a compaction changes them at once."""
        return self.session.view()

    @property
    def originals(self) -> list[Any]:
        """The original messages, whatever compactions did."""
        return self.session.messages

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The active plans, oldest first."""
        return self.session.plans

    def close(self) -> None:
        """Close the client's connections."""
        self._client.close()

    def stop(self) -> None:
        """End the turn after the current call; calls that are still open get a result that states it."""
        self._stopping = True

    def compact(self, focus: str | None = None, *, keep_recent: int | None = None) -> DoneCard | None:
        """Compact now; `focus` guides the summary, `keep_recent` is how many newest tokens stay.

        Returns None where nothing could be made smaller.
        """
        card = self._compactor.compact(Cause.MANUAL, focus=focus, keep_recent=keep_recent)
        self._after_compaction(card)
        return card

    def bill_summary(self, cost: SummaryCost) -> None:  # V04
        """Count what a summary cost in the statistics, and bill the session.

        The agent's own model reports by itself; of another summarizer this is an observer, as in
        `model_summarizer(client, observers=(agent.bill_summary,))`.
        """
        self._bill(cost.usage.usage())

    def run(self, text: str, attach: Sequence[str | Path] = ()) -> str:
        """Take a user's message, work until the model has answered, and return the answer.

        `attach` are files that are sent with it, all together within 60 % of what the window has left.

        Raises:
            UsageError: the message is blank and there is no file.
            RefoldError: the conversation cannot be made to fit.
            Exception: the provider's own error, where no retry helps. The conversation stays valid and can go on.
        """
        if self._heartbeat is not None and self._heartbeat.is_health_check(text):
            return self._heartbeat.answer(
                self._client, text, tuple(self._tools.values()), system=self._system, max_tokens=self._max_output
            )
        if not text.strip() and not attach:
            raise UsageError("the message is empty: give a text, or a file to attach")
        self._begin_turn(text, attach)
        ending: Ending = "failed"
        try:
            answer, ending = self._steps()
        except KeyboardInterrupt:
            ending = "interrupted"
            raise
        finally:
            self._notify(TurnEnded(self._turn, self._step, ending, self.statistics))
        return answer

    def _begin_turn(self, text: str, attach: Sequence[str | Path]) -> None:
        self._turn, self._step, self._calls_done, self._stopping = self._turn + 1, 0, 0, False
        if self.session.in_flight and len(self.session.plans) > self._durable_plans:
            self.session.rewind(self._durable_plans)  # a turn starts from all originals (W18)
            self._remember("")
        more = self._attached(attach) if attach else []
        if changed := self._changed_files():
            more.append(changed)
        self._close_last_turn()
        self._append(text_message("user", text, more))
        self._notify(TurnStarted(self._turn, text))

    def _changed_files(self) -> str:
        """Return the notice of files that changed since the model read them; empty where none did."""
        changed = self._files.changed() if self._files and self._profile.changed_files else ()
        return changed_notice(changed) if changed else ""

    def _close_last_turn(self) -> None:
        """Close what an earlier turn left open: calls of a process that died, a message without an answer."""
        originals = self.session.messages
        if originals and (pending := open_calls(self._client.format, originals[-1])):
            self._append(*result_messages(self._client.format, [(call, INTERRUPTED, True) for call in pending]))
            originals = self.session.messages
        if originals and originals[-1].get("role") != "assistant":
            self._append(text_message("assistant", UNANSWERED))

    def _attached(self, paths: Sequence[str | Path]) -> list[str]:
        used = self.session.check().expected if self.session.ids else 0
        budget = self._file_budget(self._compactor.request.budget.window, used, self._max_output or 0)
        return [f'<file path="{file.path}">\n{file.content}\n</file>' for file in attached(paths, budget)]

    def _steps(self) -> tuple[str, Ending]:
        text = ""
        while self._step < self._max_steps:
            self._step += 1
            wish = self._pipeline.before_turn(self._situation())
            if self._stopping or wish.action is Action.STOP:
                return text, "stopped"
            self._heed(wish)
            reply = self._reply()
            text = reply.text
            if reply.calls:
                self._perform(reply.calls)
            wish = self._pipeline.after_turn(self._situation())
            self._heed(wish)
            if not reply.calls:
                if wish.action is Action.COMPACT:  # no call follows before which it would be done
                    self._compact_if_due()
                return text, "answered"
            if wish.action is Action.STOP:
                return text, "stopped"
        return text, "steps"

    def _heed(self, wish: MiddlewareVerdict) -> None:
        """Have the next check compact whatever it measures, where a middleware asks for that (V03)."""
        if wish.action is Action.COMPACT and self._cause is Cause.THRESHOLD:
            self._cause = Cause.MANUAL

    def _reply(self) -> Reply:
        """Compact where that is due, which is done before each call (W13), make the call, and append the answer."""
        self._compact_if_due()
        start = self._clock()
        try:
            system = self._system_prompt(self._step, self._calls_done)
            reply = self._call_with_retry(self.session.view(system=system if self._profile.runtime else None))
        except Exception as error:
            reply = self._recover(error)
        natives, calls = repaired_reply(self._client.format, reply)
        self._append(*natives)
        self._report(reply, self._clock() - start)
        return replace(reply, calls=calls)

    def _recover(self, error: Exception) -> Reply:
        """Recover from a provider error: shrink the request and call once more, within the same step (W04, O12)."""
        pending = [error]

        def call(messages: list[Any], max_tokens: int | None = None) -> Reply:
            if pending:  # the rejected call was made already
                raise pending.pop()
            return self._call_with_retry(messages, max_tokens)

        compactor = self._compactor
        try:
            recovered = recovering(
                call, self.session.messages, **compactor.request.as_options(), format=self._client.format,
                plans=self.session.plans, handlers=compactor.handlers, windows=self._windows,
                endpoint=self._client.base_url, observers=(compactor.observe_recovery,),
            )  # fmt: skip
        finally:
            self._after_compaction(compactor.end_recovery())
        compactor.learn(recovered.window)
        self.statistics = replace(self.statistics, window=compactor.request.budget.window)
        reply: Reply = recovered.reply
        return reply

    def _compact_if_due(self) -> None:
        cause, self._cause = self._cause, Cause.THRESHOLD
        decision = self._compactor.decide(force=cause is not Cause.THRESHOLD)
        self._notify(replace(decision, turn=self._turn, step=self._step))
        self._after_compaction(self._compactor.prepare(decision, cause))

    def _after_compaction(self, card: DoneCard | None) -> None:
        pending, self._unbilled = self._unbilled, []
        for usage in pending:
            self.session.bill(usage)
        if card is not None:
            self.statistics = self.statistics.compacted(card.after)
            self._pipeline.reset(Reset.COMPACT)
            if self._task_files is not None:
                self._remember(self._task_files.memory())

    @property
    def _longest_answer(self) -> int:
        """The reserve for the answer, or the most that the model can answer where that is known to be less."""
        request = self._compactor.request
        reserve = request.budget.output_reserve
        return min(reserve, window(self._client.model, request.provider).output_cap or reserve)

    def _call(self, messages: list[Any], max_tokens: int | None = None) -> Reply:
        return self._client.complete(
            messages,
            system=self._system_prompt(self._step, self._calls_done),
            tools=self._compactor.request.tools,
            max_tokens=max_tokens or self._max_output or self._longest_answer or None,
            on_text=self._on_text,
        )

    def _report(self, reply: Reply, seconds: float) -> None:
        try:
            usage = reported(reply.usage).usage()
        except UsageError:  # a server that reports nothing
            return
        self.session.report(reply.usage)
        self._compactor.last_known = usage.prompt
        self.statistics = self.statistics.after(usage, seconds)
        if usage.prompt > self.statistics.window:
            self._cause = Cause.SILENT_OVERFLOW  # O13
        self._notify(UsageReported(self.statistics))

    def _perform(self, calls: Sequence[ToolCall]) -> None:
        """Run calls in order, one at a time (W13); whatever happens, each has a result afterwards."""
        done: list[tuple[ToolCall, str, bool]] = []
        rest = INTERRUPTED
        try:
            for call in calls:
                if self._stopping:
                    rest = SKIPPED
                    break
                done.append((call, *self._perform_one(call)))
        finally:
            done += [(call, rest, True) for call in calls[len(done) :]]
            if changed := self._changed_files():  # before the next call of the model (L10)
                call, text, is_error = done[-1]
                done[-1] = (call, f"{text}\n\n{changed}", is_error)
            self._append(*result_messages(self._client.format, done))

    def _perform_one(self, call: ToolCall) -> tuple[str, bool]:
        self._notify(ToolStarted(call.name, call.call_id, call.arguments))
        start = self._clock()
        outcome: ToolOutcome = perform(self._tools, call)
        self._calls_done += 1
        if self._files is not None:
            self._files.note(call, is_error=outcome.is_error)
        text = self._output_limit(outcome.text) if outcome.text.strip() else NOTHING
        text = error_text(self._client.format, text) if outcome.is_error else text
        self._notify(
            ToolFinished(call.name, call.call_id, outcome.text, len(text), outcome.is_error, self._clock() - start)
        )
        return text, outcome.is_error

    def _append(self, *natives: Any) -> None:
        self.session.append(natives)

    def _situation(self) -> Situation:
        return Situation(self.statistics, self._step, len(self.session.ids))

    def _system_prompt(self, step: int, called: int) -> Any:
        system = with_block(self._system, self._memory) if self._memory else self._system
        return with_block(system, runtime_block(step, called)) if self._profile.runtime else system

    def _remember(self, memory: str) -> None:
        """Put the block of the task file into the system prompt; it changes with a compaction only, for the cache."""
        if memory != self._memory:
            self._memory = memory
            self._compactor.set(replace(self._compactor.request, system=self._system_prompt(0, 0)))

    def _handlers(self, arguments: AgentArguments, window: int) -> Handlers:
        redact, settings = arguments.redact, arguments.settings
        if redact is None:
            redact = settings.redact_secrets if settings else True
        resolved = resolve_handlers(arguments.handlers, arguments.summarize, redact=redact)
        if resolved.summarize is not None:
            resolved = replace(resolved, summarize=patient(resolved.summarize, arguments.waits, arguments.sleep))
        elif arguments.handlers is None and (settings is None or settings.enable_summarization):
            own = model_summarizer(self._client, window=window, observers=(self.bill_summary,))
            resolved = replace(resolved, summarize=guarded(retrying(own, arguments.waits, arguments.sleep)))
        if resolved.count is None and arguments.handlers is None:
            resolved = replace(resolved, count=self._count)
        if resolved.read_file is None and self._files is not None:
            resolved = replace(resolved, read_file=self._files.restore)
        if resolved.archive is None and (folder := transcripts_folder(arguments.folder, self._files)) is not None:
            write = TranscriptFiles(folder)
            resolved = replace(resolved, archive=lambda need: write(self.session.id, need))
        return resolved

    def _count(self, need: CountNeed) -> int:  # V08
        """Return the provider's own count of what will be sent; a format without an endpoint for it takes a call."""
        system = self._system_prompt(self._step, self._calls_done)
        counted = self._client.count(
            formats.assemble(formats.find(self._client.format), need.messages), system, self._compactor.request.tools
        )
        if self._client.format == "openai-chat":
            self._bill(Usage(counted))
        return counted

    def _bill(self, usage: Usage) -> None:
        self.statistics = self.statistics.billed(usage)
        self._unbilled.append(usage)  # the session is being compacted now, and is told afterwards

    def _notify(self, event: AgentEvent) -> None:
        for observer in self._observers:
            try:
                observer(event)
            except Exception:  # noqa: S112 - a watcher's failure is not the conversation's
                continue
