"""Spans for OpenTelemetry with its names for generative AI, where it is installed; never any text of a request."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from functools import cache, lru_cache
from time import monotonic
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from multidict import CIMultiDict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from refold.core.plan import Plan

__all__ = ["compaction_span", "span", "watched"]

PROVIDERS = {"openai": "openai", "anthropic": "anthropic", "gemini": "gcp.gemini"}
CONTEXT = ("traceparent", "tracestate")  # the headers in which W3C's Trace Context names a parent


class ExchangeSpan(Struct):
    """The span of one exchange: `tell` sets an attribute, `headers` are the client's, with this span as parent.

    Of the attributes "name" is the span's own name, "error.type" says that the exchange failed.
    """

    tell: Callable[[str, Any], None]
    headers: CIMultiDict[str]


def watched() -> bool:
    """Tell whether anybody would see a span."""
    return _tracer() is not None


@contextmanager
def span(provider: str, operation: str, address: str, headers: CIMultiDict[str]) -> Iterator[ExchangeSpan | None]:
    """Trace one exchange, below the client's own span if its headers name one; yields None where nobody would see it.

    Spans that begin within the block are its children.
    """
    tracer = _tracer()
    if tracer is None:
        yield None
        return
    from opentelemetry.trace import SpanKind, use_span
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    attributes = {"gen_ai.operation.name": operation, "gen_ai.provider.name": PROVIDERS[provider]}
    propagator = TraceContextTextMapPropagator()
    parent = propagator.extract({name: headers[name] for name in CONTEXT if name in headers})
    started = tracer.start_span(
        operation, parent, kind=SpanKind.CLIENT, attributes=attributes | {"server.address": address}
    )
    with use_span(started, record_exception=False, set_status_on_exception=False):
        own: dict[str, str] = {}
        propagator.inject(own)
        sent = headers.copy()
        for name in CONTEXT:
            sent.popall(name, None)
        sent.extend(own)
        with _ended(started):
            yield ExchangeSpan(lambda name, value: _tell(started, name, value), sent)


@contextmanager
def compaction_span(model: str, conversation: str, policy: str, cause: str) -> Iterator[Callable[[Plan], None]]:
    """Trace one compaction, below the span in which it was begun; yields what to call with the plan it has made."""
    tracer = _tracer()
    if tracer is None:
        yield lambda plan: None
        return
    attributes = {
        "gen_ai.conversation.id": conversation,
        "gen_ai.request.model": model,
        "refold.policy": policy,
        "refold.cause": cause,
    }
    started = tracer.start_span("refold.compaction", attributes=attributes)
    with _ended(started):
        yield lambda plan: started.set_attributes(_plan_attributes(plan))


def _plan_attributes(plan: Plan) -> dict[str, Any]:
    """Return what a plan did, in tokens of the whole request, and when it pays."""
    sizes = plan.sizes
    attributes = {
        "refold.plan": plan.id,
        "refold.tokens.before": sizes.before,
        "refold.tokens.after": sizes.after,
        "refold.tokens.fixed": sizes.fixed,
        "refold.tokens.limit": sizes.limit,
    }
    if (economy := plan.break_even) is not None:
        attributes |= {"refold.cost": economy.cost, "refold.saving": economy.saving}
        attributes |= {} if economy.calls is None else {"refold.pays_from": economy.calls}
    return attributes


@contextmanager
def _ended(started: Any) -> Iterator[None]:
    """End a span after a block; an exception is told by its code or kind, never by its words."""
    try:
        yield
    except BaseException as error:
        _tell(started, "error.type", getattr(error, "code", "") or type(error).__name__)
        raise
    finally:
        started.end()


def _tell(started: Any, name: str, value: object) -> None:
    from opentelemetry.trace import Status, StatusCode

    if name == "name":
        started.update_name(value)
        return
    started.set_attribute(name, value)
    if name == "error.type":
        started.set_status(Status(StatusCode.ERROR))


def _tracer() -> Any:
    """Return a tracer, or None where nobody would see its spans."""
    return _looked_for(int(monotonic()))


@lru_cache(1)
def _looked_for(_second: int) -> Any:  # once a second is enough: the look costs more than all else here
    trace = _package()
    if trace is None or isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return None
    return trace.get_tracer("refold._gateway")


@cache
def _package() -> Any:
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    return trace
