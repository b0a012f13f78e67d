"""A loop over Anthropic's official SDK with two tools, its answers streamed; a proxy records what it sends."""

import pathlib
import subprocess
import sys

import anthropic

TOOLS = [
    {
        "name": name,
        "description": f"{name.capitalize()} it.",
        "input_schema": {"type": "object", "properties": {key: {"type": "string"}}, "required": [key]},
    }
    for name, key in (("read", "path"), ("run", "command"))
]


def done(name, arguments):
    if name == "read":
        file = pathlib.Path(arguments["path"])
        return (file.read_text(), False) if file.exists() else (f"There is no file {file}.", True)
    result = subprocess.run(["/bin/sh", "-c", arguments["command"]], capture_output=True, text=True, check=False)
    return f"{result.stdout}{result.stderr}", bool(result.returncode)


client = anthropic.Anthropic(max_retries=0)
messages = [{"role": "user", "content": sys.argv[1]}]
while True:
    with client.messages.stream(
        model="claude-opus-4-5", max_tokens=2_000, system="You edit files.", messages=messages, tools=TOOLS
    ) as stream:
        answer = stream.get_final_message()
    calls = [block for block in answer.content if block.type == "tool_use"]
    messages.append({"role": "assistant", "content": [block.to_dict() for block in answer.content]})
    if not calls:
        break
    results = []
    for call in calls:
        content, failed = done(call.name, call.input)
        results.append({"type": "tool_result", "tool_use_id": call.id, "content": content, "is_error": failed})
    messages.append({"role": "user", "content": results})
