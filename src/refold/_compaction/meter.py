"""A meter counts each message of a growing conversation once, so the cost of a check depends on the new messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from refold import formats
from refold._compaction.options import MeterOptions, Options, read_options
from refold._compaction.request import CHARACTERS, Request, format_for, gauged, request_for, usage_for
from refold._compaction.result import Check, counter_name
from refold.core._engine import due, waiting
from refold.core.budget import Breakdown, WhenItPays
from refold.core.token_units import EstimatedTokens
from refold.core.transcript import Transcript
from refold.core.usage_gauges import covered

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Unpack

    from refold.core._native import Messages, SDKValue, SystemPrompt, ToolDefinitions
    from refold.core.break_even import Course
    from refold.core.budget import Usage
    from refold.core.messages import Message, MessageId
    from refold.core.policy import Policy
    from refold.core.view import View
    from refold.formats import Format

__all__ = ["Meter"]

NEAR = 0.5  # of the limit in use, from which on messages are looked at as they arrive: a pass may be near
AT_ONCE = 4  # messages that one check looks at


class Meter:
    """Measures a conversation before every call, at a cost that grows with what is new and not with its length.

    From half of the limit on it also has the policy look at a few messages a call, so that a pass costs less.
    Takes the arguments of `refold.check` that stay the same from call to call. Messages are known by identity: an
    entry changed in place after it was seen is not counted again (append new entries; replaced ones are noticed).
    Not for use by several threads at once.

    Added in 0.1.0.
    """

    def __init__(self, **options: Unpack[MeterOptions]) -> None:
        self._options = read_options("Meter", options, MeterOptions)
        self._natives: list[Any] = []
        self._transcript = Transcript()
        self._estimates: dict[MessageId, int] = {}
        self._sums: list[int] = [0]
        self._character_sums: list[int] = [0]  # counted only where the provider's vocabulary is another than ours
        self._request: Request | None = None
        self._looked, self._looked_in = 0, Transcript()  # how many messages of which the policy has looked at
        self._anchor = 0  # the first message that the provider reads
        self._loaded: frozenset[str] = frozenset()  # deferred tools that messages have brought into the context

    def check(self, messages: Messages, *, usage: Usage | Mapping[str, Any] | SDKValue | None = None) -> Check:
        """Measure the request with these messages: what `refold.check` returns, without kinds and roles."""
        return self.check_in(messages, usage, None)

    def check_in(
        self,
        messages: Messages,
        usage: Usage | Mapping[str, Any] | SDKValue | None,
        course: Callable[[], Course] | None,
    ) -> Check:
        """Measure messages that are the view of a longer session; `course` returns the session's."""
        request = self._seen(messages)
        counted = usage_for(replace(self._options, usage=usage))
        view = replace(request.view, usage=counted, estimated_before=None)
        now, read = self._gauged(view, self._sums, request)
        if view.counter == request.exact and now.ratio.far:
            now, read = self._gauged(self._by_characters(view), self._character_sums, request)
        if now.tokens > NEAR * now.budget.input:
            self._look(request.policy, self._transcript)
        framed = now.counter.per_conversation + read
        parts = Breakdown(now.overhead.system, now.overhead.tools, framed)
        estimated = EstimatedTokens(now.overhead.total + framed)
        expected = now.ratio.reported(estimated) if now.ratio.known else now.measured
        trigger = request.policy.trigger
        if isinstance(trigger, WhenItPays) and trigger.reached(now.measured.count, view.budget):
            known = course() if course is not None else None
            now = replace(now, transcript=self._transcript, start=self._transcript.messages, known_course=known)
        is_due, waits = due(request.policy, now), waiting(request.policy, now)
        counter = counter_name(now.counter)
        return Check(now.measured.count, view.budget.input, is_due, parts, expected.count, waits, counter)

    def _gauged(self, view: View, sums: list[int], request: Request) -> tuple[View, int]:
        """Return the view as the policy's gauge reads it, and the estimate of the messages that the provider reads."""
        read = sums[-1] - sums[self._anchor]
        estimated = view.overhead.total + view.counter.per_conversation + read
        since = sums[-1] - sums[covered(self._transcript.messages, view.usage)] if view.usage else 0
        return gauged(view, request.policy, EstimatedTokens(estimated), EstimatedTokens(min(since, read))), read

    def _by_characters(self, view: View) -> View:
        """Return the view with characters counted, for a provider whose vocabulary is another than ours."""
        sums, (system, tools) = self._character_sums, (self._options.system, self._options.tools)
        for message in self._transcript.messages[len(sums) - 1 :]:
            sums.append(sums[-1] + CHARACTERS.message(message))
        overhead = Breakdown(
            system=CHARACTERS.text(formats.system_text(system)) if system else 0,
            tools=CHARACTERS.tools(formats.tools_text(tools, self._loaded)) if tools else 0,
        )
        return replace(view, counter=CHARACTERS, overhead=overhead)

    def largest_new(self, above: int) -> int:
        """Return the tokens of the largest output above a size that was not answered yet, of the messages seen last."""
        if self._request is None:
            return 0
        count, largest = self._request.view.counter.text, 0
        for message in reversed(self._transcript.messages):
            if message.role == "assistant":
                break
            if message.results and self._estimates.get(message.id, 0) > above:
                largest = max(largest, *(count(result.text) for result in message.results))
        return largest if largest > above else 0

    def request(self, messages: Messages, options: Options, start: tuple[Message, ...] | None = None) -> Request:
        """Resolve a request of `refold.compact` or `refold.plan` without reading or counting anything again.

        `start` is what its plans fold to, where that is known.
        """
        seen = self._seen(messages)
        options = replace(options, format=seen.format.name, counter=options.counter or seen.view.counter)
        same = options.counter is seen.view.counter
        estimates = self._estimates if same else None
        return request_for(messages, options, transcript=self._transcript, estimates=estimates, start=start)

    def set_fixed(self, system: SystemPrompt | None, tools: ToolDefinitions | None) -> None:
        """Measure with another system prompt and other tools from now on; no message is counted again."""
        self._options = replace(self._options, system=system, tools=tools)
        if self._request is not None:
            options = replace(self._options, format=self._request.format.name)
            self._request, self._loaded = request_for((), options, measuring=True), frozenset()
            self._place(self._request)

    def _look(self, policy: Policy, transcript: Transcript) -> None:
        """Let the policy look at a few messages that it has not seen, so that a pass finds most of its work done."""
        messages, before = transcript.messages, self._looked_in.messages
        looked = min(self._looked, len(messages))
        while looked and messages[looked - 1] is not before[looked - 1]:
            looked -= 1
        some = messages[looked : looked + AT_ONCE]
        for message in some:
            policy.arrived(message)
        self._looked, self._looked_in = looked + len(some), transcript
        if some:
            policy.grown(transcript, self._looked)

    def _seen(self, messages: Messages) -> Request:
        known = self._known(messages)
        if self._options.format is None and self._request is not None:
            assumed = self._request.format
            if formats.detect_again(assumed, messages, known) is not assumed:
                known, self._request = 0, None
        if known < len(self._natives):
            self._forget(known)
        if self._request is None:
            options = replace(self._options, format=format_for(messages, self._options.format).name)
            self._request = request_for((), options, measuring=True)
        if known < len(messages):
            self._learn(messages, self._request)
        return self._request

    def _known(self, messages: Messages) -> int:
        """Return how many leading messages are the very objects seen before."""
        natives = self._natives
        if list(messages[: len(natives)]) == natives:  # compares by identity first, so this costs microseconds
            return len(natives)
        pairs = zip(messages, natives, strict=False)
        return next(
            (place for place, (new, old) in enumerate(pairs) if new is not old), min(len(messages), len(natives))
        )

    def _forget(self, known: int) -> None:
        for message in self._transcript.messages[known:]:
            self._estimates.pop(message.id, None)
        self._transcript = Transcript(self._transcript.messages[:known])
        del self._natives[known:], self._sums[known + 1 :], self._character_sums[known + 1 :]
        if self._request is not None and (self._anchor or self._loaded):
            self._place(self._request)

    def _learn(self, messages: Messages, request: Request) -> None:
        start = len(self._natives)
        self._transcript = self._read(request.format, messages)
        self._natives.extend(messages[start:])
        new = self._transcript.messages[start:]
        for message in new:
            size = self._estimates[message.id] = request.view.counter.message(message)
            self._sums.append(self._sums[-1] + size)
        if any(message.anchor for message in new):
            self._place(request)
        elif more := formats.loaded_in(new):
            self._load(request, self._loaded | more)

    def _read(self, format: Format, messages: Messages) -> Transcript:
        """Read what is new of messages."""
        return formats.read(format, messages, self._transcript)

    def _place(self, request: Request) -> None:
        """Find what the provider reads of the messages, and count the tools that they have loaded."""
        messages = self._transcript.messages
        self._anchor = request.format.anchor(messages)
        self._load(request, formats.loaded_in(messages[self._anchor :]))

    def _load(self, request: Request, loaded: frozenset[str]) -> None:
        """Count the tools anew where others of the deferred ones are loaded now."""
        if loaded != self._loaded:
            self._loaded = loaded
            tokens = request.view.counter.tools(formats.tools_text(self._options.tools, loaded))
            view = replace(request.view, overhead=replace(request.view.overhead, tools=tokens))
            self._request = replace(request, view=view)
