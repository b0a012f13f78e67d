"""Where agents keep their session files, and to which working folder a file belongs.

The places are those of the agents' documentation and of the sessions that tools/record_sessions.py makes them write.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from refold._mcp.opencode_database import stored_sessions

__all__ = ["AgentFolder", "SessionFile", "agent_folders", "belongs", "id_of", "kind_of", "listed"]

DATABASE = "opencode.db"
HEAD = 256 * 1024  # bytes at the start of a file in which it names its working folder
CWD = re.compile(rb'"(?:cwd|directory)"\s*:\s*("(?:[^"\\]|\\.)*")')
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")
ID = re.compile(rb'"(?:sessionId|sessionID)"\s*:\s*"([\w.:-]{1,128})"')  # it stands in every answer, so no more


class AgentFolder(Struct, frozen=True):
    """The folder below which an agent writes its sessions, and the pattern of their files."""

    kind: str
    root: Path
    pattern: str


class SessionFile(Struct, frozen=True):
    """A session file, with the kind of its agent and its time of change in seconds.

    `id` and `folder` are those of a session that stands in a database with others, else empty.
    """

    path: Path
    kind: str
    changed: float
    id: str = ""
    folder: str = ""


def agent_folders(environ: Mapping[str, str] | None = None) -> list[AgentFolder]:
    """Return the folders of the agents whose sessions are found in place, as they or their variables say."""
    space = os.environ if environ is None else environ
    home = Path(space.get("HOME") or Path.home())
    data = Path(space.get("XDG_DATA_HOME") or home / ".local" / "share")

    def root(variable: str, default: Path) -> Path:
        return Path(space[variable]) if space.get(variable) else default

    return [
        AgentFolder("claude-code", root("CLAUDE_CONFIG_DIR", home / ".claude") / "projects", "*/*.jsonl"),
        AgentFolder("codex", root("CODEX_HOME", home / ".codex") / "sessions", "*/*/*/rollout-*.jsonl"),
        AgentFolder("pi", root("PI_CODING_AGENT_DIR", home / ".pi" / "agent") / "sessions", "*/*.jsonl"),
        AgentFolder("gemini-cli", home / ".gemini" / "tmp", "*/chats/session-*.json*"),
        AgentFolder("opencode", data / "opencode", DATABASE),
        AgentFolder("cline", root("CLINE_DIR", home / ".cline") / "data" / "sessions", "*/*.messages.json"),
        AgentFolder("copilot-cli", root("COPILOT_HOME", home / ".copilot") / "session-state", "**/*.jsonl"),
    ]


def listed(folders: list[AgentFolder]) -> list[SessionFile]:
    """Return the session files below folders, the last changed first; what cannot be looked at is left out."""
    files: list[SessionFile] = []
    for folder in folders:
        for path in folder.root.glob(folder.pattern):
            if path.name == DATABASE:
                files += [
                    SessionFile(path, folder.kind, stored.changed, stored.id, stored.folder)
                    for stored in stored_sessions(path)
                ]
                continue
            try:
                files.append(SessionFile(path, folder.kind, path.stat().st_mtime))
            except OSError:  # removed meanwhile
                continue
    return sorted(files, key=lambda file: (-file.changed, str(file.path)))


def belongs(file: SessionFile, folder: str) -> bool:
    """Tell whether a session is of a working folder."""
    if file.folder:
        return os.path.realpath(file.folder) == folder
    head = _head(file.path)
    named = CWD.search(head)
    if named:
        try:
            return os.path.realpath(str(json.loads(named[1]))) == folder
        except ValueError:  # no JSON, no UTF-8, or a null byte
            return False
    if file.kind == "gemini-cli":  # a folder for each project, with its path or the hash of it
        marker = file.path.parent.parent / ".project_root"
        root = marker.read_text("utf-8", errors="replace").strip() if marker.is_file() else ""
        return folder == root or hashlib.sha256(folder.encode()).hexdigest().encode() in head
    return False


def id_of(file: SessionFile) -> str:
    """Return the id of a session: what its agent calls it, else the name of the file."""
    if file.id:
        return file.id
    path = file.path
    name = path.name.partition(".")[0]
    if uuid := UUID.search(name):
        return uuid[0]
    named = ID.search(_head(path))
    return named[1].decode() if named else name


def kind_of(path: Path) -> str:
    """Return the kind of a session file by its content, "session file" for one that cannot be read."""
    from refold import transcripts
    from refold.errors import RefoldError

    try:
        return transcripts.detect(path)
    except RefoldError:
        return "session file"


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(HEAD)
    except OSError:
        return b""
