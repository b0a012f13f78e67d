import re
import sqlite3

from refold._page import templating
from refold._page.app import load
from refold.sessions import MemoryStore, Session, open_store
from tests.page.conftest import MARKUP, opened

ROW = '<tr role="row">'


def test_each_conversation_has_its_context_policy_compactions_and_savings(get):
    text = get("/")
    row = next(row for row in text.split(ROW) if 'href="/c/work"' in row)
    assert "Find the bug in the parser." in row
    assert "percent of the window is used" in row
    assert "of 32.0k" in row
    assert "gpt-4o" in row
    assert re.search(r"\$\d", row)


def test_what_no_price_is_known_for_is_called_unknown(store):
    session = Session(own := MemoryStore(), "a", policy="refold", window=32_000)
    session.append([{"role": "user", "content": f"{number} " * 3_000} for number in range(6)])
    session.compact(force=True)
    assert session.plans
    text = opened(own).client.get("/").text
    assert 'data-name="Money saved" class="num"><span class="unknown">unknown</span>' in text


def test_an_empty_store_says_so():
    page = opened(MemoryStore())
    assert "There is no conversation yet" in page.client.get("/").text
    assert page.client.get("/search", params={"q": "x"}).status_code == 200


def test_the_list_is_read_page_by_page():
    store = MemoryStore()
    for number in range(120):
        Session(store, f"s{number:03}", policy="refold", window=32_000).append([{"role": "user", "content": "x"}])
    client = opened(store).client
    first, last = client.get("/").text, client.get("/", params={"page": 3}).text
    assert "Page 1 of 3" in first
    assert first.count(ROW) == 51
    assert 'href="/c/s119"' in first
    assert last.count(ROW) == 21
    assert 'href="/c/s000"' in last
    assert "no conversations on this page" in client.get("/", params={"page": 9}).text


def test_a_page_that_is_open_asks_for_the_rows_alone(page):
    text = page.client.get("/", headers={"hx-request": "true"}).text
    assert "<html" not in text
    assert 'href="/c/work"' in text


def test_a_conversation_that_cannot_be_read_is_listed_with_its_problem(store):
    class Sealed:
        def opened(self, value):
            return value

        def opened_text(self, text):
            from refold.errors import StoreCorrupt

            raise StoreCorrupt("sealed")

    text = opened(store, opener=Sealed()).client.get("/").text
    assert "cannot be read: StoreCorrupt" in text
    assert 'href="/c/hostile"' in text


def test_the_search_finds_originals_that_a_compaction_left_out(get):
    text = get("/search", q="part 0 line 7 value")
    assert "/c/work/m/b2:" in text
    assert "All" not in get("/search", q="")
    assert "0 originals" in get("/search", q="zebra")


def test_what_is_searched_for_is_text(get):
    assert MARKUP not in get("/search", q=MARKUP)


def test_a_query_is_as_long_as_the_form_allows(get):
    text = get("/search", q="parser " + "x" * 1_000)
    assert "x" * 393 in text
    assert "x" * 394 not in text


def test_a_damaged_message_leaves_the_list_and_the_search_of_the_others(tmp_path):
    place = tmp_path / "page.db"
    with open_store(place) as store:
        for name in ("first", "second"):
            Session(store, name, window=16_000).append([{"role": "user", "content": f"A needle in the {name}."}])
        with sqlite3.connect(place) as database:
            database.execute("update messages set native = '{' where native like '%in the first%'")
        client = opened(store).client
        text = client.get("/").text
        assert "cannot be read: StoreCorrupt" in text
        assert "in the second" in text
        assert client.get("/c/first").status_code == 503
        found = client.get("/search", params={"q": "needle"}).text
        assert "in the second" in found
        assert "first" not in found


def test_after_the_loading_at_the_start_no_view_has_a_template_to_compile():
    load()
    templates = templating._environment
    assert {name for _, name in templates.cache} == set(templates.list_templates(["html"]))
