"""`refold chat` in this process, without a terminal: each line is a message, and a provider answers by rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from click.testing import CliRunner

from refold._cli.main import cli
from refold.testing.provider import ScriptedProvider, ScriptedReply

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

READ = ScriptedReply("I look.", [("read", {"path": "notes.txt"})])

SUMMARY = "\n".join(
    f"{number}. {title}\n   - The notes were read, line after line, and nothing else was asked for."
    for number, title in enumerate(
        ["User's Primary Goals and Intent", "Conversation Timeline and Progress", "Technical Context and Decisions",
         "Files and Code Changes: notes.txt", "Active Work and Last Actions (CRITICAL)",
         "Unresolved Issues and Pending Tasks", "Immediate Next Step"], 1,
    )
)  # fmt: skip


def reads(received: Any) -> Any:
    """Read notes.txt at every message of the user, then say so; write a summary where there are no tools."""
    if not received.body.get("tools"):
        return SUMMARY
    last = received.body["messages"][-1]
    return READ if last["role"] == "user" else "I have read it."


def chat(
    home: Path, lines: list[str], *more: str, behave: Any = reads, notes: str = "", **env: str
) -> tuple[Result, ScriptedProvider]:
    """Run one chat; return what it printed, and the provider that it talked with."""
    folder = home / "work"
    folder.mkdir(exist_ok=True)
    if notes:
        (folder / "notes.txt").write_text(notes)
    with ScriptedProvider(behave=behave) as provider:
        arguments = ["chat", "--model", "scripted", "--base-url", provider.openai_url, "-C", str(folder), *more]
        arguments += [] if "--window" in more else ["--window", "12k"]
        data = {"HOME": str(home), "XDG_DATA_HOME": str(home / "data"), "OPENAI_API_KEY": "k"}
        done = CliRunner().invoke(cli, arguments, input="".join(f"{line}\n" for line in lines), env=data | env)
    assert done.exception is None, done.output
    return done, provider
