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
    with os.fdopen(os.dup(1), "wb") as stream:
        os.dup2(2, 1)  # what a policy prints must not be taken for rows
        pickle.dump(READY, stream)
        stream.flush()
        for path in paths:
            pickle.dump(rows_of(path, settings), stream)
            stream.flush()


if __name__ == "__main__":
    main()
