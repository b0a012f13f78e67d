"""A tool that runs a command of the shell, after a person has agreed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, BinaryIO

import msgspec

from refold.agent._tools import Tool, ToolOutcome, tool
from refold.errors import UsageError
from refold.models._tool_output import MAX_BYTES, MAX_LINES, truncate_output

__all__ = ["DECLINED", "shell"]

DECLINED = "[The person did not allow this command. Ask what to do instead, or go on without it.]"
PATIENCE, LONGEST = 120, 3_600  # seconds a command may take: by default, and at most
TAIL_BYTES = 4_000_000  # bytes of an output that are read, from its end
GRACE = 2.0  # seconds between asking a command to end and ending it


def shell(
    root: str | Path,
    allow: Callable[[str], bool],
    *,
    max_bytes: int = MAX_BYTES,
    max_lines: int = MAX_LINES,
    save: Callable[[str], str] | None = None,
) -> Tool:
    """Return a tool that runs commands in a folder; `allow` is asked before each, with the command.

    Output and errors come together, the end of at most so many bytes and lines (N14); `save` keeps the whole of a
    longer one and returns its place. A command that takes too long, or is interrupted, is ended with all it started.
    The folder is where it begins, and confines nothing: that is why a person is asked.
    """
    place = Path(root).expanduser().resolve()

    @tool
    def bash(
        command: str,
        timeout: Annotated[int, msgspec.Meta(description="seconds it may take", ge=1, le=LONGEST)] = PATIENCE,
    ) -> ToolOutcome:
        """Run a command of the shell in the folder, after the person has agreed; returns its output and exit code."""
        if not command.strip():
            raise UsageError("the command is empty")
        if not allow(command):
            return ToolOutcome(DECLINED, True)
        output, code = run(command, place, timeout)
        text = truncate_output(output, max_bytes, max_lines, save=save).text.rstrip("\n")
        ending = f"[Ended after {timeout:,} s: it took too long]" if code is None else f"[Exit code {code}]"
        return ToolOutcome(text if code == 0 else f"{text}\n{ending}".lstrip("\n"), code != 0)

    return bash


def run(command: str, folder: Path, timeout: float) -> tuple[str, int | None]:
    """Run a command and return its output and its exit code, None where it was ended for taking too long."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(  # noqa: S602 - a shell is what the tool is, and a person has agreed
            command, shell=True, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
        try:
            code: int | None = process.wait(timeout)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            if process.returncode is None:
                _end(process)
        return _tail(output), code


def _end(process: subprocess.Popen[bytes]) -> None:
    for how in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, how)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
            return


def _tail(output: BinaryIO) -> str:
    size = output.seek(0, os.SEEK_END)
    output.seek(max(size - TAIL_BYTES, 0))
    return output.read().decode("utf-8", "replace").replace("\r\n", "\n")
