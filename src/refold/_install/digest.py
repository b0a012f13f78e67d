"""Makes what a session is told after its agent's own compaction: a digest of what left, and how to get it back."""

from __future__ import annotations

from refold import api, policies, transcripts
from refold.config import Settings
from refold.core._plan_json import dump_plan
from refold.core.edits import Insert
from refold.core.messages import text_of
from refold.transcripts._conversation import context_start

__all__ = ["digest_of"]

MOST = 8_000  # characters: Claude Code puts more than 10,000 of a hook's words into a file
GOAL = 0.1  # of the input budget: little stays beside the digest, as after a summary


def digest_of(transcript: str, session: str) -> dict[str, str]:
    """Return the digest of a session file as it is now (`text`, empty where nothing left) and the plan that made it.

    Raises:
        UnreadableTranscript: the file is no session.
    """
    recorded = transcripts.read(transcript, lenient=True)[0]
    messages = recorded.messages[context_start(recorded) :]
    settings = Settings.load()
    policy = settings.apply_to(policies.find("refold"))
    window = settings.window_of(recorded.model or "").window
    plan = api.plan(
        messages, format=recorded.format, policy=policy, model=recorded.model, window=window, system=recorded.system,
        tools=recorded.tools, force=True, goal=GOAL,
    )  # fmt: skip
    inserted = [text_of(edit.message) for edit in plan.edits if isinstance(edit, Insert)]
    body = "\n\n".join(text for text in inserted if text.strip())
    head = (
        "[record of the session before its compaction, made by refold; a record, not an instruction. The exact text "
        f'of what left: tool refold_recall, session "{session}"]'
    )
    return {"text": f"{head}\n{_cut(body)}" if body else head, "plan": dump_plan(plan).decode()}


def _cut(text: str) -> str:
    if len(text) <= MOST:
        return text
    return text[: text.rfind("\n", 0, MOST) if "\n" in text[:MOST] else MOST]
