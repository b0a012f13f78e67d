"""A tool that gives a task to another agent with a window of its own; the caller gets a bounded digest (L09)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold import formats
from refold._condense.call_facts import files_of
from refold._text.graphemes import boundary_after, boundary_before
from refold.agent._tools import Tool

if TYPE_CHECKING:
    from collections.abc import Callable

    from refold.agent._loop import Agent

__all__ = ["DIGEST", "digest_of", "subagent"]

DIGEST = 8_000  # characters that the caller's transcript grows by at most
HEAD = 0.7  # of an answer that is too long; the rest is its end, where results tend to stand
LISTED = 20  # files of each kind that are named
ABOUT = (
    "Give a task to another agent, which works on it alone and has a context of its own. It knows nothing of this "
    "conversation: say everything it needs. You get its answer and the files it touched."
)


def subagent(
    make: Callable[[], Agent], *, name: str = "delegate", description: str = ABOUT, most: int = DIGEST
) -> Tool:
    """Return a tool that has a fresh agent work on a task; `make` is called once for each task.

    That agent compacts on its own window, whatever the caller's is. Its digest has at most `most` characters.
    """

    def delegate(task: str) -> str:
        agent = make()
        answer = agent.run(task)
        return digest_of(agent, answer, most)

    schema = {
        "type": "object",
        "properties": {"task": {"type": "string", "description": "The whole task, in words."}},
        "required": ["task"],
    }
    return Tool(name, description, schema, delegate)


def digest_of(agent: Agent, answer: str, most: int = DIGEST) -> str:
    """Return what a finished agent hands on: what it took, which files it touched, and its answer, cut if need be."""
    messages = formats.read(formats.find(agent.format), agent.originals).messages
    read, modified = files_of(messages)
    used, compactions = agent.statistics, len(agent.plans)
    lines = [f"[Sub-agent: {used.steps} calls, {used.session_tokens:,} tokens, {compactions} compactions]"]
    lines += [
        f"{word}: {', '.join(paths[:LISTED])}{_others(len(paths))}"
        for word, paths in (("Files read", read), ("Files modified", modified))
        if paths
    ]
    head = "\n".join(lines)[: most // 2]
    return f"{head}\n\n{_cut(answer, most - len(head) - 2)}"


def _others(count: int) -> str:
    return f" and {count - LISTED} more" if count > LISTED else ""


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    label = f"\n[… of {len(text):,} characters, some are left out here …]\n"
    room = max(most - len(label), 0)
    first = int(room * HEAD)
    head = text[: boundary_before(text, first)]
    tail = text[boundary_after(text, len(text) - (room - first)) :]
    return f"{head}{label}{tail}"[:most]
