import re

from refold.core.edits import Hide, Rewrite
from refold.core.messages import Text
from refold.core.plan import Base, Plan, Sizes, StepRecord, sealed
from refold.core.view import Cause
from refold.sessions import MemoryStore, Session
from tests.page.conftest import ESCAPES, MARKUP, RULE, opened


def test_a_conversation_shows_what_the_model_sees_and_what_became_of_the_rest(get):
    text = get("/c/work")
    assert "As the model sees it now" in text
    for status in ("kept", "left out"):
        assert f"</span> {status}</span>" in text
    assert "And now the last line." in text
    assert re.search(r'class="why">\s*<span class="reason"><bdi>fit<.bdi>, <a href="/c/work#compaction-', text)


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


def test_two_points_in_time_are_shown_side_by_side(get, page):
    text = get("/c/work/compare")
    assert "compaction 2 done" in text
    assert 'class="pair"' in text
    assert "left out" in text
    data = page.client.get("/c/work/plot.json").json()
    after = [tokens for tokens, kind in zip(data["tokens"], data["kinds"], strict=True) if kind == "plan"][-1]
    assert f"≈ {after / 1000:.1f}k tokens" in text


def test_the_same_point_twice_has_no_difference(get):
    text = get("/c/work/compare", a="4", b="4")
    assert "messages are the same" in text
    assert "badge" not in text


def test_messages_that_came_later_are_on_one_side_alone(get):
    text = get("/c/work/compare", a="2", b="3")
    assert "not there yet" in text
    assert "the same" in text
    assert "not there any more" in get("/c/work/compare", a="3", b="2")


def test_a_step_that_is_none_is_the_end(get):
    assert "the same" in get("/c/work/compare", a="99999", b="x")


def test_the_tokens_of_the_next_request_are_counted_by_kind_tool_and_file(get, page):
    text = get("/c/work/tokens")
    for name in ("By kind", "By tool", "By file", "read_file", "src/m23.py"):
        assert name in text
    total = int(re.search(r"takes <strong>([\d,]+)</strong> tokens", text)[1].replace(",", ""))
    newest = page.client.get("/c/work/plot.json").json()["tokens"][-1]
    assert abs(total - newest) < 0.35 * newest


def test_what_the_user_said_that_must_hold_is_listed_with_whether_it_is_still_sent(get):
    text = get("/c/work/must-hold")
    assert RULE in text
    assert "The model is still sent every one" in text


def test_a_constraint_that_a_compaction_dropped_is_called_lost():
    store = MemoryStore()
    session = Session(store, "a", policy="refold", window=32_000)
    session.append(
        [
            {"role": "user", "content": RULE},
            {"role": "assistant", "content": "Yes."},
            {"role": "user", "content": "Go."},
        ]
    )
    session.truncate(session.ids[0], session.ids[1])
    text = opened(store).client.get("/c/a/must-hold").text
    assert "1 is no longer sent to the model" in text
    assert "✗" in text


def test_every_view_of_a_session_without_messages_is_shown(get):
    for view in ("", "/compare", "/tokens", "/must-hold"):
        assert "Nothing was said yet" in get(f"/c/theirs{view}") or "has said nothing" in get(f"/c/theirs{view}")


def test_hostile_text_is_text_in_every_view(get):
    for view in ("", "/compare", "/tokens", "/must-hold"):
        text = get(f"/c/hostile{view}")
        assert MARKUP not in text
        assert not set("\x1b\u202e\u2066\u200b\ud800") & set(text)


def test_what_a_plan_put_in_the_place_of_a_part_is_told_apart():
    store = MemoryStore()
    session = Session(store, "a", format="anthropic", policy="refold", window=32_000)
    session.append(
        [
            {
                "role": "user",
                "content": [{"type": "text", "text": f"text {number} " * 200}, {"type": "text", "text": "more"}],
            }
            for number in range(6)
        ]
    )
    ids = session.ids
    at = ("content", 0)
    edits = (
        Rewrite(ids[0], at, Text(f"[cleared; recall {ids[0]}]")),
        Rewrite(ids[1], at, Text("[output removed]")),
        Rewrite(ids[2], at, Text("[parts] " + "some of the lines " * 40)),
        Rewrite(ids[3], at, None),
        Hide((ids[4],)),
    )
    steps = (StepRecord("first", "Clear", 0, 3, 9, 7), StepRecord("second", "Slide", 3, 5, 7, 5))
    plan = Plan("mine", "", Cause.MANUAL, Base(6, ids[5]), Sizes(9_000, 5_000, 5_000, 9_000), edits, steps)
    session.adopt(sealed(plan))
    page = opened(store)
    text = page.client.get("/c/a", params={"show": "originals"}).text
    badges = re.findall(r'<span class="badge is-(\w+)"><span aria-hidden="true">.</span> [\w ]+</span>\n', text)
    assert badges == ["pointer", "cleared", "selected", "trimmed", "hidden", "kept"]
    assert re.findall(r"<bdi>(first|second)</bdi>, <a", text) == ["first"] * 3 + ["second"] * 2


def test_a_shortened_message_and_a_digest_are_shown_in_full_as_they_are_sent(get):
    text = get("/c/work", **{"from": "1"})
    digest = re.search(r'<li class="message is-summarised" id="(b?\w*:?[\w:-]+)">', text)[1]
    assert "Made by a compaction" in get(f"/c/work/m/{digest}")
    assert "[Digest of earlier messages" in get(f"/c/work/m/{digest}")
    changed = re.search(r'<li class="message is-(?:selected|pointer|cleared)" id="(b2:\w+)">', text)[1]
    original, sent = get(f"/c/work/m/{changed}"), get(f"/c/work/m/{changed}?as=sent")
    assert "As the model sees it" in sent
    assert len(sent) < len(original)


def test_of_a_long_conversation_only_the_messages_that_are_shown_are_read(monkeypatch):
    store = MemoryStore()
    session = Session(store, "a", policy="refold", window=32_000)
    session.append(
        [{"role": ("user", "assistant")[number % 2], "content": f"message {number}"} for number in range(900)]
    )
    read, natives = [], store.natives
    monkeypatch.setattr(store, "natives", lambda ids, owner="": read.extend(ids) or natives(ids, owner))
    monkeypatch.setattr(
        store, "load", lambda *arguments, _load=store.load, **more: _head_alone(_load(*arguments, **more))
    )
    page = opened(store)
    text = page.client.get("/c/a").text
    assert "message 899" in text
    assert "message 800" not in text
    page.client.get("/")
    page.client.get("/c/a/plot.json")
    assert len(read) < 80


def _head_alone(loaded):
    assert not loaded.natives
    return loaded


def test_an_id_that_is_used_again_shows_nothing_of_the_conversation_before():
    store = MemoryStore()
    page = opened(store)
    for words in ("The first secret.", "Another beginning."):
        Session(store, "again", window=16_000).append([{"role": "user", "content": words}])
        for path in ("/", "/c/again", "/c/again?show=originals"):
            text = page.client.get(path).text
            assert words in text
            assert "secret" in words or "secret" not in text
        store.delete("again")


def test_of_a_message_with_very_many_parts_some_are_shown():
    store = MemoryStore()
    parts = [{"type": "text", "text": f"part {number}."} for number in range(100)]
    Session(store, "many", window=16_000).append([{"role": "user", "content": parts}])
    text = opened(store).client.get("/c/many").text
    assert "part 39." in text
    assert "part 40." not in text
    assert "60 more parts</a>" in text


def test_of_very_many_constraints_those_that_are_lost_are_shown_first():
    store = MemoryStore()
    session = Session(store, "strict", policy="refold", window=16_000)
    rules = [f"Never touch file{number}.py." for number in range(600)]
    session.append([{"role": "user", "content": "\n".join(rules)}])
    text = opened(store).client.get("/c/strict/must-hold").text
    assert "600 sentences of the user state a constraint" in text
    assert rules[499] in text
    assert rules[500] not in text
    assert "100 more" in text
