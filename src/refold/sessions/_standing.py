"""Where a session stands: what it holds and what it shows, to be read."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from refold import formats
from refold._compaction.request import budget_for
from refold.core.budget import Budget, Usage
from refold.errors import SessionNotFound, StoreError
from refold.models._thinking import binds_thinking
from refold.sessions._context_stats import ContextStats
from refold.sessions._log import Log
from refold.sessions._message_cache import MessageCache
from refold.sessions._meters import SessionMeters
from refold.sessions._provenance import Provenance, digest_of_settings
from refold.sessions._saved_settings import settled, to_remember
from refold.sessions._state import Billed, voided
from refold.sessions._stores.leases import new_id
from refold.sessions._view_cache import ViewCache

if TYPE_CHECKING:
    from collections.abc import Mapping

    from refold._compaction.result import Check
    from refold.core.messages import Message, MessageId
    from refold.core.plan import Plan, PlanId
    from refold.core.policy import Policy
    from refold.formats import Format
    from refold.sessions._entries import UsageEntry
    from refold.sessions._stores.protocol import Head, Store

__all__ = ["Standing"]


class Standing:
    """The part of a `Session` that is read."""

    def __init__(
        self, store: Store, id: str | None, given: Mapping[str, Any], *, format: str | None, must_exist: bool
    ) -> None:
        self.store = store
        self._given = {name: value for name, value in given.items() if value is not None}
        self._format = format
        self._log = Log(store, id or new_id())
        if must_exist and self._log.head is None:
            raise SessionNotFound(f"there is no session {id!r} in {store.name}: name one of those that it lists")
        self._remembered = self._log.state.settings
        self._options = settled(self._remembered, self._given, format)
        self._to_remember = to_remember(self._given, self._remembered)
        self._held = MessageCache()
        self._shown = ViewCache()
        self._flying: tuple[Plan, ...] = ()
        self._stale: UsageEntry | None = None
        self._sent: int | None = None
        self._flown: tuple[Plan, ...] = ()  # all plans that were kept in this object only
        self._viewed: tuple[int, tuple[PlanId, ...]] = (0, ())  # messages of the last view, and its plans
        self._sending: tuple[Any, Any] | None = None  # system prompt and tools of the last view alone
        self._digest: tuple[Any, Any, str] | None = None
        self._measures = SessionMeters(self._options, self.format)
        with suppress(StoreError):  # else they are with the next message
            self._remember()
        self._follow()

    @property
    def id(self) -> str:
        """The session's id; a policy that renews sessions changes it (V09)."""
        return self._log.session

    @property
    def head(self) -> Head | None:
        """What the store says of the session; None until something was appended."""
        return self._log.head

    @property
    def lineage(self) -> tuple[str, ...]:
        """This session and those that it continues, the newest first."""
        return self._log.lineage

    @property
    def format(self) -> str | None:
        """The format of its messages, once that is known."""
        return self._log.head.format if self._log.head else self._format

    @property
    def messages(self) -> list[Any]:
        """Every native message that is not rewound, as it was appended, whatever plans did to it."""
        return list(self._held.natives)

    @property
    def ids(self) -> tuple[MessageId, ...]:
        """The ids of those messages."""
        return tuple(self._log.state.ids)

    @property
    def shown(self) -> tuple[Message, ...]:
        """What `view` returns as values: with ids and notes, and without the provider's wrapping."""
        self._seen()
        return tuple(self._shown.messages)

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plans in force, oldest first."""
        return (*self._log.state.in_force, *self._flying)

    @property
    def policy(self) -> Policy:
        """The policy that compacts it."""
        assert not isinstance(self._options.policy, str)
        return self._options.policy

    @property
    def context_window(self) -> int:
        """The whole window, in tokens."""
        return budget_for(self.policy, self._options).window

    @property
    def billed(self) -> Billed:
        """What all calls were billed together (O01)."""
        return self._log.state.billed

    def check(self) -> Check:
        """Measure the request that `view` would be, at a cost that grows with what is new."""
        return self._measures.shown.check(self._seen(), usage=self._usage())

    def needs_compaction(self) -> bool:
        """Tell whether compaction is due, or new output too large for the policy; False for an empty session (N19)."""
        if not self._held.natives:
            return False
        check = self.check()
        wakes = self.policy.wakes(Budget(check.limit))
        return check.due or bool(wakes and self._measures.shown.largest_new(wakes))

    def get_context_stats(self) -> ContextStats | None:
        """Return how full the context is; None for a session without messages (N19)."""
        if not self._held.natives:
            return None
        check = self.check()
        return ContextStats(
            estimated_input_tokens=check.tokens, available_input_tokens=check.limit, usage_ratio=check.ratio,
            should_compact=check.due, message_count=len(self._seen()), context_window=self.context_window,
            context_tokens=check.tokens, billed=self.billed,
        )  # fmt: skip

    def _seen(self) -> list[Any]:
        if not self._held.natives:
            return []
        format = formats.find(self.format or "")
        binds = binds_thinking(format.name, self._options.model)
        return self._shown.follow(
            format, self._held.transcript, self.plans, self._provenance(format) if binds else None
        )

    def _provenance(self, format: Format) -> Provenance:
        plans = self._log.state.plans | {plan.id: plan for plan in self._flown}
        return Provenance(self._log.state.under, plans, self._settings(format))

    def _settings(self, format: Format) -> str:
        """Return a digest of system prompt and tools, worked out once for each pair of them."""
        system, tools = self._sending or (None, None)
        now = (
            self._options.system if system is None else system,
            self._options.tools if tools is None else tools,
        )
        if self._digest is None or self._digest[0] is not now[0] or self._digest[1] is not now[1]:
            self._digest = (*now, digest_of_settings(format, *now))
        return str(self._digest[2])

    def _answered_under(self) -> tuple[PlanId, ...] | None:
        """Return the plans of the view that is answered now, None where they are those in force in the store."""
        length, viewed = self._viewed
        plans = viewed if length == len(self._held.natives) else tuple(plan.id for plan in self.plans)
        return None if plans == self._log.state.live else plans

    def _usage(self) -> Usage | None:
        last = self._log.state.usage
        if last is None or last is self._stale:
            return None
        return Usage(last.prompt, last.completion, last.cached, last.covers)

    def _remember(self) -> None:
        """Write down the settings that were given and are not what the log has; a session that is not begun waits."""
        head = self._log.head
        if head is None or head.next:
            return
        known = self._log.state.settings
        fresh = {name: value for name, value in self._to_remember.items() if value != known.get(name)}
        if fresh:
            self._log.configure(fresh)
        self._to_remember = {}

    def _settle(self) -> None:
        """Work by the settings that hold now; what was measured by others is measured anew."""
        self._remembered = self._log.state.settings
        options = settled(self._remembered, self._given, self._format)
        if options != self._options:
            self._options = options
            self._measures = SessionMeters(options, self.format)

    def _follow(self) -> None:
        if self._log.state.settings is not self._remembered:
            self._settle()
        self._held.follow(self._log)
        self._flying = tuple(plan for plan in self._flying if plan.base.length <= len(self._held.natives))

    def _plans_for_request(self) -> tuple[Plan, ...]:
        return voided(self.plans, self._log.state.ids)
