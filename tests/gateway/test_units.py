"""What the gateway says is left is what the provider counts of the request it gets: 1, 2.7 or 4 characters a token."""

import json
import random

import pytest

from refold import policies
from refold.core.counting import CharCounter
from refold.testing.provider import ScriptedProvider
from tests.compaction.test_units import prose
from tests.gateway.conftest import standing
from tests.gateway.scripted_upstream import call


def talk(policy, count):
    """So many reads of files; longer ones begin with the same messages."""
    random_ = random.Random(policy)
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": prose(random_, 40)}]
    for number in range(count):
        function = {"name": "read", "arguments": json.dumps({"path": f"notes/{number}.md"})}
        calls = [{"id": f"c{number}", "type": "function", "function": function}]
        messages += [
            {"role": "assistant", "content": prose(random_, 20), "tool_calls": calls},
            {"role": "tool", "tool_call_id": f"c{number}", "content": prose(random_, 150)},
        ]
    return {"model": "scripted", "messages": messages}


@pytest.mark.parametrize("per_token", [1.0, 2.7, 4.0])
def test_the_size_in_the_headers_is_what_the_provider_counts(per_token):
    with (
        ScriptedProvider(behave=lambda received: "Go on.", counter=CharCounter(per_token)) as provider,
        standing(provider, window=int(14_000 / per_token)) as serving,
    ):
        for policy in policies.names():
            asks = {"x-refold-policy": policy}
            call(serving.url, body=talk(policy, 1), headers=asks)  # whose report says how the provider counts
            status, headers, _ = call(serving.url, body=talk(policy, 16), headers=asks)
            if "x-refold-plan" not in headers:  # Vibe looks at the last call alone (V01)
                status, headers, _ = call(serving.url, body=talk(policy, 17), headers=asks)
            assert (status, headers["x-refold-policy"]) == (200, policy)
            assert headers["x-refold-reason"] in ("threshold", "silent_overflow")  # made for this request
            assert int(headers["x-refold-tokens-after"]) == pytest.approx(provider.received[-1].tokens, rel=0.05)
