"""What a provider's own compaction replaced is not measured, and a compaction of ours goes on from it."""

from tests.gateway.scripted_upstream import call

LOG = "a line of the log of a build that took a while\n"
BLOCK = {"type": "compaction", "content": "Earlier the parser was ported to port 8443."}


def body(messages, **rest):
    return {"model": "claude-opus-4-8", "max_tokens": 100, "messages": messages, **rest}


def calls(first, last):
    for number in range(first, last):
        use = {"type": "tool_use", "id": f"t{number}", "name": "read", "input": {}}
        yield {"role": "assistant", "content": [use]}
        yield {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"t{number}", "content": LOG * 60}]}


def test_what_stands_before_a_compaction_block_is_not_measured(gateway):
    serving, provider = gateway(window=30_000, background=False, native_compaction="pass")
    said = [{"role": "user", "content": "Go."}, *calls(0, 40)]
    said.append({"role": "assistant", "content": [BLOCK, {"type": "text", "text": "Going on."}]})
    said.append({"role": "user", "content": "Go on."})
    headers = call(serving.url, path="/v1/messages", body=body(said))[1]
    assert headers["x-refold-done"] == "forwarded"
    said += [{"role": "assistant", "content": "Yes."}, {"role": "user", "content": "More."}, *calls(40, 64)]
    headers = call(serving.url, path="/v1/messages", body=body(said))[1]
    assert headers["x-refold-done"] == "compacted"
    assert int(headers["x-refold-tokens-after"]) < 30_000
    assert provider.received[-1].body["messages"][0]["content"][0] == BLOCK


def test_deferred_tools_are_not_measured_before_they_are_loaded(gateway):
    serving, _ = gateway(window=20_000, background=False)
    tools = [{"name": "search", "input_schema": {"type": "object"}}]
    tools += [
        {"name": f"tool_{n}", "description": LOG * 60, "input_schema": {"type": "object"}, "defer_loading": True}
        for n in range(40)
    ]
    said = [{"role": "user", "content": "Hello."}]
    headers = call(serving.url, path="/v1/messages", body=body(said, tools=tools))[1]
    assert headers["x-refold-done"] == "forwarded"
