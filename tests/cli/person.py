"""A person at a terminal: types into a real `refold` in a process of its own, and sees what it shows."""

from __future__ import annotations

import os
import pty
import re
import select
import struct
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.forked import on_terminal

MAIN = "from refold._cli.main import main; main()"
COMMAND = (sys.executable, "-c", MAIN)
STEERING = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b\][^\x07]*\x07|\r|[⠀-⣿]|[\x01\x02]")
PATIENCE = 60.0
COLUMNS = 100
PROMPT = "› "


def environment(home: Path, **more: str) -> dict[str, str]:
    """What a command of a fresh user sees; nothing of this machine's user is read or written."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "LANG", "SSL_CERT_FILE") if name in os.environ}
    return kept | {
        "HOME": str(home), "XDG_DATA_HOME": str(home / "data"), "TERM": "xterm-256color", "PYTHONUTF8": "1",
        "INPUTRC": "/dev/null",
    } | more  # fmt: skip


class Person:
    """Types lines and waits for what comes; `shown` is everything so far, without colours and spinners."""

    def __init__(self, *arguments: object, env: Mapping[str, str], cwd: Path, anew: bool = False) -> None:
        self.master, slave = pty.openpty()
        _resize(slave)
        self.process = on_terminal([*map(str, arguments)], env, cwd, os.ttyname(slave), anew=anew)
        os.close(slave)
        self._raw = b""
        self._seen = 0

    @property
    def raw(self) -> str:
        return self._raw.decode(errors="replace")

    @property
    def shown(self) -> str:
        return STEERING.sub("", self.raw)

    def sees(self, text: str) -> str:
        """Wait until a text stands in what came since the last wait; return what came up to its end."""
        deadline = time.monotonic() + PATIENCE
        while (place := self.shown.find(text, self._seen)) < 0:
            assert time.monotonic() < deadline, f"{text!r} did not come; there is:\n{self.shown[self._seen :]}"
            if not self._more(0.2) and self.process.exitcode is not None:
                raise AssertionError(f"it ended without {text!r}; there is:\n{self.shown[self._seen :]}")
        start, self._seen = self._seen, place + len(text)
        return self.shown[start : self._seen]

    def types(self, line: str) -> None:
        os.write(self.master, f"{line}\n".encode())

    def says(self, line: str) -> str:
        """Type a line at the prompt and return all that comes until the next prompt."""
        self.types(line)
        self.sees(line)
        return self.sees(PROMPT)

    def presses(self, key: str) -> None:
        os.write(self.master, {"Ctrl-C": b"\x03", "Ctrl-D": b"\x04"}[key])

    def leaves(self) -> int:
        """Press Ctrl-D and return the exit code."""
        self.presses("Ctrl-D")
        return self.ends()

    def ends(self) -> int:
        deadline = time.monotonic() + PATIENCE
        while self.process.exitcode is None and time.monotonic() < deadline:
            self._more(0.1)
        while self._more(0.0):
            pass
        self.process.join(1)
        assert self.process.exitcode is not None
        return self.process.exitcode

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.join()
        os.close(self.master)

    def _more(self, seconds: float) -> bool:
        if not select.select([self.master], [], [], seconds)[0]:
            return False
        try:
            piece = os.read(self.master, 65_536)
        except OSError:  # the other side is closed
            return False
        self._raw += piece
        return bool(piece)


def _resize(slave: int) -> None:
    import fcntl
    import termios

    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
