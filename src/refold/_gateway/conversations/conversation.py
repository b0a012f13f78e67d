"""Reads and measures a conversation, as much of it as must be known; and writes what stands for it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from refold import formats
from refold._gateway.conversations.tracker import Fixed, ReportedUsage, Wanted, Written
from refold._gateway.wire.body import native
from refold.core.budget import Usage
from refold.core.edits import fold
from refold.formats._base import json_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold._gateway.conversations.budgets import Bound
    from refold._gateway.conversations.provenance import Under
    from refold._gateway.conversations.tracker import Conversation
    from refold._gateway.wire.body import Bytes
    from refold._gateway.wire.routes import Dialect
    from refold.core.edits import Edit
    from refold.core.messages import Message

__all__ = [
    "answers_unseen",
    "fixed",
    "foreign",
    "grown",
    "measured",
    "most",
    "oversized",
    "read",
    "refold",
    "reported",
    "stale",
    "unchanged",
    "unread",
    "usage_of",
    "wanted",
    "write",
]

LONGEST_TOKEN = 12  # bytes a token, on the average of a request; more is not text
NOTHING = Usage(0)
SIGNED = re.compile(rb'"signature"|"redacted_thinking"')
TURN = 2  # messages that are new in a request of one client alone: an answer, and what the client says to it
LONGEST_MARK = 32  # bytes: a mark is searched for again where the last search ended in its middle


def most(track: Conversation, dialect: Dialect) -> int | None:
    """Return a number of tokens that the request cannot exceed, at hardly any cost; None where only reading tells.

    A token is at least one byte of JSON, except of what is not text. With a report, only what came since counts.
    """
    body = track.body
    if track.scanned_bytes < body.stop:
        start = max(track.scanned_bytes - LONGEST_MARK, body.start)
        for mark in dialect.costly:
            if body.body.find(mark, start, body.stop) >= 0:
                track.last_media_index = len(body.raws)
                break
        track.scanned_bytes = body.stop
    report = _trusted(track)
    size = body.stop - body.start
    if report is None:
        return None if track.last_media_index or track.plans else len(body.body)
    if track.last_media_index > report.count or report.usage.prompt * LONGEST_TOKEN < report.size:
        return None  # pictures; or a server that cut the prompt and reports what was left
    return report.usage.prompt + report.usage.completion + size - report.size


def grown(track: Conversation, least: int | None) -> bool:
    """Tell from bytes alone whether a new message may have so many tokens; 0 and None say nothing."""
    if not least:
        return False
    fresh = track.body.raws[track.known_messages :]
    return max([len(memoryview(raw)) for raw in fresh], default=0) >= least


def oversized(track: Conversation, bound: Bound, least: int | None) -> bool:
    """Tell of a conversation that is read whether new output has more than so many tokens."""
    if not grown(track, least):
        return False
    fresh = reversed(track.view[len(track.view) - len(track.body.raws) + track.known_messages :])
    return any(message.results and _size(track, message, bound) > (least or 0) for message in fresh)


def answers_unseen(track: Conversation) -> int:
    """Return how many answers of the model a conversation that is read holds since its last request here."""
    answers = [message.role == "assistant" for message in track.transcript.messages[track.known_messages :]]
    return sum(now and not before for before, now in zip([False, *answers], answers, strict=False))


def foreign(track: Conversation) -> bool:
    """Tell of a conversation whether it holds answers with thinking that were not given here, by its newest messages.

    All are new to a process that sees the conversation for the first time; later on, all behind the answer to its own
    last request.
    """
    if not track.known_messages:
        body = track.body
        return not track.synced and bool(SIGNED.search(body.body, body.start, body.stop))
    fresh = track.body.raws[track.known_messages :]
    if len(fresh) <= TURN or not any(SIGNED.search(bytes(raw)) for raw in fresh):
        return False
    roles = [value.get("role") for raw in fresh if isinstance(value := native(raw), dict)]
    return roles.count("assistant") > 1


def reported(track: Conversation) -> ReportedUsage:
    """Return an empty report as of the newest request, to be filled when its answer comes."""
    body = track.body
    return ReportedUsage(NOTHING, len(body.raws), body.stop - body.start, track.applied)


def unread(track: Conversation) -> int:
    """Return the bytes of messages that were not read yet."""
    return sum(len(memoryview(raw)) for raw in track.body.raws[len(track.transcript) :])


def read(track: Conversation, bound: Bound) -> None:
    """Read and count what is new; may take long for what was never seen before."""
    start = len(track.transcript)
    raws = track.body.raws
    if track.counter is not bound.counter:
        track.counter, track.estimates, track.view = bound.counter, {}, ()
    if track.production.viewed != _under(track, bound):
        track.view = ()
    if start < len(raws) or not track.view:
        natives = [message.native for message in track.transcript.messages]
        natives += [native(raw) for raw in raws[start:]]
        track.transcript = formats.read(track.format, natives, track.transcript)
        if track.view and start and _valid_from(track, bound, start):
            fresh = track.transcript.messages[start:]
            track.view += fresh
            if any(message.anchor for message in fresh):
                _weigh(track, bound)
            else:
                track.loaded |= formats.loaded_in(fresh)
                track.estimated += sum(_size(track, message, bound) for message in fresh)
        else:
            refold(track, bound)


def refold(track: Conversation, bound: Bound) -> None:
    """Compute the view and its size anew, after plans changed or messages were read again."""
    messages = track.transcript.messages
    runs, tips = [plan.edits for plan in track.plans], [plan.base.tip for plan in track.plans]
    track.view = fold(messages, [*runs, stale(track, bound)], tips)
    track.production.viewed = _under(track, bound)
    _weigh(track, bound)


def _weigh(track: Conversation, bound: Bound) -> None:
    """Find what of the view the provider reads, and its size."""
    track.anchor = track.format.anchor(track.view)
    read = track.view[track.anchor :]
    track.loaded = formats.loaded_in(read)
    track.estimated = sum(_size(track, message, bound) for message in read)


def stale(track: Conversation, bound: Bound) -> tuple[Edit, ...]:
    """Return the edits that remove thinking which a model that binds it would refuse under the plans in force."""
    if not bound.binds_thinking:
        return ()
    return track.production.stale(track.transcript.messages, track.plans, bool(track.production.tool))


def unchanged(track: Conversation, bound: Bound) -> bool:
    """Tell from what was sent before, without reading, whether no thinking can be stale."""
    return not bound.binds_thinking or track.production.constant(_under(track, bound))


def wanted(track: Conversation, dialect: Dialect) -> Wanted:
    """Return what the newest body asks for beside its messages; read again only where that has changed."""
    body, known = track.body, track.wanted
    if known is not None and known.before is body.before and known.after is body.after:
        return known
    model = body.get("model")
    limit = body.get(*dialect.max_output)
    if not dialect.max_output and isinstance(config := body.get("generationConfig"), dict):
        limit = config.get("maxOutputTokens")
    output = limit if isinstance(limit, int) and not isinstance(limit, bool) and limit > 0 else None
    elsewhere = any((raw := body.raw(key)) is not None and bytes(raw) != b"null" for key in dialect.elsewhere)
    name = model if isinstance(model, str) else ""
    result = track.wanted = Wanted(body.before, body.after, name, output, elsewhere)
    return result


def fixed(track: Conversation, dialect: Dialect, bound: Bound) -> Fixed:
    """Return system prompt and tools with their tokens; counted again only when they change."""
    body = track.body
    system = next((raw for key in dialect.system if (raw := body.raw(key)) is not None), None)
    tools = body.raw("tools")
    known = track.fixed_cache
    counted = bound.counter, track.loaded
    if known is not None and known[2] == counted and _equal(known[0], system) and _equal(known[1], tools):
        return known[3]
    prompt, defined = None if system is None else native(system), None if tools is None else native(tools)
    tokens = bound.counter.text(formats.system_text(prompt)) if prompt else 0
    tokens += bound.counter.tools(formats.tools_text(defined, track.loaded)) if defined else 0
    result = Fixed(prompt, defined, tokens)
    track.fixed_cache = system, tools, counted, result
    return result


def measured(track: Conversation, bound: Bound, fixed_part: Fixed) -> int:
    """Return the size of the request under the plans in force, by the policy's gauge."""
    usage = usage_of(track)
    since = 0
    if usage is not None and usage.covers is not None:
        since = sum(_size(track, message, bound) for message in track.view[max(usage.covers, track.anchor) :])
    estimated = fixed_part.tokens + bound.counter.per_conversation + track.estimated
    return bound.policy.gauge.measure(estimated, since, usage)


def usage_of(track: Conversation) -> Usage | None:
    """Return the last report, in messages of the view; None where plans have changed since."""
    report = _trusted(track)
    if report is None:
        return None
    return replace(report.usage, covers=max(len(track.view) - (len(track.body.raws) - report.count), 0))


def write(track: Conversation, bound: Bound) -> bytes:
    """Return the messages that stand for the client's under the plans in force, as the JSON of a list.

    What no plan touched is the client's own bytes, without thinking that could not be sent any more. A longer history
    gives the same bytes at its beginning.
    """
    if not track.plans and unchanged(track, bound):
        return track.body.body[track.body.start : track.body.stop]
    under = _under(track, bound)
    written = track.written
    raws = track.body.raws
    grown = written is not None and len(raws) > written.count
    if (
        written is None
        or written.under != under
        or (grown and not (written.open and _valid_from(track, bound, written.count)))
    ):
        read(track, bound)
        written = _written(track, under)
    elif grown:
        body = b",".join((written.body, *map(bytes, raws[written.count :])))
        written = Written(len(raws), body, True, under)
    track.written = written
    return written.body


def _written(track: Conversation, under: Under) -> Written:
    messages, raws = track.transcript.messages, track.body.raws
    own = {id(message.native): place for place, message in enumerate(messages)}
    natives = formats.assemble(track.format, track.view)
    pieces = [_bytes(native, own, raws) for native in natives]
    last = own.get(id(natives[-1])) if natives else None
    return Written(len(raws), b",".join(pieces), last == len(messages) - 1, under)


def _bytes(value: object, own: dict[int, int], raws: Sequence[Bytes]) -> bytes:
    place = own.get(id(value))
    if place is not None:
        return bytes(raws[place])
    try:
        return msgspec.json.encode(value)
    except (UnicodeEncodeError, TypeError, ValueError):
        return json_text(value).encode()


def _under(track: Conversation, bound: Bound) -> Under:
    return track.applied, bool(track.production.tool), bound.binds_thinking


def _valid_from(track: Conversation, bound: Bound, start: int) -> bool:
    """Tell whether the messages from a position on are sent as they are: all was produced under what is sent now."""
    return not bound.binds_thinking or track.production.covers(start, _under(track, bound))


def _size(track: Conversation, message: Message, bound: Bound) -> int:
    if message.patches or message.native is None:
        return bound.counter.message(message)
    known = track.estimates.get(message.id)
    if known is None:
        known = track.estimates[message.id] = bound.counter.message(message)
    return known


def _trusted(track: Conversation) -> ReportedUsage | None:
    """Return the last report where it is of this beginning and these plans."""
    report = track.reported
    if report is None or report.count > len(track.body.raws):
        return None
    return report if report.plans == track.applied else None


def _equal(known: Bytes | None, raw: Bytes | None) -> bool:
    if known is raw:
        return True
    return known is not None and raw is not None and bytes(known) == bytes(raw)
