"""The benchmark of chained compactions."""

from benchmarks import chained
from refold.formats import find, read
from tools.sample_sessions.sized import sized

FORMAT = "openai-chat"


def test_a_session_fills_its_window_eight_times_and_each_cycle_is_judged_twice():
    known = sized(60_000)
    messages = read(find(FORMAT), known).messages
    sizes = [len(str(message.parts)) // 4 for message in messages]
    found = list(chained._cycles(("agent", "session"), FORMAT, known, messages, sizes, ["tail"]))
    assert [each.cycle for each in found] == list(range(1, chained.CYCLES + 1))
    assert all(each.outcome == "fits" for each in found)
    assert found[0].chained == found[0].planned
    assert all(each.size > each.goal for each in found)
