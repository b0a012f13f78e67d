"""What the model gets of a tool's output: all of it, an end of it (N14), or a preview and where the rest is (L08)."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from refold.agent._private_files import owned_folder, write_owned
from refold.models._tool_output import MAX_BYTES, MAX_LINES, MAX_TOKENS, archive_output, truncate_output

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from refold.core.counting import Counter

__all__ = ["OutputLimit", "most_tokens", "saving"]

BYTES_PER_TOKEN = 4


class OutputLimit(Struct, frozen=True):
    """Makes one output small before it enters the transcript.

    `how` is "cut" (at most `max_bytes` and `max_lines`, the end kept), "archive" (above `max_tokens` a preview and a
    path) or "as it is". `folder` is where whole outputs go; without one, what would go there is cut.
    """

    how: Literal["cut", "archive", "as it is"]
    counter: Counter
    folder: Path | None = None
    max_tokens: int = MAX_TOKENS
    max_bytes: int = MAX_BYTES
    max_lines: int = MAX_LINES

    def __call__(self, text: str) -> str:
        """Return what the model gets of an output; where its folder cannot be written, as if there were none."""
        if self.folder is None:
            return self._small(text, None)
        try:
            return self._small(text, saving(self.folder))
        except OSError:  # the tool has done its work: what it said is not lost for a full disk
            return self._small(text, None)

    def _small(self, text: str, save: Callable[[str], str] | None) -> str:
        match self.how:
            case "as it is":
                return text
            case "cut":
                return truncate_output(text, self.max_bytes, self.max_lines, save=save).text
            case "archive" if save is not None:
                return archive_output(text, save, self.counter, self.max_tokens).text
            case "archive":
                if self.counter.text(text) <= self.max_tokens:
                    return text
                most = self.max_tokens * BYTES_PER_TOKEN
                return truncate_output(text, most, max_lines=len(text) + 1).text


def most_tokens(input_budget: int, share: float) -> int:
    """Return from how many tokens on an output is archived: 40,000 (L08), or less where the share allows less."""
    return max(1, min(MAX_TOKENS, int(input_budget * share)))


def saving(folder: Path) -> Callable[[str], str]:
    """Return a function that writes an output to a folder and returns its path.

    Its name follows from its content, so that no output overwrites another.
    """

    def save(text: str) -> str:
        name = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        return str(write_owned(owned_folder(folder) / f"output-{name}.txt", text))

    return save
