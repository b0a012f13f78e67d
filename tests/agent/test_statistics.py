import pytest

from refold.agent._runtime_block import runtime_block, with_block
from refold.agent._statistics import Statistics, context_line
from refold.agent.middleware import (
    Action,
    AutoCompact,
    ContextWarning,
    MiddlewareVerdict,
    Pipeline,
    Reset,
    Situation,
)
from refold.core.budget import Usage


def situation(tokens):
    return Situation(Statistics(context_tokens=tokens), 1, 2)


def test_a_call_of_no_time_or_no_words_leaves_the_speed_as_it_was():
    first = Statistics(1_000).after(Usage(100, 50), 2.0)
    assert first.tokens_per_second == 25
    assert first.after(Usage(100, 0), 2.0).tokens_per_second == 25
    assert first.after(Usage(100, 50), 0.0).tokens_per_second == 25


def test_nothing_is_known_of_a_window_that_was_not_given():
    assert Statistics().ratio == 0.0
    assert context_line(5, 0, 0.8) == ""


@pytest.mark.parametrize("threshold", [0, -1])
def test_a_threshold_of_nothing_never_compacts_and_never_warns(threshold):
    warned = []
    assert AutoCompact(threshold).before_turn(situation(10**9)).action is Action.CONTINUE
    ContextWarning(threshold, warned.append).before_turn(situation(10**9))
    assert not warned


def test_the_first_wish_of_a_pipeline_decides_and_a_reset_reaches_all():
    asked = []

    class Says:
        def __init__(self, action):
            self.action = action

        def before_turn(self, situation):
            asked.append(self.action)
            return MiddlewareVerdict(self.action, "because")

        after_turn = before_turn

        def reset(self, reason):
            asked.append(reason)

    pipeline = Pipeline([Says(Action.CONTINUE), Says(Action.COMPACT), Says(Action.STOP)])
    assert pipeline.before_turn(situation(0)) == MiddlewareVerdict(Action.COMPACT, "because")
    assert asked == ["continue", "compact"]
    pipeline.reset(Reset.NEW_SESSION)
    assert asked[2:] == ["new_session"] * 3
    assert Pipeline().after_turn(situation(0)).action is Action.CONTINUE


def test_a_block_joins_a_system_prompt_of_any_shape():
    assert with_block(None, "b") == "b"
    assert with_block("s", "b") == "s\n\nb"
    first = {"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}
    blocks = with_block([first], "b")
    assert blocks[0] is first
    assert blocks[1] == {"type": "text", "text": "b"}
    assert "iteration this turn: 3" in runtime_block(3, 15)
