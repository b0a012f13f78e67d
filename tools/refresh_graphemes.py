"""Writes src/refold/_text/grapheme_table.py from the Unicode data of the `regex` library.

python tools/refresh_graphemes.py
"""

from __future__ import annotations

import sys
import textwrap
from importlib.metadata import version
from pathlib import Path

import regex

PATH = Path(__file__).parent.parent / "src/refold/_text/grapheme_table.py"
HEAD = '''"""Unicode's properties that decide where a character ends (UAX 29), as ranges of code points in hexadecimal.

Written by `tools/refresh_graphemes.py` from regex {version}; `refold._text.graphemes` computes Hangul and flags.
"""

from __future__ import annotations

__all__ = ["RANGES"]

RANGES = {{
'''
CLASSES = {
    "control": "GCB=Control",
    "extend": "GCB=Extend",
    "spacing": "GCB=SpacingMark",
    "prepend": "GCB=Prepend",
    "pictographic": "Extended_Pictographic",
    "consonant": "InCB=Consonant",
    "linker": "InCB=Linker",
    "vowel": "GCB=V",
    "final": "GCB=T",
    "leading": "GCB=L",
}
SURROGATES = range(0xD800, 0xE000)


def main() -> int:
    """Write the table."""
    every = "".join(chr(code) for code in range(sys.maxunicode + 1) if code not in SURROGATES)
    lines = []
    for name, pattern in CLASSES.items():
        found = [(ord(match[0][0]), ord(match[0][-1])) for match in regex.finditer(rf"\p{{{pattern}}}+", every)]
        words = " ".join(f"{first:X}" if first == last else f"{first:X}-{last:X}" for first, last in found)
        rows = "\n".join(f'        "{row} "' for row in textwrap.wrap(words, 100))
        lines.append(f'    "{name}": (\n{rows}\n    ),\n')
    PATH.write_text(HEAD.format(version=version("regex")) + "".join(lines) + "}\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
