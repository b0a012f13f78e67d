"""The card of a compaction: running, done, and there again on reload."""

import re

import pytest

from refold._page import watching
from refold.sessions import MemoryStore, Session
from refold.sessions._leases import compaction_lease
from tests.page.conftest import MARKUP, opened, working


@pytest.fixture
def talk():
    store = MemoryStore()
    session = Session(store, "work", policy="refold", window=32_000, model="gpt-4o")
    session.append(working(24))
    return store, session, opened(store)


def test_the_done_card_lists_what_became_smaller_and_how(talk):
    _, session, page = talk
    assert "<article" not in page.client.get("/c/work").text
    session.compact(force=True)
    card = re.search(r"<article.*?</article>", page.client.get("/c/work").text, re.S)[0]
    plan = session.plans[-1]
    assert f"{plan.sizes.saved:,} tokens</strong> fewer" in card
    assert re.search(r"in \d+\.\d s", card)
    assert "<td><bdi>read_file</bdi></td>" in card
    assert re.search(r"≈ [\d.]+k?</td><td class=\"num\">(≈ )?[\d.]+k?</td><td class=\"num\">−\d+ %", card)
    assert "[Digest of earlier messages" in card
    session.rewind(0)
    assert "Compacted, and taken back" in page.client.get("/c/work").text


def test_a_compaction_of_another_process_is_seen_by_its_lease(talk):
    store, _, page = talk
    with compaction_lease(store, "work"):
        text = page.client.get("/c/work").text
    assert "Compacting 51 messages</strong>, 24 tool results" in text
    assert 'aria-live="polite"' in text
    assert "Compacting" not in page.client.get("/c/work").text


def test_the_card_is_sent_when_it_changes(talk, monkeypatch):
    monkeypatch.setattr(watching, "PAUSE", 0.01)
    monkeypatch.setattr(watching, "LASTS", 0.3)
    store, session, page = talk
    address = re.search(r'data-events="([^"]+)"', page.client.get("/c/work").text)[1].replace("&amp;", "&")
    answer = page.client.get(address)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert "event: card" not in answer.text, "the page has this card already"
    session.compact(force=True)
    assert 'data: <article class="card done">' in page.client.get(address).text
    with compaction_lease(store, "work"):
        assert 'data: <article class="card running">' in page.client.get(address).text
    assert page.outsider.get(address).status_code == 401
    assert page.client.get("/c/none/events").status_code == 404


def test_one_viewer_cannot_take_the_streams_of_all(talk, monkeypatch):
    monkeypatch.setattr(watching, "LASTS", 0.0)
    page = talk[2]
    watchers = page.client.app.state.watchers
    watchers["other"] = watching.OF_ONE
    assert page.client.get("/c/work/events").status_code == 200
    watchers["start"] = watching.OF_ONE
    assert page.client.get("/c/work/events").status_code == 503
    watchers.clear()
    watchers["others"] = watching.WATCHERS
    assert page.client.get("/c/work/events").status_code == 503


def test_hostile_text_of_a_summary_is_text_of_the_card(talk):
    store, _, page = talk
    session = Session(store, "hostile", policy="opal", window=32_000)
    session.append(working(10))
    session.compact(force=True, summarize=lambda request: f"We did things. {MARKUP}\n\ndata: x\nevent: y")
    text = page.client.get("/c/hostile").text
    assert "<img" not in text
    assert "&lt;img" in text
