"""The reductions of a fit, cheapest first: each takes a draft nearer to its size and stops when the size is reached.

Every function takes a draft and a target and returns what it did: a `Reduction` for changed parts, ranges for hidden
messages. Most go from the oldest message to the newest; cuts take the largest texts, all to one size. A reduction that
saves nothing is taken back at once (`try_change`). Texts are always cut from the original, never from what an earlier
plan left of it, so that labels do not nest. Sealed reasoning of the running tool loop stays, for the provider demands
it, as do users' pinned sentences and what the system said. `reduction_order` says in which order they are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from refold._condense.call_outline import pointer
from refold._condense.directives import TextKind, shortened
from refold._condense.harness_text import ShortenedHarness, shortened_harness
from refold._condense.pins import pins_of
from refold._condense.placeholders import (
    content_replaced,
    images_in,
    is_pointer,
    media_marker,
    text_replaced,
)
from refold._condense.shorten import shorten, shorten_arguments
from refold._rules.reasoning import seal_of
from refold.core._speakers import is_recap, is_turn, speech, typed_in
from refold.core.messages import (
    File,
    Image,
    Patch,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterable, Iterator, Sequence

    from refold._condense.fit_draft import Draft
    from refold._condense.regions import Regions
    from refold.core.messages import Message, Path

__all__ = [
    "Reduction",
    "cap_of",
    "clear_harness",
    "clear_results",
    "cut_results",
    "cut_texts",
    "drop_reasoning",
    "hide_repeats",
    "hide_segments",
    "hide_users",
    "merged",
    "only_text",
    "original_result",
    "original_text",
    "pinned_in",
    "results_in",
    "shorten_calls",
    "shortened_words",
    "strip_images",
    "strip_seen_images",
    "try_change",
    "typed_words",
]

# Chosen by hand: below these sizes a pointer or a marker is about as long as what it stands for.
WORTH = 240  # characters from which an output is cleared
ARGUMENT = 320  # characters left of a long argument
STANDING = 0.05  # of the goal: instructions that stay whole
CHARS = 3.5  # characters a token, where a guess will do
REPEATED = 40  # characters from which words that are said again are no mere "go on"


class Reduction(Struct, frozen=True):
    """A change to a message that can be taken back; `words` is the text it cut.

    `result` is the output it concerns, as the view has it.

    `harness` is the text with what a harness says in it, where that was cut; `ending` stands behind what is left of
    words.
    """

    position: int
    patches: tuple[Patch, ...]
    saved: int
    result: ToolResult | None = None
    words: str = ""
    harness: ShortenedHarness | None = None
    ending: str = ""

    @property
    def place(self) -> tuple[int, Path]:
        """What it concerns: an output, a text, the calls of a message together, or its other parts."""
        if self.result is not None:
            return self.position, self.result.at
        calls = any(isinstance(patch.to, ToolCall) for patch in self.patches)
        return self.position, () if calls else self.patches[0].at


def merged(reductions: Iterable[Reduction]) -> list[Reduction]:
    """Return reductions with those of one place as one, where the last was: an output may be cut, and cleared later.

    Such a reduction leaves what the last has left, and saves what all have saved.
    """
    by_place: dict[tuple[int, Path], Reduction] = {}
    for last in reductions:
        before = by_place.pop(last.place, None)
        if before is not None:
            patches = {patch.at: patch for patch in (*before.patches, *last.patches)}
            last = replace(last, patches=tuple(patches.values()), saved=before.saved + last.saved)
        by_place[last.place] = last
    return list(by_place.values())


def results_in(draft: Draft, positions: Iterable[int]) -> Iterator[tuple[int, ToolResult]]:
    """Yield each output of visible messages that is more than a pointer, as it is now, with its position."""
    for position in positions:
        if not draft.hidden[position]:
            message = draft.messages[position]
            yield from ((position, result) for result in message.results if not is_pointer(message, result))


def clear_results(
    draft: Draft, positions: Iterable[int], target: int, *, errors: bool = False, worth: int = WORTH
) -> list[Reduction]:
    """Put pointers in place of outputs of `worth` characters, oldest first; errors when asked, and then only they."""
    reductions: list[Reduction] = []
    for position, result in results_in(draft, positions):
        if draft.total <= target:
            break
        if (
            result.is_error is not errors
            or len(result.text) + 2_000 * sum(isinstance(inner, Image | File) for inner in result.content) < worth
        ):
            continue
        before = _as_viewed(draft, position, result)
        original = original_result(draft, position, result)
        patches = list(content_replaced(before, pointer(draft.view.call_of(draft.base[position], result), original)))
        reductions += [replace(reduction, result=before) for reduction in try_change(draft, position, patches)]
    return reductions


def clear_harness(
    draft: Draft, positions: Iterable[int], target: int, standing: Collection[int] = (), *, worth: int = WORTH
) -> list[Reduction]:
    """Put pointers in place of what a harness says in users' turns from `worth` characters on, oldest first.

    Instructions at places in `standing` stay whole where they are small for the goal; where there are some, those at
    other places are given again.
    """
    reductions: list[Reduction] = []
    small = int(draft.view.goal_tokens * STANDING * CHARS)
    for position in _visible(draft, positions, target):
        original = _original(draft, position)
        if original.role != "user" or original.note is not None:
            continue
        for part in draft.messages[position].parts:
            if not isinstance(part, Text):
                continue
            least = max(small, worth) if position in standing else worth
            again = bool(standing) and position not in standing
            harness = shortened_harness(original, part.at, worth, least, again=again)
            if harness:
                moves = try_change(draft, position, [Patch(part.at, Text(harness.showing()))])
                words = harness.harness.text.text
                reductions += [replace(reduction, words=words, harness=harness) for reduction in moves]
    return reductions


def shorten_calls(
    draft: Draft, positions: Iterable[int], target: int, loop: int, chars: int = ARGUMENT
) -> list[Reduction]:
    """Cut long texts inside the arguments of calls, oldest first.

    A call that bears a signature of its own loses it with the change; at or after `loop`, where the provider demands
    that signature (Gemini's current turn), it stays as it is.
    """
    reductions: list[Reduction] = []
    for position in _visible(draft, positions, target):
        patches: list[Patch] = []
        for part in draft.messages[position].calls:
            if len(part.arguments) > 2 * chars:
                shorter = shorten_arguments(part.arguments, chars, free_text=part.kind == "custom")
                seal = seal_of(draft.messages[position], part)
                if len(shorter) < len(part.arguments) and not (seal and position >= loop):
                    patches.append(Patch(part.at, replace(part, arguments=shorter)))
                    patches += [Patch(seal.at, None)] if seal else []
        reductions += try_change(draft, position, patches)
    return reductions


def drop_reasoning(draft: Draft, positions: Iterable[int], target: int, loop: int) -> list[Reduction]:
    """Drop the reasoning of whole messages, oldest first; sealed reasoning at or after `loop` stays."""
    reductions: list[Reduction] = []
    for position in _visible(draft, positions, target):
        parts = draft.messages[position].parts
        thoughts = [part for part in parts if isinstance(part, Reasoning)]
        if not thoughts:
            continue
        sealed = any(part.sealed for part in thoughts)
        if len(thoughts) < len(parts) and not (sealed and position >= loop):
            reductions += try_change(draft, position, [Patch(part.at, None) for part in thoughts])
    return reductions


def strip_seen_images(draft: Draft, protected: Container[int]) -> None:
    """Put markers for good in place of all pictures that the model has answered, but for the newest there is."""
    messages = draft.base
    images = [
        (position, image)
        for position, message in enumerate(messages)
        if not draft.hidden[position]
        for image in images_in(message)
    ]
    answered = next(
        (position for position in range(len(messages) - 1, -1, -1) if messages[position].role == "assistant"), 0
    )
    for position, image in images[:-1]:
        patches = [Patch(image.at, media_marker(image))]
        if position < answered and position not in protected and try_change(draft, position, patches):
            draft.settle(position, patches)


def strip_images(draft: Draft, positions: Iterable[int], target: int) -> list[Reduction]:
    """Put markers in place of pictures and files in messages, oldest first."""
    reductions: list[Reduction] = []
    for position in _visible(draft, positions, target):
        patches: list[Patch] = []
        for part in draft.messages[position].parts:
            inner = part.content if isinstance(part, ToolResult) else (part,)
            patches += [Patch(one.at, media_marker(one)) for one in inner if isinstance(one, Image | File)]
        reductions += try_change(draft, position, patches)
    return reductions


def _visible(draft: Draft, positions: Iterable[int], target: int) -> Iterator[int]:
    """Yield positions of visible messages while the target is not met."""
    for position in positions:
        if draft.total <= target:
            return
        if not draft.hidden[position]:
            yield position


def try_change(draft: Draft, position: int, patches: Sequence[Patch]) -> list[Reduction]:
    """Make a change if it saves anything; return it, or nothing."""
    if not patches:
        return []
    before = draft.changed(position, patches)
    saved = draft.change(position, patches)
    if saved > 0:
        return [Reduction(position, tuple(patches), saved)]
    draft.restore(position, before)
    return []


def hide_segments(draft: Draft, regions: Regions, positions: range, target: int, *, inner: bool = False) -> list[range]:
    """Let whole batches leave, oldest first; users' turns, system messages and the newest batch stay."""
    left: list[range] = []
    for segment in regions.inner if inner else regions.segments:
        if draft.total <= target:
            break
        if (
            segment.start >= positions.start
            and segment.stop <= positions.stop
            and all(_may_leave(draft, position, regions) for position in segment)
        ):
            draft.hide(segment)
            left.append(segment)
    return left


def hide_users(draft: Draft, regions: Regions, target: int, among: Container[int] | None = None) -> list[range]:
    """Let users' turns leave, oldest first, but the first and the newest; the digest quotes them.

    With `among` only those leave. A turn whose message also holds results leaves with their calls.
    """
    left: list[range] = []
    staying = {*regions.users[:1], *regions.users[-1:]}
    older = {position for position in set(regions.users) - staying if among is None or position in among}
    for segment in regions.segments:
        if draft.total <= target:
            break
        turns = [position for position in segment if position in older and not draft.hidden[position]]
        if turns and all(position in older or _may_leave(draft, position, regions) for position in segment):
            draft.hide(segment)
            left.append(segment)
    return left


def hide_repeats(draft: Draft, regions: Regions, target: int) -> list[range]:
    """Let turns and answers leave, oldest first, whose words a later message says again letter by letter."""
    staying = {*regions.fresh, *regions.users[:1]}
    later: set[str] = set()
    repeated: list[range] = []
    for segment in reversed(regions.segments):
        position = segment[0]
        words = only_text(draft.messages[position]) if len(segment) == 1 and not draft.hidden[position] else ""
        if words in later and position not in staying and draft.base[position].role in ("user", "assistant"):
            repeated.append(segment)
        elif len(words) >= REPEATED:
            later.add(words)
    left: list[range] = []
    for segment in reversed(repeated):
        if draft.total <= target:
            break
        draft.hide(segment)
        left.append(segment)
    return left


def only_text(message: Message) -> str:
    """Return the words of a message that has nothing else, or nothing."""
    words = [part.text for part in message.parts if isinstance(part, Text)]
    return "\n".join(words) if len(words) == len(message.parts) else ""


def cut_results(draft: Draft, positions: Iterable[int], target: int, least: int) -> list[Reduction]:
    """Cut the largest outputs to whole lines of head and tail, all to one size, not below `least` tokens."""
    reductions: list[Reduction] = []
    if draft.total <= target:
        return reductions
    outputs = [
        (position, result, draft.view.counter.text(result.text)) for position, result in results_in(draft, positions)
    ]
    cap = max(cap_of([size for _, _, size in outputs], draft.total - target), least)
    for position, result, size in outputs:
        if size > cap and draft.total > target:
            before, original = _as_viewed(draft, position, result), original_result(draft, position, result)
            patches = text_replaced(before, shorten(original.text, cap, draft.view.counter.text))
            reductions.append(Reduction(position, patches, draft.change(position, patches), before))
    return reductions


def cut_texts(draft: Draft, positions: Iterable[int], target: int, least: int) -> list[Reduction]:
    """Cut the longest words of messages to one size, not below `least` tokens; pinned sentences of users stay whole."""
    reductions: list[Reduction] = []
    if draft.total <= target:
        return reductions
    count = draft.view.counter.text
    texts = [
        (position, part, count(part.text))
        for position in positions
        if not draft.hidden[position]
        for part in draft.messages[position].parts
        if isinstance(part, Text)
    ]
    cap = max(cap_of([size for _, _, size in texts], draft.total - target), least)
    for position, part, size in texts:
        if size > cap and draft.total > target:
            words, ending = typed_words(draft, position, part)
            if words:
                shorter = shortened_words(draft, position, words, cap) + ending
                moves = try_change(draft, position, [Patch(part.at, Text(shorter))])
                reductions += [replace(reduction, words=words, ending=ending) for reduction in moves]
    return reductions


def typed_words(draft: Draft, position: int, part: Text) -> tuple[str, str]:
    """Return words as they were said, and behind them what stands for the words of a harness in the same text.

    The words are empty where only a harness speaks.
    """
    words = original_text(draft, position, part)
    original = _original(draft, position)
    harness = speech(original).texts.get(part.at) if original.role == "user" else None
    if harness is None or any(span.kind == "recap" for span in harness.spans):
        return words, ""
    spans = frozenset(range(len(harness.spans)))
    pointers = ShortenedHarness(harness, (), spans).pointers()
    return harness.typed, f"\n{pointers}" if pointers else ""


def shortened_words(draft: Draft, position: int, words: str, limit: int) -> str:
    """Return words of a message in about so many tokens: of a user's side what is to be done first, with its pins."""
    count = draft.view.counter.text
    if draft.base[position].role != "user":
        return shorten(words, limit, count)
    kind: TextKind = "recap" if is_recap(_original(draft, position)) else "request"
    return shortened(words, limit, count, kind, pinned_in(draft, position, words))


def pinned_in(draft: Draft, position: int, words: str) -> tuple[str, ...]:
    """Return the sentences of a message's words that a cut must leave."""
    return pins_of(typed_in(words)) if draft.base[position].role == "user" else ()


def _original(draft: Draft, position: int) -> Message:
    """Return a message as it was said, whatever earlier plans did to it."""
    message = draft.base[position]
    return (draft.view.original(message.id) if message.patches else None) or message


def original_text(draft: Draft, position: int, part: Text) -> str:
    """Return words as they were said, whatever earlier plans did to them."""
    original = next((one for one in _original(draft, position).parts if one.at == part.at), None)
    return original.text if isinstance(original, Text) else part.text


def cap_of(sizes: list[int], need: int) -> int:
    """Return the size to which the largest must shrink so that together they save what is needed."""
    ordered = sorted(sizes, reverse=True)
    saved = 0
    for number, size in enumerate(ordered, 1):
        following = ordered[number] if number < len(ordered) else 0
        if saved + number * (size - following) >= need:
            return size - -(-(need - saved) // number)
        saved += number * (size - following)
    return 0


def original_result(draft: Draft, position: int, result: ToolResult) -> ToolResult:
    """Return an output as it was said, whatever earlier plans and this draft did to it."""
    original = next((one for one in _original(draft, position).results if one.at == result.at), None)
    return original or _as_viewed(draft, position, result)


def _as_viewed(draft: Draft, position: int, result: ToolResult) -> ToolResult:
    """Return an output as the view has it, whatever this draft did to it."""
    return next((one for one in draft.base[position].results if one.at == result.at), result)


def _may_leave(draft: Draft, position: int, regions: Regions) -> bool:
    message = draft.base[position]
    turn = is_turn(message) or is_recap(message) or position in regions.standing
    instruction = message.role == "system" and (message.note is not None or message.id in draft.view.stuck)
    return not (turn or instruction or position in regions.fresh)
