"""Finds under which plans each message of a session was produced, and leaves stale thinking out of a view.

A session's log says in which order messages were appended and plans became active, were deactivated and became active
again, so what was sent when a message was produced can be folded again at any time, also after a restart and by another
process. `refold.core._preserved_thinking` compares.

Most views need no comparison: a message that was produced under the very plans that
were made before it, all of them still active, lost its thinking to the next plan if that changed anything before it.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from refold._compaction.result import fold_plans
from refold.core._native import as_json
from refold.core._preserved_thinking import Sent, bound_parts, without_stale
from refold.core.transcript import canonical

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from refold.core.messages import Message, MessageId
    from refold.core.plan import Plan, PlanId
    from refold.core.transcript import Transcript
    from refold.formats import Format

__all__ = ["Provenance", "digest_of_settings"]


def digest_of_settings(format: Format, system: object, tools: object) -> str:
    """Return a digest of what stands before the messages of a request; cache marks are no part of it."""
    return blake2b(canonical(as_json([system, tools]), format.volatile), digest_size=8).hexdigest()


class Provenance:
    """What is known of the messages now: `under` by id (plans and a digest of settings), and the plans by id.

    `settings` is the digest of the system prompt and tools that are sent now; a message without one was appended before
    they were kept and counts as produced under these.
    """

    def __init__(
        self,
        under: Mapping[MessageId, tuple[tuple[PlanId, ...], str]],
        plans: Mapping[PlanId, Plan],
        settings: str,
    ) -> None:
        self._under = under
        self._plans = plans
        self.settings = settings

    def in_order(self, view: Sequence[Message], transcript: Transcript, in_force: Sequence[Plan]) -> bool:
        """Tell whether each message was produced under exactly the active plans that were made before it."""
        return all(self._in_order(message, transcript, in_force) for message in view if bound_parts(message))

    def preserved(self, view: Sequence[Message], transcript: Transcript, in_force: Sequence[Plan]) -> Sequence[Message]:
        """Return a view without stale thinking; the very same where there is none."""
        if self.in_order(view, transcript, in_force):
            return view
        sent: dict[tuple[tuple[PlanId, ...], str], Sent] = {}

        def under(ids: tuple[PlanId, ...], settings: str) -> Sent:
            key = ids, settings or self.settings
            if key not in sent:
                known = [self._plans[id] for id in ids if id in self._plans]
                view_then = fold_plans(transcript, known) if len(known) == len(ids) else ()
                sent[key] = Sent(view_then, key[1].encode())
            return sent[key]

        now = Sent(view, self.settings.encode())
        current = tuple(plan.id for plan in in_force)
        sent[current, self.settings] = now
        return without_stale(
            transcript.messages, lambda place: under(*self._of(transcript.messages[place].id, current)), now
        )

    def _in_order(self, message: Message, transcript: Transcript, in_force: Sequence[Plan]) -> bool:
        place = transcript.index.get(message.id, 0)
        expected = tuple(plan.id for plan in in_force if plan.base.length <= place)
        under, settings = self._of(message.id, expected)
        later = (plan for plan in in_force if plan.base.length > place)
        return under == expected and settings in ("", self.settings) and all(plan.binds_thinking for plan in later)

    def _of(self, id: MessageId, otherwise: tuple[PlanId, ...]) -> tuple[tuple[PlanId, ...], str]:
        return self._under.get(id, (otherwise, ""))
