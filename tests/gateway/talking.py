"""Conversations of the real SDKs, one class a dialect: the same script of turns, told in each SDK's own shapes."""

import base64
import random
import struct
import zlib

import anthropic
import openai
from google import genai

from refold.testing.provider import ScriptedReply

TOOLS = ("read_file", "grep")
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
SYSTEM = "You are a careful programmer. " * 20
TASK = "Find out why the parser drops the last line. Never touch setup.py."


def behave(received):
    """Two calls at once in most turns, words alone in every fifth."""
    number = received.number
    if number % 5 == 0:
        return ScriptedReply("This part is understood; going on with the next one. " * 5)
    return ScriptedReply(
        f"Looking at part {number}.", [("read_file", {"path": f"src/m{number}.py"}), ("grep", {"path": f"n{number}"})]
    )


def output(dice):
    return "\n".join(f"line {line}: value {dice.random()}" for line in range(dice.randint(5, 45)))


def picture(dice):
    """A small PNG of noise, as base64."""
    rows = b"".join(b"\0" + dice.randbytes(16 * 3) for _ in range(16))

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", 16, 16, 8, 2, 0, 0, 0)
    made = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return base64.b64encode(made).decode()


OPENED = []  # clients to be closed when the test is over


def opened(client):
    OPENED.append(client)
    return client


class Chat:
    wire = "openai-chat"

    def __init__(self, url, streaming):
        self.client = opened(openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0))
        self.streaming = streaming
        self.messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": TASK}]
        self.tools = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in TOOLS]

    def ask(self):
        """Send all messages, keep the answer, and return headers and calls."""
        create = self.client.chat.completions.with_raw_response.create
        arguments = {
            "model": "gpt-4o",
            "messages": [],
            "tools": self.tools,
            "max_tokens": 800,
            "extra_body": {"messages": self.messages},  # sent as they are: the SDK's walk over its types takes long
        }
        if not self.streaming:
            raw = create(**arguments)
            message = raw.parse().choices[0].message
            self.messages.append(message.model_dump(exclude_none=True))
            return raw.headers, [call.id for call in message.tool_calls or ()]
        raw = create(**arguments, stream=True, stream_options={"include_usage": True})
        text, calls = "", {}
        for event in raw.parse():
            for choice in event.choices:
                text += choice.delta.content or ""
                for call in choice.delta.tool_calls or ():
                    held = calls.setdefault(
                        call.index, {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
                    )
                    held["id"] += call.id or ""
                    held["function"]["name"] += call.function.name or ""
                    held["function"]["arguments"] += call.function.arguments or ""
        made = {"role": "assistant", "content": text} | ({"tool_calls": list(calls.values())} if calls else {})
        self.messages.append(made)
        return raw.headers, [call["id"] for call in calls.values()]

    def results(self, calls, texts):
        self.messages += [
            {"role": "tool", "tool_call_id": id, "content": text} for id, text in zip(calls, texts, strict=True)
        ]

    def say(self, text, image):
        url = {"url": f"data:image/png;base64,{image}"}
        self.messages.append(
            {"role": "user", "content": [{"type": "text", "text": text}, {"type": "image_url", "image_url": url}]}
        )


class Responses:
    wire = "openai-responses"

    def __init__(self, url, streaming):
        self.client = opened(openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0))
        self.streaming = streaming
        self.messages = [{"role": "user", "content": TASK}]
        self.tools = [{"type": "function", "name": name, "parameters": SCHEMA, "strict": False} for name in TOOLS]

    def ask(self):
        create = self.client.responses.with_raw_response.create
        arguments = {
            "model": "gpt-4o",
            "input": [],
            "tools": self.tools,
            "instructions": SYSTEM,
            "store": False,
            "extra_body": {"input": self.messages},  # as above
        }
        raw = create(**arguments, max_output_tokens=800, stream=self.streaming)
        if self.streaming:
            events = list(raw.parse())
            for event in events:
                if event.type == "error":
                    raise openai.OpenAIError(event.message)
            made = [event.response for event in events if event.type == "response.completed"][-1]
        else:
            made = raw.parse()
        self.messages += [item.model_dump(exclude_none=True) for item in made.output]
        return raw.headers, [item.call_id for item in made.output if item.type == "function_call"]

    def results(self, calls, texts):
        self.messages += [
            {"type": "function_call_output", "call_id": id, "output": text}
            for id, text in zip(calls, texts, strict=True)
        ]

    def say(self, text, image):
        content = [
            {"type": "input_text", "text": text},
            {"type": "input_image", "image_url": f"data:image/png;base64,{image}"},
        ]
        self.messages.append({"role": "user", "content": content})


class Anthropic:
    """Marks the newest message for the cache, as coding agents do, and thinks aloud before its calls."""

    wire = "anthropic"

    def __init__(self, url, streaming):
        self.client = opened(anthropic.Anthropic(base_url=url, api_key="k", max_retries=0))
        self.streaming = streaming
        self.messages = [{"role": "user", "content": [{"type": "text", "text": TASK}]}]
        self.tools = [{"name": name, "input_schema": SCHEMA} for name in TOOLS]
        self.turn = 0

    def ask(self):
        self.turn += 1
        for message in self.messages:
            for block in message["content"]:
                block.pop("cache_control", None)
        for message in [each for each in self.messages if each["role"] == "user"][-2:]:
            message["content"][-1]["cache_control"] = {"type": "ephemeral"}
        arguments = {
            "model": "claude-opus-4-6",
            "system": SYSTEM,
            "messages": self.messages,
            "tools": self.tools,
            "max_tokens": 800,
        }
        if self.streaming:
            with self.client.messages.stream(**arguments) as stream:
                headers, made = stream.response.headers, stream.get_final_message()
        else:
            raw = self.client.messages.with_raw_response.create(**arguments)
            headers, made = raw.headers, raw.parse()
        content = [block.model_dump(exclude_none=True) for block in made.content]
        content = [
            {key: block[key] for key in ("type", "text", "id", "name", "input") if key in block} for block in content
        ]
        thought = {
            "type": "thinking",
            "thinking": f"What does part {self.turn} say?",
            "signature": f"sig{self.turn:060}",
        }
        self.messages.append({"role": "assistant", "content": [thought, *content]})
        return headers, [block.id for block in made.content if block.type == "tool_use"]

    def results(self, calls, texts):
        blocks = [
            {"type": "tool_result", "tool_use_id": id, "content": text} for id, text in zip(calls, texts, strict=True)
        ]
        self.messages.append({"role": "user", "content": blocks})

    def say(self, text, image):
        source = {"type": "base64", "media_type": "image/png", "data": image}
        self.messages.append(
            {"role": "user", "content": [{"type": "text", "text": text}, {"type": "image", "source": source}]}
        )


class Gemini:
    wire = "gemini"

    def __init__(self, url, streaming):
        self.client = opened(genai.Client(api_key="k", http_options={"base_url": url}))
        self.streaming = streaming
        self.messages = [{"role": "user", "parts": [{"text": TASK}]}]
        self.wires = {}
        declared = [{"name": name, "parameters_json_schema": SCHEMA} for name in TOOLS]
        self.config = {
            "system_instruction": SYSTEM,
            "max_output_tokens": 800,
            "tools": [{"function_declarations": declared}],
            "automatic_function_calling": {"disable": True},
        }

    def ask(self):
        # sent as they are: the SDK's walk over its types takes long, so that each message goes through them once
        body = {"contents": [self._on_the_wire(message) for message in self.messages]}
        config = self.config | {"http_options": {"extra_body": body}}
        arguments = {"model": "gemini-2.5-pro", "contents": "-", "config": config}
        models = self.client.models
        answers = (
            list(models.generate_content_stream(**arguments))
            if self.streaming
            else [models.generate_content(**arguments)]
        )
        parts = [
            part.model_dump(exclude_none=True) for each in answers for part in each.candidates[0].content.parts or ()
        ]
        parts = [part for part in parts if part.get("text") or part.get("function_call")]
        for part in parts:
            if "function_call" in part:
                part["thought_signature"] = b"signed" * 8
        self.messages.append({"role": "model", "parts": parts})
        calls = [
            (part["function_call"]["id"], part["function_call"]["name"]) for part in parts if "function_call" in part
        ]
        return answers[-1].sdk_http_response.headers, calls

    def _on_the_wire(self, message):
        known, wire = self.wires.get(id(message), (None, None))
        if known is not message:
            wire = genai.types.Content.model_validate(message).model_dump(mode="json", by_alias=True, exclude_none=True)
            self.wires[id(message)] = message, wire
        return wire

    def results(self, calls, texts):
        parts = [
            {"function_response": {"id": id, "name": name, "response": {"output": text}}}
            for (id, name), text in zip(calls, texts, strict=True)
        ]
        self.messages.append({"role": "user", "parts": parts})

    def say(self, text, image):
        data = {"inline_data": {"mime_type": "image/png", "data": base64.b64decode(image)}}
        self.messages.append({"role": "user", "parts": [{"text": text}, data]})


TALKERS = (Chat, Responses, Anthropic, Gemini)


def converse(talker, tokens, seed=1):
    """Talk until so many tokens of tool output were said; return the headers of every answer."""
    dice = random.Random(seed)
    seen = []
    said = 0
    while said < tokens:
        headers, calls = talker.ask()
        seen.append({name.lower(): value for name, value in headers.items()})
        texts = [output(dice) for _ in calls]
        said += sum(map(len, texts)) // 2  # digits: about two characters a token
        if calls:
            talker.results(calls, texts)
        else:
            talker.say("Go on, and look at this.", picture(dice))
    return seen
