import json

import refold

OLD = "\n".join(f"old_{number} = first_try(order, {number})" for number in range(30))
MARK = "[the file was changed after this]"


def call(number, name, output, **arguments):
    asked = {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [asked]},
        {"role": "tool", "content": output, "tool_call_id": f"c{number}"},
    ]


def shown(*calls):
    """Return the outputs that stay of a conversation of which only a part of one long output leaves, by their call."""
    noise = "\n".join(f"lorem ipsum {number} dolor sit amet" for number in range(400))
    messages = [
        {"role": "user", "content": "Write prices.py and rates.py."},
        *call(0, "search", noise, pattern="lorem"),
    ]
    for number, (name, output, arguments) in enumerate(calls, 1):
        messages += call(number, name, output, **arguments)
    messages += [{"role": "assistant", "content": "Done so far."}, {"role": "user", "content": "What was first_try?"}]
    result = refold.compact(messages, format="openai-chat", policy="refold", budget=4_000, force=True)
    return {each["tool_call_id"]: each["content"] for each in result.messages if each["role"] == "tool"}


def test_what_was_read_or_written_of_a_file_before_a_later_change_is_marked_where_it_stays_whole():
    outputs = shown(
        ("write_file", "Wrote the file.", {"path": "prices.py", "content": OLD}),
        ("read_file", OLD, {"path": "rates.py"}),
        ("bash", "", {"command": "cat > prices.py <<'E'\nx = 1\nE"}),
        ("write_file", "Wrote the rates.", {"path": "rates.py", "content": OLD.replace("old", "new")}),
    )
    assert outputs["c1"] == f"{MARK}\nWrote the file."
    assert outputs["c2"] == f"{MARK}\n{OLD}"
    assert outputs["c4"] == "Wrote the rates."


def test_an_edit_that_failed_and_a_change_of_another_file_mark_nothing():
    outputs = shown(
        ("read_file", OLD, {"path": "rates.py"}),
        ("edit", "Error: old_string was not found", {"path": "rates.py", "old_string": "x", "new_string": "y"}),
        ("write_file", "Wrote the file.", {"path": "prices.py", "content": OLD}),
    )
    assert outputs["c1"] == OLD
    assert outputs["c3"] == "Wrote the file."
