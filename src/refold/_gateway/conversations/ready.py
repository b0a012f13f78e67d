"""The two values of an exchange: the client's request as received, and the request as sent upstream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from multidict import CIMultiDict
    from yarl import URL

    from refold._gateway.conversations.conversation import ReportedUsage
    from refold._gateway.conversations.plugin import CompactionTarget
    from refold._gateway.native.compaction import NativeExchange
    from refold._gateway.recall.response_rounds import Recalls
    from refold._gateway.server.request_headers import RequestOptions
    from refold._gateway.wire.routes import Route
    from refold.core.budget import Usage

__all__ = ["Exchange", "Ready"]


class Ready(Struct):
    """A request as it goes upstream: its body, the conversation it belongs to, and what is said of it in headers.

    `makes_ids`: its answer has ids to be recorded as its owner's.
    """

    body: bytes
    plain: bool = True
    target: CompactionTarget | None = None
    reported: ReportedUsage | None = None
    usage: Usage | None = None
    recalls: Recalls | None = None
    done: str = "forwarded"
    reason: str = ""
    failed: str = ""
    makes_ids: bool = False


class Exchange(Struct, frozen=True):
    """One request of a client: its address, what it asks, and its body decompressed (None where it cannot be read).

    `headers` are those that the provider gets.

    `native` is there where it concerns the provider's own compaction. `tenant` is the owner whose ids of what the
    provider stores are told apart from those of others; None where they are not.
    """

    route: Route
    url: URL
    headers: CIMultiDict[str]
    options: RequestOptions
    raw: bytes
    plain: bytes | None
    native: NativeExchange | None = None
    tenant: str | None = None
