"""One streamed answer of the Responses API; writes the events that the official SDK yields, an event a line."""

import pathlib
import sys

import openai

TOOL = {
    "type": "function",
    "name": "read",
    "description": "Read a file.",
    "strict": False,
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
}

stream = openai.OpenAI().responses.create(model="gpt-5", input=sys.argv[2], tools=[TOOL], stream=True)
pathlib.Path(sys.argv[1]).write_text("".join(event.to_json(indent=None) + "\n" for event in stream))
