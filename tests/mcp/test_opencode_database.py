import json
from collections.abc import Callable
from pathlib import Path

from refold import transcripts
from refold._mcp.opencode_database import document
from tests.mcp.conftest import FOLDER, opencode_database
from tests.shared import SESSIONS

Ask = Callable[..., str]
EXPORTED = SESSIONS / "opencode" / "session.json"


def test_a_session_of_the_database_is_what_opencode_exports(tmp_path: Path) -> None:
    path = tmp_path / "opencode" / "opencode.db"
    opencode_database(path, FOLDER)
    id = json.loads(EXPORTED.read_bytes())["info"]["id"]
    (stored,) = transcripts.read(document(path, id))
    (exported,) = transcripts.read(EXPORTED)
    assert stored.messages == exported.messages
    assert stored.usage == exported.usage
    assert stored.boundaries == exported.boundaries


def test_sessions_of_opencode_are_found_in_its_database_and_it_is_not_changed(ask: Ask, home: Path) -> None:
    path = home / ".local" / "share" / "opencode" / "opencode.db"
    opencode_database(path, FOLDER)
    before = path.read_bytes()
    text = ask("refold_recall", what="check.sh")
    assert "of opencode, the newest of" in text
    assert "greet.py does not say Good morning" in text
    assert "(opencode," in ask("refold_search", query="greet.py does not say Good morning")
    assert "ses_side" not in ask("refold_search", query="greeting", scope="all")
    assert "tokens" in ask("refold_context")
    assert path.read_bytes() == before


def test_a_database_of_another_shape_has_no_sessions(ask: Ask, home: Path) -> None:
    path = home / ".local" / "share" / "opencode" / "opencode.db"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"not a database")
    assert "of claude-code" in ask("refold_context")
