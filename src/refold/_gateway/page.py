"""The page over a gateway: its tokens as those of viewers, and the conversations that it has in memory."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from refold._gateway.conversations.conversation import steady
from refold._gateway.wire.body import native
from refold._page.access import Viewer
from refold._page.app import page_app
from refold._page.cards import Pulse, RunningCard
from refold._page.conversations import Conversations, LiveConversation
from refold.sessions import Head

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from typing import Any

    from starlette.types import ASGIApp

    from refold._gateway.conversations.budgets import Budgets
    from refold._gateway.conversations.conversation import Conversation
    from refold._gateway.conversations.planner import Planner
    from refold._gateway.conversations.tracker import ConversationTracker
    from refold._gateway.server.auth import Auth

__all__ = ["PAGE", "GatewayMemory", "gateway_page", "is_page"]

PAGE = "/page"


def is_page(path: str) -> bool:
    """Return whether a path is one of the page, and never sent upstream."""
    return path == PAGE or path.startswith(PAGE + "/")


def gateway_page(conversations: Conversations, auth: Auth, public_url: str) -> ASGIApp:
    """Return the page of a gateway; processes that share its store know each other's viewers."""
    return page_app(conversations, _TokenViewers(auth), b"page" + conversations.store.salt(), public_url)


class _TokenViewers:
    """The tokens of a gateway: each shows the conversations of its owner, an administrator's those of all."""

    def __init__(self, auth: Auth) -> None:
        self._auth = auth

    def by_token(self, token: str) -> Viewer | None:
        """Return whose token a text is."""
        caller = self._auth.caller(token.encode("utf-8", "replace"))
        return None if caller is None else self.by_id(caller.token)

    def by_id(self, id: str) -> Viewer | None:
        """Return who has the token of an id, as long as it is in force."""
        known = self._auth.by_id(id)
        return None if known is None else Viewer(id, known[0].sees, known[1], self._auth.rate_of(known[0]))


class GatewayMemory:
    """The conversations in the memory of a gateway; `draining` tells whether it takes no requests any more."""

    def __init__(
        self, tracker: ConversationTracker, budgets: Budgets, planner: Planner, draining: Callable[[], bool]
    ) -> None:
        self._tracker = tracker
        self._budgets = budgets
        self._running = planner.running
        self.draining = draining

    def listed(self, sees: str | None) -> Sequence[Head]:
        """Return the conversations of an owner, or of all."""
        return [_head(each) for each in self._tracker.all() if sees in (None, each.owner)]

    def by_ids(self, ids: Collection[str], sees: str | None) -> dict[str, LiveConversation]:
        """Return those conversations of an owner, each by its id or its session's."""
        return {id: self._live(conversation) for id, conversation in self._by_ids(ids, sees).items()}

    def _live(self, conversation: Conversation) -> LiveConversation:
        report = conversation.reported
        trusted = report is not None and report.plans == conversation.applied
        return LiveConversation(
            head=_head(conversation), stored=conversation.session_id, raws=tuple(conversation.body.raws), read=native,
            transcript=conversation.transcript,
            plans=conversation.plans if conversation.unsaved or not conversation.session_id else (),
            report=(report.count, report.usage) if report is not None and trusted else None,
            settings=self._settings(conversation),
        )  # fmt: skip

    def pulse(self, id: str, sees: str | None) -> Pulse | None:
        """Return the compaction of a conversation that runs now, and the plans in force."""
        conversation = self._by_ids([id], sees).get(id)
        if conversation is None:
            return None
        running = self._running.get(conversation.id)
        card = RunningCard(running.policy, running.messages, running.targets, running.tokens) if running else None
        return Pulse(card, conversation.applied)

    def _by_ids(self, ids: Collection[str], sees: str | None) -> dict[str, Conversation]:
        """Return the conversations of some ids in one look at all; of two the one that was used last."""
        known, wanted = dict[str, "Conversation"](), set(ids) - {""}
        for each in self._tracker.all():
            if sees in (None, each.owner):
                if each.id in wanted:
                    known[each.id] = each
                if each.session_id in wanted:
                    known[each.session_id] = each
        return known

    def _settings(self, conversation: Conversation) -> dict[str, Any]:
        wanted = conversation.wanted
        pins = {"pinned": list(conversation.pinned)} if conversation.pinned else {}
        if wanted is None or not wanted.model:
            return pins
        bound = self._budgets.bound(wanted.model, wanted.output, conversation.policy, conversation.format.name)
        return pins | bound.settings(wanted.model)


def _head(conversation: Conversation) -> Head:
    touched = time.time() - (steady() - conversation.used) if conversation.used else time.time()
    return Head(
        conversation.session_id or conversation.id, conversation.format.name, touched=touched,
        messages=len(conversation.body.raws), owner=conversation.owner,
    )  # fmt: skip
