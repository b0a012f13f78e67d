"""The judges: the same bytes through the official SDKs, their decoders and their accumulators."""

import base64

import anthropic
import httpx2
import openai
from google import genai
from google.genai import types
from openai import omit
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.lib.streaming.responses._responses import ResponseStreamState

OF_THE_SDK = frozenset({"parsed", "parsed_arguments", "parsed_output"})


def judged(format, stream, size=64):
    """What the SDK of a format makes of a stream that arrives in pieces of some size."""
    pieces = (stream[at : at + size] for at in range(0, len(stream), size))

    def handle(request):
        headers = {"content-type": "text/event-stream"}
        return httpx2.Response(200, headers=headers, content=pieces)

    with httpx2.Client(transport=httpx2.MockTransport(handle)) as http:
        return SDKS[format](http)


def plain(value):
    """A value without what only the SDK adds: nulls, parsed fields, the index of calls."""
    match value:
        case dict():
            fields = {key: plain(inner) for key, inner in value.items() if inner is not None and key not in OF_THE_SDK}
            if isinstance(fields.get("tool_calls"), list):
                for call in fields["tool_calls"]:
                    call.pop("index", None)
            return fields
        case list():
            return [plain(inner) for inner in value]
        case _:
            return value


def _anthropic(http):
    client = anthropic.Anthropic(api_key="k", base_url="http://provider", http_client=http, max_retries=0)
    with client.beta.messages.stream(model="m", max_tokens=1, messages=[{"role": "user", "content": "x"}]) as stream:
        return stream.get_final_message().to_dict(mode="json")


def _chat(http):
    client = openai.OpenAI(api_key="k", base_url="http://provider", http_client=http, max_retries=0)
    state = ChatCompletionStreamState()
    for chunk in client.chat.completions.create(model="m", messages=[], stream=True):
        state.handle_chunk(chunk)
    return state.current_completion_snapshot.to_dict(mode="json")  # the final one raises where an answer was cut


def _responses(http):
    client = openai.OpenAI(api_key="k", base_url="http://provider", http_client=http, max_retries=0)
    state = ResponseStreamState(input_tools=omit, text_format=omit)
    last = None
    for event in client.responses.create(model="m", input="x", stream=True):
        for each in state.handle_event(event):
            last = each
    return last.response.to_dict(mode="json")


def _gemini(http):
    """The history that a chat of the SDK keeps, with text that goes on in one part: the SDK joins nothing."""
    options = types.HttpOptions(base_url="http://provider", httpx_client=http)
    chat = genai.Client(api_key="k", http_options=options).chats.create(model="m")
    chunks = list(chat.send_message_stream("x"))
    parts = [part for content in chat.get_history()[1:] for part in content.parts or ()]
    usage, candidate = {}, {}
    for chunk in chunks:
        if chunk.usage_metadata:
            usage |= chunk.usage_metadata.model_dump(mode="json", exclude_none=True, by_alias=True)
        if chunk.candidates and chunk.candidates[0].finish_reason:
            candidate["finishReason"] = chunk.candidates[0].finish_reason.value
    candidate["parts"] = joined([part.model_dump(mode="json", exclude_none=True, by_alias=True) for part in parts])
    return {**candidate, "usageMetadata": usage}


def joined(parts):
    """Parts with the texts of neighbours of one kind joined; signatures in the spelling of the wire."""
    out = []
    for part in parts:
        if "thoughtSignature" in part:
            raw = base64.urlsafe_b64decode(part["thoughtSignature"])
            part = {**part, "thoughtSignature": base64.b64encode(raw).decode()}
        alike = out and part.keys() == out[-1].keys() and part.keys() <= {"text", "thought"}
        if alike:
            out[-1] = {**part, "text": out[-1]["text"] + part["text"]}
        elif part != {"text": ""}:
            out.append(part)
    return out


SDKS = {"anthropic": _anthropic, "openai-chat": _chat, "openai-responses": _responses, "gemini": _gemini}
