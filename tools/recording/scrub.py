"""Makes a session file fit to be published: no paths of the machine, no texts that the agent's authors wrote.

A run's home is `<temporary folder>/home/user`; with the temporary folder cut off, paths read `/home/user/project`.
A text longer than LONGEST that shows none of the project's lines is the agent's own (its system prompt, its tools, its
skills: nothing in the script is that long) and is replaced by a note of its size, which keeps what it quotes of the
script. So is everything under the keys in OWN. A stream of the provider's is kept whole: it holds the script alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["LONGEST", "leaks", "scrub"]

LONGEST = 240
WITH_OUR_LINES = 480  # a result or a difference that shows the file of the project
OWN = frozenset({"addedLines", "addedBlocks", "model_map_information"})


def scrub(raw: str, root: Path, port: int, ours: Sequence[str], lines: Sequence[str]) -> str:
    """Return a session file without what must not be published.

    `ours` are texts of the script that a note repeats, `lines` those of the project's files that a result may show.
    A line stays a line; one document is indented by one.
    """
    for folder in (str(root), re.sub(r"[^A-Za-z0-9]", "-", str(root))):
        raw = raw.replace(folder, "")
    raw = re.sub(rf"(127\.0\.0\.1|localhost):{port}", "127.0.0.1:8000", raw)

    def note(size: int, text: str = "") -> str:
        return " ".join(
            [f"[{size} characters of the agent's own were left out]", *(own for own in ours if own in text)]
        )

    def clean(value: Any, key: str = "") -> Any:
        match value:
            case dict() | list() if key in OWN and value:
                return [note(len(json.dumps(value)))]
            case dict():
                return {name: clean(item, name) for name, item in value.items()}
            case list():
                return [clean(item) for item in value]
            case str() if len(value) > LONGEST:
                return shortened(value)
        return value

    def shortened(text: str) -> str:
        if text.startswith(("event: ", "data: ")):
            return text
        if text.startswith(("{", "[")):
            try:
                return json.dumps(clean(json.loads(text)), ensure_ascii=False)
            except json.JSONDecodeError:
                pass
        if len(text) <= WITH_OUR_LINES and any(line in text for line in lines):
            return text
        return note(len(text), text)

    try:
        return json.dumps(clean(json.loads(raw)), ensure_ascii=False, indent=1) + "\n"
    except json.JSONDecodeError:
        values = [json.loads(line) for line in raw.splitlines() if line.strip()]
        return "".join(json.dumps(clean(value), ensure_ascii=False) + "\n" for value in values)


def leaks(text: str, words: Sequence[str]) -> list[str]:
    """Return what a scrubbed file still says of the machine: each of `words`, other folders, addresses, keys."""
    found = [word for word in words if re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text)]
    patterns = (r"/(?:root|work|tmp|Users|var)/[\w./-]+", r"/home/(?!user\b)[\w./-]+", r"\bsk-[\w-]{8,}")
    addresses = r"(?<![\d.])(?!127\.0\.0\.1\b)\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?![\d.])"
    return found + [match.group() for pattern in (*patterns, addresses) for match in re.finditer(pattern, text)]
