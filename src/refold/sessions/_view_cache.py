"""Caches what a session computes from its log, so that the cost of a turn depends on the new messages.

MessageCache has the messages as they were appended, ViewCache what the model is sent now, SessionMeters their token
counts. In all three, native messages that stay are the same objects from call to call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict, replace

from refold import formats
from refold._compaction.meter import Meter
from refold._compaction.options import MeterOptions, Options
from refold._compaction.result import fold_plans, vocabulary_of
from refold.core.edits import Insert, fold
from refold.core.token_units import UNKNOWN_RATIO, Ratio
from refold.core.transcript import Transcript
from refold.sessions._stores.head import corrupt_store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold._compaction.request import Request
    from refold.core._native import Messages, SystemPrompt, ToolDefinitions
    from refold.core.budget import Usage
    from refold.core.messages import Message, MessageId
    from refold.core.plan import Plan
    from refold.core.policy import Policy
    from refold.formats import Format
    from refold.sessions._log import Log
    from refold.sessions._provenance import Provenance

__all__ = ["MessageCache", "SessionMeters", "ViewCache"]


class MessageCache:
    """The messages that are not rewound, native and read; only new ones are read."""

    def __init__(self) -> None:
        self.natives: list[Any] = []
        self.transcript = Transcript()

    def extend(self, log: Log, longer: Transcript, natives: Sequence[object]) -> None:
        """Add messages that were just appended."""
        read = len(self.natives) + len(natives) == len(longer)  # all that was stored before
        if read and len(longer) == len(log.state.ids) and longer.tip == log.state.tip:
            self.transcript = longer
            self.natives += natives
        else:
            self.sync(log)

    def sync(self, log: Log) -> None:
        """Hold the messages of the log as it is now.

        Raises:
            StoreCorrupt: a message is not the one that was appended.
        """
        ids, have = log.state.ids, self.transcript.messages
        same = min(len(have), len(ids))
        while same and have[same - 1].id != ids[same - 1]:
            same -= 1
        if same == len(have) == len(ids):
            return
        self.natives = [*self.natives[:same], *(log.natives[id] for id in ids[same:])]
        format = formats.find(log.existing_head.format)
        self.transcript = formats.read(format, self.natives, Transcript(have[:same]))
        if self.transcript.tip != log.state.tip:
            pairs = zip(self.transcript.messages, ids, strict=True)
            wrong = next(id for message, id in pairs if message.id != id)
            raise corrupt_store(log.store.name, f"session {log.session}: message {wrong} is not what was appended")


class ViewCache:
    """The active plans folded over the messages: extended as the conversation grows, folded again when plans change."""

    def __init__(self) -> None:
        self.natives: list[Any] = []
        self.sources: list[MessageId] = []  # of each native message, the id of the message it was written from
        self.messages: list[Message] = []
        self._transcript = Transcript()
        self._plans: tuple[Plan, ...] = ()
        self._settings: str | None = None

    def sync(
        self, format: Format, transcript: Transcript, plans: Sequence[Plan], provenance: Provenance | None = None
    ) -> list[Any]:
        """Return the view of a transcript under plans; `provenance` is needed where the model binds thinking."""
        plans, known = tuple(plans), len(self._transcript)
        grown = len(transcript) >= known and (known == 0 or transcript.messages[known - 1].id == self._transcript.tip)
        settings = None if provenance is None else provenance.settings
        same, more = grown and plans == self._plans and settings == self._settings, len(transcript) - known
        fresh = transcript.messages[known:]
        in_order = provenance is None or provenance.in_order(fresh, transcript, plans)
        if same and known and more and in_order:
            if _ends_unedited(self.messages):
                natives, sources = formats.assemble_with_sources(format, [self.messages[-1], *fresh])
                self.natives += natives[1:]
                self.sources += sources[1:]
                self.messages += fresh
            else:
                self.messages += fresh
                self.natives, self.sources = formats.assemble_with_sources(format, self.messages)
        elif not (same and not more):
            newest = plans[-1] if plans and grown and not more and known and plans[:-1] == self._plans else None
            folded_on = None if newest is None or settings != self._settings else self._folded_on(newest)
            view = fold_plans(transcript, plans) if folded_on is None else folded_on
            self.messages = list(view if provenance is None else provenance.preserved(view, transcript, plans))
            self.natives, self.sources = formats.assemble_with_sources(format, self.messages)
        self._transcript, self._plans, self._settings = transcript, plans, settings
        return self.natives

    def _folded_on(self, plan: Plan) -> tuple[Message, ...] | None:
        """Return the view under one more plan; None where that plan was made without the newest messages.

        An insert before a message that is hidden already can be placed by folding everything only.
        """
        if plan.base.length != len(self._transcript):
            return None
        visible = {message.id for message in self.messages}
        for edit in plan.edits:
            if isinstance(edit, Insert):
                if edit.before is not None and edit.before not in visible:
                    return None
                visible.add(edit.message.id)
        return fold(self.messages, [plan.edits])


def _ends_unedited(messages: Sequence[Message]) -> bool:
    return bool(messages) and messages[-1].native is not None and not messages[-1].patches


class SessionMeters:
    """Two meters under one set of options: of the view, and of the originals where plans make the two differ.

    A message remembers what a policy finds of it as it arrives. So that a compaction has that, the originals are read
    once, by the owner of both, and looked at as they were read.
    """

    def __init__(self, options: Options, format: str | None) -> None:
        self.format = format
        known = asdict(replace(options, format=format))
        self._options: MeterOptions = {name: known[name] for name in MeterOptions.__optional_keys__}  # type: ignore[assignment]
        self.view_meter = SessionMeter(**self._options)
        self._original_meter: SessionMeter | None = None

    def sync(self, originals: Transcript) -> None:
        """Take what the originals are now, as their owner has read them."""
        for meter in filter(None, (self.view_meter, self._original_meter)):
            meter.originals = originals

    def original_meter(self, start: Sequence[Message], *, planned: bool) -> Meter:
        """Return a meter of the originals: the same one while no plan is active. `start` is the view as it is now."""
        if not planned:
            return self.view_meter
        if self._original_meter is None:
            self._original_meter = SessionMeter(**self._options)
            self._original_meter.vocabulary = self.view_meter.vocabulary
            self._original_meter.originals = self.view_meter.originals
        self._original_meter.start = tuple(start)
        return self._original_meter

    def set_fixed(self, system: SystemPrompt | None, tools: ToolDefinitions | None) -> None:
        """Measure with another system prompt and other tools from now on."""
        self._options |= {"system": system, "tools": tools}
        for meter in filter(None, (self.view_meter, self._original_meter)):
            meter.set_fixed(system, tools)

    @property
    def vocabulary(self) -> Ratio:
        """How the provider counted an earlier view, per token of an exact count."""
        return self.view_meter.vocabulary

    @vocabulary.setter
    def vocabulary(self, ratio: Ratio) -> None:
        for meter in filter(None, (self.view_meter, self._original_meter)):
            meter.vocabulary = ratio

    def vocabulary_by(self, view: Messages, usage: Usage) -> Ratio:
        """Return how the provider counts by a report on a view."""
        return vocabulary_of(self.view_meter.request(view, Options(**self._options, usage=usage)))


class SessionMeter(Meter):
    """A meter that knows the view of the active plans, so that a request does not fold them again, and the vocabulary.

    `vocabulary` is how the provider counted an earlier view: a property of its tokenizer that outlasts a rewind.
    `originals` are what a policy looks at, and messages of theirs are not read again.
    """

    start: tuple[Message, ...] | None = None
    vocabulary: Ratio = UNKNOWN_RATIO
    originals: Transcript = Transcript()

    def request(self, messages: Messages, options: Options, start: tuple[Message, ...] | None = None) -> Request:
        """Resolve a request of `refold.compact` or `refold.plan` on the originals."""
        request = super().request(messages, options, self.start)
        return replace(request, vocabulary=self.vocabulary) if self.vocabulary.known else request

    def _read(self, format: Format, messages: Messages) -> Transcript:
        """Take the messages as they were read where they are the originals, else read them: a view has other ids."""
        known, read = self._transcript, self.originals
        same = len(read) == len(messages) and (not known.messages or read.messages[len(known) - 1].id == known.tip)
        fresh = zip(read.messages[len(known) :], messages[len(known) :], strict=False)
        if same and all(message.passed is native for message, native in fresh):
            return read
        return super()._read(format, messages)

    def _look(self, policy: Policy, transcript: Transcript) -> None:
        super()._look(policy, self.originals)
