import asyncio
import time
from types import SimpleNamespace

import pytest
from starlette.testclient import TestClient

from refold._page.access import LASTS, WRONG, StartToken
from refold._page.app import POLICY, page_app
from refold._page.conversations import Conversations
from tests.page.conftest import opened

PATHS = ["/", "/search?q=parser", "/c/work", "/c/none", "/c/work/plot.json", "/nothing"]


def test_the_token_of_the_address_becomes_a_cookie_and_leaves_the_address(page):
    assert (page.answer.status_code, page.answer.headers["location"]) == (303, "/")
    cookie = page.answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert page.token not in cookie
    assert page.client.get("/").status_code == 200


def test_the_rest_of_the_address_stays_and_leads_nowhere_else(page):
    answer = page.outsider.get("/c/work", params={"token": page.token, "from": "3"}, follow_redirects=False)
    assert answer.headers["location"] == "/c/work?from=3"
    answer = page.outsider.get("//evil.example/", params={"token": page.token}, follow_redirects=False)
    assert not answer.headers["location"].startswith("//")
    page.outsider.cookies.clear()


@pytest.mark.parametrize("path", PATHS)
def test_without_a_token_every_address_answers_alike(page, path):
    answers = [page.outsider.get(path), page.outsider.get(path, headers={"x-refold-token": "wrong"})]
    answers.append(page.outsider.get(path, headers={"cookie": "refold_page_8788=start~9999999999~00"}))
    answers.append(page.outsider.get(path, headers={"cookie": f"refold_page_8788=start~{'9' * 6_000}~00"}))
    answers.append(page.outsider.get(path, params={"token": "wrong"}))
    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.text for answer in answers}) == 1
    assert "work" not in answers[0].text


def test_a_token_in_a_header_opens_the_page_without_a_cookie(page):
    answer = page.outsider.get("/", headers={"authorization": f"Bearer {page.token}"})
    assert answer.status_code == 200
    assert "set-cookie" not in answer.headers


def test_a_token_that_is_typed_in_opens_the_page(page):
    assert page.outsider.post("/sign-in", data={"token": "wrong"}).status_code == 401
    assert page.outsider.post("/sign-in", data={"token": "x" * 100_000}).status_code == 401
    answer = page.outsider.post("/sign-in", data={"token": page.token}, follow_redirects=False)
    assert answer.headers["location"] == "/"
    assert page.outsider.get("/").status_code == 200
    page.outsider.post("/sign-out")
    assert page.outsider.get("/").status_code == 401


@pytest.mark.parametrize(
    ("public", "secure"), [("", False), ("https://page.example:8443", True), ("http://page.example", False)]
)
def test_the_cookie_is_sent_by_https_alone_where_a_proxy_has_the_certificate(store, public, secure):
    access = StartToken()
    client = TestClient(page_app(Conversations(store), access, b"key", public), base_url="http://10.0.0.7:8787")
    headers = {"x-forwarded-proto": "https"}  # which anybody can send
    answer = client.get("/", params={"token": access.token}, headers=headers, follow_redirects=False)
    assert ("Secure" in answer.headers["set-cookie"]) == secure
    given = {"x-refold-token": access.token, "sec-fetch-site": "same-origin"}
    for origin in ("http://10.0.0.7:8787", public or "http://10.0.0.7:8787", "https://evil.example"):
        answer = client.post("/c/work/pin", headers={**given, "origin": origin}, data={})
        assert answer.status_code == 403
        assert ("Another site" in answer.text) == ("evil" in origin), "and else the form has no token"


@pytest.mark.parametrize(("public", "origin"), [
    ("https://page.example:443", "https://page.example"), ("http://page.example:80", "http://page.example"),
    ("https://ann:secret@Page.example:8443", "https://page.example:8443"), ("https://[::1]:443", "https://[::1]"),
])  # fmt: skip
def test_a_proxy_is_known_by_the_origin_that_browsers_write(store, public, origin):
    access = StartToken()
    client = TestClient(page_app(Conversations(store), access, b"key", public), base_url="http://10.0.0.7:8787")
    for sent, foreign in ((origin, False), (origin + ":1", True)):
        headers = {"x-refold-token": access.token, "sec-fetch-site": "same-origin", "origin": sent}
        assert ("Another site" in client.post("/c/work/pin", headers=headers, data={}).text) == foreign


@pytest.mark.parametrize("way", ["address", "header", "form"])
def test_who_sends_many_wrong_tokens_waits_and_whoever_is_signed_in_does_not(store, way, monkeypatch):
    now = 1_000.0
    monkeypatch.setattr("refold._page.rates.monotonic", lambda: now)
    page = opened(store)

    def send(token):
        if way == "form":
            return page.outsider.post("/sign-in", data={"token": token}, follow_redirects=False)
        given = {"params": {"token": token}} if way == "address" else {"headers": {"x-refold-token": token}}
        return page.outsider.get("/", **given, follow_redirects=False)

    answers = [send(f"wrong{number}") for number in range(WRONG + 5)]
    assert [answer.status_code for answer in answers] == [401] * WRONG + [429] * 5
    assert 0 < int(answers[-1].headers["retry-after"]) <= 60
    assert "Try again in" in answers[-1].text
    assert send(page.token).status_code == 429, "or a guess that is right would be told"
    assert page.client.get("/").status_code == 200
    now += int(answers[-1].headers["retry-after"])
    assert send(page.token).status_code in (200, 303)


def test_a_header_that_a_proxy_adds_shuts_nobody_out_who_is_signed_in(store):
    page = opened(store)
    answers = [page.client.get("/", headers={"authorization": "Bearer x"}) for _ in range(WRONG + 1)]
    assert {answer.status_code for answer in answers} == {200}
    assert page.outsider.get("/", headers={"authorization": f"Bearer {page.token}"}).status_code == 200


def test_a_viewer_has_so_many_requests_a_minute(store, monkeypatch):
    monkeypatch.setattr("refold._page.access.VIEWS", 5)
    monkeypatch.setattr("refold._page.rates.monotonic", lambda: 1_000.0)
    page = opened(store)
    assert [page.client.get("/nothing").status_code for _ in range(7)] == [404] * 5 + [429] * 2
    assert page.client.get("/static/page.css").status_code == 200


def test_a_sign_in_that_breaks_off_opens_nothing_and_is_no_fault_of_the_page(page):
    answered = []

    async def receive():
        return {"type": "http.disconnect"}

    async def send(message):
        answered.append(message.get("status"))

    scope = {"type": "http", "method": "POST", "path": "/sign-in", "headers": [(b"host", b"127.0.0.1:8788")]}
    asyncio.run(page.outsider.app({**scope, "query_string": b"", "root_path": ""}, receive, send))
    assert answered[0] == 401


def test_a_session_ends_with_its_time_and_with_its_token(store, monkeypatch):
    page = opened(store)
    monkeypatch.setattr("refold._page.access.time.time", lambda: 9e9)
    assert page.client.get("/").status_code == 401
    monkeypatch.undo()
    assert page.client.get("/").status_code == 200
    assert opened(store).client.get("/", headers={"cookie": page.answer.headers["set-cookie"]}).status_code == 401


@pytest.mark.parametrize(("set_back", "later", "status"), [(3_600, 10, 401), (3_600, LASTS + 10, 401), (30, 10, 200)])
def test_a_session_lasts_no_longer_where_the_clock_is_set_back(store, monkeypatch, set_back, later, status):
    page = opened(store)
    assert page.client.get("/").status_code == 200
    clocks = SimpleNamespace(time=lambda: time.time() - set_back, monotonic=lambda: time.monotonic() + later)
    monkeypatch.setattr("refold._page.access.time", clocks)
    assert page.client.get("/").status_code == status


def test_a_token_for_one_use_is_used_once():
    access = StartToken()
    token = access.once()
    assert access.by_token(token) == access.by_token(access.token)
    assert access.by_token(token) is None


@pytest.mark.parametrize("path", [*PATHS, "/static/page.css"])
def test_every_response_has_the_headers_of_security(page, path):
    headers = page.client.get(path).headers
    assert headers["content-security-policy"] == POLICY
    assert "unsafe" not in POLICY
    assert headers["referrer-policy"] == "same-origin", "with none at all, browsers say that forms come from nowhere"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] in ("no-store", "no-cache")


@pytest.mark.parametrize(
    "headers", [{"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}, {"origin": "null"}]
)
def test_a_form_of_another_site_is_refused(page, headers):
    assert page.client.post("/sign-out", headers=headers).status_code == 403
    assert page.client.post("/sign-in", data={"token": page.token}, headers=headers).status_code == 403
