"""The block at the end of the system prompt that states the progress of the current turn (W12)."""

from __future__ import annotations

from typing import Any

__all__ = ["runtime_block", "with_block"]

BATCH = (10, 15)  # W12, calls in one response


def runtime_block(iteration: int, called: int) -> str:
    """Return the block: the tool iteration and the tools called this turn, and the advice on sets of items."""
    least, most = BATCH
    return (
        "<runtime>\n"
        f"  Tool iteration this turn: {iteration}\n"
        f"  Tools called this turn: {called}\n"
        "  IMPORTANT: If the task needs a tool once for each item of a set (every message, every page), call it\n"
        f"  for EVERY item before you give the final answer. Put {least} to {most} calls into one response, then go\n"
        "  on with the items that are left. What a search or a list says about an item does not replace that\n"
        "  call: all means all.\n"
        "</runtime>"
    )


def with_block(system: Any, block: str) -> Any:
    """Return a system prompt, a text or a list of blocks, with one more block at its end.

    The earlier blocks stay the same objects, so that a provider's mark for its cache stays where it is.
    """
    match system:
        case None | "":
            return block
        case str():
            return f"{system}\n\n{block}"
        case _:
            return [*system, {"type": "text", "text": block}]
