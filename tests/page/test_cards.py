"""The card of a compaction: running, done, and there again on reload."""

import re

import pytest

from refold._counting import counter_for
from refold._page import watching
from refold._page.templating import short
from refold.sessions import MemoryStore, Session
from refold.sessions._leases import compaction_lease
from refold.summaries._guard import headings
from refold.summaries.summarizers import guarded
from tests.page.conftest import MARKUP, RULE, opened, working


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
    tokens = counter_for("gpt-4o").text(working(24)[3]["content"])
    assert f'<td class="num">{short(tokens)}</td>' in card, "counted, not estimated"
    assert re.search(r"[\d.]+k?</td><td class=\"num\">[\d.]+k?</td><td class=\"num\">−\d+ %", card)
    assert "no summary, nothing to guard" in card
    assert "[Digest of earlier messages" in card
    session.append([{"role": "assistant", "content": "The last line is found."}])
    later = re.search(r"<article.*?</article>", page.client.get("/c/work").text, re.S)[0]
    assert later.split("<details>")[1:] == card.split("<details>")[1:], "which tells of the same outputs"
    session.rewind(0)
    assert "Compacted, and taken back" in page.client.get("/c/work").text


def faithful(need):
    words = f"The bug of the parser is looked for in src/m0.py and those that follow. {RULE} "
    return "\n\n".join([f"## {title}\n\n{words * 2}" for title in headings(need)] or [words * 8]).strip()


@pytest.mark.parametrize(("summarize", "shown"), [
    (lambda _: f"We did things. {RULE}", "guard: did not judge this summary"),
    (guarded(faithful), "guard: summary accepted"),
    (guarded(lambda _: "I'd be happy to help!"), "guard: the summary was rejected: "),
])  # fmt: skip
def test_the_card_has_what_the_guard_said_of_a_summary(talk, summarize, shown):
    store, _, page = talk
    session = Session(store, "told", policy="opal", window=32_000, model="gpt-4o")
    session.append(working(24))
    session.compact(force=True, summarize=summarize)
    assert shown in re.sub("<[^>]+>", "", page.client.get("/c/told").text)
    assert shown.endswith("accepted") == any(record.guard for record in session.plans[-1].steps)


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
