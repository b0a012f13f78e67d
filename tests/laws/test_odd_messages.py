"""Whatever JSON holds in place of messages: measures never raise, and verbs that act raise only what they say."""

import json
import random

import pytest

import refold
from refold import formats, policies
from refold.errors import BrokenConversation, RefoldError

KEYS = [
    "role",
    "type",
    "content",
    "parts",
    "text",
    "tool_calls",
    "tool_call_id",
    "id",
    "call_id",
    "function",
    "name",
    "arguments",
    "input",
    "output",
    "tool_use_id",
    "is_error",
    "thinking",
    "signature",
    "summary",
    "encrypted_content",
    "source",
    "media_type",
    "data",
    "image_url",
    "url",
    "functionCall",
    "response",
    "functionResponse",
    "args",
    "toolUse",
    "toolUseId",
    "toolResult",
    "status",
    "inlineData",
    "mimeType",
    "refusal",
    "cache_control",
    "action",
    "bytes",
    "thoughtSignature",
    "file",
    "edits",
    "tools",
    "queries",
    "results",
    "$ref",
    "reasoningContent",
    "reasoningText",
    "cachePoint",
    "title",
]
TYPES = [
    "text",
    "input_text",
    "output_text",
    "tool_use",
    "tool_result",
    "thinking",
    "redacted_thinking",
    "image",
    "document",
    "image_url",
    "input_image",
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "reasoning",
    "message",
    "compaction",
    "function",
    "compaction_trigger",
    "computer_call",
    "computer_call_output",
    "mcp_call",
    "mcp_approval_request",
    "mcp_approval_response",
    "tool_search_call",
    "tool_search_output",
    "image_generation_call",
    "code_interpreter_call",
    "server_tool_use",
    "mcp_tool_use",
    "web_search_tool_result",
    "mcp_tool_result",
    "refusal",
    "item_reference",
    "input_audio",
    "tool_reference",
    "summary_text",
]
ROLES = ("user", "assistant", "system", "tool", "developer", "model", "function", "", "other", None, 5)
TEXTS = ("", "a", " ", "\n", "\ud83d", "e\u0301", "x" * 300, "\0", "{}", "[1]", '{"a":', "c1", "base64", "image/png")
OTHERS = (None, True, False, 0, 1, -1, 1.5, 10**20)


class Dice(random.Random):
    """Values of JSON by chance, from the words that providers use."""

    def value(self, depth=0):
        kind = self.random()
        if depth > 4 or kind < 0.35:
            return self.choice(TEXTS)
        if kind < 0.42:
            return self.choice(OTHERS)
        if kind < 0.6:
            return [self.value(depth + 1) for _ in range(self.randint(0, 3))]
        return self.entry(depth + 1)

    def entry(self, depth=0):
        made = {}
        for _ in range(self.randint(0, 5)):
            key = self.choice(KEYS)
            made[key] = self.choice({"type": TYPES, "role": ROLES}.get(key, (self.value(depth + 1),)))
        return made

    def message(self):
        made = self.entry() | {"role": self.choice(ROLES)}
        if self.random() < 0.7:
            made["content"] = self.value(1)
        if self.random() < 0.3:
            made["parts"] = self.value(1)
        return made


def tried(call, *errors):
    """Return what a call gives, None where it raises one of the errors."""
    try:
        return call()
    except errors:
        return None


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("format", formats.names())
def test_measures_take_any_message_and_the_rest_raises_only_errors_of_refold(format, seed):
    dice = Dice(f"{format} {seed}")
    for number in range(100):
        messages = [dice.message() for _ in range(dice.randint(0, 5))]
        before = json.dumps(messages)
        refold.check(messages, format=format, window=5_000)
        refold.count(messages, format=format)
        refold.violations(messages, format=format)
        tried(lambda given=messages: refold.repair(given, format=format), BrokenConversation)
        policy, budget = policies.names()[number % 6], (20, 80, 300, 3_000)[number % 4]
        options = {"format": format, "policy": policy, "budget": budget, "force": True}
        tried(lambda given=messages, known=options: refold.compact(given, **known), RefoldError)
        tried(lambda given=messages: refold.check(given, window=5_000), RefoldError)
        assert json.dumps(messages) == before
