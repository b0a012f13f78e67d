"""The policy `refold` with a first step that a test controls: it can wait, or raise an error.

A gateway reads a policy from a file; the file that `written_to` writes names the one below.
"""

from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from refold import policies
from refold.core.budget import Share
from refold.core.policy import Pure, Step

actions: list[Callable[[], object]] = []  # called in order whenever a compaction begins


class Act(Pure, frozen=True):
    def edits(self, view, answers):
        for action in actions:
            action()
        return ()


_refold = policies.find("refold")
POLICY = replace(_refold, trigger=Share(0.8, inclusive=True), steps=(Step(Act(), label="act"), *_refold.steps))


def written_to(folder: Path) -> str:
    """Return the path of a policy file."""
    file = folder / "controlled.py"
    file.write_text(f"from {__name__} import POLICY\n")
    return str(file)
