"""The adapter that compaction-conformance-kit loads, inside the kit's own environment: any row, over its worker.

It sees of a turn its role and its text, and nothing else. REFOLD_PEER_COMMAND is the command of the worker, as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

ASKS = 8  # tries to come under the budget
CHARS = 4.0  # to a token, for the first try
AIM = 0.98  # of the budget, for the next try


class Row:
    """What the kit measures: `compact(turns, round_num, budget_chars)`."""

    name = os.environ.get("REFOLD_PEER_NAME", "refold")

    def __init__(self) -> None:
        """Start the worker."""
        command = json.loads(os.environ["REFOLD_PEER_COMMAND"])
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._read()
        self.known: dict[str, list[dict[str, str]]] = {}

    def compact(self, turns: Any, round_num: int = 1, budget_chars: int | None = None) -> Any:
        """Return the turns as text of at most that many characters.

        From the second round on the kit hands in what it was given, as one turn of text: those are the messages of the
        round before, and what fits already stays as it is.
        """
        from compaction_kit import CompactedContext

        messages = [{"role": _role(turn.role), "content": turn.text} for turn in turns]
        if len(messages) == 1:
            messages = self.known.get(messages[0]["content"], messages)
        text = _text(messages)
        goal = budget_chars or len(text) // 2
        if len(text) > goal:
            text = self._shortened(messages, goal)
        return CompactedContext(text=text, compactor_name=self.name, round_num=round_num)

    def _shortened(self, messages: list[dict[str, str]], goal: int) -> str:
        best, aim = "", goal / CHARS
        for _ in range(ASKS):
            answer = self._ask({"messages": messages, "budget": max(int(aim), 1)})
            made = _text(answer.get("messages", ()))
            if len(best) < len(made) <= goal:
                best, self.known[made] = made, answer["messages"]
            if not made or 0.95 * goal <= len(made) <= goal:
                break
            aim *= goal / len(made) * AIM
        return best

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self.process.stdout
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        return found


def _role(role: str) -> str:
    return role if role in ("system", "user", "assistant") else "user"  # its tool turns belong to no call


def _text(messages: Any) -> str:
    return "\n".join(f"[{message['role']}] {message['content']}" for message in messages)
