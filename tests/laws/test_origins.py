"""`Result.origins` says of every message which original it is, under every format and policy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refold import formats
from tests.laws.strategies import natives
from tests.laws.test_conversations import compacted, each_policy, shares, summarizers


@pytest.mark.parametrize("format", formats.names())
@given(data=st.data())
def test_an_untouched_message_is_its_original_and_an_edited_one_names_its_own_in_order(format, data):
    messages = data.draw(natives(format))
    share, summarize, alternate = data.draw(shares), data.draw(summarizers), data.draw(st.booleans())
    places = {id(message): at for at, message in enumerate(messages)}
    for policy in each_policy():
        result = compacted(messages, format, policy, share, summarize, alternate=alternate)
        if result is None:
            continue
        named = [origin for origin in result.origins if origin is not None]
        assert named == sorted(set(named))  # each original at most once
        for message, origin in zip(result.messages, result.origins, strict=True):
            if id(message) in places:
                assert origin == places[id(message)]
            elif origin is not None:
                assert message.get("role") == messages[origin].get("role")
