import pytest
from msgspec.structs import replace

from refold.core.budget import Share
from refold.core.messages import ToolResult
from refold.stages.supersede import Supersede
from refold.stages.supersede_warm import SupersedeWarm
from refold.testing import talk, view_of

BODY = "def work(value): return value\n" * 100  # 3,000 tokens of one character each


def view(between=1, calls=60, window=1_000_000, **given):
    """A large read after many small calls, something between, and the same read again."""
    lines = ["u: go"]
    for n in range(calls):
        lines += [f"a: step {n} | bash(x) as b{n}", f"t: b{n} = ok"]
    lines += ["a: read | read(a.py) as c1", f"t: c1 = {BODY}"]
    for n in range(between):
        lines += [f"a: more {n} | bash(y) as d{n}", f"t: d{n} = {'word ' * 20}"]
    lines += ["a: again | read(a.py) as c2", "t: c2 = " + BODY]
    return view_of(talk(*lines), window=window, goal=Share(0.5), **given)


def outputs(view):
    return [part.text for message in view.messages for part in message.parts if isinstance(part, ToolResult)]


def test_what_is_superseded_leaves_where_the_calls_to_come_pay_for_the_cache():
    stage = SupersedeWarm()
    start = view()
    after = start.after(stage.edits(start))
    assert outputs(after)[60].startswith("[output repeated")
    assert outputs(after)[-1] == BODY


@pytest.mark.parametrize(
    ("stage", "start"),
    [
        (SupersedeWarm(read=0.01, write=1.25), view()),  # reading is nearly free
        (SupersedeWarm(read=0.05), view(between=400)),  # too much stands behind it
        (SupersedeWarm(), view(calls=2)),  # a talk so young is not expected to last
        (SupersedeWarm(), view(window=12_000)),  # a compaction will be due soon
    ],
)
def test_it_stays_where_they_do_not(stage, start):
    assert Supersede().edits(replace(start, goal=Share(1.0)))
    assert stage.edits(start) == ()


def test_without_a_price_for_writing_all_that_is_superseded_leaves():
    start = view(between=400)
    free = SupersedeWarm(read=1.0, write=1.0).edits(start)
    assert free == Supersede().edits(replace(start, goal=Share(1.0)))


def test_it_changes_nothing_twice():
    stage = SupersedeWarm()
    start = view()
    after = start.after(stage.edits(start))
    assert stage.edits(replace(start, start=after.messages)) == ()


def test_the_bill_it_expects_is_never_above_the_bill_of_doing_nothing():
    for read in (0.02, 0.1, 0.25, 0.5):
        for between in (1, 10, 100):
            start = view(between=between)
            after = start.after(SupersedeWarm(read=read, write=1.25).edits(start))
            changed = [
                n for n, (old, new) in enumerate(zip(start.messages, after.messages, strict=True)) if old is not new
            ]
            if not changed:
                continue
            calls = sum(message.role == "assistant" for message in start.messages)
            behind = sum(after.sizes[changed[0] :])
            saved = start.estimated - after.estimated
            assert calls * read * saved >= (1.25 - read) * behind
