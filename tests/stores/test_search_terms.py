import random
import subprocess
import sys
import textwrap

import pytest

from refold.sessions._stores import search_terms
from refold.sessions._stores.search_terms import LONGEST, words_of

PIECES = [
    "a",
    "B",
    "_",
    " ",
    "日",
    "本",
    "é",
    "ß",
    "\n",
    "1",
    ".",
    *("x" * size for size in (126, 127, 128, 129, 130, 300)),
]


@pytest.mark.parametrize("size", [1, 5, 50, 300])
def test_words_of_a_long_text_are_the_same_wherever_it_is_cut(monkeypatch, size):
    dice = random.Random(size)
    texts = ["".join(dice.choices(PIECES, k=dice.randrange(60))) for _ in range(300)]
    whole = [words_of(text) for text in texts]
    monkeypatch.setattr(search_terms, "SLICE", size)
    assert [words_of(text) for text in texts] == whole
    assert {len(word) for words in whole for word in words} >= {1, 126, LONGEST}


LONGEST_HOLD = """
    import sys, threading, time
    from refold.sessions._stores.search_terms import words_of
    sys.setswitchinterval(1e-4)
    beats, text = [], "0123abcd " * 1_000_000
    def beat():
        while True:
            time.sleep(0.001)
            beats.append(None)
    threading.Thread(target=beat, daemon=True).start()
    words_of(text)
    print(len(beats))
"""


def test_other_threads_run_while_the_words_of_a_long_text_are_found():
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(LONGEST_HOLD)], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) > 10
