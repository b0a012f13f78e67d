"""Messages of chat completions that a compaction must leave as servers take them."""

import base64

import pytest

import refold

every_policy = pytest.mark.parametrize("policy", refold.policies.names())
FORMAT = "openai-chat"
LOG = "a line of the log of a build that took a while\n"
PIXELS = base64.b64encode(bytes(range(256)) * 400).decode()


def user(text):
    return {"role": "user", "content": text}


def work(first, last, **rest):
    messages = []
    for number in range(first, last):
        call = {"id": f"w{number}", "type": "function", "function": {"name": "sh", "arguments": "{}"}}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call], **rest},
            {"role": "tool", "tool_call_id": f"w{number}", "content": LOG * 60},
        ]
    return messages


def compacted(messages, policy, budget=2_500):
    result = refold.compact(
        messages, format=FORMAT, policy=policy, budget=budget, summarize=lambda need: "The build runs.", force=True
    )
    assert not refold.violations(result.messages, format=FORMAT)
    assert refold.rewind(result) == messages
    return result.messages


@every_policy
@pytest.mark.parametrize(
    "thinking",
    [
        {"reasoning_content": "I read the log first."},
        {"reasoning_details": [{"type": "reasoning.encrypted", "data": "gAAAA", "format": "openai-responses-v1"}]},
        {"thinking_blocks": [{"type": "thinking", "thinking": "A log.", "signature": "EqQB"}]},
    ],
    ids=lambda thinking: next(iter(thinking)),
)
def test_a_call_of_the_running_turn_keeps_the_thinking_that_servers_want_back(policy, thinking):
    (key,) = thinking
    made = compacted([user("Go."), *work(0, 9, **thinking)], policy)
    assert all(message[key] == thinking[key] for message in made if message.get("tool_calls"))


@every_policy
def test_what_the_developer_said_in_the_middle_stays(policy):
    said = {"role": "developer", "content": "Refunds above 100 need a supervisor."}
    made = compacted([user("Go."), *work(0, 4), said, *work(4, 9), user("Refund 250.")], policy)
    assert any(message is said for message in made)


@every_policy
def test_calls_that_await_their_results_stay_the_end(policy):
    calls = [
        {"id": f"open{number}", "type": "function", "function": {"name": "book", "arguments": "{}"}}
        for number in (1, 2)
    ]
    waiting = [
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "open1", "content": "booked"},
    ]
    made = compacted([user("Go."), *work(0, 9), user("Book both."), *waiting], policy)
    assert made[-2:] == waiting


def test_pictures_that_a_model_drew_are_no_words():
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXELS}"}}
    drawn = {"role": "assistant", "content": "Here.", "images": [picture]}
    assert refold.count([drawn], format=FORMAT, model="gpt-4o") < 1_500


@every_policy
def test_pictures_that_a_model_drew_leave_without_words_in_their_place(policy):
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXELS}"}}
    turns = [
        message
        for number in range(9)
        for message in (user(f"Draw {number}."), {"role": "assistant", "content": "Here.", "images": [picture]})
    ]
    made = compacted([*turns, user("Well done.")], policy, 4_000)
    drawn = [image for message in made for image in message.get("images", ())]
    assert all(image is picture for image in drawn)
    assert refold.count(made, format=FORMAT) <= 4_000


def test_readable_thinking_is_not_counted_again_in_its_sealed_form():
    words = "I think about the parser. " * 200
    details = [{"type": "reasoning.text", "text": words, "signature": "EqQB"}]
    plain = {"role": "assistant", "content": "Done.", "reasoning": words}
    both = {**plain, "reasoning_details": details}
    assert refold.count([both], format=FORMAT) < 1.1 * refold.count([plain], format=FORMAT)


@pytest.mark.parametrize("kind", ["video_url", "audio_url"])
def test_a_recording_that_is_sent_by_its_bytes_is_no_text(kind):
    block = {"type": kind, kind: {"url": "data:video/mp4;base64," + "QUFB" * 100_000}}
    turns = [user("Go."), {"role": "user", "content": [{"type": "text", "text": "See."}, block]}]
    assert refold.count(turns, format=FORMAT) < 20_000
    assert refold.repair(turns, format=FORMAT).plan.empty
