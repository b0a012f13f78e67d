import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

import refold
from refold.adapt import Track, TrackPool
from refold.errors import UnknownOption, UnreadablePlan, UsageError
from tests.adapt.test_track import WINDOW, call, history
from tests.compaction.test_meter import Counting


def named(name, calls):
    start, question, *rest = history(calls)
    return [start, {**question, "content": f"Fix {name}."}, *rest]


def folded(pool, items, **options):
    with pool.track(items, **options) as track:
        return track.fold(items), track


def test_each_conversation_has_a_track_of_its_own_that_reads_only_what_is_new():
    counter = Counting()
    pool = TrackPool(window=1_000_000, counter=counter)
    for size in range(10):
        for name in ("billing", "search", "mail"):
            folded(pool, named(name, size))
    assert counter.counted == 3 * len(history(9))


def test_messages_that_a_framework_builds_anew_are_compared_once_in_a_call():
    class Built(dict):
        compared = 0
        __hash__ = None

        def __eq__(self, other):
            Built.compared += 1
            return dict.__eq__(self, other)

    pool, items = TrackPool(window=1_000_000), history(10)
    folded(pool, [Built(item) for item in items])
    folded(pool, [Built(item) for item in items])
    assert Built.compared == len(items)


def test_a_conversation_in_use_is_read_anew_and_both_go_on_alone():
    pool = TrackPool(window=WINDOW)
    items = history(12)
    _, track = folded(pool, items)
    with pool.track(items) as one, pool.track(items) as other:
        assert one is track
        assert other is not one
        assert other.fold(items).messages == one.fold(items).messages


def test_a_branch_takes_the_plans_over_that_fit_it():
    pool = TrackPool(window=WINDOW)
    items = history(0)
    for number in range(30):
        items = [*items, *call(number)]
        view, track = folded(pool, items)
    plans = track.plans
    assert len(plans) > 2
    length = plans[0].base.length
    branch = [*items[:length], {"role": "user", "content": "Something else."}]
    _, branched = folded(pool, branch)
    assert branched is not track
    assert branched.plans == plans[:1]
    assert folded(pool, items)[0].messages == view.messages


def test_the_state_of_the_framework_counts_and_not_what_the_pool_remembers():
    pool = TrackPool(window=WINDOW)
    items = history(14)
    _, track = folded(pool, items, state="")
    state = track.dump()
    assert state
    assert folded(pool, items, state=state)[1] is track
    with pool.track(items, state="") as fresh:
        assert fresh is not track
        assert fresh.plans == ()
    with pytest.raises(UnreadablePlan), pool.track(items, state="no state"):
        pass


def test_the_conversation_not_used_for_longest_is_forgotten():
    pool = TrackPool(window=WINDOW, size=2)
    tracks = [folded(pool, named(name, 1))[1] for name in ("billing", "search", "mail")]
    assert folded(pool, named("mail", 1))[1] is tracks[2]
    assert folded(pool, named("billing", 1))[1] is not tracks[0]


def test_the_model_of_a_call_is_the_one_of_its_track_where_no_option_names_one():
    pool = TrackPool()
    items = history(3)
    with pool.track(items, model="gpt-4o") as track, pool.track(items, model="gpt-4") as other:
        assert track.settings["model"] == "gpt-4o"
        assert other.settings["model"] == "gpt-4"
    with TrackPool(window=WINDOW).track(items, model="gpt-4o") as track:
        assert (track.settings["model"], track.settings["window"]) == ("gpt-4o", WINDOW)
    with TrackPool(model="gpt-4").track(items, model="gpt-4o") as track:
        assert track.settings["model"] == "gpt-4"


def test_threads_share_a_pool():
    pool = TrackPool(window=WINDOW)

    def run(name):
        views = []
        for size in range(1, 25):
            view, _ = folded(pool, named(name, size))
            views.append(view.messages)
        return views

    names = [f"part {number}" for number in range(6)]
    with ThreadPoolExecutor(6) as threads:
        together = list(threads.map(run, names))
    for name, views in zip(names, together, strict=True):
        track = Track(window=WINDOW)
        assert views == [track.fold(named(name, size)).messages for size in range(1, 25)]


def test_a_misspelt_option_is_refused_at_once():
    with pytest.raises(UnknownOption, match="window"):
        TrackPool(windw=WINDOW)


def test_an_adapter_that_knows_its_format_takes_no_other():
    with pytest.raises(UsageError, match="leave format= out"):
        TrackPool.of_format("gemini", {"window": WINDOW, "format": "anthropic"})
    with TrackPool.of_format("openai-chat", {"window": WINDOW}).track(history(3)) as track:
        assert track.fold(history(3)).messages == history(3)


def test_plans_outlast_a_pool_in_a_mapping_and_are_gone_from_it_once_taken_back():
    states = {}
    items = history(14)
    view, track = folded(TrackPool(window=WINDOW, states=states), items)
    assert track.plans
    grown = [*items, *call(14)]
    again, restored = folded(TrackPool(window=10 * WINDOW, states=states), grown)
    assert restored.plans == track.plans
    assert again.messages[: len(view.messages)] == view.messages
    assert not folded(TrackPool(window=10 * WINDOW, states=states), history(3))[1].plans
    pool = TrackPool(window=10 * WINDOW, states=states)
    with pool.track(grown) as track:
        track.fold(grown)
        track.rewind(0)
    assert not states
    assert folded(TrackPool(window=10 * WINDOW, states=states), grown)[0].messages == grown


def test_a_window_that_a_refusal_told_outlasts_a_pool_in_a_mapping():
    states, items = {}, history(14)
    refusal = RuntimeError("This model's maximum context length is 8192 tokens. Your messages are 20000 tokens.")
    pool = TrackPool(window=100_000, states=states)
    with pool.track(items) as track:
        track.fold(items)
        track.recover(refusal)
    grown = [*items, *(message for number in range(14, 28) for message in call(number))]
    view, restored = folded(TrackPool(window=100_000, states=states), grown)
    assert restored.plans[: len(track.plans)] == track.plans
    assert refold.count(view.messages) < 8_192


def test_a_mapping_that_fails_costs_no_plan():
    class Full(dict):
        def __setitem__(self, key, value):
            raise OSError("no space left")

    pool, items = TrackPool(window=WINDOW, states=Full()), history(14)
    with pytest.raises(OSError, match="no space left"):
        folded(pool, items)
    with pool.track(items) as track:
        assert track.plans
        track.rewind(0)


def test_a_mapping_of_plans_has_one_state_for_a_conversation_and_one_that_cannot_be_read_is_as_none():
    states = {}
    pool = TrackPool(window=WINDOW, states=states)
    items = history(0)
    for number in range(40):
        items = [*items, *call(number)]
        _, track = folded(pool, items)
    assert len(track.plans) > 2
    assert list(states.values()) == [track.dump()]
    (key,) = states
    states[key] = '{"refold_track": 99}'
    assert folded(TrackPool(window=WINDOW, states=states), items)[1].plans


class Stored:
    """A message as a framework stores it, of which each call gets a copy."""

    def __init__(self, number, native):
        self.number, self.native = number, native


def test_between_two_calls_a_pool_holds_no_copy_that_a_framework_made_for_one():
    pool = TrackPool(window=WINDOW)
    for _ in range(2):
        copies = [Stored(number, native) for number, native in enumerate(history(3))]
        with pool.track(copies, keys=range(len(copies))) as track:
            assert track.fold(copies, keys=range(len(copies)), convert=lambda each: each.native).as_items() == copies
        held = weakref.ref(copies[0])
        del copies
        assert held() is None
