"""Session files of agents as a source: read in place, never written."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from refold import api, formats, policies, transcripts
from refold._counting import counter_for
from refold._mcp.agent_folders import DATABASE, SessionFile, belongs, id_of, kind_of, listed
from refold._mcp.fill import measured, shares_of
from refold._mcp.opencode_database import document
from refold._mcp.record import Fill, Record, SessionRef
from refold._recall.ranking import terms_of
from refold._recall.saved_outputs import agents_folder, saved_outputs
from refold._recall.search import Ranking, RecordedTexts, texts_in
from refold.config import Settings
from refold.core._plan_json import dump_plan
from refold.errors import UsageError
from refold.transcripts._conversation import beginning_at, context_start, last_report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold._mcp.agent_folders import AgentFolder
    from refold.core.messages import Message
    from refold.transcripts import RecordedConversation

__all__ = ["SessionFiles"]

MOST_READ = 256 * 1024 * 1024  # bytes that one search looks through
MOST_PARSED = 24  # sessions that one search opens
REMEMBERED = 4  # sessions that stay in memory, with their texts


class SessionFiles:
    """The session files in the folders of agents, or those that were named.

    Args:
        folder: the working folder, whose sessions are those of this project.
        places: the folders of the agents; see `agent_folders`.
        named: files and folders to read instead; all of them belong to the project.
    """

    def __init__(self, folder: str, places: Sequence[AgentFolder], named: Sequence[str] = ()) -> None:
        self._folder = os.path.realpath(folder)
        self._places = list(places)
        self._named = [Path(name) for name in named]
        self._record = lru_cache(REMEMBERED)(_record)
        self._is_here = lru_cache(65_536)(_is_here)

    @property
    def here(self) -> str:
        """Words for what the newest session is the newest of."""
        if len(self._named) > 1:
            return f"{len(self._named):,} named places"
        return str(self._named[0]) if self._named else self._folder

    def sessions(self, *, everywhere: bool = False) -> list[SessionRef]:
        """Return the sessions of the working folder, or all, the last changed first."""
        if self._named:
            files = _in_named(self._named)
        else:
            files = [
                file
                for file in listed(self._places)
                if everywhere or self._is_here(file.path, file.kind, file.id, file.folder, self._folder)
            ]
        return [SessionRef(id_of(file), file.kind, file.changed, str(file.path)) for file in files]

    def record(self, ref: SessionRef) -> Record:
        """Return the texts of a session, sub-agents' after those of the main conversation.

        Raises:
            UnreadableTranscript: the file is gone, or is no session.
        """
        return self._record(ref)

    def behind(self, ref: SessionRef, what: str) -> RecordedTexts | None:
        """Return None: an agent's own compactions have no ids."""
        return None

    def records_with(self, query: str, *, everywhere: bool) -> tuple[list[Record], int]:
        """Return sessions that may hold words of a query, the last changed first, and how many were looked at.

        Only so much is read that an answer takes seconds: the newest files.
        """
        words = {word.encode() for word in terms_of(query) if len(word) > 1}
        records: list[Record] = []
        looked = read = 0
        for ref in self.sessions(everywhere=everywhere):
            if len(records) == MOST_PARSED or read > MOST_READ:
                break
            looked += 1
            try:
                content = _content(ref).lower()
                read += len(content)
                if any(word in content for word in words) or not query.isascii():
                    records.append(self.record(ref))
            except (OSError, UsageError):  # removed meanwhile, or no session
                continue
        return records, looked

    def fill(self, ref: SessionRef) -> Fill:
        """Return how full the context of a session is, from its last compaction on."""
        recorded = _read(ref)[0]
        compactions = len(recorded.boundaries)
        recorded = beginning_at(recorded, context_start(recorded))
        settings = Settings.load()
        window, usage = _window(recorded, settings), last_report(recorded)
        shares = shares_of(recorded.messages, recorded.format, recorded.model)
        if window is None:
            return measured(None, shares, usage, compactions=compactions)
        check = api.check(
            recorded.messages,
            format=recorded.format,
            policy=settings.apply_to(policies.find(settings.policy)),
            model=recorded.model,
            window=window,
            system=recorded.system,
            tools=recorded.tools,
            usage=usage,
        )
        return measured(check, shares, usage, compactions=compactions)

    def plan(self, ref: SessionRef) -> bytes:
        """Return as JSON the plan that a compaction of the session would make now, of what the model still sees.

        Raises:
            UsageError: the model's window is unknown.
        """
        recorded = _read(ref)[0]
        recorded = beginning_at(recorded, context_start(recorded))
        settings = Settings.load()
        window = _window(recorded, settings)
        if window is None:
            raise UsageError(f"the window of model {recorded.model} is unknown: set REFOLD_WINDOW")
        plan = api.plan(
            recorded.messages,
            format=recorded.format,
            policy=settings.apply_to(policies.find(settings.policy)),
            model=recorded.model,
            window=window,
            system=recorded.system,
            tools=recorded.tools,
            force=True,
        )
        return dump_plan(plan)

    def undo(self, ref: SessionRef, to: str) -> str:
        """Refuse: these files are the agent's.

        Raises:
            UsageError: always.
        """
        raise UsageError(
            f"{ref.path} is written by {ref.kind} and only read here: compactions are taken off in a store (--store)"
        )


def _record(ref: SessionRef) -> Record:
    """Return the texts of a session; the time of its last change is part of what it is found by."""
    main, *sides = _read(ref)
    everything = _messages(main)
    start, stop = context_start(main), len(everything)
    for side in sides:  # sub-agents have a context of their own
        everything += _messages(side)
    everything += saved_outputs(ref.kind, ref.id, agents_folder())  # that a hook shortened: they count as removed
    ranking = Ranking(texts_in(everything))
    counter = counter_for(main.model, None, main.format)

    def part(*, removed: bool) -> RecordedTexts:
        return RecordedTexts(
            lambda: ranking, len(everything), counter, lambda text: (start <= text.place < stop) is not removed
        )

    return Record(ref, part(removed=True), part(removed=False))


def _messages(recorded: RecordedConversation) -> list[Message]:
    return list(formats.read(formats.find(recorded.format), recorded.messages).messages)


def _read(ref: SessionRef) -> list[RecordedConversation]:
    """Read a session that its agent may be writing: a last line that is not whole yet is left out."""
    return transcripts.read(_content(ref) if _in_database(ref) else ref.path, lenient=True)


def _content(ref: SessionRef) -> bytes:
    return document(Path(ref.path), ref.id) if _in_database(ref) else Path(ref.path).read_bytes()


def _in_database(ref: SessionRef) -> bool:
    return Path(ref.path).name == DATABASE


def _window(recorded: RecordedConversation, settings: Settings) -> int | None:
    known = settings.window_of(recorded.model or "")
    if known.source != "default":
        return known.window
    return recorded.window


def _in_named(named: Sequence[Path]) -> list[SessionFile]:
    paths = [
        path
        for place in named
        for path in (sorted(place.rglob("*.json*")) if place.is_dir() else [place])
        if path.is_file()
    ]
    files = [SessionFile(path, kind_of(path), path.stat().st_mtime) for path in paths]
    return sorted(files, key=lambda file: -file.changed)


def _is_here(path: Path, kind: str, id: str, folder: str, here: str) -> bool:
    return belongs(SessionFile(path, kind, 0.0, id, folder), here)
