"""Runs the notebooks of the examples and writes their outputs into them; an error in a cell fails: `make notebooks`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "examples" / "notebooks"
LARGEST = 60_000  # bytes with its outputs: a notebook is text in the repository


def main() -> None:
    """Run each notebook in a kernel of its own, in its folder."""
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    os.environ["COLUMNS"] = "100"
    for path in sorted(FOLDER.glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        NotebookClient(notebook, timeout=120, resources={"metadata": {"path": FOLDER}}, record_timing=False).execute()
        text = nbformat.writes(notebook) + "\n"
        if len(text) > LARGEST:
            raise SystemExit(f"{path.name} has {len(text):,} bytes with its outputs; at most {LARGEST:,}")
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
