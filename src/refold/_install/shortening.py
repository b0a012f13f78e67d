"""Shortens the output of one tool call by the stage that cuts new output before it is sent for the first time."""

from __future__ import annotations

import json
from typing import Any

from refold.core.budget import Budget, Share
from refold.core.counting import CharCounter
from refold.core.messages import Message, MessageId, Text, ToolCall, ToolResult
from refold.core.transcript import Transcript
from refold.core.view import View
from refold.stages.truncate_new import TruncateNew

__all__ = ["STAGE", "shortened"]

# As in the policy refold; but the agent waits, and to read 280,000 characters whole would take a third of its time.
STAGE = TruncateNew(command_tokens=8_000, looked_at=60_000)
WINDOW = 200_000  # tokens; hooks are not told the model's window
COUNTER = CharCounter(per_token=3.0)  # logs have shorter words than prose; a tokenizer takes too long to load


def shortened(text: str, tool: str, arguments: Any, id: str, file: str) -> str | None:
    """Return the lines of an output that matter, below a line that names where the whole is; None if it stays whole.

    `id` is that of the call, by which the whole text is recalled, `file` the path at which it is stored.
    """
    words = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
    call = Message(MessageId("call"), "assistant", (ToolCall(id, tool, words, at=(0,)),))
    result = Message(MessageId(id), "tool", (ToolResult(id, (Text(text, at=(0, 0)),), tool, at=(0,)),))
    transcript = Transcript((Message(MessageId("request"), "user", (Text("", at=(0,)),)), call, result))
    view = View(transcript, transcript.messages, Budget(WINDOW, WINDOW // 10), Share(0.4), COUNTER)
    edits = STAGE.edits(view)
    if not edits:
        return None
    (after,) = view.after(edits).messages[-1].results
    opening, _, lines = after.text.partition("\n")
    return f"{opening} or read {file}\n{lines}"
