"""The state of a track grows by what is new, and states of earlier releases are read."""

import json
from itertools import pairwise

import msgspec
import pytest

from refold.adapt import Track, rewind_state
from refold.adapt._state import appended_lines, joined_state, load_state
from refold.core._plan_json import dump_plan
from refold.errors import UnreadablePlan
from tests.adapt.test_track import call, history

WINDOW = 6_000


def claude_call(number):
    asked, answer = call(number)
    thought = {"type": "thinking", "thinking": f"Module {number} is next.", "signature": f"seal{number}"}
    use = {"type": "tool_use", "id": f"call_{number}", "name": "read", "input": {"path": f"src/module_{number}.py"}}
    result = {"type": "tool_result", "tool_use_id": f"call_{number}", "content": answer["content"][:2_400]}
    text = {"type": "text", "text": asked["content"]}
    return [{"role": "assistant", "content": [thought, text, use]}, {"role": "user", "content": [result]}]


def states(track, messages, following, calls):
    """Return the state after each call of a growing history, beginning with an empty one."""
    texts = [""]
    for number in range(calls):
        messages = [*messages, *following(number)]
        track.fold(messages)
        texts.append(track.dump())
    return messages, texts


@pytest.fixture(scope="module")
def claude():
    track = Track(window=WINDOW, model="claude-opus-5-5", format="anthropic")
    start = [{"role": "user", "content": "Fix the handlers."}]
    return (track, *states(track, start, claude_call, 70))


def test_a_state_grows_by_as_much_with_each_plan_however_many_there_are(claude):
    track, _, texts = claude
    pieces = [appended_lines(new, old) for old, new in pairwise(texts) if new != old]
    assert len(track.plans) > 20
    assert joined_state(pieces) == texts[-1]
    middle = len(pieces) // 2
    early, late = (sum(map(len, some)) for some in (pieces[middle - 8 : middle], pieces[-8:]))
    assert late < 1.1 * early
    whole = [sum(len(dump_plan(plan)) for plan in plans) for plans in (track.plans[:8], track.plans[-8:])]
    assert whole[1] > 1.2 * whole[0]  # what would be stored if each plan were stored as it is


def test_a_state_that_grew_has_the_plans_and_under_which_of_them_answers_were_produced(claude):
    track, messages, texts = claude
    again = Track.load(texts[-1], window=WINDOW, model="claude-opus-5-5", format="anthropic")
    assert again.plans == track.plans
    assert again.dump() == texts[-1]
    assert again.fold(messages).messages == track.fold(messages).messages
    phases = load_state(texts[-1]).phases
    assert phases[-1].plans == tuple(plan.id for plan in track.plans)
    assert len(phases) > len(track.plans)


def test_plans_that_were_taken_back_are_in_the_state_as_long_as_answers_were_produced_under_them(claude):
    track, messages, texts = claude
    rewound = rewind_state(texts[-1], 3)
    assert load_state(rewound).former == track.plans[3:]
    again = Track.load(rewound, window=WINDOW, model="claude-opus-5-5", format="anthropic")
    assert again.plans == track.plans[:3]
    again.fold(messages)
    assert again.dump().startswith(rewound)
    assert load_state(again.dump()).former == track.plans[3:]


def test_a_state_of_version_1_is_read_and_goes_on_in_the_present_one(claude):
    track, messages, texts = claude
    state = load_state(texts[-1])
    plans = [json.loads(dump_plan(plan)) for plan in state.plans]
    stored = {"refold_track": 1, "plans": plans, "phases": msgspec.to_builtins(state.phases), "window": 5_000}
    text = json.dumps(stored, separators=(",", ":"), ensure_ascii=False)
    read = load_state(text)
    assert (read.plans, read.phases, read.window) == (state.plans, state.phases, 5_000)
    again = Track.load(text, window=WINDOW, model="claude-opus-5-5", format="anthropic")
    assert again.dump() == text
    for number in range(70, 80):
        messages = [*messages, *claude_call(number)]
        again.fold(messages)
    assert len(again.plans) > len(track.plans)
    assert load_state(again.dump()).plans == again.plans
    assert joined_state([text, appended_lines(again.dump(), text)]) == again.dump()


def test_of_pieces_some_of_which_are_missing_or_twice_the_longest_beginning_is_read():
    track = Track(window=16_000)
    _, texts = states(track, history(0), call, 40)
    pieces = [appended_lines(new, old) for old, new in pairwise(texts) if new != old]
    assert len(pieces) > 3
    twice = [piece for piece in pieces for _ in range(2)]
    assert load_state(joined_state(twice)).plans == track.plans
    assert load_state(joined_state([*pieces[:2], *pieces[3:]])).plans == track.plans[:2]
    assert joined_state(pieces[1:]) == ""
    assert joined_state([*pieces, ""]) == ""


def test_a_state_without_the_line_break_at_its_end_is_read_and_goes_on():
    track = Track(window=WINDOW)
    messages, texts = states(track, history(0), call, 4)
    again = Track.load(texts[-1].strip(), window=WINDOW)
    for number in range(4, 8):
        messages = [*messages, *call(number)]
        again.fold(messages)
    assert len(again.plans) > len(track.plans) > 0
    assert load_state(again.dump()).plans == again.plans


def test_a_plan_that_was_changed_in_a_state_is_refused():
    track = Track(window=16_000)
    track.fold(history(20))
    with pytest.raises(UnreadablePlan, match="does not match its id"):
        load_state(track.dump().replace("src/module_3.py", "src/module_4.py"))
    with pytest.raises(UnreadablePlan, match="first line"):
        load_state('{"window": 4000}')
