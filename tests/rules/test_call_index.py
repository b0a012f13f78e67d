from hypothesis import given, settings
from hypothesis import strategies as st

from refold._rules import call_index
from refold._rules.pairing import GroupPairing, Pairing
from refold.core.messages import Message, MessageId, Text, ToolCall, ToolResult
from tests.depth import deep

IDS = st.sampled_from(["a", "b", ""])
CALLS = st.lists(IDS.map(lambda id: ToolCall(id, "tool")), max_size=2)
RESULTS = st.lists(IDS.map(lambda id: ToolResult(id, (Text("text"),), "tool")), max_size=2)
WORDS = st.lists(st.just(Text("words")), max_size=1)


@st.composite
def messages(draw: st.DrawFn) -> Message:
    role = draw(st.sampled_from(["assistant", "assistant", "tool", "tool", "user", "system"]))
    parts = [*draw(WORDS), *draw(CALLS if role == "assistant" else RESULTS)]
    native = draw(st.sampled_from([{}, None]))
    return Message(MessageId(str(draw(st.integers(0, 10**6)))), role, tuple(parts), native=native)


@settings(max_examples=deep(100, 1_000), deadline=None)
@given(st.lists(messages(), max_size=8), st.booleans())
def test_a_batch_of_one_call_and_its_result_is_paired_as_any_other_is(said, together):
    rule = GroupPairing(together=together)
    quick = rule.index(said)
    usual, call_index._single_call_group = call_index._single_call_group, lambda *_: None
    try:
        assert rule.index(said) == quick
    finally:
        call_index._single_call_group = usual


@settings(max_examples=deep(100, 1_000), deadline=None)
@given(st.lists(messages(), max_size=8), st.booleans())
def test_what_must_stay_follows_from_the_newest_group_alone(said, together):
    rule = GroupPairing(together=together)
    assert rule.constraints(said) == Pairing.constraints(rule, said)
