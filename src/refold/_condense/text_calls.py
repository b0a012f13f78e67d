"""Commands that an agent writes into its words: a fenced block, which a harness runs and answers in a user's turn.

Some agents call no tools. Their message ends with one block of a shell, and the next message holds what the command
printed (mini-swe-agent, SWE-agent). Such a pair is read as a call of a shell with its result, so that a digest can
tell files and errors as it does of others. A block that nothing answers was not run.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from refold.core._speakers import speech
from refold.core.messages import Message, Text, ToolCall, ToolResult, memoized, text_of

if TYPE_CHECKING:
    from refold.core.transcript import Transcript

__all__ = ["text_call", "text_result"]

SHELL = "shell"  # the name under which a command in a text is told
FENCED = re.compile(r"^```([\w-]*)[ \t]*\n(.*?)\n?^```[ \t]*$", re.S | re.M)
SHELLS = frozenset({"", "bash", "sh", "zsh", "shell", "console", "powershell", "pwsh"})


def text_call(message: Message) -> ToolCall | None:
    """Return the command that a message of the assistant without calls has in its words; None where it has none."""
    return _command(message) if message.role == "assistant" and not message.calls else None


def text_result(transcript: Transcript, position: int) -> tuple[ToolCall, ToolResult] | None:
    """Return the command before a message that holds what it printed, and its result; None for any other message."""
    message = transcript.messages[position]
    if message.role != "user" or position == 0 or message.note is not None:
        return None
    call = text_call(transcript.messages[position - 1])
    if call is None or (output := _output(message)) is None:
        return None
    return call, ToolResult(call.call_id, (Text(output),), SHELL)


@memoized
def _command(message: Message) -> ToolCall | None:
    text = text_of(message)
    blocks = FENCED.findall(text) if "```" in text else []
    commands = [body for language, body in blocks if language.lower() in SHELLS or language.endswith("bash_command")]
    if len(commands) != 1 or not commands[0].strip():
        return None
    return ToolCall(str(message.id), SHELL, msgspec.json.encode({"command": commands[0]}).decode())


@memoized
def _output(message: Message) -> str | None:
    """Return what a message of a harness says that a command printed; None where it speaks of something else."""
    utterance = speech(message)
    if "output" not in utterance.kinds or utterance.typed.strip():
        return None
    return text_of(message)
