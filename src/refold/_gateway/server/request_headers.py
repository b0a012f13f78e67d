"""Parses the x-refold-* request headers, and decompresses request bodies."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from refold import policies
from refold._gateway.conversations.triggers import trigger as parse_trigger
from refold._gateway.server.asgi import GatewayError
from refold._gateway.wire.compression import MOST_TIMES, TooLong, Unreadable, whole
from refold.errors import UsageError

if TYPE_CHECKING:
    from refold._gateway.settings import GatewaySettings
    from refold.core.budget import Limit

__all__ = ["RequestOptions", "decompressed", "request_options"]

NAME = re.compile(r"[\w.:@/-]{1,128}", re.ASCII)
OPTION_HEADERS = frozenset(
    {
        b"x-refold-bypass", b"x-refold-policy", b"x-refold-session", b"x-refold-recall", b"x-refold-trigger",
        b"anthropic-beta",
    }
)  # fmt: skip
LONG = b"context-1m-"  # prefix of the beta that gives some of Anthropic's models a window of a million tokens
YES = (b"1", b"true", b"yes")


class RequestOptions(Struct, frozen=True):
    """What a client sets for one request: bypass, policy, trigger, session name, recall tool.

    `long` says that the request uses the model's long window. `owner` is who sends it, by its token.
    """

    bypass: bool = False
    policy: str = ""
    session: str = ""
    recall: bool = False
    trigger: Limit | None = None
    long: bool = False
    owner: str = ""


NO_OPTIONS, WITH_RECALL = RequestOptions(), RequestOptions(recall=True)  # of requests without such headers


def request_options(headers: dict[bytes, bytes], settings: GatewaySettings, owner: str = "") -> RequestOptions:
    """Return the options of a request of an owner.

    A policy is one of refold's or of the gateway's settings: a name is never a path.

    Raises:
        GatewayError: an unknown policy, an invalid trigger or session name (400).
    """
    if headers.keys().isdisjoint(OPTION_HEADERS):
        options = WITH_RECALL if settings.recall_tool else NO_OPTIONS
        return replace(options, owner=owner) if owner else options
    bypass = headers.get(b"x-refold-bypass", b"").lower() in YES
    policy = headers.get(b"x-refold-policy", b"").decode("latin-1")
    session = headers.get(b"x-refold-session", b"").decode("latin-1")
    if policy and policy not in {*policies.names(), *settings.named}:
        raise GatewayError(
            400, f"x-refold-policy names no policy; there are {', '.join(policies.names())}", "bad_header"
        )
    if session and not NAME.fullmatch(session):
        raise GatewayError(400, "x-refold-session is 1 to 128 letters, digits or any of . : @ / _ -", "bad_header")
    recall = headers.get(b"x-refold-recall", b"").lower()
    long = LONG in headers.get(b"anthropic-beta", b"")
    trigger = _trigger(headers.get(b"x-refold-trigger", b"").decode("latin-1"))
    wants_recall = recall in YES if recall else settings.recall_tool
    return RequestOptions(bypass, policy, session, wants_recall, trigger, long, owner)


def _trigger(text: str) -> Limit | None:
    try:
        return parse_trigger(text) if text else None
    except UsageError:
        message = "x-refold-trigger is a share as in 0.7, tokens as in 60k, or never"
        raise GatewayError(400, message, "bad_header") from None


def decompressed(raw: bytes, encoding: bytes, limit: int) -> bytes | None:
    """Return a body without its compression; None for an unknown encoding or a damaged body.

    Raises:
        GatewayError: it becomes larger than the limit (413).
    """
    if not encoding:
        return raw
    try:
        return whole(raw, encoding.decode("latin-1"), limit)
    except Unreadable:
        return None
    except TooLong as error:
        raise _too_large(error.limit, limit) from None


def _too_large(size: int, limit: int) -> GatewayError:
    message = f"the request body is larger than {size:,} bytes when decompressed"
    if size < limit:
        message += f", and more than {MOST_TIMES} times its size: send it uncompressed"
    return GatewayError(413, message, "request_too_large")
