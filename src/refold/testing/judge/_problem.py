"""Problems that the judge finds in a request body, and paths as the providers print them."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

__all__ = ["Mismatch", "Path", "Problem", "dotted", "indexed"]

Path: TypeAlias = tuple[str | int, ...]


class Problem(Struct, frozen=True):
    """One reason why a provider refuses a request.

    `rule` names the rule (`shape` for a value that the SDK's own types exclude, `unknown` for a key or a kind of block
    that they do not have). `message` is the refusal in the provider's words. `at` is the path of the blamed value in
    the body, keys and positions from 0. `source` is the page or the SDK type that documents the rule.
    """

    rule: str
    message: str
    at: Path = ()
    source: str = ""


class Mismatch(Struct, frozen=True):
    """One difference between a value and its type, before it is put in a provider's words.

    `kind` is `missing` (a required key), `unknown` (a key or tag that the type does not have), `tag` (the value of a
    discriminating key), `value` (not one of `expected`) or `type`.
    """

    kind: str
    at: Path
    got: str = ""
    expected: tuple[str, ...] = ()

    @property
    def rule(self) -> str:
        """The name of the rule in a `Problem`."""
        return "unknown" if self.kind in ("unknown", "tag") else "shape"


def dotted(at: Path) -> str:
    """Return a path as Anthropic and Bedrock write it: `messages.0.content.1`."""
    return ".".join(map(str, at))


def indexed(at: Path) -> str:
    """Return a path as OpenAI and Gemini write it: `messages[0].content[1]`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in at)
    return text.removeprefix(".")
