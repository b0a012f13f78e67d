"""Windows that are nearly full before a word is said: the best that fits is sent, and compactions are few."""

import itertools
import json

import pytest

from refold.testing.provider import ScriptedReply
from tests.gateway.scripted_upstream import call, chat

TASK = "Find out why the parser drops the last line. Never touch setup.py."
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}


def rules(count):
    return " ".join(f"rule{number}" for number in range(count))


def crowded(words, **more):
    """A conversation whose system prompt takes most of the window."""
    body = chat(12, size=150, **more)
    body["messages"][0]["content"] = rules(words)
    body["messages"].append({"role": "user", "content": TASK})
    return body


def told(headers):
    return {name[9:]: value for name, value in headers.items() if name.startswith("x-refold-")}


@pytest.mark.parametrize(("limit", "done"), [(16_000, "compacted"), (12_500, "recovered")])
def test_where_the_input_budget_cannot_be_met_the_best_plan_that_fits_the_window_is_sent(gateway, limit, done):
    # both were 400 with `x-refold-failed: CannotFit`: the reserve for the answer is a guess, and was held to
    serving, provider = gateway(["ok"], limit=limit, window=16_000, background=False)
    status, headers, _ = call(serving.url, body=crowded(4_300))
    assert (status, told(headers)["done"]) == (200, done)
    assert "failed" not in told(headers)
    sent = provider.received[-1].body["messages"]
    assert sent[0]["content"] == rules(4_300)
    assert TASK in json.dumps(sent)


def test_an_answer_whose_length_the_client_states_is_given_what_fits_beside_it_as_well(gateway):
    serving, provider = gateway(["ok"], window=16_000, background=False)
    status, headers, _ = call(serving.url, body=crowded(4_300, max_tokens=6_000))
    facts = told(headers)
    assert (status, facts["done"]) == (200, "compacted")
    assert int(facts["over-budget"]) == int(facts["tokens-after"]) - 10_000
    assert int(facts["tokens-after"]) < 16_000
    assert b'refold_compaction_failures_total{reason="CannotFit"} 1.0' in call(serving.url, "GET", "/metrics")[2]
    assert TASK in json.dumps(provider.received[-1].body)


def test_what_cannot_fit_the_window_gets_the_providers_own_error(gateway):
    serving, provider = gateway(["ok"], limit=8_000, window=8_000, background=False)
    status, headers, data = call(serving.url, body=crowded(4_300))
    assert (status, told(headers)["failed"]) == (400, "CannotFit")
    assert json.loads(data)["error"]["code"] == "context_length_exceeded"
    assert [each.status for each in provider.received] == [400]


def test_a_gateway_that_is_strict_rejects_what_stays_above_the_input_budget(gateway):
    serving, provider = gateway(["ok"], window=16_000, background=False, strict=True)
    status, _, data = call(serving.url, body=crowded(4_300, max_tokens=6_000))
    assert (status, b"CannotFit" in data) == (503, True)
    assert provider.received == []


def test_a_policy_that_fails_is_replaced_where_the_request_would_be_refused(gateway, controlled, caplog):
    def fail():
        raise KeyError("the words of the policy")

    controlled.actions.append(fail)
    serving, provider = gateway(["ok"], limit=8_000, window=8_000, background=False, policy=controlled.path)
    status, headers, _ = call(serving.url, body=chat(9))
    assert (status, told(headers)["done"], told(headers)["policy"]) == (200, "compacted", "refold")
    assert [each.status for each in provider.received] == [200]
    assert b'refold_compaction_failures_total{reason="KeyError"} 1.0' in call(serving.url, "GET", "/metrics")[2]
    logged = next(record.fields for record in caplog.records if record.message == "best plan used")
    assert (logged["failed"], logged["policy"]) == ("KeyError", "refold")
    assert "the words" not in str([vars(record) for record in caplog.records])


class OfChat:
    path = "/v1/chat/completions"

    def __init__(self, words):
        tool = {"type": "function", "function": {"name": "read_file", "parameters": SCHEMA}}
        self.body = {"model": "gpt-4o", "max_tokens": 500, "tools": [tool]}
        self.body["messages"] = [{"role": "system", "content": rules(words)}, {"role": "user", "content": TASK}]

    def take(self, answer, output):
        message = answer["choices"][0]["message"]
        results = [{"role": "tool", "tool_call_id": each["id"], "content": output} for each in message["tool_calls"]]
        self.body["messages"] += [message, *results]


class OfAnthropic:
    path = "/v1/messages"

    def __init__(self, words):
        self.body = {"model": "claude-opus-4-6", "max_tokens": 500, "system": rules(words)}
        self.body |= {"tools": [{"name": "read_file", "input_schema": SCHEMA}]}
        self.body["messages"] = [{"role": "user", "content": TASK}]

    def take(self, answer, output):
        uses = [block["id"] for block in answer["content"] if block["type"] == "tool_use"]
        results = [{"type": "tool_result", "tool_use_id": id, "content": output} for id in uses]
        self.body["messages"] += [{"role": "assistant", "content": answer["content"]}]
        self.body["messages"] += [{"role": "user", "content": results}]


@pytest.mark.parametrize("talker", [OfChat(2_300), OfAnthropic(2_100)], ids=["chat", "anthropic"])
def test_a_conversation_in_a_crowded_window_is_compacted_when_its_room_is_used_and_keeps_its_digest(
    gateway, talker, caplog
):
    # 4 of 5 tokens are instructions, so that every call was over the trigger: 13 plans in 40 calls of 180 tokens, 39 in
    # 40 of 500, and none had a digest
    def behave(received):
        return ScriptedReply("", [("read_file", {"path": f"src/m{received.number}.py"})])

    serving, provider = gateway(behave=behave, limit=8_000, window=8_000, background=False)
    plans, seen = [], {}
    for turn in range(40):
        status, headers, data = call(serving.url, path=talker.path, body=talker.body)
        assert status == 200
        facts = told(headers)
        plans.append(facts.get("plan"))
        seen |= facts
        sent = json.dumps(provider.received[-1].body)
        assert TASK in sent
        assert plans[-1] is None or "Digest of earlier messages" in sent
        talker.take(json.loads(data), " ".join(f"w{turn}x{number}" for number in range(25)))
    made = [turn for turn, (one, two) in enumerate(itertools.pairwise(plans)) if one != two]
    gaps = [two - one for one, two in itertools.pairwise(made)]
    assert len(made) <= 7
    assert min(gaps[1:]) >= 5, "the first two plans show that they are too close"
    assert int(seen["thrashing"]) >= 1
    assert int(seen["fixed"]) + int(seen["room"]) == 7_500
    page = call(serving.url, "GET", "/metrics")[2]
    assert b"refold_thrashing_conversations 1.0" in page
    assert b"refold_thrashes_total 1.0" in page
    logged = [record.fields for record in caplog.records if record.message == "thrashing"]
    assert [(str(each["fixed"]), str(each["room"])) for each in logged] == [(seen["fixed"], seen["room"])]
    assert [each.status for each in provider.received] == [200] * 40


@pytest.mark.parametrize("last", [1, 2], ids=["one-result", "parallel-results"])
def test_results_that_the_model_has_not_seen_yet_are_whole_where_they_fit(gateway, last):
    # goals did not count instructions that are messages: what had just been read came as "[output cleared]"
    serving, provider = gateway(["ok"], window=20_000, background=False)
    body = chat(24, size=120)
    body["messages"][0]["content"] = rules(1_400)
    body["messages"].insert(1, {"role": "user", "content": TASK})
    calls = [
        {
            "id": f"new{number}",
            "type": "function",
            "function": {"name": "read", "arguments": f'{{"path": "last{number}.py"}}'},
        }
        for number in range(last)
    ]
    outputs = [" ".join(f"new{number}x{place}" for place in range(360 // last)) for number in range(last)]
    results = [
        {"role": "tool", "tool_call_id": each["id"], "content": text} for each, text in zip(calls, outputs, strict=True)
    ]
    body["messages"] += [{"role": "assistant", "content": None, "tool_calls": calls}, *results]
    _, headers, _ = call(serving.url, body=body)
    assert told(headers)["done"] == "compacted"
    assert provider.received[-1].body["messages"][-last:] == results
    assert provider.received[-1].tokens < 14_000
