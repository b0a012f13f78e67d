import pytest

from refold.sessions import search
from tests.sessions.talks import session, summarize, talk, user


@pytest.fixture
def opened(store):
    opened = session(store)
    opened.append(talk(30))
    opened.compact(summarize=summarize)
    opened.append(talk(30))
    opened.compact(summarize=summarize)
    return opened


def test_every_original_comes_back_by_its_id(opened):
    for id, message in zip(opened.ids, opened.messages, strict=True):
        (found,) = opened.recall(id)
        assert (found.id, found.message) == (id, message)


def test_the_originals_behind_a_summary_and_its_plan_come_back_in_order(opened):
    first, second = opened.plans
    behind = [each.message for each in opened.recall(first.id)]
    assert behind == opened.messages[: len(behind)]
    assert len(behind) > 50
    (summary,) = [id for id, tag in opened.tags().items() if tag.condense_id and not tag.condense_parent]
    further = [each.message for each in opened.recall(summary)]
    assert further == opened.messages[: len(further)]
    assert len(further) > len(behind)
    assert further == [each.message for each in opened.recall(second.id)]


def test_a_query_finds_originals_with_an_excerpt_around_the_words(opened):
    found = opened.recall("word7")
    assert found[0].message["role"] == "tool"
    assert found[0].excerpt.startswith("word7 word7")
    assert found[0].session == opened.id
    assert opened.recall("word7 absent") == found
    assert opened.recall("absent") == ()
    assert len(opened.search("step", limit=3)) == 3


def test_a_search_over_a_store_looks_through_all_sessions(opened, store):
    other = session(store)
    other.append([user("the zebra is here")])
    assert [found.session for found in search(store, "zebra")] == [other.id]
    assert opened.search("zebra") == ()
    assert opened.recall("zebra") == ()


def test_originals_are_found_after_a_rewind_too(opened):
    opened.rewind(opened.ids[0])
    assert len(opened.messages) == 1
    assert opened.search("word29")
