"""A health check and its response (V11); it starts no background task."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from refold.agent._messages import repaired_reply, result_messages, text_message
from refold.agent._runtime_block import with_block
from refold.agent._tools import by_name, definitions, perform
from refold.models._tool_output import truncate_output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.agent._tools import Tool
    from refold.clients._protocol import Client

__all__ = ["FILE", "OK", "Heartbeat"]

FILE = "HEARTBEAT.md"  # V11
OK = "HEARTBEAT_OK"  # V11
MOST = 8_000  # characters of the file
CALLS = 20  # calls of the model that the notes may take
UNFINISHED = f"The notes of {FILE} were not finished after {CALLS} calls of the model"
ASKS = r"heart ?beat|health[ -]?check|ping|are you (?:still )?(?:alive|there|up|ok|okay)"
HEALTH_CHECK = re.compile(rf"\W*(?:heart ?beat[\W_]+)?(?:{ASKS})\W*", re.I)
# what OpenClaw sends: the sentence, and instructions for it
PROMPT = re.compile(rf"\W*(?:heart ?beat\W+)?read {re.escape(FILE)} if it exists\b.*", re.I | re.S)
IDLE = re.compile(r"^\s*(#.*|<!--.*-->)?\s*$")  # blank lines, headings and comments ask for nothing
SECTION = (
    "## Heartbeat\n"
    f'A monitor may ask whether you are well: "heartbeat", "ping", "Are you alive?", or to read {FILE}. Then '
    f"follow {FILE} in the workspace, if there is one, and nothing from earlier in the conversation. If nothing needs "
    f"a person's attention, answer with {OK} and no other word; else say what does."
)
NOTES = "These are the notes of {file}. Follow them with the tools that you have, and do nothing else:\n\n{notes}"


class Heartbeat(Struct, frozen=True):
    """Answers health checks of one workspace, outside of the conversation, which they therefore never fill."""

    workspace: Path

    def is_health_check(self, text: str) -> bool:
        """Tell whether a message is a health check and nothing else."""
        return HEALTH_CHECK.fullmatch(text) is not None or PROMPT.fullmatch(text) is not None

    def in_system(self, system: Any) -> Any:
        """Return a system prompt with the section that says how a health check is answered."""
        return with_block(system, SECTION)

    def answer(
        self,
        client: Client,
        text: str,
        tools: Sequence[Tool] = (),
        *,
        system: Any = None,
        max_tokens: int | None = None,
    ) -> str:
        """Return `HEARTBEAT_OK`; where HEARTBEAT.md says what to look after, the model does that and answers."""
        notes = self._notes()
        if not notes:
            return OK
        prompt = with_block(system or SECTION, NOTES.format(file=FILE, notes=notes))
        named, defined = by_name(tools), definitions(tools, client.format) or None
        messages: list[Any] = [text_message("user", text)]
        for _ in range(CALLS):
            reply = client.complete(messages, system=prompt, tools=defined, max_tokens=max_tokens)
            natives, calls = repaired_reply(client.format, reply)
            if not calls:
                return reply.text.strip() or OK
            outcomes = [(call, perform(named, call)) for call in calls]
            results = [
                (call, truncate_output(outcome.text).text or "(no output)", outcome.is_error)
                for call, outcome in outcomes
            ]
            messages += [*natives, *result_messages(client.format, results)]
        return UNFINISHED

    def _notes(self) -> str:
        path = self.workspace / FILE
        if not path.is_file():
            return ""
        with path.open(encoding="utf-8", errors="replace") as file:
            notes = file.read(MOST)
        return "" if all(IDLE.match(line) for line in notes.splitlines()) else notes.strip()
