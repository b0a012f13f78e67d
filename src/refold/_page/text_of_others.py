"""Text of conversations on the page: markup is text, control characters are visible, directions stay inside."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from markupsafe import Markup, escape

__all__ = ["visible"]

PICTURES = 0x2400  # the sign that Unicode has for the first control character
DELETE, DELETE_SIGN = "\x7f", "␡"
JOINERS = "\u200c\u200d"  # parts of scripts and of emoji
HIDDEN = re.compile(  # a superset: what matches is looked up
    r"[^\n\t -~\u00a1-\u00ac\u00ae-\u02ff\u0370-\u05ff\u3000-\ud7ff]"
)
CATEGORIES = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))


def visible(text: object) -> Markup:
    """Return text as markup that shows all of it: escaped, isolated, and with signs for what cannot be seen."""
    words, pieces, start = str(text), [], 0
    for match in HIDDEN.finditer(words):
        char = match[0]
        if char not in JOINERS and unicodedata.category(char) in CATEGORIES:
            if start < match.start():
                pieces.append(escape(words[start : match.start()]))
            pieces.append(_sign(char))
            start = match.end()
    text = "".join([*pieces, escape(words[start:])])
    return Markup(f"<bdi>{text}</bdi>")  # noqa: S704 - each piece is escaped, or a sign


@lru_cache(1_024)  # a text may consist of them
def _sign(char: str) -> Markup:
    code = ord(char)
    name = f"U+{code:04X}"
    sign = DELETE_SIGN if char == DELETE else chr(PICTURES + code) if code < 0x20 else name
    return Markup('<span class="control" title="{}">{}</span>').format(name, sign)
