"""Plans as JSON and back; a later version or an unknown tag is rejected."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from refold.core._decoders import decoder
from refold.core.plan import Plan, sealed
from refold.errors import UnreadablePlan

__all__ = ["VERSION", "dump_plan", "load_plan"]

VERSION = 1


class _Envelope(Struct, frozen=True):
    refold_plan: int
    plan: Plan


class _Head(Struct, frozen=True):
    refold_plan: int


_head = decoder(_Head)
_envelope = decoder(_Envelope)


def dump_plan(plan: Plan, *, indent: int | None = None) -> bytes:
    """Return a plan as UTF-8 JSON, with the version of its shape.

    Added in 0.1.0.
    """
    encoded = msgspec.json.encode(_Envelope(VERSION, plan))
    return msgspec.json.format(encoded, indent=indent) if indent is not None else encoded


def load_plan(data: bytes | str) -> Plan:
    """Return the plan that JSON text holds.

    Raises:
        UnreadablePlan: not JSON, not a plan, damaged, changed by hand, or written by a later version.

    Added in 0.1.0.
    """
    raw = data.encode() if isinstance(data, str) else data
    try:
        head = _head(raw)
        if head.refold_plan > VERSION:
            raise UnreadablePlan(
                f"this plan has version {head.refold_plan}, this release reads up to {VERSION}: install a newer refold"
            )
        plan = _envelope(raw).plan
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnreadablePlan(
            f"this is not a plan made by refold: {error}; name a file that `--plan-out` or `dump_plan` wrote"
        ) from error
    if sealed(plan).id != plan.id:
        raise UnreadablePlan("the plan does not match its id, so it was changed after it was made: make a new plan")
    return plan
