"""The page of a gateway: each token shows the conversations of its owner, those in memory included."""

import json
import re
from types import SimpleNamespace
from urllib.parse import quote

import pytest

from refold._gateway.server.tokens import TokenFile
from refold.core.budget import Share
from tests.gateway.scripted_upstream import ADMIN, call, chat

WORD = "word3x7"  # which stands in one message of `chat(10)`


@pytest.fixture
def teams(gateway, tmp_path):
    """A gateway with the tokens of two teams; the first has a compacted conversation, and one that is short."""
    file = TokenFile(tmp_path / "tokens.jsonl")
    (red, ours), (_, theirs) = (file.create(f"team:{name}") for name in ("red", "blue"))
    settings = {"window": 16_000, "background": False, "tokens": str(tmp_path / "tokens.jsonl")}
    settings |= {"store": str(tmp_path / "g.db"), "trigger": Share(0.6, inclusive=True)}
    serving, _ = gateway(**settings)

    made = SimpleNamespace(url=serving.url, ours=ours, theirs=theirs, revoke=lambda: file.revoke(red.id))

    def get(token, path, status=200):
        answered, _, body = call(made.url, "GET", path, None, {"x-refold-token": token})
        assert answered == status, body
        return body.decode()

    def say(body):
        headers = call(made.url, "POST", "/v1/chat/completions", body, {"x-refold-token": ours})[1]
        return headers["x-refold-conversation"]

    def restart():
        serving.stop()
        made.url = gateway(**settings)[0].url

    made.get, made.restart, made.long, made.short = get, restart, say(chat(10)), say(chat(1))
    return made


def test_a_token_shows_the_conversations_of_its_owner_and_no_others(teams):
    ours, theirs, all_of_them = (teams.get(token, "/page") for token in (teams.ours, teams.theirs, ADMIN))
    for id in (teams.long, teams.short):
        assert f'href="/page/c/{id}"' in ours
        assert id not in theirs
        assert id in all_of_them
    assert "team:red" in all_of_them
    assert "2 conversations of" in ours
    assert "There is no conversation yet" in theirs


def test_what_belongs_to_another_owner_is_answered_like_what_does_not_exist(teams):
    shown = teams.get(teams.ours, f"/page/c/{teams.long}?show=originals")
    address = re.search(rf'href="(/page/c/{teams.long}/m/b2:\w+)"', shown)[1]
    assert teams.get(teams.ours, address)
    for path in (
        f"/page/c/{teams.long}",
        f"/page/c/{teams.short}",
        f"/page/c/{teams.long}/plot.json",
        address,
        address + "/text",
    ):
        assert teams.get(teams.theirs, path, 404) == teams.get(teams.theirs, "/page/c/none", 404)
    assert f"/page/c/{teams.long}/m/b2:" in teams.get(teams.ours, f"/page/search?q={WORD}")
    assert teams.long not in teams.get(teams.theirs, f"/page/search?q={WORD}")


def test_a_conversation_in_memory_has_its_model_window_and_newest_messages(teams):
    row = next(row for row in teams.get(teams.ours, "/page").split("<tr ") if teams.short in row)
    assert "in the gateway" in row
    assert "of 16.0k" in row
    assert "gpt-4o" in row
    text = teams.get(teams.ours, f"/page/c/{teams.long}")
    assert "Compactions</h2>" in text
    assert "</span> left out</span>" in text


def test_the_trigger_is_that_of_the_gateway(teams):
    for id in (teams.long, teams.short):
        limits = json.loads(teams.get(teams.ours, f"/page/c/{id}/plot.json"))["limits"]
        assert limits["window"] == 16_000
        assert limits["trigger"] == 6_240  # of an input budget of 10,400


def test_without_a_token_the_page_asks_for_one_on_loopback_too(teams):
    assert call(teams.url, "GET", "/page")[0] == 401
    assert call(teams.url, "GET", f"/page/c/{teams.long}")[2] == call(teams.url, "GET", "/page/c/none")[2]
    assert call(teams.url, "GET", "/page/static/page.css")[0] == 200


def test_a_session_of_the_page_ends_when_its_token_is_revoked(teams, monkeypatch):
    monkeypatch.setattr("refold._gateway.server.tokens.CHECKED", 0.0)
    status, headers, _ = call(teams.url, "GET", f"/page?token={quote(teams.ours)}")
    assert (status, headers["location"]) == (303, "/page/")
    cookie = {"cookie": headers["set-cookie"].partition(";")[0]}
    assert "Path=/page;" in headers["set-cookie"]
    assert call(teams.url, "GET", "/page/", None, cookie)[0] == 200
    assert call(teams.url, "POST", "/page/sign-out", None, {**cookie, "origin": "http://evil.example"})[0] == 403
    teams.revoke()
    assert call(teams.url, "GET", "/page/", None, cookie)[0] == 401


def test_a_cookie_of_the_page_opens_no_other_route(teams):
    headers = call(teams.url, "GET", f"/page?token={quote(ADMIN)}")[1]
    cookie = {"cookie": headers["set-cookie"].partition(";")[0], "x-refold-token": ""}
    assert call(teams.url, "GET", "/v1/sessions", None, cookie)[0] == 401
    assert call(teams.url, "GET", "/metrics", None, cookie)[0] == 401


def test_a_conversation_that_is_in_the_store_alone_has_its_model_and_its_window(teams):
    teams.restart()
    row = next(row for row in teams.get(teams.ours, "/page").split("<tr ") if teams.long in row)
    assert "in the gateway" not in row
    assert "of 16.0k" in row
    assert "gpt-4o" in row
    assert re.search(r"[$]\d", row)


def test_a_store_that_is_encrypted_is_opened_with_the_key_of_the_gateway(gateway, tmp_path):
    settings = {"window": 16_000, "background": False, "store": str(tmp_path / "g.db"), "store_key": "a secret"}
    first, _ = gateway(**settings)
    id = call(first.url, "POST", "/v1/chat/completions", chat(10))[1]["x-refold-conversation"]
    first.stop()
    second, _ = gateway(**settings)
    text = call(second.url, "GET", f"/page/c/{id}?show=originals&from=1", None, {"x-refold-token": ADMIN})[2].decode()
    assert "word3x399" in text  # the end of the message that has the word; the middle of a long one is behind a link
    assert "Read all files." in text
    found = call(second.url, "GET", f"/page/search?q={WORD}", None, {"x-refold-token": ADMIN})[2].decode()
    assert "1 original for" in found
    recalled = json.loads(call(second.url, "GET", f"/v1/recall?q={WORD}")[2])["messages"]
    assert [WORD in each["message"]["content"] for each in recalled] == [True]


def test_a_search_in_an_encrypted_store_says_where_there_was_no_time_for_all(gateway, tmp_path, monkeypatch):
    serving, _ = gateway(window=16_000, background=False, store=str(tmp_path / "g.db"), store_key="a secret")
    call(serving.url, "POST", "/v1/chat/completions", chat(10))
    monkeypatch.setattr("refold.sessions._search.SECONDS", -1.0)
    found = call(serving.url, "GET", f"/page/search?q={WORD}", None, {"x-refold-token": ADMIN})[2].decode()
    assert "no time to open every message" in found


@pytest.mark.parametrize(("rate", "pages"), [(3, 5), (6, 6)])
def test_the_page_has_its_own_requests_or_as_many_as_its_token_where_that_is_more(
    gateway, tmp_path, monkeypatch, rate, pages
):
    monkeypatch.setattr("refold._page.access.VIEWS", 5)
    monkeypatch.setattr("refold._page.rates.monotonic", lambda: 1_000.0)
    _, token = TokenFile(tmp_path / "tokens.jsonl").create("team:red", rate=rate)
    serving, _ = gateway(tokens=str(tmp_path / "tokens.jsonl"))
    headers = {"x-refold-token": token}
    opened = [call(serving.url, "GET", "/page", None, headers) for _ in range(pages + 1)]
    assert [status for status, *_ in opened] == [200] * pages + [429]
    assert int(opened[-1][1]["retry-after"]) <= 12
    assert call(serving.url, body=chat(1), headers=headers)[0] == 200
