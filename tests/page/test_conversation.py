import re

from tests.page.conftest import ESCAPES, MARKUP, RULE


def test_a_conversation_shows_what_the_model_sees_and_what_became_of_the_rest(get):
    text = get("/c/work")
    assert "As the model sees it now" in text
    for status in ("kept", "left out"):
        assert f"</span> {status}</span>" in text
    assert "And now the last line." in text
    assert re.search(r'class="why">.*fit.*refold', text)


def test_each_compaction_has_its_break_even_and_its_cost(get):
    text = get("/c/work")
    assert re.search(r"from call \d+ on<small>costs [\d.]+k?, saves [\d.]+k? a call", text)


def test_the_originals_are_shown_with_what_became_of_each(get):
    text = get("/c/work", show="originals", **{"from": "1"})
    assert "The originals" in text
    assert RULE in text
    assert "must hold" in text
    assert text.count('<li class="message') == 51


def test_a_part_opens_its_original_and_its_text(get, page):
    text = get("/c/work", show="originals")
    address = re.search(r'href="(/c/work/m/b2:\w+)"', text)[1]
    assert "Original " in get(address)
    answer = page.client.get(address + "/text")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_what_does_not_exist_is_not_found(get):
    for path in ("/c/none", "/c/~!!", "/c/work/m/b2:none", "/c/work/m/b2:none/text", "/c/none/plot.json"):
        get(path, 404)


def test_an_original_of_another_conversation_is_not_found_in_this_one(get):
    address = re.search(r"/m/(b2:\w+)", get("/c/hostile", show="originals"))[1]
    get(f"/c/work/m/{address}", 404)


def test_the_plot_has_limits_compactions_and_the_points_from_which_they_pay(page):
    data = page.client.get("/c/work/plot.json").json()
    assert data["limits"]["window"] == 32_000
    assert data["limits"]["goal"] < data["limits"]["trigger"] < 32_000
    before, plan = data["kinds"].index("before"), data["kinds"].index("plan")
    assert plan == before + 1
    assert data["tokens"][plan] < data["tokens"][before]
    assert len({len(data[name]) for name in ("tokens", "messages", "at", "kinds")}) == 1
    assert data["kinds"].count("plan") >= 2


def test_a_session_without_messages_is_shown(page):
    assert page.client.get("/c/theirs").status_code == 200


def test_an_id_of_any_signs_has_an_address(get):
    address = re.search(r'href="(/c/~[\w-]+)"', get("/"))[1]
    assert "hello" in get(address)


def test_markup_of_a_message_is_text(get):
    for text in (get("/c/hostile"), get("/c/hostile", show="originals"), get("/")):
        assert MARKUP not in text
        assert "&lt;script&gt;" in text
        assert "onerror=alert(1)&gt;" in text


def test_control_characters_and_marks_of_direction_are_visible_and_isolated(get):
    text = get("/c/hostile")
    for sign in "\x1b\u202e\u2066\u200b\ud800":
        assert sign not in text
    assert "<bdi>" in text
    for shown in ("␛", "U+202E", "U+2066", "U+200B", "U+D800"):
        assert shown in text
    assert ESCAPES.count("\x1b") == text.count("␛")


def test_a_text_of_many_characters_is_shortened_with_a_link_to_all_of_it(get, page):
    text = get("/c/hostile")
    assert len(text) < 60_000
    assert "498,800 more characters" in text
    address = re.findall(r'href="(/c/hostile/m/b2:\w+)"', text)[-1]
    assert len(get(address)) < 400_000
    assert len(page.client.get(address + "/text").content) == 500_000
