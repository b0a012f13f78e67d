import pytest

import refold
from refold.models.provider_errors import classify_error
from refold.policies._internal import drop_reasoning
from refold.recovery._run import recovering

CORRUPTED = "Corrupted thought signature."
BOUND = (
    "messages.{}.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation."
)


def dropped(messages, words, format):
    """Compact by the policy that a refusal calls for."""
    policy = drop_reasoning(classify_error(words))
    made = refold.compact(messages, policy=policy, budget=10**6, format=format, cause="manual")
    assert refold.rewind(made.originals, made.plans, to=0) == messages
    return made.messages


def thinking(text="Hm."):
    return {"type": "thinking", "thinking": text, "signature": "sig" * 20}


def claude(turns=3):
    messages = []
    for turn in range(turns):
        messages += [
            {"role": "user", "content": f"Part {turn}?"},
            {
                "role": "assistant",
                "content": [
                    thinking(),
                    {"type": "redacted_thinking", "data": "x" * 40},
                    {"type": "tool_use", "id": f"t{turn}", "name": "read", "input": {}},
                ],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"t{turn}", "content": "words"}]},
            {"role": "assistant", "content": [thinking(), {"type": "text", "text": "Done."}]},
        ]
    return [*messages, {"role": "user", "content": "And now?"}]


def kinds(message):
    content = message["content"]
    return [block["type"] for block in content] if isinstance(content, list) else ["text"]


def test_thinking_leaves_from_the_message_named_on_and_what_is_before_stays_the_same_object():
    messages = claude()
    out = dropped(messages, BOUND.format(5), "anthropic")
    assert all(ours is theirs for ours, theirs in zip(out[:5], messages[:5], strict=True))
    assert [kinds(message) for message in out[5:8]] == [["tool_use"], ["tool_result"], ["text"]]
    assert "thinking" not in str(out[5:])
    assert refold.violations(out, format="anthropic") == ()


def test_all_thinking_leaves_where_no_message_is_named():
    out = dropped(claude(), "Invalid signature in thinking block", "anthropic")
    assert "thinking" not in str(out)


def test_a_message_of_thinking_alone_is_hidden():
    messages = [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": [thinking()]},
        {"role": "user", "content": "Go on"},
    ]
    out = dropped(messages, "Invalid signature in thinking block", "anthropic")
    assert [message["role"] for message in out] == ["user"]
    assert refold.violations(out, format="anthropic") == ()


def test_bedrock_loses_its_reasoning_blocks():
    text = {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "s" * 40}}}
    messages = [
        {"role": "user", "content": [{"text": "Hello"}]},
        {"role": "assistant", "content": [text, {"text": "Hi."}]},
        {"role": "user", "content": [{"text": "Go on"}]},
    ]
    assert dropped(messages, BOUND.format(1), "bedrock")[1] == {"role": "assistant", "content": [{"text": "Hi."}]}


def test_gemini_loses_the_signatures_of_older_turns_alone():
    def called(turn):
        call = {"functionCall": {"name": "read", "args": {}}, "thoughtSignature": "c2ln" * 8}
        answer = {"functionResponse": {"name": "read", "response": {"output": "words"}}}
        return [
            {"role": "user", "parts": [{"text": f"Part {turn}?"}]},
            {"role": "model", "parts": [{"text": "Thinking.", "thought": True}, call]},
            {"role": "user", "parts": [answer]},
            {"role": "model", "parts": [{"text": "", "thoughtSignature": "c2ln"}, {"text": "Done."}]},
        ]

    messages = called(0) + called(1)[:3]
    out = dropped(messages, CORRUPTED, "gemini")
    assert out[1]["parts"] == [{"functionCall": {"name": "read", "args": {}}}]
    assert out[3]["parts"] == [{"text": "Done."}]
    assert all(ours is theirs for ours, theirs in zip(out[4:], messages[4:], strict=True))
    assert refold.violations(out, format="gemini") == ()


def responses():
    return [
        {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAbbbbDQ=="},
        {"role": "user", "content": "Part 0?"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAccccEQ=="},
        {"type": "function_call", "call_id": "c1", "name": "read", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "words"},
        {"type": "reasoning", "id": "rs_2", "summary": []},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]},
        {"role": "user", "content": "And now?"},
    ]


@pytest.mark.parametrize(
    ("words", "stays"),
    [
        ("The encrypted content gAAA...EQ== could not be verified.", True),
        ("The encrypted content for item rs_1 could not be verified.", True),
        ("The encrypted content for item cmp_1 could not be verified.", False),
        ("The encrypted content gAAA...DQ== could not be verified.", False),
    ],
)
def test_responses_lose_all_reasoning_items_and_the_compaction_item_that_is_named(words, stays):
    messages = responses()
    out = dropped(messages, words, "openai-responses")
    keep = [
        item for item in messages if item.get("type") != "reasoning" and (stays or item.get("type") != "compaction")
    ]
    assert all(ours is theirs for ours, theirs in zip(out, keep, strict=True))


def test_chat_loses_what_was_sealed_and_keeps_plain_words_of_reasoning():
    messages = [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hi.", "reasoning_content": "Hm.", "reasoning_details": [{"data": "x"}]},
        {"role": "user", "content": "Go on"},
    ]
    out = dropped(messages, BOUND.format(9), "openai-chat")
    assert out[1] == {"role": "assistant", "content": "Hi.", "reasoning_content": "Hm."}


def test_what_holds_no_reasoning_is_left_as_it_is():
    messages = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi."}]
    made = refold.compact(messages, policy=drop_reasoning(classify_error(CORRUPTED)), budget=10**6, cause="manual")
    assert made.plan.empty


def test_what_stands_before_a_compaction_item_that_is_refused_is_read_again():
    originals = [
        {"role": "user", "content": "The first part."},
        {"type": "reasoning", "id": "rs_0", "summary": [], "encrypted_content": "gAAAddddEQ=="},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Noted."}]},
    ]
    messages = originals + responses()
    refused = []

    def call(sent):
        if not refused:
            refused.append(1)
            raise RuntimeError("The encrypted content for item cmp_1 could not be verified.")
        return {}

    made = recovering(call, messages, format="openai-responses")
    assert [item for item in made.messages if item.get("type") in ("reasoning", "compaction")] == []
    assert made.messages[:2] == [originals[0], originals[2]]
    assert refold.rewind(messages, made.plans, to=0) == messages
