"""Processes that are forked from one which has imported what they need.

To import it takes a command of refold longer than all that it does.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import sys
from collections.abc import Callable, Mapping
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

FORKING = multiprocessing.get_context("forkserver")
ANEW = multiprocessing.get_context("spawn")
FORKING.set_forkserver_preload(["tests.warm"])


def begin(act: Callable[..., Any], *arguments: Any) -> BaseProcess:
    """Start a function of a module with these arguments."""
    process = FORKING.Process(target=act, args=arguments)
    process.start()
    return process


def on_terminal(
    words: list[str], environment: Mapping[str, str], folder: Path, terminal: str, *, anew: bool = False
) -> BaseProcess:
    """Start `refold` with these words as the leader of a session with this terminal; anew, it imports all itself."""
    context = ANEW if anew else FORKING
    process = context.Process(target=_refold, args=(words, dict(environment), folder, terminal))
    process.start()
    return process


def _refold(words: list[str], environment: dict[str, str], folder: Path, terminal: str) -> None:
    from refold._cli.main import main

    os.setsid()
    given = os.open(terminal, os.O_RDWR)  # which the leader of a session takes for its own
    for number in range(3):
        os.dup2(given, number)
    os.close(given)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - open as long as the process runs
    sys.stdout, sys.stderr = (open(number, "w", 1, encoding="utf-8", closefd=False) for number in (1, 2))  # noqa: SIM115
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = ["refold", *words]
    try:
        main()
    finally:
        atexit._run_exitfuncs()
