import asyncio
import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from refold._mcp.agent_folders import agent_folders
from refold._mcp.server import RecallServer
from refold._mcp.session_files import SessionFiles
from refold._mcp.store_source import StoredSessions
from refold.sessions import Store
from tests.shared import SESSIONS

FOLDER = "/home/user/project"  # in which the recorded agents worked
CLAUDE = "cb45f880-59ff-49a7-8e14-b4e1f2261f49"
CODEX = "01a22393-9aa6-7b40-bfc3-389f7ee163c9"
# where each agent writes, and how much older than the newest a session is, in seconds
PLACES = {
    "claude-code/session.jsonl": (f".claude/projects/-home-user-project/{CLAUDE}.jsonl", 0),
    "codex/rollout.jsonl": (f".codex/sessions/2026/11/28/rollout-2026-11-28T19-13-25-{CODEX}.jsonl", 60),
    "pi/session.jsonl": (
        ".pi/agent/sessions/--home-user-project--/2026_01a22394-2949-72a6-a616-c4157944376c.jsonl",
        120,
    ),
    "gemini-cli/session.jsonl": (".gemini/tmp/project/chats/session-2026-11-28T19-13-f7f27cbb.jsonl", 180),
}
Calls = Sequence[tuple[str, dict[str, Any]]]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder with the recorded sessions where their agents keep them."""
    for sample, (place, older) in PLACES.items():
        path = tmp_path / place
        path.parent.mkdir(parents=True)
        shutil.copy(SESSIONS / sample, path)
        os.utime(path, (1_790_000_000 - older,) * 2)
    (tmp_path / ".gemini/tmp/project/.project_root").write_text(FOLDER)
    return tmp_path


def asked(server: RecallServer, calls: Calls) -> list[Any]:
    """What the SDK's client gets for its calls; a call whose name has a colon reads that resource."""

    async def main() -> list[Any]:
        async with Client(server.app()) as client:
            return [
                await client.read_resource(name) if ":" in name else await client.call_tool(name, arguments)
                for name, arguments in calls
            ]

    return asyncio.run(main())


def text_of(result: Any) -> str:
    assert result.structured_content is None  # which would double every answer
    (block,) = result.content
    return str(block.text)


@pytest.fixture
def ask(home: Path) -> Callable[..., str]:
    """Calls one tool over the sessions in the home folder and returns the text of its answer."""

    def call(
        name: str, *, named: Sequence[str] = (), folder: str = FOLDER, environ: dict[str, str] | None = None,
        fails: bool = False, settings: dict[str, Any] | None = None, **arguments: Any,
    ) -> str:  # fmt: skip
        source = SessionFiles(folder, agent_folders({"HOME": str(home)}), named)
        (result,) = asked(RecallServer(source, environ=environ or {}, **settings or {}), [(name, arguments)])
        assert result.is_error is fails, result
        return text_of(result)

    return call


def over(store: Store, **settings: Any) -> RecallServer:
    return RecallServer(StoredSessions(store), environ={}, **settings)


def opencode_database(path: Path, folder: str) -> None:
    """Write the recorded session of opencode into a database as opencode has one, the tables that matter alone."""
    exported = json.loads((SESSIONS / "opencode" / "session.json").read_bytes())
    id = exported["info"]["id"]
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE TABLE session (id text PRIMARY KEY, parent_id text, directory text, time_updated integer);"
            "CREATE TABLE message (id text PRIMARY KEY, session_id text, time_created integer, data text);"
            "CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, data text);"
        )
        rows = [(id, None, folder, 1_790_000_060_000), ("ses_side", id, folder, 1_790_000_060_000)]
        connection.executemany("INSERT INTO session VALUES (?, ?, ?, ?)", rows)
        for message in exported["messages"]:
            info = dict(message["info"])
            name, created = info.pop("id"), info["time"]["created"]
            connection.execute("INSERT INTO message VALUES (?, ?, ?, ?)", (name, id, created, json.dumps(info)))
            for part in message["parts"]:
                connection.execute(
                    "INSERT INTO part VALUES (?, ?, ?, ?)", (part["id"], name, id, json.dumps({**part, "id": None}))
                )
        connection.commit()
