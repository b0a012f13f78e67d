"""Types that several threads are the first to read, which ends the process with msgspec alone."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import refold

PROGRAM = """
import sys
from threading import Barrier, Thread
from msgspec import Struct
from refold.core._decoders import convert, decoder
sys.setswitchinterval(1e-6)
for number in range(300):
    class Inner(Struct):
        number: int
        names: dict[str, list[float]]
    class Outer(Struct):
        one: Inner
        many: list[Inner]
    globals().update(Inner=Inner, Outer=Outer)
    decode, begin, read = decoder(Outer), Barrier(2), []
    def work():
        begin.wait()
        read.append({}.one.number)
    threads = [Thread(target=work) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert read == [1, 1], read
"""


@pytest.mark.parametrize(
    "reading",
    [
        """decode(b'{"one":{"number":1,"names":{}},"many":[]}')""",
        """convert({"one":{"number":1,"names":{}},"many":[]}, Outer)""",
    ],
)
def test_two_threads_may_be_the_first_to_read_a_type(reading):
    program = PROGRAM.replace("{}.one", f"{reading}.one")
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_type_is_read_in_that_way():
    folder = Path(refold.__file__).parent
    home = folder / "core" / "_decoders.py"
    bare = re.compile(r"msgspec\.convert\(|json\.decode\(.*type=")
    texts = {path: path.read_text(encoding="utf-8") for path in folder.rglob("*.py") if path != home}
    assert [str(path.relative_to(folder)) for path, text in texts.items() if bare.search(text)] == []
