"""A loop over LiteLLM with two tools; writes what its callback for logs receives, a call a line."""

import json
import pathlib
import subprocess
import sys

import litellm
from litellm.integrations.custom_logger import CustomLogger

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"{name.capitalize()} it.",
            "parameters": {"type": "object", "properties": {key: {"type": "string"}}, "required": [key]},
        },
    }
    for name, key in (("read", "path"), ("run", "command"))
]


class Log(CustomLogger):
    """Appends the standard payload of every call to a file."""

    def log_success_event(self, kwargs, response_obj, start_time, end_time):
        with target.open("a", encoding="utf-8") as file:
            file.write(json.dumps(kwargs["standard_logging_object"], default=str) + "\n")


def done(name, arguments):
    if name == "read":
        file = pathlib.Path(arguments["path"])
        return file.read_text() if file.exists() else f"There is no file {file}."
    result = subprocess.run(["/bin/sh", "-c", arguments["command"]], capture_output=True, text=True, check=False)
    return f"{result.stdout}{result.stderr}exit code {result.returncode}"


target = pathlib.Path(sys.argv[1])
litellm.callbacks = [Log()]
messages = [{"role": "user", "content": sys.argv[2]}]
while True:
    answer = litellm.completion(model="openai/gpt-4o", messages=messages, tools=TOOLS).choices[0].message
    messages.append(answer.model_dump(exclude_none=True))
    if not answer.tool_calls:
        break
    for call in answer.tool_calls:
        content = done(call.function.name, json.loads(call.function.arguments))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": content})
