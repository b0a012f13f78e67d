"""Spans for OpenTelemetry with its names for generative AI, where it is installed; never any text of a request."""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache, lru_cache
from time import monotonic
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["span", "watched"]

PROVIDERS = {"openai": "openai", "anthropic": "anthropic", "gemini": "gcp.gemini"}


def watched() -> bool:
    """Tell whether anybody would see a span."""
    return _tracer() is not None


@contextmanager
def span(provider: str, operation: str, address: str) -> Iterator[Callable[[str, Any], None] | None]:
    """Trace one exchange; yields a function that sets an attribute, or None.

    "name" is the span's own name, "error.type" says that the exchange failed.
    """
    tracer = _tracer()
    if tracer is None:
        yield None
        return
    from opentelemetry.trace import SpanKind, Status, StatusCode

    attributes = {"gen_ai.operation.name": operation, "gen_ai.provider.name": PROVIDERS[provider]}
    started = tracer.start_span(operation, kind=SpanKind.CLIENT, attributes=attributes | {"server.address": address})

    def tell(name: str, value: object) -> None:
        if name == "name":
            started.update_name(value)
            return
        started.set_attribute(name, value)
        if name == "error.type":
            started.set_status(Status(StatusCode.ERROR))

    try:
        yield tell
    except BaseException as error:
        tell("error.type", getattr(error, "code", "") or type(error).__name__)
        raise
    finally:
        started.end()


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
