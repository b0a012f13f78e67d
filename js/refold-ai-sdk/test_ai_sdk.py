"""The Vercel AI SDK with the compaction of its steps, against the strict scripted provider and a gateway."""

import json
import re
import subprocess
import sys
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from refold.testing.provider import ScriptedProvider, ScriptedReply

HERE = Path(__file__).parent
PARTS = 30


class Model:
    """It reads one part after the other, and then says that it has finished."""

    def __init__(self):
        self.read = 0

    def __call__(self, received):
        if self.read == PARTS:
            return ScriptedReply("I have finished.")
        self.read += 1
        return ScriptedReply(f"I read part {self.read}.", [("read", {"path": f"part_{self.read}.py"})])


@contextmanager
def gateway(folder):
    command = [
        sys.executable,
        "-m",
        "refold",
        "serve",
        "--port",
        "0",
        "--store",
        str(folder / "s.db"),
        "--window",
        "16000",
    ]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        yield next(found[0] for line in process.stderr if (found := re.search(r"http://127\.0\.0\.1:\d+", line)))
    finally:
        process.terminate()
        process.communicate()


def run(provider, address, above, *streams):
    command = ["node", "agent.js", provider.openai_url, address, str(above), *streams]
    return subprocess.run(command, cwd=HERE, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("streams", [(), ("stream",)], ids=["at once", "streamed"])
def test_a_long_run_stays_within_the_window_with_valid_requests_and_keeps_its_originals(tmp_path, streams):
    with ScriptedProvider(behave=Model()) as provider, gateway(tmp_path) as address:
        done = run(provider, address, 12_000, *streams)
    assert not done.stderr
    result = json.loads(done.stdout)
    assert result["text"] == "I have finished."
    received = provider.received
    assert len(received) == PARTS + 1
    assert not [each for each in received if each.status != 200 or each.problems or each.violations]
    assert max(each.tokens for each in received) < 16_000
    natives = [[message.native for message in each.messages] for each in received]
    breaks = sum(after[: len(before)] != before for before, after in pairwise(natives))
    assert 1 <= breaks <= PARTS // 8
    outputs = [
        part["output"]["value"] for each in result["messages"] if each["role"] == "tool" for part in each["content"]
    ]
    assert [output.splitlines()[0] for output in outputs] == [f"# part_{at}.py" for at in range(1, PARTS + 1)]
    assert {len(output.splitlines()) for output in outputs} == {101}


def test_a_gateway_that_cannot_be_reached_ends_the_run_with_its_address():
    with ScriptedProvider(behave=Model()) as provider:
        done = run(provider, "http://127.0.0.1:9", 3_000)
    assert done.returncode
    assert "http://127.0.0.1:9" in done.stderr
