import json

from refold.transcripts import read


def raw(value):
    return json.dumps(value).encode()


def lines(*rows):
    return "\n".join(map(json.dumps, rows)).encode()


def entry(role, content, **more):
    return {"role": role, "content": content, "agent": "main", "message_type": "x", **more}


def call(id, arguments="{}"):
    return {"id": id, "type": "function", "function": {"name": "bash", "arguments": arguments}}


def step(response, observation, **more):
    return {"action": "ls", "observation": observation, "response": response, "thought": response, **more}


def test_a_whole_swe_agent_history_is_the_conversation_without_the_agents_own_fields():
    (item,) = read(
        raw(
            {
                "trajectory": [step("look", "files")],
                "history": [
                    entry("system", "s"),
                    entry("user", "demo", is_demo=True),
                    entry("assistant", "look", thought="t", action="ls", tool_calls=[call("c1"), call("c2")]),
                    entry("tool", "files", tool_call_ids=["c1", "c2"]),
                    {"odd": 1},
                ],
                "replay_config": {"agent": {"model": {"name": "gpt"}}},
            }
        )
    )
    assert (item.kind, item.format, item.model) == ("swe-agent", "openai-chat", "gpt")
    assert item.messages == [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "demo"},
        {"role": "assistant", "content": "look", "tool_calls": [call("c1"), call("c2")]},
        {"role": "tool", "tool_call_id": "c1", "content": "files"},
        {"role": "tool", "tool_call_id": "c2", "content": ""},
    ]
    assert item.notes == ("1 × history entry without a role",)


def test_a_swe_agent_history_with_old_output_taken_out_is_built_from_the_steps_without_inventing_calls():
    history = [
        entry("system", "s"),
        entry("user", "task"),
        entry("assistant", "look"),
        entry("user", "Old output omitted (9 lines)"),
    ]
    steps = [step("look", "all nine lines"), step("touch", "")]
    (item,) = read(raw({"trajectory": steps, "history": history}))
    assert item.messages[2:] == [
        {"role": "assistant", "content": "look"},
        {"role": "user", "content": "OBSERVATION:\nall nine lines"},
        {"role": "assistant", "content": "touch"},
        {"role": "user", "content": "Your command ran successfully and did not produce any output."},
    ]
    assert "usual frame" in item.notes[0]


def test_swe_agent_steps_with_ids_keep_them():
    steps = [step("look", "files", query=[entry("system", "s")], tool_calls=[call("c1")], tool_call_ids=["c1"])]
    (item,) = read(raw({"trajectory": steps, "history": []}))
    assert item.messages == [
        {"role": "system", "content": "s"},
        {"role": "assistant", "content": "look", "tool_calls": [call("c1")]},
        {"role": "tool", "tool_call_id": "c1", "content": "files"},
    ]


def test_several_agents_of_one_swe_agent_file_are_apart():
    history = [entry("system", "a"), {**entry("system", "b"), "agent": "helper"}, entry("assistant", "x")]
    first, second = read(raw({"trajectory": [step("x", "y")], "history": history}))
    assert (first.name, second.name) == ("main", "helper")


def test_mini_swe_agent_text_stays_text_and_usage_is_found():
    usage = {"prompt_tokens": 50, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 20}}
    (item,) = read(
        raw(
            {
                "info": {"config": {"model": {"model_name": "g"}}},
                "trajectory_format": "mini-swe-agent-1",
                "messages": [
                    {"role": "system", "content": "s"},
                    {"role": "user", "content": "task"},
                    {"role": "assistant", "content": "```bash\nls\n```", "extra": {"response": {"usage": usage}}},
                    {"role": "user", "content": "<returncode>0</returncode>", "extra": {}},
                    {"role": "exit", "content": "submitted"},
                ],
            }
        )
    )
    assert (item.kind, item.format, item.model) == ("mini-swe-agent", "openai-chat", "g")
    assert [message["role"] for message in item.messages] == ["system", "user", "assistant", "user"]
    assert all(message.keys() == {"role", "content"} for message in item.messages)
    assert [(u.covers, u.prompt, u.completion, u.cache_read) for u in item.usage] == [(2, 50, 4, 20)]
    assert item.notes == ("1 × message of role exit, written by the agent for its own use",)


def test_mini_swe_agent_replies_of_the_responses_api_become_items():
    reply = {
        "object": "response", "usage": {"input_tokens": 9, "output_tokens": 1, "total_tokens": 10},
        "output": [{"type": "function_call", "name": "bash", "arguments": "{}", "call_id": "c1"}],
    }  # fmt: skip
    output = {"type": "function_call_output", "call_id": "c1", "output": "ok", "extra": {}}
    messages = [{"role": "user", "content": "task"}, reply, output]
    (item,) = read(raw({"info": {}, "trajectory_format": "mini-swe-agent-1.1", "messages": messages}))
    assert item.format == "openai-responses"
    assert [message.get("type") for message in item.messages] == [None, "function_call", "function_call_output"]
    assert [(u.covers, u.prompt) for u in item.usage] == [(1, 9)]


def action(name, source="agent", meta=None, **args):
    event = {"id": 1, "source": source, "action": name, "args": args}
    return {**event, "tool_call_metadata": meta} if meta else event


def observation(name, content, meta=None):
    event = {"id": 2, "source": "agent", "observation": name, "content": content, "cause": 1}
    return {**event, "tool_call_metadata": meta} if meta else event


def meta(id, response, *calls):
    message = {"role": "assistant", "content": "hm", "tool_calls": list(calls), "function_call": None}
    usage = {"prompt_tokens": 70, "completion_tokens": 5}
    return {
        "tool_call_id": id,
        "model_response": {"id": response, "model": "m", "choices": [{"message": message}], "usage": usage},
    }


def events():
    calls = (call("c1"), call("c2"))
    return [
        action("change_agent_state", source="environment"),
        action("system", content="sys", tools=[{"type": "function"}]),
        action("message", source="user", content="go", image_urls=["data:image/png;base64,QQ=="]),
        action("run", meta=meta("c1", "r1", *calls), command="ls"),
        observation("run", "a", meta("c1", "r1", *calls)),
        action("read", meta=meta("c2", "r1", *calls), path="a"),
        observation("read", "b", meta("c2", "r1", *calls)),
        action("message", content="done"),
    ]


def test_openhands_events_become_chat_with_one_answer_for_parallel_calls():
    (item,) = read(raw(events()))
    assert (item.kind, item.format, item.model, item.tools) == ("openhands", "openai-chat", "m", [{"type": "function"}])
    assert [message["role"] for message in item.messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
    ]
    assert item.messages[1]["content"][1] == {"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ=="}}
    assert item.messages[2] == {"role": "assistant", "content": "hm", "tool_calls": [call("c1"), call("c2")]}
    assert item.messages[4] == {"role": "tool", "tool_call_id": "c2", "content": "b"}
    assert [(u.covers, u.prompt, u.completion) for u in item.usage] == [(2, 70, 5)]
    assert item.notes == ("1 × event change_agent_state",)


def test_openhands_actions_without_call_ids_stay_plain_text():
    (item,) = read(raw([action("run", thought="look", command="ls"), observation("run", "a"), 5]))
    assert item.messages == [
        {"role": "assistant", "content": "look\nls"},
        {"role": "user", "content": "a"},
    ]
    assert item.notes == ("1 × int where an event should be",)


def test_openhands_evaluation_output_is_a_conversation_an_instance_also_where_events_are_paired():
    pairs = [[action("run", thought="t", command="ls"), observation("run", "a")]]
    one, two = read(lines({"instance_id": "i1", "history": events()}, {"instance_id": "i2", "history": pairs}))
    assert (one.name, len(one.messages)) == ("i1", 6)
    assert (two.name, len(two.messages)) == ("i2", 2)


def test_events_of_the_openhands_sdk_become_chat():
    def event(kind, **more):
        return {"id": "e", "source": "agent", "kind": kind, **more}

    def act(id, **more):
        tool_call = {"id": id, "name": "bash", "arguments": "{}"}
        return event("ActionEvent", tool_call_id=id, llm_response_id="r1", tool_call=tool_call, **more)

    def see(id, text):
        return event(
            "ObservationEvent",
            tool_call_id=id,
            observation={"content": [{"type": "text", "text": text, "cache_prompt": False}]},
        )

    (item,) = read(
        lines(
            event("ConversationStateUpdateEvent", key="stats"),
            event("SystemPromptEvent", system_prompt={"text": "sys"}, tools=[{"name": "bash"}]),
            event(
                "MessageEvent", llm_message={"role": "user", "content": [{"type": "image", "image_urls": ["u1", "u2"]}]}
            ),
            act("c1", thought=[{"type": "text", "text": "hm"}], reasoning_content="why"),
            act("c2"),
            see("c1", "one"),
            event("AgentErrorEvent", tool_call_id="c2", error="no"),
            event("Condensation"),
            event("MessageEvent", llm_message={"role": "assistant", "content": "done"}),
        )
    )
    assert (item.kind, item.tools, item.boundaries) == ("openhands-sdk", [{"name": "bash"}], (5,))
    assert [block["image_url"]["url"] for block in item.messages[1]["content"]] == ["u1", "u2"]
    assert item.messages[2] == {
        "role": "assistant",
        "content": [{"type": "text", "text": "hm"}],
        "tool_calls": [call("c1"), call("c2")],
        "reasoning_content": "why",
    }
    assert item.messages[3:5] == [
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "one"}]},
        {"role": "tool", "tool_call_id": "c2", "content": "no"},
    ]
    assert item.notes == ("1 × event ConversationStateUpdateEvent/stats (line 1)", "1 × event Condensation (line 8)")


def test_every_run_of_tau_bench_is_a_conversation():
    traj = [{"role": "system", "content": "s"}, {"role": "user", "content": "hi"}]
    one, two = read(raw([{"task_id": 3, "trial": 1, "traj": traj}, {"task_id": 4, "traj": traj}]))
    assert (one.kind, one.name, two.name) == ("tau-bench", "run 0 (task 3, trial 1)", "run 1 (task 4, trial 0)")
    assert one.messages == traj


def test_the_second_tau_bench_is_brought_into_chat():
    run = {
        "task_id": "t", "trial": 0,
        "messages": [
            {"role": "assistant", "content": None, "turn_idx": 1, "tool_calls": [{"id": "c1", "name": "get", "arguments": {"a": "é"}}]},
            {"role": "tool", "id": "c1", "content": "x", "turn_idx": 2, "requestor": "assistant"},
        ],
    }  # fmt: skip
    (item,) = read(raw({"simulations": [run]}))
    assert item.messages[0]["tool_calls"][0]["function"] == {"name": "get", "arguments": '{"a": "é"}'}
    assert item.messages[1] == {"role": "tool", "content": "x", "tool_call_id": "c1"}


def test_displayed_dialogues_are_read_without_inventing_calls():
    text = "user: hi\nthere\nassistant: None\ntool: found: 1\nassistant: ok"
    (item,) = read(lines({"messages_display": text}))
    assert item.messages == [
        {"role": "user", "content": "hi\nthere"},
        {"role": "user", "content": "found: 1"},
        {"role": "assistant", "content": "ok"},
    ]
    assert item.notes == (
        "1 × answer of a call alone, which the display leaves out",
        "1 × result whose call the display leaves out, given as user text",
    )


def test_an_evaluation_without_a_history_does_not_hide_the_others():
    pairs = [[action("run", thought="t", command="ls"), observation("run", "a")]]
    (item,) = read(lines({"instance_id": "i1", "history": None, "error": "x"}, {"instance_id": "i2", "history": pairs}))
    assert (item.kind, item.name) == ("openhands", "i2")
    assert item.notes == ("i1: no message in it",)
