import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from refold.core.budget import Budget
from refold.core.messages import MessageId
from refold.core.transcript import ROOT
from refold.sessions import Session, StoredMessage, open_store
from tests.mcp.conftest import asked, over, text_of


def said(number: int) -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": f"Question {number} about the heron"},
        {"role": "assistant", "content": f"Answer {number}: nest {number * 7919}. " + "It stands in the reeds. " * 40},
    ]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "sessions.db"
    place = open_store(path)
    Session(place, "old-one", format="openai-chat").append(
        [{"role": "user", "content": "An older talk of an albatross"}]
    )
    session = Session(place, "talk-1", policy="opal", budget=Budget(3_000, 500))
    session.append([message for number in range(8) for message in said(number)])
    session.compact(force=True, keep_recent=300, summarize=lambda need: "A summary of what was said about herons.")
    place.close()
    return path


def opened(path: Path, **settings: Any) -> Any:
    return over(open_store(path, read_only=not settings.get("allow_undo")), **settings)


def test_a_store_answers_recall_by_words_and_by_the_id_of_a_compaction(store: Path) -> None:
    place = open_store(store)
    (plan,) = Session(place, "talk-1").plans
    place.close()
    words, by_plan = asked(
        opened(store), [("refold_recall", {"what": "nest 7919"}), ("refold_recall", {"what": plan.id})]
    )
    assert "session talk-1, the newest of the store" in text_of(words)
    assert "nest 7919." in text_of(words)
    assert "Question 0 about the heron" in text_of(by_plan)
    assert "nest 15838." in text_of(by_plan)


def test_a_store_is_searched_over_all_its_sessions(store: Path) -> None:
    (found,) = asked(opened(store), [("refold_search", {"query": "albatross"})])
    assert "session old-one (store" in text_of(found)


def test_a_search_of_words_that_stand_in_no_message_together_finds_those_with_one_of_them(store: Path) -> None:
    (found, nothing) = asked(
        opened(store),
        [("refold_search", {"query": "which albatross flew yesterday"}), ("refold_search", {"query": "zebra"})],
    )
    assert "session old-one (store" in text_of(found)
    assert "Nothing holds these words." in text_of(nothing)


def test_the_context_of_a_stored_session_counts_its_compactions(store: Path) -> None:
    (filled,) = asked(opened(store), [("refold_context", {})])
    assert "of 2,500 tokens" in text_of(filled)
    assert "1 so far" in text_of(filled)


def test_the_plan_of_a_session_is_a_resource(store: Path) -> None:
    (read,) = asked(opened(store), [("refold://session/talk-1/plan", {})])
    (plan,) = json.loads(read.contents[0].text)
    assert plan["plan"]["policy"] == "opal"


def test_a_store_is_not_changed_by_any_answer(store: Path) -> None:
    before = hashlib.sha256(store.read_bytes()).hexdigest()
    asked(
        opened(store),
        [("refold_context", {}), ("refold_recall", {"what": "heron"}), ("refold_search", {"query": "heron"})],
    )
    assert hashlib.sha256(store.read_bytes()).hexdigest() == before


def test_what_a_gateway_has_encrypted_is_told_as_such(tmp_path: Path) -> None:
    path = tmp_path / "gateway.db"
    place = open_store(path)
    place.create("sealed", "openai-chat")
    place.append("sealed", [StoredMessage(MessageId("b2:1"), json.dumps("refold-sealed-2:gAAAA"), "")], ROOT)
    place.close()
    (refused,) = asked(opened(path), [("refold_recall", {"what": "heron"})])
    assert refused.is_error
    assert "a gateway with a store key encrypts them" in text_of(refused)


def test_a_compaction_is_taken_off_only_where_that_was_allowed(store: Path) -> None:
    (refused,) = asked(opened(store), [("refold_undo", {"to": "last"})])
    assert refused.is_error
    (guessed,) = asked(opened(store, allow_undo=True), [("refold_undo", {"to": "last"})])
    assert "undo does not guess" in text_of(guessed)
    server = opened(store, allow_undo=True, session="talk-1")
    place = open_store(store)
    message = Session(place, "talk-1").ids[0]
    place.close()
    wrong, done, again = asked(server, [("refold_undo", {"to": to}) for to in (message, "last", "last")])
    assert "takes the id of a plan" in text_of(wrong)
    assert "compactions in force: none" in text_of(done)
    assert "nothing to undo" in text_of(again)
    assert again.is_error
    place = open_store(store)
    session = Session(place, "talk-1")
    assert session.view() == session.messages
    place.close()


def test_a_search_leaves_out_a_session_that_cannot_be_read(store: Path) -> None:
    place = open_store(store)
    place.create("damaged", "openai-chat")
    place.append("damaged", [StoredMessage(MessageId("b2:1"), json.dumps("an albatross"), "albatross")], ROOT)
    place.close()
    (found,) = asked(opened(store), [("refold_search", {"query": "albatross"})])
    assert not found.is_error
    assert "session old-one (store" in text_of(found)
