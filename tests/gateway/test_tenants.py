"""Two teams on one gateway: in no route is anything of the other seen, listed, changed or guessed."""

import http.client
import json
import re
import time
from types import SimpleNamespace
from urllib.parse import urlencode

import pytest
from starlette.routing import Route

from refold._gateway.admin import Admin, ScopedRoute
from refold._gateway.server.tokens import TokenFile
from refold._gateway.wire.routes import DIALECTS, PATHS
from refold._page.app import page_app
from tests.gateway.scripted_upstream import ADMIN, call, chat

WORD = "word3x7"  # which stands in one message of `chat(10)`
ROUTES = Admin(*[None] * 8).app.routes  # type: ignore[arg-type]


@pytest.fixture
def teams(gateway, tmp_path):
    """A gateway with a store and the tokens of two teams; the first team has a compacted conversation."""
    file = TokenFile(tmp_path / "tokens.jsonl")
    ours, theirs = (file.create(f"team:{name}")[1] for name in ("red", "blue"))
    settings = {"window": 16_000, "background": False, "tokens": str(tmp_path / "tokens.jsonl")}
    settings |= {"store": str(tmp_path / "g.db")}
    first, provider = gateway(**settings)

    def ask(token, method, path, body=None, **headers):
        return call(made.url, method, path, body, {"x-refold-token": token, **headers})

    made = SimpleNamespace(url=first.url, ours=ours, theirs=theirs, ask=ask, provider=provider)
    headers = ask(ours, "POST", "/v1/chat/completions", chat(10), **{"x-refold-session": "shared"})[1]
    made.id, made.plan = headers["x-refold-conversation"], headers["x-refold-plan"]
    made.message = json.loads(ask(ours, "GET", f"/v1/recall/{made.plan}")[2])["messages"][0]["id"]

    def restart():
        first.stop()
        again, made.provider = gateway(**settings)
        made.url = again.url

    made.restart = restart
    return made


def state(teams):
    """Return what the first team sees of its conversation: its ids, its plans and its originals."""
    paths = ("/v1/sessions", f"/v1/sessions/{teams.id}", f"/v1/recall/{teams.plan}", f"/v1/recall?q={WORD}")
    listed, one, *recalled = [json.loads(teams.ask(teams.ours, "GET", path)[2]) for path in paths]
    return [each["id"] for each in listed["sessions"]], one["plans"], recalled


def requests(method, path, id, plan, message, word):
    """Return the requests to a route that name these things: pairs of path and body."""
    return {
        ("GET", "/livez"): [("/livez", None)],
        ("GET", "/readyz"): [("/readyz", None)],
        ("GET", "/metrics"): [("/metrics", None)],
        ("POST", "/v1/compact"): [("/v1/compact", chat(10))],
        ("GET", "/v1/recall"): [
            (f"/v1/recall?q={word}", None),
            (f"/v1/recall?q={word}&session={id}", None),
            (f"/v1/recall?q={plan}", None),
            (f"/v1/recall?q={plan}&session={id}", None),
        ],
        ("GET", "/v1/recall/{what:path}"): [(f"/v1/recall/{plan}", None), (f"/v1/recall/{message}", None)],
        ("GET", "/v1/sessions"): [("/v1/sessions", None)],
        ("GET", "/v1/sessions/{id}"): [(f"/v1/sessions/{id}", None)],
        ("DELETE", "/v1/sessions/{id}"): [(f"/v1/sessions/{id}", None)],
        ("POST", "/v1/sessions/{id}/rewind"): [(f"/v1/sessions/{id}/rewind", {"to": 0})],
        ("POST", "/v1/sessions/{id}/forward"): [
            (f"/v1/sessions/{id}/rewind", {"to": 0}),
            (f"/v1/sessions/{id}/forward", None),
        ],
        ("POST", "/v1/sessions/{id}/pin"): [(f"/v1/sessions/{id}/pin", {"message": message})],
        ("POST", "/v1/sessions/{id}/unpin"): [(f"/v1/sessions/{id}/unpin", {"message": message})],
        ("POST", "/v1/sessions/{id}/policy"): [(f"/v1/sessions/{id}/policy", {"policy": "opal"})],
        ("POST", "/v1/sessions/{id}/compact"): [(f"/v1/sessions/{id}/compact", {"model": "gpt-4o"})],
    }[method, path]


ACCESS = {"/livez": "anybody", "/readyz": "anybody", "/metrics": "administrator", "/v1/compact": "client"}


@pytest.mark.parametrize("restarted", [False, True], ids=["in-memory", "in-the-store"])
@pytest.mark.parametrize(
    ("route", "method"),
    [
        pytest.param(route, method, id=f"{method} {route.path}")
        for route in ROUTES
        for method in sorted(route.methods - {"HEAD"})
    ],
)
def test_nothing_of_another_team_is_seen_listed_changed_or_guessed(teams, route, method, restarted):
    assert isinstance(route, ScopedRoute)
    assert route.access == ACCESS.get(route.path, "owner")
    before = state(teams)
    if restarted:
        teams.restart()
    real = requests(method, route.path, teams.id, teams.plan, teams.message, WORD)
    invented = requests(method, route.path, "conv_" + "0" * 32, "plan:" + "0" * 24, "b2:" + "0" * 24, "absentword")
    for (path, body), (other_path, other_body) in zip(real, invented, strict=True):
        status, _, data = teams.ask(teams.theirs, method, path, body)
        if route.access == "administrator":
            assert status == 403
        elif route.access == "owner":
            assert teams.ask("", method, path, body)[0] == 401
            other_status, _, other_data = teams.ask(teams.theirs, method, other_path, other_body)
            assert (status, data) == (other_status, other_data), "not yours and not there are one answer"
            assert not {teams.id, teams.plan, teams.message, WORD} & set(data.decode().replace('"', " ").split())
    teams.ask(teams.theirs, "DELETE", "/v1/sessions/" + teams.id)
    assert state(teams) == before
    for path, body in real:  # which shows that the requests mean something
        assert teams.ask(ADMIN if route.access == "administrator" else teams.ours, method, path, body)[0] == 200


def page_requests(method, path, id, plan, message, word):
    """Return the requests to a route of the page that name these things: pairs of path and form."""
    conversation = f"/c/{id}"
    acts = {"rewind": {"plan": plan}, "pin": {"message": message}, "policy": {"policy": "opal"}, "undo": {"step": "2"}}
    acts["compact"] = {"model": "gpt-4o", "goal": "3000"}
    report = ("/reports", {"kind": "replay", "id": id})
    return {
        ("GET", "/"): [("/", None)],
        ("GET", "/search"): [(f"/search?q={word}", None)],
        ("POST", "/sign-in"): [("/sign-in", {"token": "wrong"})],
        ("POST", "/sign-out"): [("/sign-out", {})],
        ("GET", "/static"): [("/static/page.css", None)],
        ("GET", "/c/{id}"): [(conversation, None), (conversation + "?show=originals", None)],
        **{("GET", f"/c/{{id}}/{name}"): [(f"{conversation}/{name}", None)] for name in VIEWS},
        ("GET", "/c/{id}/m/{message}"): [(f"{conversation}/m/{message}", None)],
        ("GET", "/c/{id}/m/{message}/text"): [(f"{conversation}/m/{message}/text", None)],
        **{("GET", f"/c/{{id}}/{name}"): [(f"{conversation}/{name}?{urlencode(acts[name])}", None)] for name in acts},
        **{("POST", f"/c/{{id}}/{name}"): [(f"{conversation}/{name}", form)] for name, form in acts.items()},
        ("GET", "/reports"): [report, ("/reports", None)],
        ("POST", "/reports"): [report],
        ("POST", "/reports/cancel"): [report, ("/reports/cancel", {})],
        ("GET", "/reports/report.html"): [("/reports/report.html", None)],
        ("GET", "/reports/plots/{name}.svg"): [("/reports/plots/001-cost.svg", None)],
    }[method, path]


VIEWS = ("plot.json", "events", "compare", "tokens", "must-hold")
PAGE_ROUTES = [
    (path, method)
    for route in page_app(None, None, b"").routes  # type: ignore[arg-type]
    for path, methods in [(route.path, getattr(route, "methods", {"GET"}))]
    for method in sorted(methods - {"HEAD"})
]


@pytest.mark.parametrize(("path", "method"), PAGE_ROUTES, ids=[" ".join(each[::-1]) for each in PAGE_ROUTES])
def test_nothing_of_another_team_is_seen_or_changed_on_the_page(teams, path, method):
    def ask(token, where, form):
        headers = {"origin": teams.url, "content-type": "application/x-www-form-urlencoded"}
        if form is None:
            return teams.ask(token, "GET", "/page" + where, None, **headers)
        own = re.search(r'name="form" value="([^"]+)"', teams.ask(token, "GET", "/page/reports")[2].decode())
        data = urlencode(form | {"form": own[1]}).encode()
        return teams.ask(token, "POST", "/page" + where, data, **headers)

    if "/reports/" in path:  # there is one to be seen
        assert ask(teams.ours, "/reports", {"kind": "replay", "id": teams.id})[0] == 303
        end = time.monotonic() + 60
        while ask(teams.ours, "/reports/report.html", None)[0] != 200 and time.monotonic() < end:
            time.sleep(0.05)
    before = state(teams)
    real = page_requests(method, path, teams.id, teams.plan, teams.message, WORD)
    invented = page_requests(method, path, "conv_" + "0" * 32, "plan:" + "0" * 24, "b2:" + "0" * 24, "absentword")
    for request, other in zip(real, invented, strict=True):
        status, _, data = ask(teams.theirs, *request)
        if teams.id in str(request):
            other_status, _, other_data = ask(teams.theirs, *other)
            assert (status, data) == (other_status, other_data), "not yours and not there are one answer"
            assert status == 404
        assert not [each for each in (teams.id, teams.plan, teams.message) if each in data.decode()]
        if not path.startswith(("/sign-in", "/static")):
            assert call(teams.url, method, "/page" + request[0], None, {"x-refold-token": ""})[0] == 401
    assert state(teams) == before
    for where, form in real if path != "/sign-in" else ():  # which shows that the requests mean something
        if path.endswith("/events"):  # which do not end
            watching = http.client.HTTPConnection(teams.url.partition("//")[2], timeout=20)
            watching.request("GET", "/page" + where, headers={"x-refold-token": teams.ours})
            assert watching.getresponse().status == 200
            watching.close()
        else:
            assert ask(teams.ours, where, form)[0] in (200, 303)


@pytest.mark.parametrize("path", ["/v1/sessions", "/v1/recall?q=" + WORD])
def test_an_administrator_sees_all_teams_and_whose_a_conversation_is(teams, path):
    data = json.loads(teams.ask(ADMIN, "GET", path)[2])
    assert data["messages"] if "recall" in path else [each["owner"] for each in data["sessions"]] == ["team:red"]
    for path in (f"/v1/recall/{teams.message}", f"/v1/recall/{teams.plan}"):
        assert json.loads(teams.ask(ADMIN, "GET", path)[2])["messages"]
    assert teams.ask(ADMIN, "POST", f"/v1/sessions/{teams.id}/rewind", {"to": 0})[0] == 200


def conversation(format):
    words = [" ".join(f"word{number}x{place}" for place in range(400)) for number in range(9)]
    roles = ("user", "model" if format == "gemini" else "assistant")
    if format == "gemini":
        return {"contents": [{"role": roles[n % 2], "parts": [{"text": text}]} for n, text in enumerate(words)]}
    said = [{"role": roles[place % 2], "content": text} for place, text in enumerate(words)]
    if format == "openai-responses":
        return {"model": "gpt-4o", "input": said}
    model = "claude-opus-4-6" if format == "anthropic" else "gpt-4o"
    return {"model": model, "messages": said} | ({"max_tokens": 9} if format == "anthropic" else {})


CHAT_PATH = {"openai-chat": "/v1/chat/completions", "openai-responses": "/v1/responses", "anthropic": "/v1/messages",
             "gemini": "/v1beta/models/gemini-2.5-pro:generateContent"}  # fmt: skip
MODEL_ROUTES = {path: (DIALECTS[name].format, kind) for path, (name, kind) in PATHS.items()} | {
    "/v1beta/models/gemini-2.5-pro:generateContent": ("gemini", "chat"),
    "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse": ("gemini", "chat"),
    "/v1beta/models/gemini-2.5-pro:countTokens": ("gemini", "count"),
    "/v1/compact?model=gemini-2.5-pro": ("gemini", "compact"),
}


@pytest.mark.parametrize("restarted", [False, True], ids=["in-memory", "in-the-store"])
@pytest.mark.parametrize("path", MODEL_ROUTES)
def test_equal_words_under_an_equal_name_are_another_conversation_for_another_team(teams, path, restarted):
    format, kind = MODEL_ROUTES[path]
    body, named = conversation(format), {"x-refold-session": "shared"}
    headers = teams.ask(teams.ours, "POST", CHAT_PATH[format], body, **named)[1]
    assert headers["x-refold-done"] == "compacted"
    if restarted:
        teams.restart()
    teams.provider.received.clear()
    headers = teams.ask(teams.theirs, "POST", path, body, **named, **{"x-refold-trigger": "never"})[1]
    if kind == "compact":
        listed = json.loads(teams.ask(teams.theirs, "GET", "/v1/sessions")[2])["sessions"]
        assert [each["plans"] for each in listed] == [1]
        assert listed[0]["id"] not in state(teams)[0]
    else:
        assert headers["x-refold-done"] == "forwarded", "the plan of the other team is not in force here"
    if kind == "chat":
        assert body.items() <= teams.provider.received[0].body.items()
    listed = json.loads(teams.ask(teams.ours, "GET", "/v1/sessions")[2])["sessions"]
    assert headers.get("x-refold-conversation") not in {each["id"] for each in listed}


def test_every_route_of_the_gateway_is_an_endpoint_with_its_access():
    assert {type(route) for route in ROUTES} == {ScopedRoute}
    assert issubclass(ScopedRoute, Route)
