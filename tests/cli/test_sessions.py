import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from refold._cli.sessions import stored_sessions
from refold._gateway.conversations.encryption import Seal
from refold.core.budget import Budget
from refold.core.messages import MessageId
from refold.errors import UsageError
from refold.sessions import MemoryStore, Session, open_store
from refold.sessions._stores.protocol import StoredMessage

Run = Callable[..., Result]


def said(number: int) -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": f"Question {number} about the heron"},
        {"role": "assistant", "content": f"Answer {number}. " + "It stands in the reeds. " * 40},
    ]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "sessions.db"
    place = open_store(path)
    old = Session(place, "old-one", format="openai-chat")
    old.append([{"role": "user", "content": "An older talk of an albatross"}, {"role": "assistant", "content": "Yes."}])
    session = Session(place, "talk-1", policy="opal", budget=Budget(3_000, 500))
    session.append([message for number in range(8) for message in said(number)])
    session.report({"prompt_tokens": 1_200, "completion_tokens": 30})
    session.compact(force=True, keep_recent=300, summarize=lambda need: "A summary of what was said about herons.")
    session.append(said(8))
    place.close()
    return path


def test_what_a_gateway_has_encrypted_is_found_with_its_secret(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "sealed.db"
    with open_store(path) as place:
        seal = Seal("a secret", place.salt())
        head = place.create("conv_1", "openai-chat")
        native = json.dumps(said(3)[0])
        place.append("conv_1", [StoredMessage(MessageId("b2:one"), seal.closed(native), seal.words(native))], head.tip)
    hidden = run("sessions", "search", "heron", "--store", path)
    assert hidden.exit_code == 1
    assert "REFOLD_STORE_KEY" in hidden.stderr
    assert "heron" not in hidden.stdout
    monkeypatch.setenv("REFOLD_STORE_KEY", "a secret")
    (hit,) = json.loads(run("sessions", "search", "heron", "--store", path, "--json").stdout)
    assert hit == {"id": "b2:one", "session": "conv_1", "message": said(3)[0]}
    assert run("sessions", "search", "albatross", "--store", path).exit_code == 1
    monkeypatch.setattr("refold.sessions._search.SECONDS", -1.0)
    late = run("sessions", "search", "heron", "--store", path)
    assert "only the messages of the sessions used last were opened" in late.stderr
    monkeypatch.undo()
    monkeypatch.setenv("REFOLD_STORE_KEY", "another one")
    wrong = run("sessions", "search", "heron", "--store", path)
    assert wrong.exit_code != 0
    assert "another secret" in wrong.stderr


def test_sessions_are_listed_the_last_used_first(run: Run, store: Path) -> None:
    shown = run("sessions", "list", "--store", store)
    assert shown.exit_code == 0
    rows = [line.split() for line in shown.stdout.splitlines()[1:]]
    assert [row[0] for row in rows] == ["talk-1", "old-one"]
    assert "18" in rows[0]
    assert "Question 0 about the heron" in shown.stdout
    assert len(run("sessions", "list", "--store", store, "--limit", "1").stdout.splitlines()) == 2


def test_a_session_is_named_by_what_its_user_typed_and_not_by_what_a_harness_puts_first(run: Run, store: Path) -> None:
    with open_store(store) as place:
        session = Session(place, "harnessed", format="openai-chat")
        for text in (
            "# AGENTS.md instructions for /srv/shop\n\n<INSTRUCTIONS>\nUse tabs.\n</INSTRUCTIONS>",
            "Mend the cart",
        ):
            session.append([{"role": "user", "content": text}])
    shown = run("sessions", "list", "--store", store).stdout
    assert "Mend the cart" in shown
    assert "AGENTS.md" not in shown


def test_sessions_as_json_hold_ids_and_times(run: Run, store: Path) -> None:
    rows = json.loads(run("sessions", "list", "--store", store, "--json").stdout)
    assert [(row["id"], row["messages"]) for row in rows] == [("talk-1", 18), ("old-one", 2)]
    assert rows[0]["touched"] <= time.time()


def test_a_store_without_sessions_says_so(run: Run, tmp_path: Path) -> None:
    open_store(tmp_path / "new.db").close()
    for shown in (
        run("sessions", "list", "--store", tmp_path / "new.db"),
        run("sessions", "list", env={"XDG_DATA_HOME": str(tmp_path)}),
    ):
        assert (shown.exit_code, shown.stdout) == (0, "")
        assert "refold chat" in shown.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["new.db"]


def test_the_store_is_taken_from_the_environment(run: Run, store: Path) -> None:
    assert "talk-1" in run("sessions", "list", env={"REFOLD_STORE": str(store)}).stdout


def test_a_session_is_shown_with_what_compactions_did(run: Run, store: Path) -> None:
    shown = run("sessions", "show", "talk-1", "--store", store).stdout
    lines = [line for line in shown.splitlines() if line.startswith("b2:")]
    assert len(lines) == 18
    assert "hidden" in lines[0]
    assert "hidden" not in lines[-1]
    assert "1 calls" in shown or "1 call" in shown
    assert "plan:" in shown


def test_the_view_is_shown_as_the_model_sees_it(run: Run, store: Path) -> None:
    shown = run("sessions", "show", "talk-1", "--store", store, "--view").stdout
    assert "A summary of what was said about herons." in shown
    assert "Question 0" not in shown
    native = json.loads(run("sessions", "show", "last", "--store", store, "--view", "--json").stdout)
    assert native[-1] == said(8)[1]


def test_a_message_or_what_a_compaction_stands_for_is_shown_in_full(run: Run, store: Path) -> None:
    place = open_store(store)
    session = Session(place, "talk-1")
    message, plan = session.ids[1], session.plans[0].id
    place.close()
    shown = run("sessions", "show", "talk", "--store", store, "--message", message[3:12])
    assert shown.stdout.splitlines()[0] == f"{message} assistant"
    assert shown.stdout.count("It stands in the reeds.") == 40
    behind = json.loads(run("sessions", "show", "talk", "--store", store, "--message", plan, "--json").stdout)
    assert behind[0] == said(0)[0]
    absent = run("sessions", "show", "talk", "--store", store, "--message", "zzz")
    assert absent.exit_code == 2
    assert "'zzz'" in absent.stderr
    assert run("sessions", "show", "talk", "--store", store, "--message", "zzz", "--view").exit_code == 2


def test_a_session_is_rewound_and_brought_back(run: Run, store: Path) -> None:
    assert "16 messages" in run("sessions", "rewind", "talk-1", "--store", store).stdout
    assert "18 messages" in run("sessions", "rewind", "talk-1", "--undo", "--store", store).stdout
    assert "12 messages, 0 compactions" in run("sessions", "rewind", "talk-1", "3", "--store", store).stdout
    assert "18 messages, 1 compaction " in run("sessions", "rewind", "talk-1", "--undo", "--store", store).stdout
    assert run("sessions", "rewind", "talk-1", "3", "--undo", "--store", store).exit_code == 2
    refused = run("sessions", "rewind", "talk-1", "9", "--store", store)
    assert (refused.exit_code, "1 to 8" in refused.stderr) == (2, True)


def test_a_session_is_rewound_to_a_message_by_the_beginning_of_its_id(run: Run, store: Path) -> None:
    place = open_store(store)
    third = Session(place, "talk-1").ids[2]
    place.close()
    assert "3 messages" in run("sessions", "rewind", "talk-1", third[3:15], "--store", store).stdout


def test_an_export_can_be_imported_elsewhere(run: Run, store: Path, tmp_path: Path) -> None:
    out = tmp_path / "talk.jsonl"
    assert run("sessions", "export", "talk-1", "--store", store, "-o", out).exit_code == 0
    assert run("sessions", "export", "talk-1", "--store", store).stdout == out.read_text()
    other = tmp_path / "other.db"
    assert "talk-1" in run("sessions", "import", out, "--store", other).stdout
    assert "copy" in run("sessions", "import", "-", "--id", "copy", "--store", other, input=out.read_text()).stdout
    place, second = open_store(store), open_store(other)
    before = Session(place, "talk-1")
    for after in (Session(second, "talk-1"), Session(second, "copy")):
        assert after.messages == before.messages
        assert after.view() == before.view()
    place.close()
    second.close()
    taken = run("sessions", "import", out, "--id", "copy", "--store", other)
    assert (taken.exit_code, "already" in taken.stderr) == (2, True)
    refused = run("sessions", "export", "talk-1", "--store", store, "-o", tmp_path / "absent" / "x.jsonl")
    assert (refused.exit_code, "no folder" in refused.stderr) == (2, True)


def test_an_export_of_a_compacted_session_is_measured_whole(run: Run, store: Path, tmp_path: Path) -> None:
    export = tmp_path / "talk.jsonl"
    run("sessions", "export", "talk-1", "--store", store, "-o", export)
    shown = run("stats", export)
    assert "18 messages" in shown.stdout
    assert "refold sessions show" in shown.stderr  # which tells what of them is still sent


def test_a_file_that_is_no_exported_session_is_not_imported(run: Run, store: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("# Notes")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\r\n\xff")
    for name in ("notes.md", "picture.png", "absent.jsonl"):
        refused = run("sessions", "import", tmp_path / name, "--store", store)
        assert (refused.exit_code, name in refused.stderr) == (2, True)
    assert len(run("sessions", "list", "--store", store).stdout.splitlines()) == 3


def test_a_session_is_deleted_only_where_that_is_confirmed(run: Run, store: Path) -> None:
    unconfirmed = run("sessions", "delete", "old", "--store", store)
    assert (unconfirmed.exit_code, "--yes" in unconfirmed.stderr) == (2, True)
    assert "old-one" in run("sessions", "list", "--store", store).stdout
    assert "old-one" in run("sessions", "delete", "old", "--yes", "--store", store).stdout
    assert "old-one" not in run("sessions", "list", "--store", store).stdout
    assert run("sessions", "search", "albatross", "--store", store).exit_code == 1


def test_words_are_found_in_all_sessions_whatever_compactions_did(run: Run, store: Path) -> None:
    found = run("sessions", "search", "albatross", "--store", store)
    assert found.exit_code == 0
    assert "old-one" in found.stdout
    hidden = run("sessions", "search", "question", "0", "--store", store, "--json")
    assert json.loads(hidden.stdout)[0]["message"] == said(0)[0]
    nothing = run("sessions", "search", "albatross", "--store", store, "--session", "talk")
    assert (nothing.exit_code, nothing.stdout) == (1, "")
    assert "albatross" in nothing.stderr


def test_a_session_is_found_by_the_beginning_of_its_id_only_where_that_is_one(run: Run, store: Path) -> None:
    place = open_store(store)
    Session(place, "talk-2", format="openai-chat").append([{"role": "user", "content": "x"}])
    place.close()
    refused = run("sessions", "show", "talk", "--store", store)
    assert (refused.exit_code, "2 ids start with it" in refused.stderr) == (2, True)
    assert run("sessions", "show", "talk-1", "--store", store).exit_code == 0


def test_a_place_that_is_no_database_is_refused(run: Run) -> None:
    refused = run("sessions", "list", "--store", "mysql://localhost/x")
    assert (refused.exit_code, "mysql" in refused.stderr) == (2, True)


def test_results_of_tools_begin_no_turn() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    session = Session(MemoryStore(), "s")
    session.append(
        [
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": "1"},
            {"role": "user", "content": "two"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": "x"},
            {"role": "assistant", "content": "2"},
        ]
    )
    assert stored_sessions.turns(stored_sessions.messages_of(session)) == [0, 2]
    assert stored_sessions.back(session, "1").endswith("2 messages, 0 compactions in force")
    stored_sessions.undo(session)
    with pytest.raises(UsageError, match="nothing to undo"):
        stored_sessions.undo(Session(MemoryStore(), "t"))


@pytest.mark.parametrize(
    ("seconds", "words"), [(1, "just now"), (61, "1 minute ago"), (7_300, "2 hours ago"), (90_000, "1 day ago")]
)
def test_times_are_told_in_few_words(seconds: int, words: str) -> None:
    assert stored_sessions.ago(time.time() - seconds) == words


def test_a_store_that_must_not_be_written_is_read_and_stays_as_it_is(
    run: Run, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: access(path, mode) and not (path == store and mode & os.W_OK))
    store.chmod(0o444)
    before = store.read_bytes()
    listed = json.loads(run("sessions", "list", "--store", store, "--json").stdout)
    for command in (("show", listed[0]["id"]), ("export", listed[0]["id"]), ("search", "heron")):
        assert run("sessions", *command, "--store", store).exit_code == 0
    assert (store.read_bytes(), store.stat().st_mode & 0o777) == (before, 0o444)
