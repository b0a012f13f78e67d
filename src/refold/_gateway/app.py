"""The gateway as an ASGI application between clients and their providers."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Literal
from urllib.parse import unquote

from msgspec import Struct
from msgspec.structs import replace
from starlette.routing import Router

from refold._gateway.admin import Admin, is_ours
from refold._gateway.conversations.budgets import Budgets
from refold._gateway.conversations.conversation import steady
from refold._gateway.conversations.lookup import CompactionWish, ConversationLookup
from refold._gateway.conversations.plan_store import PlanStore
from refold._gateway.conversations.planner import Planner
from refold._gateway.conversations.provenance import StaleThinking
from refold._gateway.conversations.ready import Exchange, Ready
from refold._gateway.conversations.tracker import ConversationTracker
from refold._gateway.native.compaction import NativeCompaction
from refold._gateway.observability.logs import log_bug, log_event, log_forwarded, log_request
from refold._gateway.observability.metrics import Metrics
from refold._gateway.page import PAGE, GatewayMemory, gateway_page, is_page
from refold._gateway.page_acts import GatewayActs
from refold._gateway.proxy import Exchanges
from refold._gateway.recall.deferred import DeferredRecall
from refold._gateway.responses_socket import ResponsesSocket, request_scope
from refold._gateway.server.asgi import (
    CLOSE,
    BodyMemory,
    ClientDisconnected,
    GatewayError,
    error_response,
    internal_error,
    read_body,
    receive_in_time,
    too_large,
)
from refold._gateway.server.auth import (
    ANYBODY,
    Auth,
    check_path,
    check_same_origin,
    client_of,
    reject_duplicate_headers,
)
from refold._gateway.server.connection import connection_of
from refold._gateway.server.ownership import ClaimingSend, Ownership
from refold._gateway.server.relay import WhileConnected, relay
from refold._gateway.server.request_headers import request_options
from refold._gateway.upstream.client import Upstream, from_upstream, to_upstream
from refold._gateway.upstream.response import UpstreamAborted
from refold._gateway.upstream.tunnel import open_tunnel
from refold._gateway.wire.routes import is_stateless, route
from refold._gateway.wire.stored_ids import made_in_resource, stored_path, strings_in
from refold._page.conversations import Conversations
from refold.errors import SessionNotFound, StoreError, WriteConflict
from refold.handlers import Handlers
from refold.sessions import open_store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from multidict import CIMultiDict
    from starlette.responses import Response
    from starlette.types import Receive, Scope, Send
    from yarl import URL

    from refold._gateway.conversations.conversation import Conversation
    from refold._gateway.native.compaction import NativeExchange
    from refold._gateway.server.asgi import BodyShare, Headers
    from refold._gateway.server.auth import Admission, Caller
    from refold._gateway.server.connection import ClientConnection
    from refold._gateway.server.request_headers import RequestOptions
    from refold._gateway.settings import GatewaySettings
    from refold._gateway.wire.routes import Route
    from refold._gateway.wire.stored_ids import StoredPath
    from refold.core._json import Json
    from refold.sessions import Store

__all__ = ["Gateway"]

WHILE_DRAINING = ("/livez", "/metrics")
REFLECTING = ("TRACE", "CONNECT")  # a server may answer with the request, keys among it, or with another's connection
ALLOWED = b"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"
STORE_TIMEOUT = 3.0  # seconds that a request waits for a store that others lock, or that does not answer
LAST_WRITES = 8.0  # seconds in which a gateway that ends writes what the store did not take before
TELL = 2.0  # seconds for which the figures that other workers know of this one are old at most
CLOCK_STEP = 60.0  # seconds by which the store's clock and this machine's may drift apart between two looks
LONGEST_RESOURCE = 4 * 1024 * 1024  # bytes of a description of what is stored, in which ids are looked for
UPLOADED = frozenset({"files", "uploads"})
REALTIME = re.compile(r"(?:/.+)?/realtime")  # paths of the WebSockets that are carried


class _ChatHead(Struct, frozen=True):
    """What the head of a chat request says of how it is sent upstream; `max_body` is how long its body may be."""

    url: URL
    headers: CIMultiDict[str]
    options: RequestOptions
    encoding: bytes
    max_body: int


class _RequestHead(Struct, frozen=True):
    """What the head of a request says: who serves it, and for whom; `scope` and `path` hold no token.

    `client` is who it counts for in what all share: its token, or its address where others have the same or none.

    Nothing here follows from its content-length, so that it holds for each request that repeats the rest of the head.
    """

    scope: Scope
    serves: Literal["page", "gateway", "websocket", "chat", "upstream"]
    path: str
    route: Route
    caller: Caller = ANYBODY
    client: str = ""
    chat: _ChatHead | None = None


class Gateway:
    """An ASGI application; its server must send it the lifespan events."""

    def __init__(self, settings: GatewaySettings) -> None:
        self.settings = settings
        self.tracker = ConversationTracker(settings.memory)
        self._bodies = BodyMemory(settings.body_memory)
        self._histories = BodyMemory(settings.body_memory)  # of WebSockets, which hold them while nothing is asked
        self.metrics = Metrics(self.tracker, self._bodies)
        self._auth = Auth(settings)
        self._budgets = Budgets(settings)
        self._upstream: Upstream
        self._retention_task: asyncio.Task[None] | None = None
        self._lifespan_router = Router(lifespan=self._lifespan)
        self.failed: Exception | None = None  # why startup failed
        self.left_store = False  # at its end the store did not answer, and threads still wait for it
        self.draining = False  # requests that run are answered, and no others taken
        self.running = 0  # requests
        self.owns_process = False  # plans are made in another one, so that none delays a request

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or run from startup to shutdown."""
        if scope["type"] == "lifespan":
            await self._lifespan_router(scope, receive, send)
        elif scope["type"] == "http":
            connection = connection_of(scope)
            if connection is not None:
                connection.request_began()
            self.running += 1
            try:
                await self._serve(scope, connection, receive, send)
            finally:
                self.running -= 1
                if connection is not None:
                    connection.request_ended()
        elif scope["type"] == "websocket":
            connection = connection_of(scope)
            if connection is not None:
                connection.request_began()  # which ends with the connection
            await self._serve_socket(scope, receive, send)

    @asynccontextmanager
    async def _lifespan(self, app: object) -> AsyncIterator[None]:
        try:
            await self._open()
        except Exception as error:  # whatever a store, or a summarizer's package, raises
            self.failed = error
            raise RuntimeError(type(error).__name__) from None  # servers log it: without the address of a store
        telling = asyncio.create_task(self._tell_figures())
        yield
        telling.cancel()
        if self._retention_task is not None:
            self._retention_task.cancel()
        await self._planner.close()
        await self._upstream.close()
        closing = asyncio.ensure_future(self._keeper.close())
        if (await asyncio.wait((closing,), timeout=LAST_WRITES))[0]:
            await closing
        else:  # a database that is stopped, or a network that loses all, is not waited for without end
            log_event(logging.ERROR, "ends without its store, which does not answer")
            self.left_store = True
        self.metrics.tell_others()

    async def _tell_figures(self) -> None:
        """Let other workers know the figures of this one, from time to time."""
        while self.metrics.shared is not None:
            self.metrics.tell_others()
            await asyncio.sleep(TELL)

    async def _open(self) -> None:
        settings = self.settings
        handlers = Handlers()
        if settings.summarizer:  # its key comes from the environment, never from a client
            from refold.summaries.summarizers import summarizer

            summarize = summarizer(
                settings.summarizer, settings.summarizer_url or None, provider=settings.summarizer_provider or None
            )
            handlers = Handlers(summarize=summarize, redact=settings.redact)
        store = open_store(settings.store or "memory", timeout=STORE_TIMEOUT)
        lost = StaleThinking()
        try:
            self.tracker.salt = store.salt()
            self._keeper = keeper = PlanStore(store, self.metrics, settings.store_key)
            await keeper.check()
        except BaseException:
            store.close()
            raise
        self._upstream = Upstream(settings)
        self._budgets.load_vocabularies()  # now, since nobody waits yet

        def forgotten(conversation: Conversation) -> None:
            keeper.forget(conversation)
            _forgotten(conversation, lost, store if keeper.local else None)

        self.tracker.on_forget = forgotten
        deferred = DeferredRecall(settings, keeper, self.metrics)
        self._planner = Planner(settings, handlers, keeper, self.metrics, lost, deferred, apart=self.owns_process)
        self._native = NativeCompaction(settings, self.tracker, keeper, self._planner, self.metrics)
        keeper.on_delete = self._native.expansion.forget
        self._ownership = Ownership(settings, keeper, self.tracker.salt)
        self._exchanges = Exchanges(
            settings, self._upstream, self.tracker, self._budgets, self._planner, self._native, deferred, self.metrics,
            self._ownership,
        )  # fmt: skip
        self._exchanges.load()
        self._lookup = ConversationLookup(self.tracker, keeper, self._planner, self._exchanges)
        acts = GatewayActs(store, keeper, self._planner, self._lookup, handlers)
        memory = GatewayMemory(self.tracker, self._budgets, self._planner, lambda: self.draining)
        conversations = Conversations(store, keeper.seal, memory, acts)
        self._admin = Admin(
            settings, self.tracker, keeper, self._planner, self._exchanges, self.metrics, self._lookup, conversations
        )
        self._page = gateway_page(conversations, self._auth, settings.public_url)
        if settings.retention:
            offset = await keeper.now() - steady()
            self._retention_task = asyncio.create_task(self._delete_expired(settings.retention, offset))

    async def _delete_expired(self, retention: float, offset: float) -> None:
        """Delete conversations that were not used for longer than the retention, repeatedly.

        What is in memory is judged by a clock that nobody can set. What is in the store is judged by the store's: when
        that was set, nothing there is deleted until a retention has passed, since no age can be trusted until then.
        `offset` is by how much that clock was ahead at the start.
        """
        trusted = 0.0
        while True:
            await asyncio.sleep(min(max(retention / 4, 0.05), 600))
            now, expired = steady(), frozenset[str]()
            used = [each for each in self.tracker.all() if each.used >= now - retention]
            with suppress(StoreError):  # tried again next time
                clock = await self._keeper.now()
                if abs(clock - now - offset) > CLOCK_STEP:
                    trusted = now + retention
                    log_event(logging.WARNING, "store's clock was set: no stored conversation is deleted for its age")
                offset = clock - now
                if now >= trusted:
                    expired = await self._keeper.expired(clock - retention, retention, used)
                    await self._ownership.drop_unused(clock - retention)
            for conversation in self.tracker.all():
                if conversation.session_id in expired or (
                    conversation.used < now - retention and not conversation.lock.locked()
                ):
                    self.tracker.forget(conversation.id, deleted=True)

    async def _serve(self, scope: Scope, connection: ClientConnection | None, receive: Receive, send: Send) -> None:
        head: _RequestHead | None = connection.known_head if connection is not None else None
        try:
            if head is None:
                head = self._read_head(scope)
                if head.serves == "chat":
                    head = replace(head, chat=self._chat_head(head))
                    if connection is not None and self._auth.is_constant:
                        connection.remember(head)
            else:
                self._auth.check_rate(head.caller)
            self._check_draining(head.path)
            if head.chat is not None:
                await self._serve_chat(head, head.chat, scope, connection, receive, send)
                return
            if head.serves == "websocket":
                await self._tunnel(head, connection, receive, send)
                return
            if head.serves == "upstream":
                with self._bodies.share(head.client) as share:
                    await self._forward(head, connection, share, receive, send)
                return
        except GatewayError as error:
            provider = (head.route if head is not None else _route_of(scope)).dialect.provider
            self.metrics.refused(provider, error.code)
            await error_response(provider, error)(scope, receive, send)
            return
        except ClientDisconnected:
            return
        except UpstreamAborted:
            raise
        except Exception as error:  # a bug of the gateway
            log_bug(error)
            provider = (head.route if head is not None else _route_of(scope)).dialect.provider
            self.metrics.refused(provider, "internal")
            with suppress(RuntimeError):  # the response has begun and can only be cut
                await error_response(provider, internal_error(error))(scope, receive, send)
            raise
        if head.serves == "page":
            path = head.path if head.path != PAGE else f"{PAGE}/"
            await self._page({**scope, "root_path": PAGE, "path": unquote(path)}, receive, send)
            return
        with self._bodies.share(head.client) as share:
            state = {"provider": head.route.dialect.provider, "caller": head.caller, "share": share}
            state = {**scope.get("state", {}), **state}
            await self._admin.app({**head.scope, "path": unquote(head.path), "state": state}, receive, send)

    async def _serve_socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a WebSocket of the Responses API, once its handshake is admitted; each message is admitted again."""
        request = request_scope(scope)

        def admit() -> _RequestHead:
            self._check_draining(scope["path"])
            return self._read_head(request)

        try:
            check_same_origin(dict(request["headers"]))  # no browser asks before it opens a WebSocket elsewhere
            head = admit()
            if head.serves != "chat" or head.route.dialect.format != "openai-responses" or head.route.kind != "chat":
                raise _no_socket()
        except GatewayError as error:
            provider = _route_of(request).dialect.provider
            self.metrics.refused(provider, error.code)
            await error_response(provider, error)(scope, receive, send)
            return

        def arrived(size: int) -> None:
            try:
                socket.arrived(size)
            except GatewayError as error:
                self.metrics.refused(head.route.dialect.provider, error.code)
                abort()

        def exceeded(reason: str) -> None:
            self.metrics.refused(head.route.dialect.provider, "too_many_frames")
            socket.exceeded(reason)

        with self._histories.share(head.client) as share:
            connection = connection_of(scope)
            abort = connection.abort if connection is not None else lambda: None
            new_share = partial(self._bodies.share, head.client)
            socket = ResponsesSocket(self, admit, request, receive, send, share, new_share, abort)
            if connection is not None:
                connection.on_data, connection.on_excess = arrived, exceeded
            try:
                await socket.run()
            except Exception as error:  # a bug of the gateway, of which its server says nothing
                log_bug(error)
                raise
            finally:
                if connection is not None:
                    connection.on_data = connection.on_excess = None  # what follows is dropped

    def _read_head(self, scope: Scope) -> _RequestHead:
        """Return what the head of a request says, if it may be served.

        Raises:
            GatewayError: it may not.
        """
        if scope["method"] in REFLECTING:
            message = f"this gateway forwards no {scope['method']}: send the request that you mean"
            raise GatewayError(405, message, "method", [*CLOSE, (b"allow", ALLOWED)])
        headers: dict[bytes, bytes] = dict(scope["headers"])
        original = scope["raw_path"].decode("latin-1")  # not unquoted: an escaped line end must stay escaped
        where = route(scope["method"], original, headers)
        if is_page(original):  # which knows its viewers by tokens, and by cookies that it made of them
            if len(headers) != len(scope["headers"]):
                reject_duplicate_headers(scope["headers"])
            check_path(original)
            return _RequestHead(scope, "page", original, where)
        admission = self._admitted(scope, original, headers)
        caller, path = admission.caller, admission.path
        if path is not original:
            where = route(scope["method"], path, headers)
        if admission.headers is not scope["headers"] or admission.query is not scope["query_string"]:
            scope = {**scope, "headers": admission.headers, "query_string": admission.query}
        client = client_of(caller, (scope.get("client") or ("",))[0])
        if is_ours(path, headers):
            return _RequestHead(scope, "gateway", path, where, caller, client)
        if asks_for_websocket(scope, headers):
            return _RequestHead(scope, "websocket", path, where, caller, client)
        return _RequestHead(scope, "upstream" if where.kind == "other" else "chat", path, where, caller, client)

    def _chat_head(self, head: _RequestHead) -> _ChatHead:
        """Return what the head of a chat request says of how it is sent.

        Raises:
            GatewayError: its provider or one of its options is not known.
        """
        scope, caller, provider, limit = head.scope, head.caller, head.route.dialect.provider, self.settings.max_body
        by_name: dict[bytes, bytes] = dict(scope["headers"])
        url = self._upstream.address(provider, head.path, scope["query_string"])
        return _ChatHead(
            url,
            self._upstream.headers(provider, scope["headers"], url),
            request_options(by_name, self.settings, caller.owner),
            by_name.get(b"content-encoding", b""),
            min(caller.max_body or limit, limit),
        )

    def _tenant(self, caller: Caller) -> str | None:
        """Return as whose ids of what providers store are told apart; None for an administrator, or with one owner."""
        return None if caller.admin or not self._auth.has_owners else caller.owner

    def _check_draining(self, path: str) -> None:
        if self.draining and path not in WHILE_DRAINING:
            message = "this gateway is shutting down: send the request again, to another one"
            raise GatewayError(503, message, "draining", [*CLOSE, (b"retry-after", b"1")])

    def _admitted(self, scope: Scope, path: str, headers: dict[bytes, bytes]) -> Admission:
        """Return a request that may be served, without the token in it.

        Raises:
            GatewayError: the headers are ambiguous (400), the client may not use this gateway, or asks for a WebSocket.
        """
        if len(headers) != len(scope["headers"]):
            reject_duplicate_headers(scope["headers"])
        if b"transfer-encoding" in headers and b"content-length" in headers:
            raise GatewayError(400, "a body has one length: send content-length or chunks", "bad_header", CLOSE)
        admission = self._auth.admit(
            path, scope["headers"], headers, scope["query_string"], (scope.get("client") or ("",))[0]
        )
        check_path(admission.path)
        if asks_for_websocket(scope, headers) and not REALTIME.fullmatch(admission.path):
            raise _no_socket()
        return admission

    async def _forward(
        self, head: _RequestHead, connection: ClientConnection | None, share: BodyShare, receive: Receive, send: Send
    ) -> None:
        """Forward a request without a conversation: both bodies pass as they arrive, of any size the caller may send.

        What a provider stores for one of the gateway's own keys may be of any owner, so it is for administrators, and
        for the owner of an id what is stored under it.
        """
        scope, path, where, caller = head.scope, head.path, head.route, head.caller
        provider, method, stored = where.dialect.provider, scope["method"], stored_path(path)
        tenant = self._tenant(caller) if stored is not None or names_images(path) else None
        if tenant is not None and stored is not None:
            await self._ownership.check(provider, tenant, stored.ids[:1])
            await self._ownership.check(provider, tenant, stored.ids[1:], passes=True)
        is_shared = provider in self.settings.upstream_keys and not caller.admin
        if (
            is_shared
            and not is_stateless(method, path)
            and (tenant is None or stored is None or not stored.is_open(method))
        ):
            message = f"with the gateway's key for {provider} only models can be used, not what the provider stores"
            raise GatewayError(403, message, "shared_key", CLOSE)
        url = self._upstream.address(provider, path, scope["query_string"])
        headers: Headers = scope["headers"]
        length = [(name, value) for name, value in headers if name == b"content-length"]
        has_body = bool(length and length[0][1] != b"0") or any(name == b"transfer-encoding" for name, _ in headers)
        connected = WhileConnected(connection, receive, body_follows=has_body)
        if caller.max_body and length and length[0][1].isdigit() and int(length[0][1]) > caller.max_body:
            raise too_large(caller.max_body)
        body: AsyncIterator[bytes] | bytes | None = None
        sent_body: Json = {}
        if has_body and tenant is not None and ((is_shared and stored is not None) or names_ids(stored, headers)):
            body, sent_body = await self._checked_body(provider, tenant, head.scope, caller, share, receive)
            connected = WhileConnected(connection, receive)
        elif has_body:
            body = _parts(receive, self.settings.body_timeout, connected, caller.max_body)
        claiming = None
        if tenant is not None and stored is not None:
            known = frozenset(each.id for each in stored.ids)

            def fresh_ids(answer: Json) -> list[str]:  # and not what the client has named itself
                texts = "\n".join(strings_in(sent_body))
                return [id for id in made_in_resource(answer, provider, known) if id not in texts]

            claiming = ClaimingSend(self._ownership, tenant, send, fresh_ids, LONGEST_RESOURCE)
        begun = time.perf_counter()
        with connected:
            sent = self._upstream.headers(provider, headers, url)
            sent.extend((name.decode(), value.decode("latin-1")) for name, value in length)
            answer = await self._upstream.send(method, url, sent, body)
            try:
                await relay(claiming or send, answer, from_upstream(answer))
            finally:
                answer.close()
                if claiming is not None:
                    await claiming.close()
                log_forwarded(where, answer.status, time.perf_counter() - begun)

    async def _checked_body(
        self, provider: str, tenant: str, scope: Scope, caller: Caller, share: BodyShare, receive: Receive
    ) -> tuple[bytes, Json]:
        """Return the whole body of a request about what a provider stores, in which every id is the caller's.

        It is returned as it was sent, and as it reads.

        Raises:
            GatewayError: another one stands in it, or nobody can read it here.
        """
        headers: dict[bytes, bytes] = dict(scope["headers"])
        settings = self.settings
        most = min(caller.max_body or settings.max_body, settings.max_body)
        raw = await read_body(receive, headers, most, share, settings.body_timeout, settings.upload_timeout)
        encoding = headers.get(b"content-encoding", b"")
        plain = await self._exchanges.decompressed(raw, encoding, most) if encoding else raw
        if plain is None:
            message = "this body cannot be decompressed here: send it plain, or with gzip"
            raise GatewayError(415, message, "bad_encoding", CLOSE)
        if encoding:
            share.take(len(plain))
        return raw, await self._ownership.check_json(provider, tenant, plain) if plain.strip() else {}

    async def _tunnel(
        self, head: _RequestHead, connection: ClientConnection | None, receive: Receive, send: Send
    ) -> None:
        """Carry a WebSocket between client and provider, as bytes, once the provider has accepted it."""
        scope, provider = head.scope, head.route.dialect.provider
        if connection is None or (provider in self.settings.upstream_keys and not head.caller.admin):
            raise GatewayError(403, "a WebSocket needs a key of the client's own", "shared_key", CLOSE)
        url = self._upstream.address(provider, head.path, scope["query_string"])
        headers = self._upstream.authorized(provider, to_upstream(scope["headers"]), url)
        timeout = self.settings.timeout
        with WhileConnected(connection, receive):
            answer = await open_tunnel(url, headers, self.settings.connect_timeout, timeout)
        try:
            if answer.accepted:
                await connection.tunnel(answer.opening, answer.reader, answer.writer, timeout)
                return
            await send({"type": "http.response.start", "status": answer.status, "headers": from_upstream(answer)})
            while piece := await answer.read():
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            answer.close()

    async def _serve_chat(
        self,
        head: _RequestHead,
        chat: _ChatHead,
        scope: Scope,
        connection: ClientConnection | None,
        receive: Receive,
        send: Send,
    ) -> None:
        with self._bodies.share(head.client) as share:
            taken = connection.take_body() if connection is not None else None
            if taken is not None:
                raw = taken
                if len(raw) > chat.max_body:
                    raise too_large(chat.max_body)
                share.take(len(raw))
            elif connection is not None and connection.has_whole_body:
                raw = await read_body(receive, {}, chat.max_body, share, None)
            else:
                timeouts = self.settings.body_timeout, self.settings.upload_timeout
                raw = await read_body(receive, dict(scope["headers"]), chat.max_body, share, *timeouts)
            if connection is not None:
                share.lend(connection.has_stopped, connection.abort)
            begun = time.perf_counter()
            plain: bytes | None = raw
            if chat.encoding:
                plain = await self._exchanges.decompressed(raw, chat.encoding, chat.max_body)
                share.take(len(plain or b""))
            exchange = Exchange(
                head.route, chat.url, chat.headers, chat.options, raw, plain, tenant=self._tenant(head.caller)
            )
            with WhileConnected(connection, receive):
                native = await self._native.begin(exchange) if self._native.may_concern(exchange) else None
                if native is None:
                    await self._exchanges.run(exchange, send, begun)
                elif native.wish.now and head.route.kind != "count":
                    response = await self._compacted(native, begun)
                    await response(scope, receive, send)
                else:
                    await self._exchanges.run(native.exchange, send, begun)

    async def _compacted(self, native: NativeExchange, begun: float) -> Response:
        """Return the answer to a request that asks for a compaction alone.

        Raises:
            GatewayError: it holds no history that can be seen here (400), or the compaction failed (422).
        """
        exchange = native.exchange
        target = await self._exchanges.target(exchange.route, exchange.options, exchange.plain or b"")
        if target is not None:
            options = await native.smaller(target)
            target = self._exchanges.bind(target.conversation, exchange.route, options)
        if target is None:
            message = "this asks for a compaction without a history or a model: send both in the request"
            raise GatewayError(400, message, "bad_body")
        plan = await self._lookup.forced(target, CompactionWish(native.wish.instructions))
        self.metrics.exchanged(exchange.route.dialect.format, "compacted", 200)
        response = await native.answer(target, plan)
        log_request(exchange, Ready(b"", target=target, done="compacted"), 200, time.perf_counter() - begun)
        return response


def _route_of(scope: Scope) -> Route:
    return route(scope["method"], scope["raw_path"].decode("latin-1"), dict(scope["headers"]))


def names_ids(stored: StoredPath | None, headers: Headers) -> bool:
    """Tell whether the body of a request about what a provider stores may name ids: uploads are content alone."""
    kind = dict(headers).get(b"content-type", b"").lower()
    return (stored is None or stored.collection not in UPLOADED) and not kind.startswith(b"multipart/")


def names_images(path: str) -> bool:
    """Tell whether a path changes images, which may be files that a provider stores."""
    return unquote(path).rstrip("/").lower().endswith("/images/edits")


def _no_socket() -> GatewayError:
    message = "this gateway takes no WebSocket but of the Responses and the realtime API: send the request over HTTP"
    return GatewayError(426, message, "websocket")


def asks_for_websocket(scope: Scope, headers: dict[bytes, bytes]) -> bool:
    """Tell whether a request asks for a WebSocket in place of its connection."""
    return headers.get(b"upgrade", b"").lower() == b"websocket" and scope["method"] == "GET"


def _forgotten(conversation: Conversation, lost: StaleThinking, local: Store | None) -> None:
    """Delete the originals of a forgotten conversation where only this process has them."""
    if local is not None or conversation.deleted:
        lost.add(conversation.id, conversation.production, conversation.known_messages)
    if local is not None:
        with suppress(SessionNotFound, WriteConflict):
            local.delete(conversation.session_id or conversation.id)


async def _parts(receive: Receive, timeout: float, connected: WhileConnected, most: int) -> AsyncIterator[bytes]:
    """Yield the parts of a body as they arrive; of more than `most` bytes (0: no limit) the rest is not awaited."""
    more, size = True, 0
    while more:
        message = await receive_in_time(receive, timeout)
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        size += len(message.get("body", b""))
        if most and size > most:
            raise too_large(most)
        yield message.get("body", b"")
        more = message.get("more_body", False)
    connected.watch()
