"""Endpoints of the gateway itself: health, metrics, conversations, originals, and compaction without forwarding."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec
from msgspec.structs import replace
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route

from refold import formats
from refold._gateway.conversations.conversation import within
from refold._gateway.conversations.lookup import CompactionWish
from refold._gateway.conversations.session_reader import hidden_by
from refold._gateway.server.asgi import (
    ClientDisconnected,
    GatewayError,
    error_response,
    internal_error,
    read_body,
)
from refold._gateway.server.auth import check_same_origin
from refold._gateway.server.request_headers import request_options
from refold._gateway.wire.body import LONGEST_MESSAGE, check_values, native, spliced, without_key
from refold._gateway.wire.routes import DIALECTS
from refold._gateway.wire.routes import Route as ProviderRoute
from refold._page.changes import change_of
from refold.core._json import Json, string_of
from refold.core.messages import MessageId
from refold.errors import (
    BadMessages,
    BadValue,
    BrokenConversation,
    CannotFit,
    RefoldError,
    SessionNotFound,
    StoreCorrupt,
    StoreError,
    UnknownFormat,
    UsageError,
    WriteConflict,
)
from refold.sessions._saved_settings import CHOSEN
from refold.sessions._stores.protocol import GATEWAY_IDS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.requests import Request

    from refold._gateway.conversations.conversation import Conversation
    from refold._gateway.conversations.lookup import ConversationLookup
    from refold._gateway.conversations.plan_store import PlanStore
    from refold._gateway.conversations.planner import Planner
    from refold._gateway.conversations.tracker import ConversationTracker
    from refold._gateway.observability.metrics import Metrics
    from refold._gateway.proxy import Exchanges
    from refold._gateway.server.auth import Caller
    from refold._gateway.server.request_headers import RequestOptions
    from refold._gateway.settings import GatewaySettings
    from refold._page.conversations import Conversations
    from refold.core.plan import Plan

__all__ = ["PATHS", "Admin", "is_ours"]

Access: TypeAlias = Literal["anybody", "client", "owner", "administrator"]
PATHS = re.compile(r"/livez|/readyz|/metrics|/v1/compact|/v1/recall(?:/.+)?|/v1/sessions(?:/.+)?")
SESSION_ID = re.compile(r"[\w.:@-]+")
SESSIONS = "/v1/sessions"
MOST_FIELDS = 256 * 1024  # bytes of a body that holds no conversation
MAX_LISTED = 200  # conversations
MESSAGE = '{"message": its id, or its number in the conversation from 1}'
FIELDS = {
    "pin": ("message", MESSAGE),
    "unpin": ("message", MESSAGE),
    "policy": ("policy", '{"policy": the name of one, or null for that of the settings}'),
    "forward": ("", "no fields"),
}


def is_ours(path: str, headers: Mapping[bytes, bytes]) -> bool:
    """Return whether a path is served here and never sent upstream; Anthropic has sessions of its own."""
    return PATHS.fullmatch(path) is not None and not (path.startswith(SESSIONS) and b"anthropic-version" in headers)


class ScopedRoute(Route):
    """A route with who may use it.

    Anybody; a client, with its own request; an owner, with its own conversations; an administrator. The last two need
    a token wherever they call from. Pages of other sites may use none but the first.
    """

    def __init__(self, path: str, handler: Callable[[Request], Awaitable[Response]], access: Access,
                 *methods: str) -> None:  # fmt: skip
        self.access = access

        async def guarded(request: Request) -> Response:
            caller: Caller = request.state.caller
            if access != "anybody":
                check_same_origin(dict(request.scope["headers"]))
            if access in ("owner", "administrator") and not caller.token:
                message = "this needs a token in the header x-refold-token: `refold tokens create` makes one"
                raise GatewayError(401, message, "gateway_token")
            if access == "administrator" and not caller.admin:
                raise GatewayError(403, "this needs the token of an administrator", "gateway_token")
            return await handler(request)

        super().__init__(path, guarded, methods=list(methods) or ["GET"])


class Admin:
    """Serves requests to the gateway itself; `app` is its ASGI application.

    `app` expects in the state of a request the `caller`, and the `provider` whose client sent it, judged by its
    headers: errors are in that provider's protocol. What is not the caller's own does not exist for it.
    """

    def __init__(
        self,
        settings: GatewaySettings,
        tracker: ConversationTracker,
        keeper: PlanStore,
        planner: Planner,
        exchanges: Exchanges,
        metrics: Metrics,
        lookup: ConversationLookup,
        conversations: Conversations,
    ) -> None:
        self._settings = settings
        self._tracks = tracker
        self._keeper = keeper
        self._planner = planner
        self._exchanges = exchanges
        self._metrics = metrics
        self._lookup = lookup
        self._conversations = conversations
        session = SESSIONS + "/{id}"
        self.app = Starlette(
            routes=[
                ScopedRoute("/livez", self._live, "anybody"),
                ScopedRoute("/readyz", self._ready, "anybody"),
                ScopedRoute("/metrics", self._metrics_page, "administrator"),
                ScopedRoute("/v1/compact", self._compact, "client", "POST"),
                ScopedRoute("/v1/recall", self._recall, "owner"),
                ScopedRoute("/v1/recall/{what:path}", self._recall, "owner"),
                ScopedRoute(SESSIONS, self._list_sessions, "owner"),
                ScopedRoute(session, self._session, "owner", "GET", "DELETE"),
                ScopedRoute(session + "/rewind", self._rewind_session, "owner", "POST"),
                ScopedRoute(session + "/compact", self._compact_session, "owner", "POST"),
                *(ScopedRoute(f"{session}/{kind}", self._act(kind), "owner", "POST") for kind in FIELDS),
            ],
            exception_handlers={
                **dict.fromkeys((GatewayError, RefoldError, HTTPException, Exception), self._error),
                ClientDisconnected: _no_response,
            },
        )
        self.app.router.redirect_slashes = False

    async def _error(self, request: Request, error: Exception) -> Response:
        own, provider = _own_error(request, error), request.state.provider
        self._metrics.refused(provider, own.code)
        return error_response(provider, own)

    async def _body(self, request: Request, most: int = MOST_FIELDS) -> bytes:
        """Return the decompressed body of a request, which has so many bytes at most."""
        headers, settings = dict(request.scope["headers"]), self._settings
        most = min(request.state.caller.max_body or settings.max_body, settings.max_body, most)
        timeouts, share = (settings.body_timeout, settings.upload_timeout), request.state.share
        body = await read_body(request.receive, headers, most, share, *timeouts)
        encoding = headers.get(b"content-encoding", b"")
        plain = await self._exchanges.decompressed(body, encoding, most) if encoding else body
        if plain is None:
            raise GatewayError(415, "this body cannot be decompressed: send it plain, or with gzip", "bad_encoding")
        if encoding:
            share.take(len(plain))
        return plain

    def _options(self, request: Request) -> RequestOptions:
        return request_options(dict(request.scope["headers"]), self._settings, request.state.caller.owner)

    async def _live(self, _: Request) -> Response:
        return _json({"status": "ok"})

    async def _ready(self, _: Request) -> Response:
        """Respond whether the store can be used; without its address, since no token is needed."""
        try:
            await self._keeper.check_write()
        except RefoldError as error:
            raise GatewayError(503, f"the store cannot be used ({type(error).__name__})", "store") from error
        return _json({"status": "ok"})

    async def _metrics_page(self, _: Request) -> Response:
        return Response(self._metrics.page(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def _recall(self, request: Request) -> Response:
        query = request.query_params
        what = request.path_params.get("what", "").lstrip("/") or query.get("q", "")
        return _json({"messages": await self._recalled(what, query.get("session", ""), request.state.caller.sees)})

    async def _recalled(self, what: str, session: str, owner: str | None) -> list[Json]:
        """Return originals by a message's id, by the plan or message that replaces them, or by words of their text."""
        what = what.strip().strip("[]")
        ids = [MessageId(what)] if what.startswith("b2:") else []
        conversation = await self._lookup.current(session, owner)
        if not ids:
            for each in [conversation] if conversation is not None else self._lookup.visible(owner):
                ids = hidden_by(each.plans, what)
                if ids:
                    break
        if not ids and session and conversation is None:
            with suppress(StoreCorrupt):  # its plans name nothing any more; its messages can still be searched
                ids = hidden_by(await self._keeper.plans(session, owner), what)
        elif not ids and what.startswith("plan:"):
            ids = await self._keeper.behind(what, owner)
        originals = await self._keeper.originals(ids, owner) if ids else {}
        if not originals and what and not ids:
            originals = await self._keeper.search(
                what, conversation.session_id if conversation is not None else session, owner
            )
        order = ids or list(originals)
        return [{"id": id, "message": originals[id]} for id in order if id in originals]

    async def _compact(self, request: Request) -> Response:
        raw, options = await self._body(request, self._settings.max_body), self._options(request)
        try:
            body = await asyncio.to_thread(_read, raw) if len(raw) > MOST_FIELDS else native(raw)
            dialect = _dialect(body, request.state.provider)
        except BadValue as error:
            raise GatewayError(413, str(error), "request_too_large") from None
        except (ValueError, RecursionError, BadMessages, UnknownFormat) as error:
            message = f"this is no request with a conversation ({type(error).__name__}): send a body as for a provider"
            raise GatewayError(400, message, "bad_body") from None
        wish = _wish(body)
        if "keep_recent" in body:  # which no provider knows
            raw = without_key(raw, "keep_recent")
        named = body.get("model") or request.query_params.get("model", "")
        target = await self._exchanges.target(ProviderRoute(dialect, "compact", string_of(named)), options, raw)
        if target is None:
            raise GatewayError(
                400, "this is no request with a list of messages and a model: name the model in it, or with ?model=",
                "bad_body",
            )  # fmt: skip
        if dialect.format == "openai-responses":  # where these are the system prompt
            wish = replace(wish, instructions="")
        plan = await self._lookup.forced(target, wish)
        conversation = target.conversation
        compacted = spliced(conversation.body, *conversation.write(target.bound)) if conversation.plans else raw
        facts = {"conversation": conversation.id, "done": "nothing"}
        if plan is not None:
            shadow = "shadow-" if self._settings.shadow else ""
            sizes = plan.sizes
            facts |= {
                "done": "forwarded" if shadow else "compacted",
                "reason": "shadow" if shadow else plan.cause.value,
            }
            facts |= {f"{shadow}plan": plan.id, f"{shadow}policy": plan.policy}
            facts |= {f"{shadow}tokens-before": str(sizes.before), f"{shadow}tokens-after": str(sizes.after)}
        headers = {f"x-refold-{name}": value for name, value in facts.items()}
        return Response(compacted, 200, headers, "application/json")

    async def _compact_session(self, request: Request) -> Response:
        """Compact one conversation, in memory or in the store, and return its plans; `model` may be named (O17)."""
        id, options, owner = _session_id(request), self._options(request), request.state.caller.sees
        try:
            body = native(await self._body(request) or b"{}")
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            raise GatewayError(400, 'compact takes {"keep_recent": tokens, "instructions": words}', "bad_body")
        wish, model = _wish(body), body.get("model", "")
        model = string_of(model)
        if not id.startswith(GATEWAY_IDS) and self._lookup.find(id, owner) is None:
            await self._keeper.head(id, owner)  # it is the owner's
            done = await self._planner.compact_session(id, wish.instructions, wish.keep_recent, model)
            if done is None:
                return _json({"id": id, "stored": True, "done": "nothing", "plans": []})
            plans = await self._keeper.plans(done.session)
            facts = {"previous": done.previous} if done.previous else {}
            outcome = _outcome(done.plan if done.compacted else None, plans)
            return _json({**facts, "id": done.session, "stored": True, **outcome})
        target = await self._lookup.target(id, owner, options, model)
        if target is None:
            raise GatewayError(
                400, 'the model of this conversation is not known here: name it, {"model": …}', "bad_body"
            )
        plan = await self._lookup.forced(target, wish)
        return _json({**_summary(target.conversation), **_outcome(plan, target.conversation.plans)})

    async def _list_sessions(self, request: Request) -> Response:
        owner = request.state.caller.sees
        sessions: dict[str, Json] = {}
        known = [(each.session_id, each) for each in reversed(self._lookup.visible(owner)[-MAX_LISTED:])]
        sessions_stored = await self._keeper.sessions(owner)
        stored_ids = {head.id for head in sessions_stored}
        for session, conversation in known:
            if session and session not in stored_ids and await self._keeper.is_deleted(conversation):
                self._tracks.forget(conversation.id, deleted=True)
            else:
                sessions[conversation.session_id or conversation.id] = _summary(conversation)
        for head in sessions_stored[:MAX_LISTED]:
            stored = {"format": head.format, "messages": head.messages, "stored": True, "touched": head.touched}
            stored |= {"owner": head.owner} if head.owner else {}
            sessions[head.id] = {"id": head.id, "plans": None, **stored} | sessions.get(head.id, {}) | {"stored": True}
        return _json({"sessions": list(sessions.values())})

    async def _session(self, request: Request) -> Response:
        """Return one conversation with its plans, or delete it."""
        id, owner = _session_id(request), request.state.caller.sees
        conversation = await self._lookup.current(id, owner)
        if request.method != "DELETE":
            plans = await self._plans(id, conversation, owner)
            return _json({**_summary_of(id, conversation), "plans": [_plan(plan) for plan in plans]})
        if conversation is not None:
            self._tracks.forget(conversation.id, deleted=True)
        stored_id = conversation.session_id if conversation is not None and conversation.session_id else id
        if not await self._keeper.delete(stored_id, owner) and conversation is None:
            raise SessionNotFound(id)
        return _json({"id": id, "deleted": True})

    async def _plans(self, id: str, conversation: Conversation | None, owner: str | None) -> tuple[Plan, ...]:
        """Return the plans in force, also those that another worker or replica has made since."""
        if conversation is None:
            return await self._keeper.plans(id, owner)
        if conversation.session_id and not conversation.unsaved:
            with suppress(StoreError):
                return await self._keeper.plans(conversation.session_id, owner)
        return conversation.plans

    async def _rewind_session(self, request: Request) -> Response:
        id, caller = _session_id(request), request.state.caller
        owner = caller.sees
        to = _to(await self._body(request))
        conversation = await self._lookup.current(id, owner)
        if conversation is None:
            remaining = _until(await self._keeper.plans(id, owner), to)
            await self._keeper.rewound(id, [plan.id for plan in remaining], caller.name)
        else:
            remaining = await self._rewind(id, conversation, to, caller)
        return _json({**_summary_of(id, conversation), "plans": [_plan(plan) for plan in remaining]})

    def _act(self, kind: str) -> Callable[[Request], Awaitable[Response]]:
        """Return the handler of an act that the page has too: it is done, recorded and undone in the same way."""

        async def respond(request: Request) -> Response:
            id, caller, conversations = _session_id(request), request.state.caller, self._conversations
            values = _act_values(kind, await self._body(request))
            history = await conversations.history(id, caller.sees)
            try:
                change = await conversations.run(lambda: change_of(kind.removeprefix("un"), values, history))
            except HTTPException as error:
                missing = "there is no such message: GET /page or recall it to see its id"
                words = missing if error.status_code == 404 else error.detail
                raise GatewayError(error.status_code, words, "not_found" if words is missing else "act") from None
            if change.to is not None:
                await conversations.acts.rewind(history, change.to, caller.name, forward=change.forward)
            else:
                await conversations.acts.configure(history, change.settings, caller.name)
            history = await conversations.history(id, caller.sees)
            settings = history.state.settings
            chosen = settings.get(CHOSEN if history.resent else "policy")
            facts = {"policy": chosen or None, "pinned": settings.get("pinned") or []}
            return _json({"id": id, **facts, "plans": [_plan(plan) for plan in history.plans]})

        return respond

    async def _rewind(self, id: str, conversation: Conversation, to: int | str, caller: Caller) -> tuple[Plan, ...]:
        """Take plans back of those that `_plans` shows; here those are in force whose messages have come here."""
        async with conversation.lock:
            remaining, revision = _until(await self._plans(id, conversation, caller.sees), to), None
            if conversation.session_id:
                stored = remaining[: conversation.stored_plans] if conversation.unsaved else remaining
                ids = [plan.id for plan in stored]
                revision = await self._keeper.rewound(conversation.session_id, ids, caller.name)
            here = within(remaining, len(conversation.body.raws))
            conversation.rewind(here, revision, stored=revision is not None and not conversation.unsaved)
            await self._lookup.rest(conversation)
        return remaining


def _read(body: bytes) -> Any:
    """Return a large body; other threads run meanwhile.

    Raises:
        BadValue: it is too much to be read while others wait.
        ValueError: it is no JSON.
    """
    check_values(body)
    if len(body) > LONGEST_MESSAGE:  # which `opened` says of a message; here it is the whole of them that is read
        raise BadValue(f"a body of more than {LONGEST_MESSAGE:,} bytes is not compacted here: shorten it")
    return native(body)


def _to(body: bytes) -> int | str:
    """Return how many plans stay, or the id of the newest that stays; by default all but the newest."""
    try:
        to = msgspec.json.decode(body or b"{}").get("to", -1)
    except (msgspec.DecodeError, UnicodeDecodeError, AttributeError):
        to = None
    if isinstance(to, bool) or not isinstance(to, int | str):
        raise GatewayError(400, 'rewind takes {"to": how many plans stay, or a plan\'s id}', "bad_body")
    return to


def _act_values(kind: str, body: bytes) -> dict[str, str]:
    """Return what an act names, as the forms of the page do.

    Raises:
        GatewayError: the body is no such object (400).
    """
    field, takes = FIELDS[kind]
    optional = kind in ("policy", "forward")
    try:
        values = msgspec.json.decode(body or b"{}")
    except (msgspec.DecodeError, UnicodeDecodeError):
        values = None
    value = values.get(field) if isinstance(values, dict) and field else None
    if isinstance(value, int) and not isinstance(value, bool) and kind in ("pin", "unpin"):
        value = f"live:{value - 1}"
    if not isinstance(values, dict) or not (isinstance(value, str) or (value is None and optional)):
        raise GatewayError(400, f"{kind} takes {takes}", "bad_body")
    return {field: value or "", "off": "1" if kind == "unpin" else ""}


def _wish(request: Json) -> CompactionWish:
    """Return what a body asks of the compaction.

    Raises:
        GatewayError: `keep_recent` is no positive number of tokens.
    """
    keep_recent, instructions = request.get("keep_recent"), request.get("instructions")
    if keep_recent is not None and (
        isinstance(keep_recent, bool) or not isinstance(keep_recent, int) or keep_recent < 1
    ):
        raise GatewayError(400, "keep_recent is a positive number of tokens", "bad_body")
    return CompactionWish(string_of(instructions), keep_recent)


def _outcome(plan: Plan | None, plans: tuple[Plan, ...]) -> Json:
    return {"done": "nothing" if plan is None else "compacted", "plans": [_plan(each) for each in plans]}


def _until(plans: tuple[Plan, ...], to: int | str) -> tuple[Plan, ...]:
    if isinstance(to, int):
        return plans[: to if to >= 0 else max(len(plans) + to, 0)]
    ids = [str(plan.id) for plan in plans]
    if to not in ids:
        raise GatewayError(404, "this conversation has no such plan: GET it to see those it has", "not_found")
    return plans[: ids.index(to) + 1]


def _dialect(request: object, provider: str) -> Any:
    if not isinstance(request, dict) or not isinstance(request.get("messages") or [], list):
        raise BadMessages("no object with a list of messages")
    if "contents" in request:
        return DIALECTS["gemini"]
    if "input" in request:
        return DIALECTS["responses"]
    name = (
        "anthropic"
        if "system" in request or provider == "anthropic"
        else formats.detect(request.get("messages") or []).name
    )
    return DIALECTS["anthropic" if name == "anthropic" else "chat"]


def _summary_of(id: str, conversation: Conversation | None) -> Json:
    return _summary(conversation) if conversation is not None else {"id": id, "stored": True}


def _summary(conversation: Conversation) -> Json:
    more: Json = {"shadow": _plan(conversation.shadow)} if conversation.shadow is not None else {}
    more |= {"owner": conversation.owner} if conversation.owner else {}
    return {
        **more,
        "id": conversation.session_id or conversation.id,
        "format": conversation.format.name,
        "messages": len(conversation.body.raws),
        "plans": len(conversation.plans),
        "stored": bool(conversation.session_id),
    }


def _plan(plan: Plan) -> Json:
    sizes = plan.sizes
    summary = {"id": plan.id, "policy": plan.policy, "cause": plan.cause.value, "steps": list(plan.stages_used)}
    return {**summary, "messages": plan.base.length, "tokens_before": sizes.before, "tokens_after": sizes.after}


def _own_error(request: Request, error: Exception) -> GatewayError:
    """Return the error of the gateway that stands for whatever an endpoint, or the choice of one, raised."""
    match error:
        case GatewayError():
            return error
        case HTTPException(status_code=405):
            methods = (error.headers or {})["Allow"]
            allowed = [each for each in ("GET", "POST", "DELETE") if each in methods]
            message = f"{request.method} is not for this path" + (f": {allowed[0]} is" if len(allowed) == 1 else "")
            return GatewayError(405, message, "method", [(b"allow", ", ".join(allowed).encode())])
        case SessionNotFound() | HTTPException():
            return GatewayError(404, "there is no such conversation: GET /v1/sessions lists them", "not_found")
        case WriteConflict():
            message = "another one changed or continues this conversation: read it again"
            return GatewayError(409, message, "conflict")
        case StoreCorrupt():
            remedy = "delete the conversation if it alone is damaged, else restore a copy of the store"
            return GatewayError(503, f"the store could not be used (StoreCorrupt): {remedy}", "store")
        case StoreError():
            return GatewayError(503, f"the store could not be used ({type(error).__name__}): try again", "store")
        case UsageError() | BrokenConversation() | CannotFit():
            return GatewayError(400, f"this cannot be compacted: {error}", "bad_body")
        case RefoldError():
            return GatewayError(400, f"this cannot be compacted ({type(error).__name__})", "bad_body")
        case _:
            return internal_error(error)


def _session_id(request: Request) -> str:
    id: str = request.path_params["id"]
    if not SESSION_ID.fullmatch(id):
        raise SessionNotFound(id)
    return id


async def _no_response(request: Request, error: Exception) -> Response:
    return Response(status_code=499)  # which no client receives


def _json(value: object) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json")
