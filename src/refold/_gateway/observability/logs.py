"""The gateway's log: one line an event on standard error, as text or as JSON.

No line holds text of a request, a key or a header: fields are names, sizes, times and codes. Of a bug the kind and the
place are logged, since the words of an exception may be a client's.
"""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from refold._gateway.conversations.ready import Exchange, Ready
    from refold._gateway.wire.routes import Route

__all__ = ["LEVELS", "LogFormat", "log_bug", "log_event", "log_forwarded", "log_request", "start_log"]

LOG = logging.getLogger("refold.gateway")
LEVELS = ("debug", "info", "warning", "error", "off")
LogFormat = Literal["text", "json"]


def start_log(level: str, form: LogFormat) -> None:
    """Write the log to standard error from a level on; `off` writes none."""
    LOG.handlers.clear()
    LOG.propagate = False
    if level == "off":
        LOG.addHandler(logging.NullHandler())
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines(form))
    LOG.addHandler(handler)
    LOG.setLevel(level.upper())


def log_event(level: int, event: str, **fields: object) -> None:
    """Log an event with its fields; those that say nothing are left out."""
    if LOG.isEnabledFor(level):
        LOG.log(
            level, event, extra={"fields": {name: value for name, value in fields.items() if value not in ("", None)}}
        )


def log_request(exchange: Exchange, ready: Ready, status: int, seconds: float) -> None:
    """Log what was done with a request, and what came back."""
    if not LOG.isEnabledFor(logging.INFO):
        return
    target, usage = ready.target, ready.usage
    plans = target.conversation.plans if target is not None else ()
    log_event(
        logging.INFO,
        "request",
        provider=exchange.route.dialect.provider,
        operation=exchange.route.operation,
        status=status,
        seconds=round(seconds, 4),
        done=ready.done,
        reason=ready.reason,
        failed=ready.failed,
        native=exchange.native.kind if exchange.native is not None else None,
        model=target.model if target is not None else None,
        conversation=target.conversation.id if target is not None else None,
        owner=exchange.options.owner,
        plans=len(plans) or None,
        input_tokens=usage.prompt if usage is not None else None,
        output_tokens=usage.completion if usage is not None else None,
        cached_tokens=usage.cached if usage is not None else None,
    )


def log_forwarded(route: Route, status: int, seconds: float) -> None:
    """Log a request without a conversation that was forwarded, and what came back."""
    log_event(
        logging.INFO,
        "request",
        provider=route.dialect.provider,
        operation=route.operation,
        status=status,
        seconds=round(seconds, 4),
        done="forwarded",
    )


def log_bug(error: Exception) -> None:
    """Log an exception that nobody expected, by its kind and by where it was raised."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f"{PurePath(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace is not None else ""
    log_event(logging.ERROR, "internal error", kind=type(error).__name__, place=place)


class _Lines(logging.Formatter):
    """Writes a record as one line."""

    def __init__(self, form: LogFormat) -> None:
        super().__init__()
        self._as_json = form == "json"

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record: the time, the level, the event, and its fields."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields = {name: _encodable(value) for name, value in getattr(record, "fields", {}).items()}
        level, event = record.levelname.lower(), record.getMessage()
        if self._as_json:
            return msgspec.json.encode({"time": time, "level": level, "event": event, **fields}).decode()
        return " ".join([time, level, event, *(f"{name}={_plain(value)}" for name, value in fields.items())])


def _encodable(value: object) -> object:
    """Return a value without half surrogate pairs, which JSON may name and no output can write."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def _plain(value: object) -> str:
    """Return a value so that a line stays one line whatever a client named its model."""
    text = str(value)
    return text if text.isprintable() and " " not in text else msgspec.json.encode(text).decode()
