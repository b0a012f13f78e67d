"""Response headers and span attributes that describe what the gateway did with a request."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from refold._gateway.conversations.planner import WAITING
from refold.core._json import Json

if TYPE_CHECKING:
    from collections.abc import Callable

    from refold._gateway.conversations.conversation import Conversation
    from refold._gateway.conversations.ready import Ready
    from refold._gateway.server.asgi import Headers
    from refold.core.break_even import BreakEven
    from refold.core.plan import Sizes

__all__ = ["response_headers", "set_span_attributes"]


def response_headers(ready: Ready) -> Headers:
    """Return the x-refold-* headers; no value comes from the client or from upstream."""
    out = [_header("done", ready.done)]
    if ready.reason:
        out.append(_header("reason", ready.reason))
    if ready.failed:
        out.append(_header("failed", ready.failed))
    if ready.target is not None:
        conversation = ready.target.conversation
        out.append(_header("conversation", conversation.id))
        if conversation.thrashing is not None:
            thrashing = conversation.thrashing
            out += [_header("thrashing", thrashing.close), _header("fixed", thrashing.fixed)]
            out.append(_header("room", thrashing.room))
        if conversation.unsaved:
            out.append(_header("unsaved", len(conversation.plans) - conversation.stored_plans))
        if conversation.plans or conversation.shadow is not None:
            out += _plan_headers_of(ready, conversation)
        if ready.reason == WAITING and conversation.waiting is not None:
            out += [_header(f"waiting-{name}", value) for name, value in _economy_fields(conversation.waiting).items()]
    return out


def set_span_attributes(ready: Ready, status: int, operation: str, set_attribute: Callable[[str, Any], None]) -> None:
    """Set the attributes of an exchange's span; none holds any text."""
    set_attribute("http.response.status_code", status)
    if status >= 400:  # HTTP's errors
        set_attribute("error.type", str(status))
    set_attribute("refold.done", ready.done)
    if ready.target is None:
        return
    set_attribute("name", f"{operation} {ready.target.model}")
    set_attribute("gen_ai.request.model", ready.target.model)
    set_attribute("gen_ai.conversation.id", ready.target.conversation.id)
    set_attribute("gen_ai.conversation.compacted", ready.plain and bool(ready.target.conversation.plans))
    if ready.usage is not None:
        set_attribute("gen_ai.usage.input_tokens", ready.usage.prompt)
        set_attribute("gen_ai.usage.output_tokens", ready.usage.completion)
        set_attribute("gen_ai.usage.cache_read.input_tokens", ready.usage.cached)


def _plan_headers_of(ready: Ready, conversation: Conversation) -> Headers:
    """Return the headers of the plan under which the request was sent, not of one that became active meanwhile."""
    sent, plan = ready.reported.plans if ready.reported is not None else (), conversation.shadow
    if sent and sent[-1] in conversation.applied:
        plan = conversation.plans[conversation.applied.index(sent[-1])]
    if plan is None:
        return []
    return _plan_headers(
        "shadow-" if plan is conversation.shadow else "", plan.id, plan.policy, plan.sizes, plan.break_even
    )


@lru_cache(1_024)  # each request of a conversation has them until the next plan
def _plan_headers(prefix: str, id: str, policy: str, sizes: Sizes, economy: BreakEven | None) -> Headers:
    out: Json = {"plan": id, "policy": policy, "tokens-before": sizes.before, "tokens-after": sizes.after}
    if sizes.after > sizes.limit:
        out["over-budget"] = sizes.after - sizes.limit
    if economy is not None:
        out |= _economy_fields(economy)
    return [_header(f"{prefix}{name}", value) for name, value in out.items()]


def _economy_fields(economy: BreakEven) -> Json:
    """Return what a compaction costs once and saves a call, in tokens of input, and the call from which it pays."""
    fields: Json = {"cost": economy.cost, "saving": economy.saving, "calls-left": economy.calls_left}
    return fields if economy.calls is None else {**fields, "pays-from": economy.calls}


@lru_cache(4_096)
def _header(name: str, value: str | int) -> tuple[bytes, bytes]:
    return b"x-refold-" + name.encode(), str(value).encode("latin-1", "replace")
