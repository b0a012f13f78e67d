"""Tells whether a name or a text shows a secret, for lines that say in brief what was called or changed."""

from __future__ import annotations

import re

__all__ = ["holds_secret", "names_secret"]

NAME = re.compile(  # of a setting or an argument; `max_tokens`, `keywords` and `author` name none
    r"(?:api|access|secret|private|auth|signing|encryption|client)[_.-]?key|token(?:$|[_.-])|secret|passw|credential",
    re.I,
)
SHAPE = re.compile(  # the shapes of keys that are met most; `refold.summaries` knows all of them, and takes longer
    r"(?<![\w-])(?:[srp]k[-_][\w-]{8,}|(?:AKIA|ASIA)[A-Z0-9]{12,}|gh[pousr]_\w{16,}|github_pat_\w+|glpat-[\w-]{16,}|"
    r"xox[abeoprs]-[\w-]{10,}|AIza[\w-]{20,}|eyJ[\w-]{8,}\.[\w-]+|whsec_\w{8,})|"
    r"\bBearer \S{8,}|://[^/\s:@]*:[^/\s@]+@|-----BEGIN "
)


def names_secret(name: str) -> bool:
    """Tell whether what has this name may be a secret."""
    return NAME.search(name) is not None


def holds_secret(text: str) -> bool:
    """Tell whether a text holds what looks like a secret, whatever it is named."""
    return SHAPE.search(text) is not None
