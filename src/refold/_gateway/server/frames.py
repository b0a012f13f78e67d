"""Counts the frames of a client's WebSocket by their heads, so that the work that they cause has bounds.

The server parses all that has arrived at a time, and answers each ping at once. 256 KB of the smallest pings, as much
as is read in one turn of the loop, took it a second: three clients that sent nothing else let others wait for 16.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["FrameCounter", "FrameSlice"]

FRAMES = 64  # that are parsed in one turn of the loop: about a millisecond of pings
CONTROL_FRAMES = 100  # pings and pongs that a client may send in a second; it needs one in several
FRAGMENTS = 16_384  # of one message, which has 64 MB where each holds 4 KB; one of no bytes takes memory as well
FINAL = 0x80
CLOSE = 8  # opcode; that of each control frame is at least this
LONGEST_HEAD = 14


class FrameSlice(NamedTuple):
    """The first frames of some data, and parts of frames: where they end, and how many bytes of messages they hold.

    `excess` is what there is too much of, if anything; `closes` is whether a close frame is among them.
    """

    end: int
    size: int
    excess: str
    closes: bool


class FrameCounter:
    """Counts the frames of one connection, which arrive in pieces that end anywhere."""

    def __init__(self) -> None:
        self._head = b""  # of a frame, while a part of it is missing
        self._payload = 0  # bytes of the present frame that have not arrived
        self._is_message = False  # whether they belong to a message
        self._fragments = 0  # of the present message
        self._control = 0  # control frames since the second began
        self._second = 0.0

    @property
    def is_between_frames(self) -> bool:
        """Whether all frames that have begun have ended."""
        return not (self._payload or self._head)

    def take(self, data: bytes, read: float) -> FrameSlice:
        """Count frames at the start of data: at most as many as are parsed in one turn of the loop.

        `read` is the time at which the client last read what waits for it: pongs do not gather for one that stopped.
        """
        if read - self._second >= 1:
            self._second, self._control = read, 0
        end, frames, size, closes = 0, 0, 0, False
        while end < len(data):
            if self._payload:
                part = min(self._payload, len(data) - end)
                self._payload -= part
                end += part
                size += part if self._is_message else 0
                continue
            if frames == FRAMES:
                break
            head = self._head + data[end : end + LONGEST_HEAD - len(self._head)]
            length = _head_length(head)
            if len(head) < length:
                self._head, end = head, len(data)
                break
            end += length - len(self._head)
            self._head = b""
            self._payload = _payload_length(head)
            frames += 1
            opcode = head[0] & 0x0F
            self._is_message = opcode < CLOSE
            if self._is_message:
                size += length
                self._fragments = 0 if head[0] & FINAL else self._fragments + 1
            elif opcode == CLOSE:
                closes = True
            else:
                self._control += 1
        return FrameSlice(end, size, self._excess(), closes)

    def _excess(self) -> str:
        if self._control > CONTROL_FRAMES:
            return "too many pings"
        return "a message has too many parts" if self._fragments > FRAGMENTS else ""


def _head_length(head: bytes) -> int:
    """Return how many bytes the head of a frame has that begins so; more than there are where that is not known yet."""
    if len(head) < 2:
        return 2
    return 2 + {126: 2, 127: 8}.get(head[1] & 0x7F, 0) + (4 if head[1] & 0x80 else 0)


def _payload_length(head: bytes) -> int:
    length = head[1] & 0x7F
    if length < 126:
        return length
    return int.from_bytes(head[2:4] if length == 126 else head[2:10])
