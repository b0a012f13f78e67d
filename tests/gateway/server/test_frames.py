import pytest

from refold._gateway.server.frames import FRAMES, FrameCounter

PING = b"\x89\x82\0\0\0\0hi"
SHORT = b"\x81\x85\0\0\0\0hello"
LONG = b"\x82\xfe\x01\x00\0\0\0\0" + bytes(256)
LONGEST = b"\x82\xff" + (70_000).to_bytes(8) + bytes(4) + bytes(70_000)
CLOSING = b"\x88\x82\0\0\0\0\x03\xe8"


@pytest.mark.parametrize("at", [1, 2, 3, 7, 9, 13, 20, 100])
def test_frames_are_the_same_wherever_the_pieces_of_them_end(at):
    data = SHORT + PING + LONG + PING + LONGEST + CLOSING
    counter, size, closes = FrameCounter(), 0, []
    for piece in (data[start : start + at] for start in range(0, len(data), at)):
        found = counter.take(piece, 1.0)
        assert found.end == len(piece)
        size += found.size
        closes.append(found.closes)
    assert size == len(SHORT + LONG + LONGEST)
    assert closes.index(True) >= len(closes) - len(CLOSING)


def test_a_turn_of_the_loop_gets_so_many_frames_and_a_long_one_whole():
    assert FrameCounter().take(SHORT * (FRAMES + 5), 1.0).end == len(SHORT) * FRAMES
    assert FrameCounter().take(LONGEST, 1.0).end == len(LONGEST)


def test_pings_of_another_second_are_counted_anew_unless_the_client_reads_no_pong_meanwhile():
    reads, stopped = FrameCounter(), FrameCounter()
    for second in range(1, 9):
        assert not reads.take(PING * 50, second).excess
    assert [bool(stopped.take(PING * 50, 1.0).excess) for _ in range(3)] == [False, False, True]
