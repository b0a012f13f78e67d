"""Preserved thinking: a signed thinking block is sent only behind the prefix it was produced under.

Models that bind thinking (`refold.models._thinking`) refuse a block for good once anything before it differs from what
was sent when it was produced: a message, the system prompt, the tools, or an earlier thinking block. A block that is
removed is accepted. Three facts give the whole law:

- A plan changes the view from some message on. What was produced before the plan stood behind the old messages, so the
  plan itself removes the thinking from there on (`removals`, the last edits of every plan). Thinking before the first
  change stays.
- What is produced under a plan stands behind the changed messages and stays valid while that plan is in force.
- A plan that is taken off, or that came into force after a message was produced without it, breaks this. Then
  `without_stale` compares, for each message with thinking, a chained digest of what it was produced behind with one of
  what it would be sent behind. Both depend on which thinking was sent in between, so they are worked out in order.
  `stale_edits` gives the same as edits, for a view that grows: what is produced under it needs no further look.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from msgspec import Struct

from refold.core.edits import Edit, Hide, Rewrite, fold, patched
from refold.core.messages import (
    Message,
    MessageId,
    Part,
    Patch,
    Reasoning,
    Text,
)
from refold.core.transcript import canonical

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from refold.core.view import View

__all__ = ["Sent", "bound_parts", "first_change", "removals", "stale_edits", "without_stale"]

EMPTY = "(no content)"  # in place of a message that had nothing but thinking; providers refuse a blank one


def bound_parts(message: Message) -> tuple[Reasoning, ...]:
    """Return the thinking of a message that is bound to what stands before it: signed or encrypted, of the model's."""
    if message.role != "assistant" or message.native is None:
        return ()
    return tuple(part for part in message.parts if isinstance(part, Reasoning) and part.sealed)


def first_change(before: Sequence[Message], after: Sequence[Message]) -> int:
    """Return the position from which on two lists of messages differ; the shorter length where one begins the other."""
    position = 0
    for old, new in zip(before, after, strict=False):
        if old is not new and (old.id, old.patches) != (new.id, new.patches):
            break
        position += 1
    return position


def removals(view: View) -> tuple[Edit, ...]:
    """Return the edits that remove the thinking which stands behind the first change of a run.

    A message that holds nothing else leaves the view; between two messages of the user it says that it is empty.
    """
    before, after = view.start, view.messages
    changed = first_change(before, after)
    edits: list[Edit] = []
    for position in range(changed, len(after)):
        message = after[position]
        stale = bound_parts(message)
        if stale and position == changed < len(before) and before[changed].id == message.id:
            stale = _behind(stale, before[changed], message)
        if stale:
            edits.extend(_removed(message, stale, _between_users(after, position)))
    return tuple(edits)


class Sent(Struct, frozen=True):
    """What a request was made of: the view of the conversation under the plans in force, and what stands before it.

    `settings` is a digest of system prompt and tools. `view` may be of a longer conversation: of a message that was
    produced under it only what stands before the message matters. `whole`: a model that binds nothing was sent it,
    stale thinking included.
    """

    view: Sequence[Message]
    settings: bytes = b""
    whole: bool = False


def without_stale(transcript: Iterable[Message], produced: Callable[[int], Sent], now: Sent) -> tuple[Message, ...]:
    """Return the view to send now without thinking that was produced behind anything else.

    `produced` gives for a position of the transcript what its message was produced under, the same object for all
    messages that were produced under the same plans and settings. What is not stale comes back as the very same
    messages.
    """
    return fold(now.view, [stale_edits(transcript, produced, now)])


def stale_edits(
    transcript: Iterable[Message],
    produced: Callable[[int], Sent],
    now: Sent,
    behind: dict[MessageId, bytes] | None = None,
) -> tuple[Edit, ...]:
    """Return the edits that remove from the view to send now the thinking that was produced behind anything else.

    `behind` remembers from call to call, for each message with thinking, the digest of what it was produced behind,
    which never changes.
    """
    behind = {} if behind is None else behind
    chains: dict[int, _Chain] = {}
    originals: dict[MessageId, Message] = {}

    def chain_of(sent: Sent) -> _Chain:
        return chains.setdefault(id(sent), _Chain(sent, behind, originals))

    for position, message in enumerate(transcript):
        if bound_parts(message):
            originals[message.id] = message
            if message.id not in behind:
                behind[message.id] = chain_of(produced(position)).before(message.id)
    chain = chain_of(now)
    chain.follow(len(now.view))
    return tuple(chain.edits)


class _Chain:
    """A digest of a view as it is sent, followed message by message, with stale thinking removed on the way."""

    def __init__(self, sent: Sent, behind: dict[MessageId, bytes], originals: dict[MessageId, Message]) -> None:
        self._view, self._whole = sent.view, sent.whole
        self._behind = behind
        self._originals = originals
        self._digest = sent.settings
        self._place = 0
        self._index = {message.id: position for position, message in enumerate(sent.view)}
        self.edits: list[Edit] = []

    def before(self, id: MessageId) -> bytes:
        """Return the digest of what stands before a message; nothing equals it where the message is not shown."""
        stop = self._index.get(id)
        if stop is None:
            return b""
        self.follow(stop)
        return self._digest

    def follow(self, stop: int) -> None:
        """Follow the view to a position."""
        while self._place < stop:
            self._step()

    def _step(self) -> None:
        message = sent = self._view[self._place]
        if stale := self._stale(message):
            edits = _removed(message, stale, _between_users(self._view, self._place))
            changes = [Patch(edit.at, edit.to) for edit in edits if isinstance(edit, Rewrite)]
            self.edits.extend(edits)
            self._place += 1
            if not changes:
                return
            sent = patched(message, changes)
        else:
            self._place += 1
        self._digest = _chained(self._digest, sent)

    def _stale(self, message: Message) -> tuple[Reasoning, ...]:
        """Return the thinking of a message that cannot be sent: all, or what stands behind a part that was edited."""
        bound = bound_parts(message) if not self._whole else ()
        if not bound or self._behind.get(message.id) != self._digest:
            return bound
        original = self._originals.get(message.id)
        return _behind(bound, original, message) if original is not None and message.patches else ()


def _chained(parent: bytes, message: Message) -> bytes:
    """Return the digest after one message more; an id stands for the content, and for all before it."""
    own = message.id.encode()
    if message.patches:
        own += canonical([(patch.at, patch.to) for patch in message.patches])
    return blake2b(parent + own, digest_size=16).digest()


def _behind(stale: tuple[Reasoning, ...], before: Message, after: Message) -> tuple[Reasoning, ...]:
    """Return the thinking of an edited message that stands at or behind the first part which was edited."""
    paths = [patch.at for patch in after.patches[len(before.patches) :]]
    order = {part.at: position for position, part in enumerate(before.parts)}

    def touched(part: Part) -> bool:
        return any(part.at[: len(at)] == at or at[: len(part.at)] == part.at for at in paths)

    first = next((position for position, part in enumerate(before.parts) if touched(part)), len(before.parts))
    return tuple(part for part in stale if order.get(part.at, 0) >= first)


def _removed(message: Message, stale: tuple[Reasoning, ...], between_users: bool) -> tuple[Edit, ...]:
    others = [part for part in message.parts if part not in stale]
    if all(isinstance(part, Text) and not part.text.strip() for part in others):
        if not between_users:
            return (Hide((message.id,)),)
        *rest, last = stale
        return (*(Rewrite(message.id, part.at) for part in rest), Rewrite(message.id, last.at, Text(EMPTY)))
    return tuple(Rewrite(message.id, part.at) for part in stale)


def _between_users(view: Sequence[Message], position: int) -> bool:
    """Tell whether a message parts two of the user's, which some providers do not take in a row."""
    return 0 < position < len(view) - 1 and view[position - 1].role != "assistant" != view[position + 1].role
