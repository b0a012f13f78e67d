"""The server: the tools and the resource of the protocol, over one source; one answer at a time.

The schemas of the tools are part of every request of the agent, so they are few and short. Standard output carries the
protocol alone: the SDK points it elsewhere while it serves, and logs go to standard error, without content.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib.metadata import version
from threading import Lock
from typing import TYPE_CHECKING, Literal

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from refold._counting import counter_for
from refold._mcp import answers
from refold._mcp.record import ChosenSession
from refold._recall.search import Asking
from refold.errors import RefoldError, SessionNotFound, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold._mcp.record import Record, SessionRef, Source

__all__ = ["MAX_TOKENS", "SESSION_VARIABLES", "RecallServer"]

# Claude Code warns above 10,000 tokens of a result and refuses more than 25,000 (code.claude.com/docs/en/mcp); it
# counts by another vocabulary, so there is a margin.
MAX_TOKENS = 8_000
LEAST_TOKENS = 300
# By which a session is named: our own, and the one that Claude Code sets for its MCP servers (since 2.1.154).
SESSION_VARIABLES = ("REFOLD_SESSION", "CLAUDE_CODE_SESSION_ID")
INSTRUCTIONS = (
    "The record of this and earlier sessions, also of what was compacted away. Look here before you read a file or ask "
    "the user again."
)
Scope = Literal["session", "project", "all"]


class RecallServer:
    """Answers the tools over a source.

    Args:
        source: a store, or the session files of agents.
        session: the id of the session that is meant where a call names none.
        max_tokens: the largest answer, in tokens.
        allow_undo: offer a tool that takes compactions off.
        environ: the variables of the process.
    """

    def __init__(
        self,
        source: Source,
        *,
        session: str | None = None,
        max_tokens: int = MAX_TOKENS,
        allow_undo: bool = False,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._source = source
        self._session = session
        self._tokens = max(max_tokens, LEAST_TOKENS)
        self._allow_undo = allow_undo
        self._environ = os.environ if environ is None else environ
        self._lock = Lock()  # the SDK calls each tool in a thread of its own

    def app(self) -> MCPServer:
        """Return the server with its tools and the resource."""
        server = MCPServer("refold", version=version("refold"), instructions=INSTRUCTIONS, log_level="ERROR")

        def refold_recall(what: str, session: str = "", from_line: int = 0) -> str:
            return self._answer(lambda: self._recall(what, session, from_line))

        def refold_search(query: str, scope: Scope = "project") -> str:
            return self._answer(lambda: self._search(query, scope))

        def refold_context() -> str:
            return self._answer(self._context)

        def refold_undo(to: str = "last") -> str:
            return self._answer(lambda: self._undo(to))

        def plan(id: str) -> str:
            return self._answer(lambda: self._plan(id))

        tools: list[tuple[Callable[..., str], str]] = [
            (
                refold_recall,
                "Exact text that was left out of this conversation or shortened. what: words of the line that says so, "
                "words of the text, or an id. session: another session's id.",
            ),
            (refold_search, "Finds texts of this session, this project's, or all, by words."),
            (refold_context, "How full the context is, what takes room, whether compaction pays."),
        ]
        if self._allow_undo:
            tools.append((refold_undo, "Takes compactions off: the newest, or all after a plan's id."))
        for function, description in tools:
            server.add_tool(function, description=description, structured_output=False)
        server.resource(
            "refold://session/{id}/plan", name="plan", description="Compaction plans of a session.",
            mime_type="application/json",
        )(plan)  # fmt: skip
        return server

    def _answer(self, work: Callable[[], str]) -> str:
        """Return an answer, or raise the error that a client shows; anything unforeseen is told by its kind alone."""
        try:
            with self._lock:
                return work()
        except RefoldError as error:
            raise ToolError(str(error)) from None
        except OSError as error:
            raise ToolError(f"{error.filename or 'a file'} cannot be read: {error.strerror}") from None

    def _recall(self, what: str, session: str, from_line: int) -> str:
        chosen = self._chosen(session)
        text = answers.recalled(
            self._source.record(chosen.ref), self._source.behind(chosen.ref, what.strip()), Asking(what, from_line),
            self._room(head := self._head(chosen)),
        )  # fmt: skip
        return answers.capped(f"{head}\n{text}")

    def _search(self, query: str, scope: Scope) -> str:
        if not query.strip():
            raise UsageError("query is empty: give words of what is looked for")
        if scope == "session":
            chosen = self._chosen("")
            records: Sequence[Record] = [self._source.record(chosen.ref)]
            head = self._head(chosen)
        else:
            records, looked = self._source.records_with(query, everywhere=scope == "all")
            place = self._source.here if scope == "project" else "all folders"
            sessions = "session" if looked == 1 else "sessions"
            head = f"[{looked:,} {sessions} of {place}; {answers.NOT_INSTRUCTIONS}]"
        text = answers.searched(records, query, self._room(head))
        more = "\n`refold_recall` brings a text whole: `what` = its name, `session` = its session."
        return answers.capped(f"{head}\n{text}{more}" if text else f"{head}\nNothing holds these words.")

    def _context(self) -> str:
        chosen = self._chosen("")
        return f"[{answers.heading(chosen)}]\n{answers.context(self._source.fill(chosen.ref))}"

    def _undo(self, to: str) -> str:
        chosen = self._chosen("")
        if chosen.guessed:  # the newest of a store may be somebody else's
            raise UsageError(
                "which session? Start the server with --session, or set REFOLD_SESSION: undo does not guess"
            )
        return f"[{answers.heading(chosen)}]\n{self._source.undo(chosen.ref, to)}"

    def _plan(self, id: str) -> str:
        return self._source.plan(self._chosen(id).ref).decode()

    def _head(self, chosen: ChosenSession) -> str:
        return f"[{answers.heading(chosen)}; {answers.NOT_INSTRUCTIONS}]"

    def _room(self, head: str) -> int:
        return self._tokens - counter_for(None).text(head) - 40

    def _chosen(self, session: str) -> ChosenSession:
        """Return the session that is meant; the newest one is a guess.

        Raises:
            SessionNotFound: there is none of that id, or none at all.
        """
        if session:
            return ChosenSession(self._named(session), "named in the call")
        if self._session:
            return ChosenSession(self._named(self._session), "named by --session")
        lost = ""
        for variable in SESSION_VARIABLES:
            if name := self._environ.get(variable):
                try:
                    return ChosenSession(ref := self._named(name), f"named by {variable}{self._newer(ref)}")
                except SessionNotFound:  # it may have written nothing yet, or be the one that a resumed one began as
                    lost = f"; {variable} names {name}, which is not there"
        sessions = self._source.sessions()
        if not sessions:
            raise SessionNotFound(f"there is no session of {self._source.here}: name one (`session`, --session){lost}")
        return ChosenSession(sessions[0], f"the newest of {self._source.here}{lost}", guessed=True)

    def _newer(self, ref: SessionRef) -> str:
        """Say which session has changed since: the variable stays as it was when the agent begins a new one."""
        newest = next(iter(self._source.sessions()), ref)
        return f" ({newest.id} is newer)" if newest.id != ref.id and newest.changed > ref.changed else ""

    def _named(self, session: str) -> SessionRef:
        for everywhere in (False, True):
            like = [ref for ref in self._source.sessions(everywhere=everywhere) if ref.id.startswith(session)]
            exact = [ref for ref in like if ref.id == session] or like
            if len({ref.id for ref in exact}) == 1:
                return exact[0]
            if like:
                raise SessionNotFound(f"{len(like):,} sessions begin with {session!r}: give more characters")
        raise SessionNotFound(f"there is no session {session!r}; `refold_search` names those that are there")
