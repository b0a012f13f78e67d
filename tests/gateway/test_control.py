import json

import openai

from tests.gateway.talking import opened
from tests.gateway.wire import call, chat


def told(headers):
    return {name[9:]: value for name, value in headers.items() if name.startswith("x-refold-")}


def test_health_and_figures(gateway):
    serving, _ = gateway()
    assert call(serving.url, "GET", "/livez")[0] == 200
    assert call(serving.url, "GET", "/readyz")[0] == 200
    call(serving.url, body=chat(1))
    page = call(serving.url, "GET", "/metrics")[2].decode()
    assert 'refold_requests_total{dialect="openai-chat",done="forwarded"} 1.0' in page
    assert "refold_conversations 1.0" in page


def test_compact_answers_with_the_body_and_forwards_nothing(gateway):
    serving, provider = gateway(window=16_000)
    status, headers, data = call(serving.url, path="/v1/compact", body=chat(6, temperature=0.5))
    made = json.loads(data)
    assert status == 200
    assert not provider.received
    assert (made["model"], made["temperature"]) == ("gpt-4o", 0.5)
    assert len(data) < len(json.dumps(chat(6)))
    assert int(told(headers)["tokens-after"]) < int(told(headers)["tokens-before"])
    call(serving.url, body=chat(6, temperature=0.5))
    assert provider.received[0].body == made, "what was compacted once stays compacted"


def test_compact_says_what_it_cannot_read(gateway):
    serving, _ = gateway()
    for body in (b"{", b"[]", b'{"model": "m"}', b'{"messages": []}', b'{"model": "m", "messages": [7]}'):
        assert call(serving.url, path="/v1/compact", body=body)[0] == 400


def test_responses_compact_is_answered_with_items(gateway):
    serving, provider = gateway(window=16_000)
    items = [{"role": "user", "content": [{"type": "input_text", "text": "Read all files."}]}]
    for number in range(6):
        text = " ".join(f"word{number}x{place}" for place in range(400))
        items += [
            {"type": "function_call", "call_id": f"c{number}", "name": "read", "arguments": "{}"},
            {"type": "function_call_output", "call_id": f"c{number}", "output": text},
        ]
    client = opened(openai.OpenAI(base_url=f"{serving.url}/v1", api_key="k", max_retries=0))
    made = client.responses.compact(model="gpt-4o", input=items)
    assert made.object == "response.compaction"
    assert made.usage.output_tokens < made.usage.input_tokens
    assert made.usage.input_tokens_details.cached_tokens == 0
    assert {type(item.content) for item in made.output if item.type == "message"} == {list}, "typed clients want it so"
    assert not provider.received
    answer = client.responses.create(
        model="gpt-4o", input=[item.model_dump(exclude_none=True, warnings=False) for item in made.output]
    )
    assert answer.output_text == "OK."


def test_a_history_kept_by_the_provider_is_left_to_it(gateway):
    serving, provider = gateway(window=4_000)
    body = {"model": "gpt-4o", "previous_response_id": "resp_1", "input": [{"role": "user", "content": "x " * 9_000}]}
    through, direct = (call(url, path="/v1/responses", body=body) for url in (serving.url, provider.url))
    assert (through[0], through[2]) == (direct[0], direct[2])
    assert b"resp_1" in through[2]


def test_conversations_are_listed_and_rewound(gateway):
    serving, provider = gateway(window=16_000, background=False)
    id = told(call(serving.url, body=chat(9))[1])["conversation"]
    listed = json.loads(call(serving.url, "GET", "/v1/sessions")[2])["sessions"]
    assert [(each["id"], each["messages"], each["plans"], each["kept"]) for each in listed] == [(id, 20, 1, True)]
    assert len(json.loads(call(serving.url, "GET", f"/v1/sessions/{id}")[2])["plans"]) == 1
    rewound = json.loads(call(serving.url, path=f"/v1/sessions/{id}/rewind", body={"to": 0})[2])
    assert rewound["plans"] == []
    call(serving.url, body=chat(9), headers={"x-refold-bypass": "1"})
    assert provider.received[-1].body == chat(9)
    assert call(serving.url, path=f"/v1/sessions/{id}/rewind", body={"to": "plan:none"})[0] == 404
    assert call(serving.url, path=f"/v1/sessions/{id}/rewind", body=b"[")[0] == 400
    assert call(serving.url, "GET", "/v1/sessions/conv_none")[0] == 404


def test_originals_come_back_by_plan_by_id_and_by_words(gateway):
    serving, _ = gateway(window=16_000, background=False)
    plan = told(call(serving.url, body=chat(9))[1])["plan"]
    hidden = json.loads(call(serving.url, "GET", f"/v1/recall/{plan}")[2])["messages"]
    assert {"role": "tool", "tool_call_id": "c0", "content": chat(9)["messages"][3]["content"]} in [
        each["message"] for each in hidden
    ]
    one = hidden[0]
    assert json.loads(call(serving.url, "GET", f"/v1/recall/{one['id']}")[2])["messages"] == [one]
    found = json.loads(call(serving.url, "GET", "/v1/recall?q=word3x7")[2])["messages"]
    assert [each["message"]["tool_call_id"] for each in found] == ["c3"]
    assert json.loads(call(serving.url, "GET", "/v1/recall/b2:none")[2])["messages"] == []
