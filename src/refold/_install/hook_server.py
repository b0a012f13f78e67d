"""Answers hooks from a process that runs already, over a socket that only its user reaches."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread

from refold._install.hook import PATIENCE, SERVED, SOCKETS, answer_to, log

__all__ = ["answering_hooks"]


@contextmanager
def answering_hooks(folder: Path) -> Iterator[None]:
    """Answer the hooks that write into a folder, in a thread, while the context lasts; not where there is no socket.

    A hook that gets no answer here finds its own, so nothing that fails here is raised.
    """
    place = folder / SOCKETS / f"{os.getpid()}.sock"
    try:
        listener = socket.socket(socket.AF_UNIX)
    except AttributeError:  # Windows
        yield
        return
    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        place.unlink(missing_ok=True)
        listener.bind(str(place))
        place.chmod(0o600)
        listener.listen(8)
    except OSError:  # a path that is too long for one
        listener.close()
        yield
        return
    Thread(target=_serve, args=(listener, str(folder)), daemon=True).start()
    try:
        yield
    finally:
        listener.close()
        place.unlink(missing_ok=True)


def _serve(listener: socket.socket, folder: str) -> None:
    with suppress(OSError):  # closed
        while True:
            connection, _ = listener.accept()
            with connection, suppress(Exception):  # the hook finds its own answer
                connection.settimeout(PATIENCE)
                agent, name, content = b"".join(iter(lambda: connection.recv(1 << 16), b"")).split(b"\n", 2)  # noqa: B023
                answer, done = answer_to(agent.decode(), folder, name.decode(), content)
                connection.sendall(SERVED + answer.encode())
                log(folder, {"at": round(time.time(), 3), "agent": agent.decode(), **done})
