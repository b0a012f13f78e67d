"""One call's usage, 120 tokens in (20 of them cached) and 30 out, as the official SDKs give it."""

import datetime

from anthropic.types import Message as AnthropicMessage
from google.genai import types as genai
from openai.types import CompletionUsage
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

OPENAI = {
    "prompt_tokens": 120,
    "completion_tokens": 30,
    "total_tokens": 150,
    "prompt_tokens_details": {"cached_tokens": 20},
}
CHOICE = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "said"}}
OUTPUT = {"id": "m", "type": "message", "role": "assistant", "status": "completed",
          "content": [{"type": "output_text", "text": "said", "annotations": []}]}  # fmt: skip


def reports():
    """Return usage objects and whole responses."""
    chat = ChatCompletion.model_validate(
        {"id": "c", "object": "chat.completion", "created": 1, "model": "gpt-4o", "choices": [CHOICE], "usage": OPENAI}
    )
    response = Response.model_validate(
        {"id": "r", "object": "response", "created_at": 1, "model": "gpt-4o", "output": [OUTPUT], "tools": [],
         "parallel_tool_calls": True, "tool_choice": "auto",
         "usage": {"input_tokens": 120, "output_tokens": 30, "total_tokens": 150,
                   "input_tokens_details": {"cached_tokens": 20, "cache_write_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}}
    )  # fmt: skip
    message = AnthropicMessage.model_validate(
        {"id": "m", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "stop_reason": "end_turn",
         "content": [{"type": "text", "text": "said"}],
         "usage": {"input_tokens": 90, "output_tokens": 30, "cache_read_input_tokens": 20,
                   "cache_creation_input_tokens": 10}}
    )  # fmt: skip
    gemini = genai.GenerateContentResponse.model_validate(
        {"candidates": [{"content": {"role": "model", "parts": [{"text": "said"}]}}],
         "usageMetadata": {"promptTokenCount": 120, "candidatesTokenCount": 25, "thoughtsTokenCount": 5,
                           "cachedContentTokenCount": 20, "totalTokenCount": 150,
                           "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 120}]}}
    )  # fmt: skip
    bedrock = {
        "ResponseMetadata": {"HTTPStatusCode": 200, "Date": datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)},
        "output": {"message": {"role": "assistant", "content": [{"text": "said"}]}},
        "usage": {"inputTokens": 100, "outputTokens": 30, "totalTokens": 150, "cacheReadInputTokens": 20},
    }
    return [
        CompletionUsage.model_validate(OPENAI), chat, response.usage, response, message.usage, message,
        gemini.usage_metadata, gemini, bedrock, bedrock["usage"], OPENAI,
    ]  # fmt: skip
