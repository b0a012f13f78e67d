"""A conversation that moves from provider to provider in its middle: nothing is lost, and every request is valid."""

import json
import random
import re

import pytest

from refold.core.budget import Share
from tests.gateway.native.test_modes import GO, OPAQUE, provider_that_compacts, request, serving
from tests.gateway.native.upstream import anthropic_turns, ignorant, output, responses_turns
from tests.gateway.scripted_upstream import call, upstream
from tests.gateway.talking import TASK, Anthropic, Chat, Gemini, Responses, behave
from tests.gateway.talking import output as random_output

BETA = {"anthropic-beta": "compact-2026-01-12"}
COMPACTED = {"edits": [{"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 5_000}}]}
AT_ONCE = {"context_management": [{"type": "compaction", "compact_threshold": 5_000}]}
NEXT = [{"role": "user", "content": "Go on."}]


def claude(messages, **more):
    tools = [{"name": "read", "input_schema": {"type": "object", "properties": {}}}]
    return {"model": "claude-opus-4-6", "max_tokens": 500, "messages": messages, "tools": tools, **more}


def kept(serving, body, plans):
    """What is in a request and what its plans recall, as text."""
    return json.dumps(body) + "".join(call(serving.url, "GET", f"/v1/recall/{plan}")[2].decode() for plan in plans)


def results(body):
    """The outputs of tools in a request, in order, whichever its form."""
    for message in body.get("input") or body["messages"]:
        if message.get("type") == "function_call_output":
            yield message["output"]
        for block in message["content"] if isinstance(message.get("content"), list) else ():
            if block["type"] == "tool_result":
                yield block["content"] if isinstance(block["content"], str) else block["content"][0]["text"]


@pytest.mark.parametrize("restarted", [False, True], ids=["same-process", "restarted"])
def test_what_stands_behind_items_of_the_gateway_moves_to_another_provider_and_back(gateway, tmp_path, restarted):
    settings = {"window": 100_000, "limit": 100_000, "native_compaction": "emulate", "store": str(tmp_path / "g.db")}
    stood = []

    def stand():
        if not stood or restarted:
            stood.append(gateway(behave=ignorant, **settings))
        return stood[-1]

    sent = claude([GO, *anthropic_turns(0, 9)], context_management=COMPACTED)
    answer = json.loads(call(stand()[0].url, path="/v1/messages", body=sent, headers=BETA)[2])
    item = {"type": "compaction", "encrypted_content": answer["content"][0]["encrypted_content"]}
    serving, _ = stand()
    sent = request([item, *responses_turns(9, 14)], **AT_ONCE)
    answer = json.loads(call(serving.url, path="/v1/responses", body=sent)[2])
    item = next(each for each in answer["output"] if each["type"] == "compaction")
    block = {"type": "compaction", "content": None, "encrypted_content": item["encrypted_content"]}
    serving, last = stand()
    sent = claude([{"role": "assistant", "content": [block]}, *NEXT])
    status, headers, _ = call(serving.url, path="/v1/messages", body=sent)
    assert (status, headers["x-refold-done"]) == (200, "compacted"), "by the plan that it had there before"
    for each in {id(provider): provider for _, provider in stood}.values():
        assert {received.status for received in each.received} == {200}
        assert not [received for received in each.received if received.problems or received.violations]
    known = kept(serving, last.received[-1].body, [headers["x-refold-plan"]])
    assert not [number for number in range(14) if json.dumps(output(number))[1:-1] not in known]


def test_what_stands_behind_a_providers_own_item_moves_to_another_provider(gateway, tmp_path):
    store = {"store": str(tmp_path / "g.db")}
    other, provider = gateway(behave=ignorant, window=100_000, limit=100_000, **store)
    with upstream(provider_that_compacts) as (url, _), serving(url, native_compaction="shadow", **store) as first:
        assert call(first.url, path="/v1/responses", body=request([GO, *responses_turns(0, 9)], **AT_ONCE))[0] == 200
    block = {"type": "compaction", "encrypted_content": OPAQUE["encrypted_content"]}
    assert (
        call(other.url, path="/v1/messages", body=claude([{"role": "assistant", "content": [block]}, *NEXT]))[0] == 200
    )
    assert provider.received[-1].body["messages"][0]["content"][0]["text"] == GO["content"]
    assert list(results(provider.received[-1].body)) == [output(number) for number in range(9)]


def test_ids_and_names_of_calls_that_another_provider_does_not_take_are_written_so_that_it_does(gateway, tmp_path):
    settings = {"window": 100_000, "limit": 100_000, "native_compaction": "emulate", "store": str(tmp_path / "g.db")}
    ids = ["functions.read:0", "functions.read_0", "functions.read.0", "call_3"]
    calls = [{"type": "function_call", "call_id": id, "name": "fs.read", "arguments": "{}"} for id in ids]
    outputs = [
        {"type": "function_call_output", "call_id": id, "output": output(number)} for number, id in enumerate(ids)
    ]
    empty = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": ""}]}
    first, _ = gateway(behave=ignorant, **settings)
    sent = request([GO, *calls, *outputs, empty, *responses_turns(4, 14)], **AT_ONCE)
    answer = json.loads(call(first.url, path="/v1/responses", body=sent)[2])
    item = next(each for each in answer["output"] if each["type"] == "compaction")
    block = {"type": "compaction", "content": None, "encrypted_content": item["encrypted_content"]}
    other, provider = gateway(behave=ignorant, **{**settings, "window": 200_000, "limit": 200_000})
    assert (
        call(other.url, path="/v1/messages", body=claude([{"role": "assistant", "content": [block]}, *NEXT]))[0] == 200
    )
    received = provider.received[-1]
    assert (received.problems, received.violations) == ((), ())
    blocks = [block for message in received.body["messages"] for block in message["content"]]
    uses = [block for block in blocks if "input" in block]
    assert len({use["id"] for use in uses}) == len(uses) == 14
    assert all(re.fullmatch(r"[\w-]{1,64}", use[key]) for use in uses for key in ("id", "name"))
    assert list(results(received.body)) == [output(number) for number in range(14)]
    assert "no content" not in json.dumps(blocks)


def test_what_a_user_says_to_a_result_stays_behind_it(gateway, tmp_path):
    settings = {"window": 100_000, "limit": 100_000, "native_compaction": "emulate", "store": str(tmp_path / "g.db")}
    turns = list(anthropic_turns(0, 9))
    turns[-1]["content"].append({"type": "text", "text": "That was the last."})
    first, _ = gateway(behave=ignorant, **settings)
    sent = claude([GO, *turns], context_management=COMPACTED)
    answer = json.loads(call(first.url, path="/v1/messages", body=sent, headers=BETA)[2])
    item = {"type": "compaction", "encrypted_content": answer["content"][0]["encrypted_content"]}
    other, provider = gateway(behave=ignorant, **settings)
    assert call(other.url, path="/v1/responses", body=request([item, *NEXT]))[0] == 200
    items = provider.received[-1].body["input"]
    assert [item.get("type", "message") for item in items][-3:] == ["function_call_output", "message", "message"]
    assert "That was the last." in json.dumps(items[-2])


def answered(talker, text, calls):
    """Put an answer of another provider's model into the messages of a client."""
    match talker:
        case Chat():
            function = [
                {"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(value)}}
                for id, name, value in calls
            ]
            talker.messages.append({"role": "assistant", "content": text} | ({"tool_calls": function} if calls else {}))
        case Responses():
            talker.messages.append({"role": "assistant", "content": text})
            talker.messages += [
                {"type": "function_call", "call_id": id, "name": name, "arguments": json.dumps(value)}
                for id, name, value in calls
            ]
        case Anthropic():
            uses = [{"type": "tool_use", "id": id, "name": name, "input": value} for id, name, value in calls]
            talker.messages.append({"role": "assistant", "content": [{"type": "text", "text": text}, *uses]})
        case Gemini():
            uses = [{"function_call": {"id": id, "name": name, "args": value}} for id, name, value in calls]
            talker.messages.append({"role": "model", "parts": [{"text": text}, *uses]})


def heard(talker, calls, texts):
    """Put the results of calls, or the user's words, into the messages of a client."""
    if calls:
        named = isinstance(talker, Gemini)
        talker.results([(id, name) if named else id for id, name, _ in calls], texts)
    elif isinstance(talker, Gemini):
        talker.messages.append({"role": "user", "parts": [{"text": "Go on."}]})
    elif isinstance(talker, Anthropic):
        talker.messages.append({"role": "user", "content": [{"type": "text", "text": "Go on."}]})
    else:
        talker.messages.append({"role": "user", "content": "Go on."})


@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
def test_a_conversation_of_the_official_sdks_moves_through_four_providers(gateway, tmp_path, streaming):
    serving, provider = gateway(
        behave=behave, limit=6_000, window=6_000, background=False, trigger=Share(0.8, inclusive=True),
        native_compaction="emulate", store=str(tmp_path / "g.db"),
    )  # fmt: skip
    dice, log, compacted, plans = random.Random(3), [], [], {}
    for kind in (Anthropic, Responses, Chat, Gemini):
        talker = kind(serving.url, streaming)
        for text, calls, texts in log:
            answered(talker, text, calls)
            heard(talker, calls, texts)
        done, begun = set(), len(log)
        while len(log) < begun + 7:
            headers, ids = talker.ask()
            done.add(headers["x-refold-done"])
            plans[headers.get("x-refold-plan", "")] = headers["x-refold-conversation"]
            reply = behave(provider.received[-1])
            names = [each[0] if isinstance(each, tuple) else each for each in ids]
            calls = [(id, *given) for id, given in zip(names, reply.calls, strict=True)]
            log.append((reply.text, calls, [random_output(dice) for _ in calls]))
            heard(talker, *log[-1][1:])
        compacted.append("compacted" in done)
    assert compacted == [True] * 4
    assert {each.status for each in provider.received} == {200}
    assert not [each for each in provider.received if each.problems or each.violations]
    assert TASK in json.dumps(provider.received[-1].body)
    of_last = [
        plan for plan, conversation in plans.items() if plan and conversation == headers["x-refold-conversation"]
    ]
    known = kept(serving, provider.received[-1].body, of_last)
    lost = [text for _, _, texts in log[:-1] for text in texts if json.dumps(text)[1:-1] not in known]
    assert not lost, "each output is in the last request, or is recalled by its plans"
