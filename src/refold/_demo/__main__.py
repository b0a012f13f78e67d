"""`python -m refold._demo FOLDER` writes the sample conversations into a folder."""

from __future__ import annotations

import sys
from pathlib import Path

from refold._demo.examples import write_examples


def main(arguments: list[str]) -> int:
    """Write the examples and name the files."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m refold._demo FOLDER\n")
        return 2
    for path in write_examples(Path(arguments[0])):
        sys.stdout.write(f"{path} ({path.stat().st_size:,} bytes)\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
