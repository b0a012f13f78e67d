"""Writes pictures of the command line at work into docs/pictures: `python -m tools.screenshots` (`make screenshots`).

Each command runs on a terminal of its own, so that it prints what a user sees. The picture of `refold cost` needs a
session with a provider's usage reports, which the project has none of that is long: it is written where
`REFOLD_SHARED` names a folder with one, and stays as it is elsewhere.
"""

from __future__ import annotations

import fcntl
import io
import os
import pty
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.terminal_theme import DEFAULT_TERMINAL_THEME, MONOKAI, TerminalTheme
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
SESSION = "data/claude-code/entireio-cli/s02.jsonl"
COLUMNS = 126
# The letters of a terminal, without a font from elsewhere, which Rich's own frame loads; colours follow the reader's.
FRAME = """<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img">
<title>TITLE</title>
<desc>DESCRIPTION</desc>
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, "SFMono-Regular", Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-page {{ fill: #ffffff; stroke: #d0d7de; }}
LIGHT
@media (prefers-color-scheme:dark) {{
.{unique_id}-page {{ fill: #0d1117; stroke: #30363d; }}
{styles}
}}
</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
<rect class="{unique_id}-page" rx="10" width="{width}" height="{height}"/>
<g transform="translate({terminal_x}, 14)" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g></g></svg>
"""


class Screen(NamedTuple):
    """One picture: its name, the arguments of `refold`, the folder to run in, and the headings to show between."""

    name: str
    description: str
    arguments: tuple[str, ...]
    folder: Path
    start: str = ""
    stop: str = ""


def main() -> None:
    """Write every picture that can be made here."""
    with tempfile.TemporaryDirectory() as scratch:
        for screen in _screens(Path(scratch)):
            path = PICTURES / f"terminal-{screen.name}.svg"
            path.write_text(_picture(screen), encoding="utf-8")
            print(path.relative_to(ROOT))


def _screens(scratch: Path) -> Iterator[Screen]:
    between = "Before and after"
    yield Screen("demo", "Size, calls and bill of a session, and what became of its messages", ("demo",), scratch,
                 stop=between)  # fmt: skip
    yield Screen("before-and-after", "One message of each kind beside what is left of it", ("demo",), scratch,
                 start=between, stop="Undo")  # fmt: skip
    shared = os.environ.get("REFOLD_SHARED")
    if shared and (session := Path(shared) / SESSION).exists():
        shutil.copy(session, scratch / "session.jsonl")
        about = "The bill of a session, and what each policy would have cost"
        yield Screen("cost", about, ("cost", "session.jsonl", "--select", "1", "--window", "200k"), scratch)


def _picture(screen: Screen) -> str:
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    command = " ".join(("refold", *screen.arguments))
    console.print(Text.assemble(("$ ", "green"), (command, "bold")))
    lines = _output(screen.arguments, screen.folder).splitlines()
    plain = [Text.from_ansi(line).plain for line in lines]
    start = next((place for place, line in enumerate(plain) if line.startswith(screen.start)), 0)
    stop = next((place for place, line in enumerate(plain) if screen.stop and line.startswith(screen.stop)), len(lines))
    for line in lines[start:stop]:
        console.print(Text.from_ansi(line), no_wrap=True, crop=True)

    def drawn(theme: TerminalTheme, frame: str) -> str:
        return console.export_svg(theme=theme, code_format=frame, unique_id=f"refold-{screen.name}", clear=False)

    title = f"{command} in a terminal"
    frame = FRAME.replace("TITLE", title).replace("DESCRIPTION", screen.description)
    svg = drawn(MONOKAI, frame).replace("LIGHT", drawn(DEFAULT_TERMINAL_THEME, "{styles}"))
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


def _output(arguments: tuple[str, ...], folder: Path) -> str:
    """Return what a command prints on a terminal; its progress on standard error is left aside."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 60, COLUMNS, 0, 0))
    environment = os.environ | {"TERM": "xterm-256color", "COLORTERM": "truecolor", "COLUMNS": str(COLUMNS)}
    path = f"{ROOT / 'src'}{os.pathsep}{environment.get('PYTHONPATH', '')}"
    process = subprocess.Popen(
        [sys.executable, "-m", "refold", *arguments], stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL,
        cwd=folder, env=environment | {"PYTHONPATH": path},
    )  # fmt: skip
    os.close(theirs)
    printed = bytearray()
    while True:
        try:
            part = os.read(ours, 65_536)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        printed += part
    os.close(ours)
    if process.wait():
        raise SystemExit(f"refold {' '.join(arguments)} ended with {process.returncode}")
    return printed.decode()


if __name__ == "__main__":
    main()
