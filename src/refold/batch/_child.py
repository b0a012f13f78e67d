"""The child process that replays files apart from a worker: a task on standard input, rows on standard output."""

from __future__ import annotations

import os
import pickle
import sys

from refold.batch._rows import rows_of
from refold.batch._shard import READY

__all__ = ["main"]


def main() -> None:
    """Replay the files of the task on standard input; send the rows of each as soon as they are there."""
    paths, settings = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the worker that started this process
    output = os.dup(1)
    os.dup2(2, 1)  # what a policy prints must not be taken for rows
    try:
        _send(output, READY)
        for path in paths:
            _send(output, rows_of(path, settings))
    except BrokenPipeError:  # the worker was ended: nobody waits for the rest
        return


def _send(output: int, value: object) -> None:
    """Write a value; unbuffered, so that nothing is left to be written at the end."""
    with open(output, "wb", buffering=0, closefd=False) as stream:
        rest = memoryview(pickle.dumps(value))
        while rest:
            rest = rest[stream.write(rest) :]


if __name__ == "__main__":
    main()
