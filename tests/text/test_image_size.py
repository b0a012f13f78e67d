import base64
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refold._text.image_size import base64_image_size, image_size

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 1568, 900) + b"\x08\x02\0\0\0" + bytes(200)
GIF = b"GIF89a" + struct.pack("<HH", 320, 200) + bytes(40)
JPEG = (
    b"\xff\xd8\xff\xe1" + struct.pack(">H", 60_000) + b"e" * 59_998
    + b"\xff\xff\xc2\x00\x11\x08" + struct.pack(">HH", 480, 640) + bytes(60)
)  # fmt: skip
VP8 = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 0x4000 | 550, 368) + bytes(20)
VP8L = b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f" + struct.pack("<I", (400 - 1) | (301 - 1) << 14) + bytes(20)
VP8X = b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0" + (1023).to_bytes(3, "little") + (767).to_bytes(3, "little") + bytes(9)

PICTURES = {
    "png": (PNG, (1568, 900)),
    "gif": (GIF, (320, 200)),
    "jpeg": (JPEG, (640, 480)),
    "webp lossy": (VP8, (550, 368)),
    "webp lossless": (VP8L, (400, 301)),
    "webp extended": (VP8X, (1024, 768)),
}


@pytest.mark.parametrize("name", PICTURES)
def test_the_size_is_read_from_bytes_and_from_base64(name: str) -> None:
    data, size = PICTURES[name]
    text = base64.b64encode(data).decode()
    assert image_size(data) == size
    assert base64_image_size(text) == size
    assert base64_image_size(f"data:image/x;base64,{text}") == size
    assert base64_image_size(base64.encodebytes(data).decode()) == size
    assert base64_image_size(base64.urlsafe_b64encode(data).decode()) == size


@pytest.mark.parametrize("name", PICTURES)
def test_a_header_cut_short_has_no_size(name: str) -> None:
    data, size = PICTURES[name]
    assert all(image_size(data[:length]) in {None, size} for length in range(len(data[:60_100])))
    assert image_size(data[:9]) is None


def test_what_is_no_picture_has_no_size() -> None:
    assert image_size(b"") is None
    assert image_size(b"%PDF-1.7") is None
    assert base64_image_size("") is None
    assert base64_image_size("not base64 at all é") is None
    assert image_size(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(20)) is None


def test_a_jpeg_without_a_frame_header_ends() -> None:
    assert image_size(b"\xff\xd8" + b"\xff\xe0\x00\x02" * 10_000) is None
    assert image_size(b"\xff\xd8" + b"\xff" * 10_000) is None


@given(st.binary(max_size=200))
def test_no_bytes_make_it_raise(data: bytes) -> None:
    for start in (b"", b"\xff\xd8", b"\x89PNG\r\n\x1a\n", b"RIFF\0\0\0\0WEBP", b"GIF89a"):
        image_size(start + data)
        base64_image_size(base64.b64encode(start + data).decode()[: len(data)])


@given(st.text(max_size=200))
def test_no_text_makes_it_raise(text: str) -> None:
    base64_image_size(text)
    base64_image_size("data:" + text)
