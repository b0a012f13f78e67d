import refold

CONCLUSION = "\n".join(
    f"Finding {number}: the reason is that step {number} runs before its input is there." for number in range(20)
)


def work(first, last):
    messages = []
    for number in range(first, last):
        call = {"name": "bash", "arguments": f'{{"command": "make part_{number}"}}'}
        messages.append(
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"c{number}", "type": "function", "function": call}],
            }
        )
        output = "\n".join(f"value_{number}_{line} = {line}" for line in range(120))
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": output})
    return messages


def test_an_answer_that_ended_a_turn_outlives_the_output_that_it_was_drawn_from_and_the_calls():
    messages = [
        {"role": "user", "content": "Why does the build fail?"},
        *work(0, 12),
        {"role": "assistant", "content": CONCLUSION},
        {"role": "user", "content": "Go on with the second one."},
        *work(12, 30),
        {"role": "user", "content": "And now?"},
    ]
    size = refold.count(messages)
    for share, all_calls_fit in ((0.2, True), (0.1, True), (0.08, False), (0.06, False)):
        left = refold.compact(messages, policy="refold", budget=int(size * share), force=True).messages
        assert any(message.get("content") == CONCLUSION for message in left)
        calls = [call["function"]["arguments"] for message in left for call in message.get("tool_calls") or ()]
        assert (len(calls) == 30) == all_calls_fit


def test_so_does_an_answer_whose_reasoning_is_an_item_of_its_own():
    def thought(number):
        return {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": "b3BhcXVl" * 8}

    def steps(first, last):
        for number in range(first, last):
            yield thought(number)
            arguments = f'{{"command": "make part_{number}"}}'
            yield {"type": "function_call", "call_id": f"c{number}", "name": "bash", "arguments": arguments}
            output = "\n".join(f"value_{number}_{line} = {line}" for line in range(120))
            yield {"type": "function_call_output", "call_id": f"c{number}", "output": output}

    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": CONCLUSION}]}
    messages = [
        {"role": "user", "content": "Why does the build fail?"},
        *steps(0, 12),
        thought("last"),
        said,
        {"role": "user", "content": "Go on with the second one."},
        *steps(12, 30),
        {"role": "user", "content": "And now?"},
    ]
    size = refold.count(messages, format="openai-responses")
    for share in (0.25, 0.1):
        left = refold.compact(messages, format="openai-responses", budget=int(size * share), force=True).messages
        assert said in left
