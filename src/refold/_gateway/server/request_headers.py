"""What a client may ask of the gateway with headers, and a body that is compressed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from refold import policies
from refold._gateway.conversations.triggers import trigger
from refold._gateway.server.asgi import GatewayError
from refold._gateway.wire.compression import TooLong, Unreadable, whole
from refold.errors import UsageError

if TYPE_CHECKING:
    from refold._gateway.settings import GatewaySettings
    from refold.core.budget import Limit

__all__ = ["RequestOptions", "inflated", "request_options"]

NAME = re.compile(r"[\w.:@/-]{1,128}", re.ASCII)
WISHES = frozenset(
    {
        b"x-refold-bypass", b"x-refold-policy", b"x-refold-session", b"x-refold-recall", b"x-refold-trigger",
        b"anthropic-beta",
    }
)  # fmt: skip
LONG = b"context-1m-"  # how the beta is named by which some of Anthropic's models have a window of a million tokens
YES = (b"1", b"true", b"yes")


class RequestOptions(Struct, frozen=True):
    """A client's wishes: to be left alone, another policy or trigger, a name for the conversation, the recall tool.

    `long` says that the provider is asked for the model's long window.
    """

    bypass: bool = False
    policy: str = ""
    session: str = ""
    recall: bool = False
    trigger: Limit | None = None
    long: bool = False


NOTHING, OFFERED = RequestOptions(), RequestOptions(recall=True)  # what is meant where nothing is asked for


def request_options(headers: dict[bytes, bytes], settings: GatewaySettings) -> RequestOptions:
    """Read a client's wishes.

    A policy is one of those that come with refold or that the gateway was started with: a name is never a path.

    Raises:
        GatewayError: a policy or trigger that there is none of, or a name with characters that no name has (400).
    """
    if headers.keys().isdisjoint(WISHES):
        return OFFERED if settings.recall_tool else NOTHING
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
    due = _due(headers.get(b"x-refold-trigger", b"").decode("latin-1"))
    return RequestOptions(bypass, policy, session, recall in YES if recall else settings.recall_tool, due, long)


def _due(text: str) -> Limit | None:
    try:
        return trigger(text) if text else None
    except UsageError:
        message = "x-refold-trigger is a share as in 0.7, tokens as in 60k, or never"
        raise GatewayError(400, message, "bad_header") from None


def inflated(raw: bytes, encoding: bytes, limit: int) -> bytes | None:
    """Return a compressed body as it was before; None for an encoding that is not known here, or a damaged body.

    Raises:
        GatewayError: it becomes larger than the limit (413).
    """
    if not encoding:
        return raw
    try:
        return whole(raw, encoding.decode("latin-1"), limit)
    except Unreadable:
        return None
    except TooLong:
        raise _too_large(limit) from None


def _too_large(limit: int) -> GatewayError:
    return GatewayError(413, f"the request body is larger than {limit:,} bytes when unpacked", "request_too_large")
