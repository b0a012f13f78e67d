"""A model whose upstream knows nothing of compaction: what it does not know it refuses, as such servers do."""

import json

from refold.testing.provider import ScriptedReply

LOG = "a line of the log of a build that took a while, number {}\n"


class Refused(AssertionError):
    """The upstream was asked for what it has not."""


def ignorant(received):
    """Answer with words, or fail where a request names anything of a provider's own compaction."""
    text = str(received.body)
    for word in ("context_management", "compaction", "encrypted_content"):
        if word in text:
            raise Refused(f"400: extra inputs are not permitted: {word}")
    assert "compact" not in str(received.headers)
    assert not received.violations
    return ScriptedReply(f"Answer {received.number}.")


def output(number, lines=60):
    return "".join(LOG.format(1000 * number + line) for line in range(lines))


def anthropic_turns(first, last, lines=60):
    """Messages of a tool loop: a call and its result for each number."""
    for number in range(first, last):
        use = {"type": "tool_use", "id": f"t{number}", "name": "read", "input": {"path": f"src/m{number}.py"}}
        yield {"role": "assistant", "content": [use]}
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": output(number, lines)}
        yield {"role": "user", "content": [result]}


def responses_turns(first, last, lines=60):
    """Items of a tool loop: a call and its output for each number."""
    for number in range(first, last):
        arguments = json.dumps({"path": f"src/m{number}.py"})
        call = {"type": "function_call", "call_id": f"c{number}", "name": "read", "arguments": arguments}
        yield call
        yield {"type": "function_call_output", "call_id": f"c{number}", "output": output(number, lines)}
