from hypothesis import given, settings
from hypothesis import strategies as st

from refold._rules import pairing
from refold._rules.pairing import Pairing
from refold.core.messages import Message, MessageId, Text, ToolCall, ToolResult

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


@settings(max_examples=400, deadline=None)
@given(st.lists(messages(), max_size=8), st.booleans())
def test_a_batch_of_one_call_and_its_result_is_paired_as_any_other_is(said, together):
    rule = Pairing(together=together)
    quick = rule.ledger(said)
    usual, pairing._plain = pairing._plain, lambda *_: None
    try:
        assert rule.ledger(said) == quick
    finally:
        pairing._plain = usual
