"""Fit: brings a view to its goal with the least loss, writes a digest of the rest, and fills the remaining room."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct
from msgspec.structs import replace

from refold._condense import files_in_work, steering
from refold._condense.digest import findings, identifier_ledger, open_items, outcomes, state
from refold._condense.digest.model_account import account_in, need_of
from refold._condense.digest.previous import digests_in, is_digest, own_text
from refold._condense.digest.render import account_size, digest_text, least_of, limit_of, touched_files
from refold._condense.files_in_work import room_for_files, touched_last
from refold._condense.fit_draft import Draft
from refold._condense.identifier_scores import take_down
from refold._condense.left_out import room_for_count, with_count
from refold._condense.outdated import mark_outdated, room_for_outdated
from refold._condense.pins import loses_pins, pins
from refold._condense.recaps import settle_plans, settle_recaps
from refold._condense.reduction_order import ReductionLog, goal_of_whole_request, shrink
from refold._condense.refill import refill
from refold._condense.regions import Regions, regions
from refold._condense.repeated_outputs import correct_markers
from refold._condense.replaced import mark_replaced
from refold._condense.selection import Selection, select
from refold._condense.speaker_marks import is_speaker_mark, room_for_marks, speaker_marks
from refold._condense.view_positions import anchor, is_quotation, preserved_request, visible_request
from refold._salience import features, statements
from refold._salience.atoms import names_of
from refold.core._preserved_thinking import removals
from refold.core._speakers import is_recap, speech
from refold.core.budget import Exactly
from refold.core.edits import Hide, Insert, Rewrite
from refold.core.messages import Message, Note, Patch, Text
from refold.core.policy import require_shares

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from refold.core.edits import Edit
    from refold.core.messages import MessageId, Part
    from refold.core.needs import Need
    from refold.core.transcript import Transcript
    from refold.core.view import View

__all__ = ["Fit", "unshrinkable"]

# Chosen by hand: each round writes and counts the whole digest.
AIMS = 4  # of aiming lower, where what stays depends on what leaves
ROUNDS = 5  # of shrinking and writing the digest, until both fit together


class Fit(Struct, frozen=True):
    """Replace old output by pointers, then remove old tool-call groups, then shorten the rest; users' texts last.

    `newest` is the share of the goal that the newest text has verbatim while possible; `users` the share that users'
    turns may have as messages of their own; beyond it their most distinctive sentences stay. A plan that would lose a
    pinned sentence is not made; the goal is then raised halfway to the input budget, or to that budget. It is raised,
    at most halfway, also for a newest request that would have to be cut without that. If a summarizer is available, and
    with `asks`, the digest contains a model's account of the removed work, in 3 % of the goal, at most 1,200 tokens
    apart from the digest's own. With `keep_until`, from 0 to 1, the remaining room stays empty once that share of the
    predicted use is present.
    """

    grows: ClassVar[bool] = False

    newest: float = 0.2
    users: float = 0.5
    keep_until: float | None = None
    asks: bool = True

    def __post_init__(self) -> None:
        require_shares(self, "newest", "users", "keep_until")

    def arrived(self, message: Message) -> None:
        """Read a message's identifiers, which is most of the work of a choice, and what a digest would tell of it."""
        features.prepare(message)
        statements.prepare(message)
        findings.prepare(message)
        identifier_ledger.prepare(message)
        outcomes.prepare(message)
        open_items.prepare(message)
        state.prepare(message)
        files_in_work.prepare(message)
        steering.prepare(message)

    def grown(self, transcript: Transcript, length: int) -> None:
        """Take down who mentioned which identifiers in the first messages of a growing conversation."""
        take_down(transcript, length)

    def needs(self, view: View) -> tuple[Need, ...]:
        """Ask for an account of the older part, where there is somebody to ask."""
        if not (self.asks and view.summarizer and view.messages) or view.over_goal <= 0:
            return ()
        need = need_of(view, regions(view, int(view.goal_tokens * self.newest)).tail)
        return (need,) if need else ()

    def edits(self, view: View, answers: tuple[object, ...] = ()) -> tuple[Edit, ...]:
        """Return the edits that bring the view to its goal, or as near to it as it can be brought."""
        if view.over_goal <= 0 or not view.messages:
            return ()
        if stale := _stale_thinking(view):
            without = view.after(stale)
            if without.over_goal <= 0:
                return stale
            edits = self._with_request(without, answers)
            if any(isinstance(edit, Insert) for edit in edits):
                return (*stale, *edits)
        return self._with_request(view, answers)

    def _with_request(self, view: View, answers: tuple[object, ...]) -> tuple[Edit, ...]:
        """Return the edits that fit a view; a request that another message quotes first gets one of its own."""
        edits = self._fitted(view, answers)
        request = visible_request(view)
        if request is None or not is_quotation(view, request) or not _changes(edits, request):
            return edits
        carrier = view.index[request.id]
        position = anchor(view, carrier, carrier + 1)
        _, copies = preserved_request(view, view.messages[carrier : carrier + 1], request, position)
        return (*copies, *self._fitted(view.after(copies), answers))

    def _fitted(self, view: View, answers: tuple[object, ...]) -> tuple[Edit, ...]:
        """Return the edits for the nearest goal that can be met, with a long newest request whole where that can be."""
        most = view.budget.input
        if view.tokens > (raised := goal_of_whole_request(view)) > 0:
            edits = self._meeting(view, raised, answers, whole=True)
            if edits and view.after(edits).tokens <= raised:
                return edits
        for goal in dict.fromkeys((view.goal_tokens, (view.goal_tokens + most) // 2, most)):
            if view.tokens > goal and (edits := self._meeting(view, goal, answers)):
                return edits
        return ()

    def _meeting(self, view: View, goal: int, answers: tuple[object, ...], *, whole: bool = False) -> tuple[Edit, ...]:
        """Return the edits for a goal, aimed lower where what stays in spite of them is above it."""
        edits = self._plan(replace(view, goal=Exactly(goal)), answers, whole=whole)
        if not edits or not _more_stays(view):
            return edits
        aim, size = goal, view.after(edits).tokens
        for number in range(AIMS):
            aim -= size - goal << number
            if size <= goal or aim <= 0:
                break
            lower = self._plan(replace(view, goal=Exactly(aim)), answers, whole=whole)
            if not lower:
                break
            if (after := view.after(lower).tokens) < size:
                edits, size = lower, after
        return edits

    def _plan(self, view: View, answers: tuple[object, ...], *, whole: bool) -> tuple[Edit, ...]:
        """Return the edits for the view's own goal; none where they would lose a pinned sentence.

        With `whole` the newest request is not cut.
        """
        draft = Draft(view)
        areas = regions(view, int(view.goal_tokens * self.newest))
        if whole:
            areas = replace(areas, whole=areas.users[-1:])
        draft.drop(position for position, message in enumerate(view.messages) if _is_made_anew(message))
        for position, message in enumerate(view.messages):
            if message.note is None and (joined := digests_in(message)):
                draft.change(position, [Patch(part.at, None) for part in joined])
        mark_replaced(draft)
        settle_recaps(draft)
        settle_plans(draft)
        inserted = self._reduce(draft, areas, account_in(view, answers))
        if loses_pins(view, [*draft.remaining(), *(insert.message for insert in inserted)]):
            return ()
        return (*draft.edits(), *inserted)

    def _reduce(self, draft: Draft, areas: Regions, account: str) -> tuple[Insert, ...]:
        """Shrink and write the digest until both fit together, then fill up; return the digest and marks of turns."""
        view = draft.view
        goal = view.goal_tokens - room_for_marks(view) - room_for_count(view)
        files, before, count = touched_files(view), _anchor(view), view.counter.text
        work, room = touched_last(view.transcript), room_for_files(view, changed=bool(files[1]))
        reserve = limit_of(view) + account_size(view, account) + room
        digest: Insert | None = None
        log = ReductionLog()

        def named(staying: Iterable[Message]) -> frozenset[str]:
            return names_of(work.section(staying, room, count))

        selection = select(draft, areas, goal - reserve, log, self.keep_until, named)
        for more in reversed(range(ROUNDS)):
            draft.add(0)
            shrink(draft, areas, goal - reserve, int(view.goal_tokens * self.users), log)
            left, standing = _left(draft), draft.remaining()
            least = least_of(view, left, standing, reserve)
            if least > reserve and more:
                reserve = least
                continue
            over = max(draft.total + reserve - goal, 0)
            limit = max(reserve - over, 0)
            block = work.section(standing, min(room, limit // 2, limit - least), count)
            text = digest_text(view, left, staying=standing, limit=limit, before=before, account=account, block=block)
            digest = view.insert("user", text, Note("digest", *files), before=before) if text else None
            size = view.counter.message(digest.message) if digest else 0
            draft.add(size)
            if draft.total <= goal or size <= reserve:
                break
            reserve = size
        if draft.total < goal and not (selection and selection.enough):
            selection = selection or Selection(draft, areas, log, named)
            selection.fill(goal - room_for_outdated(draft))
            refill(draft, areas, log, goal - room_for_outdated(draft))
        mark_outdated(draft, goal)
        correct_markers(draft)
        if digest:
            free = view.goal_tokens - room_for_marks(view) - draft.total
            text = with_count(view, text, draft.remaining(), free, before)
            counted = view.insert("user", text, Note("digest", *files), before=before)
            # with it a counter may take the text for one of another kind, all of which costs more
            if (larger := view.counter.message(counted.message)) - size <= free:
                digest = counted
                draft.add(larger)
        marks = speaker_marks(draft, digest, view.goal_tokens - draft.total)
        return (digest, *marks) if digest else marks


def unshrinkable(view: View) -> dict[str, int]:
    """Return what a view holds that no step makes smaller, in tokens by cause; causes of no size are left out."""
    areas = regions(view, 0)
    fixed = {
        "system": view.overhead.system + _size(view, (m for m in view.messages if m.role == "system")),
        "tools": view.overhead.tools,
        "prompt": view.overhead.prompt,
        "files": view.overhead.files,
        "pins": sum(view.counter.text(pin.text) for pin in pins(view.transcript) if pin.role == "user"),
        "newest turn": _size(view, (view.messages[position] for position in areas.fresh)),
    }
    counted = sum(fixed.values())
    return {cause: size for cause, size in {**fixed, "rest": max(view.estimated - counted, 0)}.items() if size > 0}


def _stale_thinking(view: View) -> tuple[Edit, ...]:
    """Return the edits that remove the thinking behind the place of the digest, where the model refuses it there.

    The run removes it at its end. If it counted until then, its room would stay empty.
    """
    before = _anchor(view) if view.binds_thinking else None
    if before is None:
        return ()
    return removals(view.after((view.insert("user", "digest", Note("digest"), before=before),)))


def _more_stays(view: View) -> bool:
    """Tell whether parts may stay that a draft lets leave: what loads a tool of a later call, or half of a pair."""
    return bool(view.constraints.pairs) or any(part.loads for message in view.messages for part in message.opaques)


def _is_made_anew(message: Message) -> bool:
    """Tell whether a message is ours that each plan writes again: the digest, or the mark of a turn."""
    return is_digest(message) or is_speaker_mark(message)


def _size(view: View, messages: Iterable[Message]) -> int:
    return sum(map(view.size, messages))


def _changes(edits: Sequence[Edit], message: Message) -> bool:
    """Tell whether edits hide or rewrite a message."""
    hidden = any(message.id in edit.messages for edit in edits if isinstance(edit, Hide))
    return hidden or any(edit.message == message.id for edit in edits if isinstance(edit, Rewrite))


def _left(draft: Draft) -> list[Message]:
    """Return what is not shown as it was said: messages that left, and of changed ones the parts that changed."""
    left: list[Message] = []
    index = draft.view.index
    for original in draft.view.transcript.messages:
        if _is_made_anew(original):
            continue
        position = index.get(original.id)
        if position is None or draft.hidden[position]:
            left.append(original)
            continue
        now = draft.messages[position]
        if now is not original and now.parts != original.parts and original.role != "system":
            standing = {part.at: part for part in now.parts}
            changed = (part for part in original.parts if standing.get(part.at) != part)
            parts = (_without_words_of_user(original, part) for part in changed)
            left.append(replace(original, parts=tuple(part for part in parts if part is not None)))
    return left


def _without_words_of_user(message: Message, part: Part) -> Part | None:
    """Return what is not a user's of a part: what a user said is cut in its place, and keeps its pins there."""
    if message.role != "user" or not isinstance(part, Text):
        return part
    harness = speech(message).texts.get(part.at)
    if harness is None:
        return None
    return replace(part, text="\n".join(part.text[span.start : span.stop] for span in harness.spans))


def _opens(message: Message) -> bool:
    """Tell whether a user's message opens the work: a request, or the summary of an earlier context."""
    return bool(own_text(message)) or is_recap(message)


def _anchor(view: View) -> MessageId | None:
    """Return the message that the digest stands before: the first after the first user's turn that parts no pair."""
    received = [message for message in view.start if message.note is None and message.role != "system"]
    first = next(
        (position for position, message in enumerate(received) if message.role == "user" and _opens(message)), -1
    )
    return next((message.id for message in received[first + 1 :] if view.index.get(message.id) in view.cuts), None)
