"""One conversation of the gateway: an object that owns its state.

Theory of operation. A client resends its whole history with every call. A `Conversation` holds the newest body as the
client's own bytes (`receive` and `advance` take a newer one), the messages read of it so far, the plans in force, the
view that these plans leave, and what the provider reported last. Reading is lazy: `most_tokens` bounds a request from
its number of bytes, and only where that bound reaches the trigger are messages parsed and counted (`read`, `measure`).
`write` renders the messages that stand for the client's; a longer history renders to the same bytes at its beginning,
which is what a provider's prompt cache needs.

All changes are methods of this class, named for what happens; no other module assigns to a conversation, and a test
holds that. Whoever calls one that changes plans, view or report holds `lock`. What is due is decided by the planner
from two facts, a cooldown and whether the window was full:

                   a request reaches the trigger            begin_compaction
      +--------+ ------------------------------------> +----------+
      |  idle  |                                       | planning |  compaction_task: before the request is sent, or
      +--------+ <----------+                          +----------+  in the background below the hard limit
          ^ |               | request exceeds               | |
          | |               | cooldown_tokens               | | adopt, mark_shortened: the plan is in force
          | |               |                               | | nothing to compact, or a failure: no plan
          | |          +-------------+   begin_cooldown     | |
          | |          | cooling down| <--------------------+-+
          | |          +-------------+
          | |               |
          | |               | observe_usage(full=True)
          | |               v
          | |          +-------------+   the next request is compacted before it is sent, whatever it measures
          | +--------> | window full | ----------------------------------------------------> planning
          |            +-------------+   unless it is below the cooldown and below the hard limit
          +-- rewind: fewer plans, no cooldown

A plan that was made while another process put one in force is discarded. `pending_recall` is independent of these
states: calls of the recall tool that the next request answers. Ends: `delete` (for good: work under way stores
nothing), or the tracker forgets the object; the plans are in the store by then.
"""

from __future__ import annotations

import asyncio
import re
import time
from contextlib import contextmanager
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from refold import formats
from refold._compaction.request import gauged
from refold._gateway.conversations.provenance import SentHistory, Under
from refold._gateway.conversations.thrash import thrash
from refold._gateway.wire.body import LONGEST_MARK, breathe, find_any, native
from refold.core._engine import waiting
from refold.core._json import is_whole, string_of
from refold.core.budget import Breakdown, Usage, WhenItPays
from refold.core.edits import fold
from refold.core.plan import past_compactions, usage_after
from refold.core.token_units import EstimatedTokens
from refold.core.transcript import Transcript
from refold.core.usage_gauges import ratio_by
from refold.core.view import View
from refold.formats._base import json_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from refold._gateway.conversations.budgets import Bound
    from refold._gateway.conversations.thrash import Thrash
    from refold._gateway.recall.deferred_call import DeferredCall
    from refold._gateway.wire.body import Bytes, ParsedBody, Values
    from refold._gateway.wire.routes import Dialect
    from refold.core.break_even import BreakEven
    from refold.core.counting import Counter
    from refold.core.edits import Edit
    from refold.core.messages import Message, MessageId
    from refold.core.plan import Plan
    from refold.formats import Format

__all__ = ["Conversation", "Fixed", "ReportedUsage", "Wanted", "Written", "differs", "steady", "within"]

LONGEST_TOKEN = 12  # bytes a token, on the average of a request; more is not text
NOTHING = Usage(0)
NO_VERSION = "", 0.0, 0  # a session of the store, when it was created, and how many entries it has
SIGNED = re.compile(rb'"signature"|"redacted_thinking"')
TURN = 2  # messages that are new in a request of one client alone: an answer, and what the client says to it
CLOCK = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))
PIECES = 32  # of a view as bytes, before they are joined
REST = 0.05  # share of the window by which a request must grow before it is compacted again


class Fixed(Struct, frozen=True):
    """What stands beside the messages: system prompt and tools, and their tokens."""

    system: Any = None  # JSON values of the request, whatever the client sent
    tools: Any = None
    tokens: int = 0


class Wanted(Struct, frozen=True):
    """What a body asks for beside its messages, and the values that this was read from.

    `model` is empty where the body names none, `output` is the longest answer in tokens; a history that is `elsewhere`
    is kept by the provider.
    """

    before: Values
    after: Values
    model: str
    output: int | None
    elsewhere: bool


class ReportedUsage(Struct, frozen=True):
    """A usage report: how many messages of the client were in that request, and under which plans it was sent."""

    usage: Usage
    count: int
    size: int  # bytes of the messages in the request
    plans: tuple[str, ...] = ()


class Written(Struct, frozen=True):
    """A view as bytes, in pieces: what stands for the first `count` messages of the client.

    More of the client's messages can follow as they are where it is `open`; else the border must be written again.
    """

    count: int
    pieces: tuple[bytes, ...]
    size: int
    open: bool
    under: Under


class Conversation:
    """One conversation: the newest body, and what was read, counted and planned of it.

    `transcript` and `estimates` are of the first messages alone, until more is needed, which it is not far below the
    trigger.
    """

    def __init__(self, id: str, format: Format, session: str, body: ParsedBody, lead: int = 0, owner: str = "") -> None:
        self.id = id
        self.owner = owner  # who alone may see it
        self.lead = lead  # leading messages that are instructions
        self.format = format
        self.session = session
        self.body = body
        self.transcript = Transcript()
        self.view: tuple[Message, ...] = ()
        self.estimated = 0  # tokens of the view from the anchor on
        self.anchor = 0  # the first message of the view that the provider reads
        self.loaded: frozenset[str] = frozenset()  # deferred tools that messages have brought into the context
        self.estimates: dict[MessageId, int] = {}
        self.plans: tuple[Plan, ...] = ()
        self.applied: tuple[str, ...] = ()  # their ids
        self.saved_tokens = 0  # tokens that they spare each request
        self._plan_bytes = 0
        self.production = SentHistory()
        self.written: Written | None = None
        self.reported: ReportedUsage | None = None
        self.measured: ReportedUsage | None = None  # what was measured here last: many streams report nothing
        self.counter: Counter | None = None  # who made the estimates
        self.fixed_cache: tuple[Bytes | None, Bytes | None, tuple[Counter, frozenset[str]], Fixed] | None = None
        self.wanted: Wanted | None = None
        self.last_rewind_seq = 0  # the entry of the store that took plans back last
        self.rests = False  # another process took plans back: a cooldown is due
        self.cooldown_tokens = 0  # tokens below which no further compaction is tried
        self.hung_tokens = 0  # and those below which a plan would hang once more
        self.shadow: Plan | None = None  # what a gateway that only reports would have done
        self.thrashing: Thrash | None = None  # as of the last look
        self.waiting: BreakEven | None = None  # of a compaction that waits until it pays
        self.window_was_full = False  # the last answer showed that the window was full
        self.checked_messages = 0  # leading messages in which every id of what a provider stores is its owner's
        self.checked_values: Values = {}  # and values beside them
        self.known_messages = 0  # leading messages that were in an earlier request
        self.scanned_bytes = 0  # bytes of the body that were searched for what is not text
        self.last_media_index = 0  # how many messages there were when some was found
        self.used = 0.0  # when the last request was done, by `steady`
        self.deleted = False  # nothing more of it is kept
        self.synced = False  # the store was asked what it knows
        self.session_id = ""  # the session of the store that holds it
        self.revision = 0  # of that session, on which the plans here are based
        self.stored_plans = 0  # the leading plans that it holds
        self.known_version = NO_VERSION  # of that session: what it held then was taken over, or written here
        self.stored_version = NO_VERSION  # what the store answered last
        self.has_all = False  # it was taken over at that version, and all of its plans fit
        self.shorter = 0  # messages there were where others had written of later ones; 0 where all was taken over
        self.is_current = False  # the store was asked in the present request, and what it had was taken over
        self.unsaved = False  # the store has failed: it does not hold everything yet
        self.policy = ""  # chosen for this conversation, in place of what requests and settings name
        self.pinned: tuple[MessageId, ...] = ()  # messages that no compaction changes
        self.pending_recall: DeferredCall | None = (
            None  # calls of the recall tool that the next request brings the answers of
        )
        self.last_note_seq = 0  # the entry of the store that told of the last ones
        self.lock = asyncio.Lock()
        self.compaction_task: asyncio.Task[Plan] | None = None

    @property
    def size(self) -> int:
        """Bytes that this conversation holds on to, about: bodies, what was read of them, plans, and what is kept."""
        size = 2_000 + 2 * (body := len(self.body.body))
        if read := len(self.transcript):
            size += 6 * body * read // max(len(self.body.raws), 1)
        if self.written is not None:
            size += self.written.size
        return size + self._plan_bytes

    def receive(self, body: ParsedBody) -> None:
        """Take a newer body that begins with all of the one before."""
        self.scanned_bytes = min(self.scanned_bytes, self.body.end)
        self.body, self.is_current = body, False

    def advance(self, body: ParsedBody, same: int) -> None:
        """Take a newer body, of which so many leading messages are the same bytes."""
        if same < len(self.body.raws):
            self.measured = None
            self.scanned_bytes = self.last_media_index = 0
            self.known_messages = min(self.known_messages, same)
        known = self.body.raws
        self.checked_messages = min(self.checked_messages, same)
        self.receive(body)
        if same < len(self.transcript):
            self.transcript = Transcript(self.transcript.messages[:same])
            self.view = ()
        if self.written is not None and same < self.written.count:
            self.written = None
        self._instructed(known)

    def _instructed(self, known: list[Bytes]) -> None:
        """Take newer instructions, under the ids of the older ones: what was said since goes on from them."""
        raws = self.body.raws
        changed = [place for place in range(self.lead) if differs(known[place], raws[place])]
        if not changed:
            return
        self.view, self.written, self.scanned_bytes, self.last_media_index = (), None, 0, 0
        messages = list(self.transcript.messages)
        for place in changed:
            if place < len(messages):
                id = messages[place].id
                messages[place] = self.format.read(native(raws[place]), id)
                self.estimates.pop(id, None)
        self.transcript = Transcript(tuple(messages))

    def fork(self, id: str, body: ParsedBody, shared: int, same: int) -> Conversation:
        """Return another conversation that begins with so many messages of this one."""
        forked = Conversation(id, self.format, self.session, body, self.lead, self.owner)
        forked.transcript = Transcript(self.transcript.messages[: min(same, len(self.transcript))])
        forked.estimates, forked.counter = dict(self.estimates), self.counter
        forked._take_plans(within(self.plans, shared))
        forked.production = self.production.forked(shared)
        forked.configure(self.policy, self.pinned)
        forked.pending_recall = self.pending_recall  # it may go on from the same answer, by whose calls that is known
        forked._instructed(self.body.raws)
        return forked

    # What happens to a conversation

    def unchecked(self) -> tuple[list[Bytes], Values]:
        """Return the messages of the newest body, and the values beside them, that `mark_checked` has not seen."""
        body, known = self.body, self.checked_values
        values = {
            key: raw
            for each in (body.before, body.after)
            for key, raw in each.items()
            if not _equal(known.get(key), raw)
        }
        return body.raws[self.checked_messages :], values

    def mark_checked(self, body: ParsedBody) -> None:
        """Record that every id in a body is its owner's, unless a newer body has come meanwhile."""
        if body is self.body:
            self.checked_messages, self.checked_values = len(body.raws), body.before | body.after

    def mark_sent(self) -> None:
        """Record that all messages of the newest body are in a request that is sent."""
        self.known_messages = len(self.body.raws)

    def observe_usage(self, report: ReportedUsage, *, full: bool) -> None:
        """Take the usage that the provider reported for a request; `full`: the report shows a window without room."""
        self.reported = report
        self.window_was_full = self.window_was_full or full

    def begin_cooldown(self, tokens: int, window: int) -> None:
        """Try no further compaction until a request exceeds these tokens by a share of the window."""
        self.cooldown_tokens = tokens + int(window * REST)
        self.rests = False

    def mark_hung(self) -> None:
        """Note that a plan hung: none is begun again for its size before the cooldown's end."""
        self.hung_tokens = self.cooldown_tokens

    @contextmanager
    def same_cooldown(self) -> Iterator[None]:
        """Keep the cooldown as it is over a plan that was not made because one was due."""
        cooldown = self.cooldown_tokens
        try:
            yield
        finally:
            self.cooldown_tokens = cooldown

    @property
    def compacting(self) -> bool:
        """Whether a plan is being made."""
        return self.compaction_task is not None and not self.compaction_task.done()

    def begin_compaction(self, task: asyncio.Task[Plan]) -> None:
        """Take the task that makes the next plan."""
        self.compaction_task = task
        task.add_done_callback(self._drop_failed)

    def _drop_failed(self, task: asyncio.Task[Plan]) -> None:
        """Forget a task that failed: by its error's traceback it holds this conversation, though nobody else does."""
        if (task.cancelled() or task.exception() is not None) and task is self.compaction_task:
            self.compaction_task = None

    def end_compaction(self) -> None:
        """Forget the task that made a plan, once it is done."""
        if self.compaction_task is not None and self.compaction_task.done():
            self.compaction_task = None

    def adopt(self, plan: Plan, bound: Bound) -> None:
        """Put a plan in force after those that are, and compute the view under it."""
        self._take_plans((*self.plans, plan))
        self.render(bound)

    def mark_shortened(self) -> None:
        """Record that a compaction has made room since the window was full."""
        self.window_was_full = False

    def record_shadow(self, plan: Plan) -> None:
        """Record what a gateway that only reports would have done."""
        self.shadow = plan

    def sync(self, plans: tuple[Plan, ...]) -> bool:
        """Take over the plans of the store; tell whether they are others. The view is to be rendered by the caller."""
        changed = plans != self.plans
        self._take_plans(plans)
        return changed

    def mark_synced(self) -> None:
        """Record that what the store holds, as of its last answer, was taken over."""
        self.synced = self.is_current = True
        if self.known_version != self.stored_version:
            self.known_version, self.has_all = self.stored_version, False

    def mark_version(self, session: str, version: tuple[float, int], *, has_all: bool = False) -> None:
        """Record the version of its session after this process has taken it over, or has written alone.

        `has_all`: it was taken over, and all plans of it are in force here.
        """
        self.known_version = self.stored_version = (session, *version)
        self.has_all, self.shorter = has_all, 0

    def mark_shorter(self) -> None:
        """Record that others have written of messages that are not here yet: with more, the store is to be read again.

        Such is a plan that another process made for a later request, or what it sent that one under.
        """
        self.has_all, self.shorter = False, len(self.transcript)

    def check_store(self, session: str, version: tuple[float, int] | None) -> bool:
        """Take the version that the store has now; tell whether another process may have written something new."""
        self.stored_version = (session, *version) if version is not None else self.known_version
        behind = self.stored_version != self.known_version or 0 < self.shorter < len(self.body.raws)
        self.is_current = self.synced and not behind and (bool(self.session_id) or version is None)
        return behind

    def store_as(self, session: str, revision: int, plans: int) -> None:
        """Record the session of the store that holds this conversation, its revision, and how many plans it holds."""
        self.session_id, self.revision, self.stored_plans = session, revision, plans

    def hold_unsaved(self) -> None:
        """Record that the store does not hold everything of the conversation."""
        self.unsaved = True

    def mark_saved(self) -> None:
        """Record that the store holds everything again."""
        self.unsaved = False

    def configure(self, policy: str, pinned: tuple[MessageId, ...]) -> None:
        """Take the policy that was chosen for this conversation, none if empty, and the messages that are pinned."""
        self.policy, self.pinned = policy, pinned

    def rewind(self, plans: tuple[Plan, ...], revision: int | None = None, *, stored: bool = False) -> None:
        """Put these plans in force and no others; what was computed before is dropped, and so is the cooldown.

        `revision` is that of its session of the store, where it has one; `stored`: it holds all of these plans.
        """
        self._take_plans(plans)
        self.view, self.written, self.pending_recall = (), None, None
        self.stored_plans = len(plans) if stored else min(self.stored_plans, len(plans))
        self.revision = self.last_rewind_seq = self.revision if revision is None else revision
        self.cooldown_tokens = 0

    def defer_recall(self, later: DeferredCall | None) -> None:
        """Record the calls of the recall tool that the next request answers; None where there are none any more."""
        self.pending_recall = later

    def read_note(self, number: int, later: DeferredCall | None) -> None:
        """Take over what the store noted about deferred recalls, unless it is known already."""
        if number > self.last_note_seq:
            self.last_note_seq, self.pending_recall = number, later

    def read_rewind(self, number: int) -> None:
        """Take over that another process took plans back by an entry of the store, unless it is known already."""
        if number > self.last_rewind_seq:
            self.last_rewind_seq, self.rests = number, True

    def wrote_note(self, number: int) -> None:
        """Record the number of the note that this process wrote."""
        self.last_note_seq = number

    def touch(self) -> None:
        """Record that the conversation was used now."""
        self.used = steady()

    def delete(self) -> None:
        """Record that nothing of the conversation is to be stored any more."""
        self.deleted = True

    def _take_plans(self, plans: tuple[Plan, ...]) -> None:
        """Put these plans in force, and reckon what every request asks of them."""
        self.plans, self.applied = plans, tuple(plan.id for plan in plans)
        self.saved_tokens = sum(plan.sizes.saved for plan in plans)
        self._plan_bytes = sum(
            500 * len(plan.edits) + 4 * max(plan.sizes.after - plan.sizes.before, 0) for plan in plans
        )

    # Reading, measuring, writing

    def unscanned_bytes(self) -> int:
        """Return how many bytes of the newest body `most_tokens` has to search."""
        return self.body.stop - self.scanned_bytes

    def most_tokens(self, dialect: Dialect) -> int | None:
        """Return a number of tokens that the request cannot exceed, at hardly any cost; None where only reading tells.

        A token is at least one byte of JSON, except of what is not text. With a report, or where the request was
        measured before, only what came since counts.
        """
        body = self.body
        if self.scanned_bytes < body.stop:
            start = max(self.scanned_bytes - LONGEST_MARK, body.start)
            if find_any(body.body, dialect.costly, start, body.stop):
                self.last_media_index = len(body.raws)
            self.scanned_bytes = body.stop
        report, size = self._trusted(self.reported), body.stop - body.start
        if report is not None:
            sent = self.written.size if self.written is not None else report.size
            if report.usage.prompt * LONGEST_TOKEN < sent:  # a server that cut the prompt and reports what was left
                return None
        else:
            report = self._trusted(self.measured)
        if report is None:
            return None if self.last_media_index or self.plans else len(body.body)
        if self.last_media_index > report.count:  # pictures
            return None
        return report.usage.prompt + report.usage.completion + size - report.size

    def has_large_message(self, least: int | None) -> bool:
        """Tell from bytes alone whether a new message may have so many tokens; 0 and None say nothing."""
        if not least:
            return False
        fresh = self.body.raws[self.known_messages :]
        return max([len(memoryview(raw)) for raw in fresh], default=0) >= least

    def has_oversized_output(self, bound: Bound, least: int | None) -> bool:
        """Tell of a conversation that is read whether new output has more than so many tokens."""
        if not self.has_large_message(least):
            return False
        fresh = reversed(self.view[len(self.view) - len(self.body.raws) + self.known_messages :])
        return any(message.results and self._tokens(message, bound) > (least or 0) for message in fresh)

    def answers_unseen(self) -> int:
        """Return how many answers of the model a conversation that is read holds since its last request here."""
        answers = [message.role == "assistant" for message in self.transcript.messages[self.known_messages :]]
        return sum(now and not before for before, now in zip([False, *answers], answers, strict=False))

    @property
    def continues(self) -> bool:
        """Whether the newest body holds more than the first words of a user, so that there may be earlier requests."""
        return len(self.body.raws) > self.lead + 1

    def has_foreign_thinking(self) -> bool:
        """Tell by the newest messages whether there are answers with thinking that did not pass through here.

        All are new to a process that sees the conversation for the first time; later on, all behind the answer to its
        own last request.
        """
        if not self.known_messages:
            body = self.body
            return not self.synced and bool(SIGNED.search(body.body, body.start, body.stop))
        fresh = self.body.raws[self.known_messages :]
        if len(fresh) <= TURN or not any(SIGNED.search(bytes(raw)) for raw in fresh):
            return False
        roles = [value.get("role") for raw in fresh if isinstance(value := native(raw), dict)]
        return roles.count("assistant") > 1

    def empty_report(self) -> ReportedUsage:
        """Return an empty report as of the newest request, to be filled when its answer comes."""
        body = self.body
        return ReportedUsage(NOTHING, len(body.raws), body.stop - body.start, self.applied)

    def unread_bytes(self) -> int:
        """Return the bytes of messages that were not read yet."""
        return sum(len(memoryview(raw)) for raw in self.body.raws[len(self.transcript) :])

    def read(self, bound: Bound) -> None:
        """Read and count what is new; may take long for what was never seen before."""
        start = len(self.transcript)
        raws = self.body.raws
        if self.counter is not bound.counter:
            self.counter, self.estimates, self.view = bound.counter, {}, ()
        if self.production.viewed != self._under(bound):
            self.view = ()
        if start < len(raws) or not self.view:
            natives = [message.native for message in self.transcript.messages]
            natives += [native(raw) for raw in raws[start:]]
            breathe(self.unread_bytes())
            self.transcript = formats.read(self.format, natives, self.transcript)
            if self.view and start and self._valid_from(bound, start):
                fresh = self.transcript.messages[start:]
                self.view += fresh
                if any(message.anchor for message in fresh):
                    self._measure_view(bound)
                else:
                    self.loaded |= formats.loaded_in(fresh)
                    self.estimated += sum(self._tokens(message, bound) for message in fresh)
            else:
                self.render(bound)

    def render(self, bound: Bound) -> None:
        """Compute the view and its size anew, after plans changed or messages were read again."""
        messages = self.transcript.messages
        runs, tips = [plan.edits for plan in self.plans], [plan.base.tip for plan in self.plans]
        self.view = fold(messages, [*runs, self.stale_edits(bound)], tips)
        self.production.viewed = self._under(bound)
        self._measure_view(bound)

    def _measure_view(self, bound: Bound) -> None:
        """Find what of the view the provider reads, and its size."""
        self.anchor = self.format.anchor(self.view)
        read = self.view[self.anchor :]
        self.loaded = formats.loaded_in(read)
        self.estimated = sum(self._tokens(message, bound) for message in read)

    def stale_edits(self, bound: Bound) -> tuple[Edit, ...]:
        """Return the edits that remove thinking which a model that binds it would refuse under the plans in force."""
        if not bound.binds_thinking:
            return ()
        return self.production.stale(self.transcript.messages, self.plans, bool(self.production.tool))

    def is_unchanged(self, bound: Bound) -> bool:
        """Tell from what was sent before, without reading, whether no thinking can be stale."""
        return not bound.binds_thinking or self.production.constant(self._under(bound))

    def wants(self, dialect: Dialect) -> Wanted:
        """Return what the newest body asks for beside its messages; read again only where that has changed."""
        body, known = self.body, self.wanted
        if known is not None and known.before is body.before and known.after is body.after:
            return known
        model = body.get("model")
        limit = body.get(*dialect.max_output)
        if not dialect.max_output and isinstance(config := body.get("generationConfig"), dict):
            limit = config.get("maxOutputTokens")
        output = limit if is_whole(limit) and limit > 0 else None
        elsewhere = any((raw := body.raw(key)) is not None and bytes(raw) != b"null" for key in dialect.elsewhere)
        name = string_of(model)
        result = self.wanted = Wanted(body.before, body.after, name, output, elsewhere)
        return result

    def fixed_part(self, dialect: Dialect, bound: Bound) -> Fixed:
        """Return system prompt and tools with their tokens; counted again only when they change."""
        body = self.body
        system = next((raw for key in dialect.system if (raw := body.raw(key)) is not None), None)
        tools = body.raw("tools")
        known = self.fixed_cache
        counted = bound.counter, self.loaded
        if known is not None and known[2] == counted and _equal(known[0], system) and _equal(known[1], tools):
            return known[3]
        prompt, defined = None if system is None else native(system), None if tools is None else native(tools)
        tokens = bound.counter.text(formats.system_text(prompt)) if prompt else 0
        tokens += bound.counter.tools(formats.tools_text(defined, self.loaded)) if defined else 0
        result = Fixed(prompt, defined, tokens)
        self.fixed_cache = system, tools, counted, result
        return result

    def measure(self, bound: Bound, fixed_part: Fixed) -> int:
        """Return the size of the request under the plans in force, by the policy's gauge.

        Until the provider reports on a new plan, what the plan left tells how it counts.
        """
        usage, estimated, since = self._estimates_of(bound, fixed_part)
        gauge = bound.policy.gauge
        tokens = gauge.measure(estimated, since, usage, ratio_by(gauge, estimated, since, usage)).count
        self.measured = replace(self.empty_report(), usage=Usage(tokens))
        return tokens

    def _estimates_of(self, bound: Bound, fixed_part: Fixed) -> tuple[Usage | None, EstimatedTokens, EstimatedTokens]:
        """Return what is known of the provider's count, and the estimates of the request and of what came since."""
        usage = self.usage()
        if usage is None and self.plans:
            later = {message.id for message in self.transcript.messages[self.plans[-1].base.length :]}
            usage = usage_after(self.plans[-1], later, self.view)
        since = EstimatedTokens(0)
        if usage is not None and usage.covers is not None:
            fresh = self.view[max(usage.covers, self.anchor) :]
            since = EstimatedTokens(sum(self._tokens(message, bound) for message in fresh))
        estimated = EstimatedTokens(fixed_part.tokens + bound.counter.per_conversation + self.estimated)
        return usage, estimated, since

    def weigh(self, bound: Bound, fixed_part: Fixed) -> bool:
        """Tell whether a compaction that the trigger has started waits until it pays, and record what it would cost."""
        self.waiting = None
        if isinstance(bound.policy.trigger, WhenItPays) and not self.window_was_full:
            usage, estimated, since = self._estimates_of(bound, fixed_part)
            view = View(
                self.transcript, self.view, bound.budget, bound.policy.goal, bound.counter,
                overhead=Breakdown(system=fixed_part.tokens), usage=usage, prices=bound.prices,
                compactions=past_compactions(self.plans), binds_thinking=bound.binds_thinking,
            )  # fmt: skip
            self.waiting = waiting(bound.policy, gauged(view, bound.policy, estimated, since))
        return self.waiting is not None

    def look_for_thrash(self, bound: Bound, fixed_part: Fixed) -> Thrash | None:
        """Tell whether the conversation, which is read, is compacted too often, and record it."""
        messages, fixed = self.transcript.messages, self.fixed_tokens(bound, fixed_part)
        self.thrashing = thrash(self.plans, messages, bound.budget.input, fixed) if self.plans else None
        return self.thrashing

    def fixed_tokens(self, bound: Bound, fixed_part: Fixed) -> int:
        """Return the tokens that no compaction removes: tools and instructions, be they messages or not."""
        return fixed_part.tokens + sum(self._tokens(each, bound) for each in self.transcript.messages[: self.lead])

    def request_size(self, bound: Bound) -> int:
        """Return the tokens of the newest message of the user that brings no results."""
        words = (message for message in reversed(self.transcript.messages) if message.role == "user")
        newest = next((message for message in words if not message.results), None)
        return 0 if newest is None else self._tokens(newest, bound)

    def unseen_size(self, bound: Bound) -> int:
        """Return the tokens of results that no answer has followed yet: the model sees them for the first time."""
        unanswered = takewhile(lambda message: message.role != "assistant", reversed(self.transcript.messages))
        return sum(self._tokens(message, bound) for message in unanswered if message.results)

    def usage(self) -> Usage | None:
        """Return the last report, in messages of the view; None where plans have changed since."""
        report = self._trusted(self.reported)
        if report is None:
            return None
        return replace(report.usage, covers=max(len(self.view) - (len(self.body.raws) - report.count), 0))

    def write(self, bound: Bound) -> tuple[bytes, ...]:
        """Return the messages that stand for the client's under the plans in force, as pieces of the JSON of a list.

        What no plan touched is the client's own bytes, without thinking that could not be sent any more. A longer
        history gives the same bytes at its beginning.
        """
        if not self.plans and self.is_unchanged(bound):
            return (self.body.body[self.body.start : self.body.stop],)
        under = self._under(bound)
        written = self.written
        raws = self.body.raws
        grown = written is not None and len(raws) > written.count
        if (
            written is None
            or written.under != under
            or (grown and not (written.open and self._valid_from(bound, written.count)))
        ):
            self.read(bound)
            written = self._assemble(under)
        elif grown:
            fresh = b"".join([b",%b" % bytes(raw) for raw in raws[written.count :]])
            pieces = (*written.pieces, fresh) if len(written.pieces) < PIECES else (b"".join((*written.pieces, fresh)),)
            written = Written(len(raws), pieces, written.size + len(fresh), True, under)
        self.written = written
        return written.pieces

    def _assemble(self, under: Under) -> Written:
        messages, raws = self.transcript.messages, self.body.raws
        own = {id(message.native): place for place, message in enumerate(messages)}
        natives = formats.assemble(self.format, self.view)
        body = b",".join([_bytes(native, own, raws) for native in natives])
        last = own.get(id(natives[-1])) if natives else None
        return Written(len(raws), (body,), len(body), last == len(messages) - 1, under)

    def _under(self, bound: Bound) -> Under:
        return self.applied, bool(self.production.tool), bound.binds_thinking

    def _valid_from(self, bound: Bound, start: int) -> bool:
        """Tell whether the messages from a position on are sent as they are: all was produced under what is sent."""
        return not bound.binds_thinking or self.production.covers(start, self._under(bound))

    def _tokens(self, message: Message, bound: Bound) -> int:
        if message.patches or message.native is None:
            return bound.counter.message(message)
        known = self.estimates.get(message.id)
        if known is None:
            known = self.estimates[message.id] = bound.counter.message(message)
        return known

    def _trusted(self, report: ReportedUsage | None) -> ReportedUsage | None:
        """Return a report where it is of this beginning and these plans."""
        if report is None or report.count > len(self.body.raws):
            return None
        return report if report.plans == self.applied else None

    def is_faulty(self) -> bool:
        """Tell of a conversation that is read whether the provider would refuse it, be it for calls without results."""
        waiting = any(getattr(rule, "open_calls", lambda _: ())(self.view) for rule in self.format.rules)
        return waiting or bool(formats.broken(self.format, self.view))


def within(plans: tuple[Plan, ...], count: int) -> tuple[Plan, ...]:
    """Return the leading plans that were made for no more than so many messages."""
    fitting = enumerate(plans)
    stop = next((place for place, plan in fitting if not 0 < plan.base.length <= count), len(plans))
    return plans[:stop]


def steady() -> float:
    """Return seconds that nobody can set, and that go on while the machine sleeps."""
    return time.monotonic() if CLOCK is None else time.clock_gettime(CLOCK)


def differs(known: Bytes, fresh: Bytes) -> bool:
    return known is not fresh and bytes(known) != bytes(fresh)


def _bytes(value: object, own: dict[int, int], raws: Sequence[Bytes]) -> bytes:
    place = own.get(id(value))
    if place is not None:
        return bytes(raws[place])
    try:
        return msgspec.json.encode(value)
    except (UnicodeEncodeError, TypeError, ValueError):
        return json_text(value).encode()


def _equal(known: Bytes | None, raw: Bytes | None) -> bool:
    if known is raw:
        return True
    return known is not None and raw is not None and bytes(known) == bytes(raw)
