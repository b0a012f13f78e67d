"""Types that several threads are the first to read, which ends the process with a decoder of msgspec alone."""

import subprocess
import sys

PROGRAM = """
import sys
from threading import Barrier, Thread
from msgspec import Struct
from refold.core._decoders import decoder
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
        read.append(decode(b'{"one":{"number":1,"names":{}},"many":[]}').one.number)
    threads = [Thread(target=work) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert read == [1, 1], read
"""


def test_two_threads_may_be_the_first_to_read_a_type():
    done = subprocess.run([sys.executable, "-c", PROGRAM], check=False, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
