import gzip
import json

import openai
import pytest

from refold._gateway import admin
from tests.gateway.scripted_upstream import ADMIN, call, chat
from tests.gateway.talking import opened


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


@pytest.mark.parametrize(("content", "said"), [([0] * 260_000, "values"), ("x" * 400_000, "bytes")])
def test_compact_says_what_of_a_body_is_too_much(gateway, monkeypatch, content, said):
    monkeypatch.setattr(admin, "LONGEST_MESSAGE", 300_000)
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": content}]}
    status, _, data = call(gateway()[0].url, path="/v1/compact", body=body)
    assert (status, f"{said} is not" in json.loads(data)["error"]["message"]) == (413, True)


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
    assert [(each["id"], each["messages"], each["plans"], each["stored"]) for each in listed] == [(id, 20, 1, True)]
    assert len(json.loads(call(serving.url, "GET", f"/v1/sessions/{id}")[2])["plans"]) == 1
    rewound = json.loads(call(serving.url, path=f"/v1/sessions/{id}/rewind", body={"to": 0})[2])
    assert rewound["plans"] == []
    call(serving.url, body=chat(9), headers={"x-refold-bypass": "1"})
    assert provider.received[-1].body == chat(9)
    assert call(serving.url, path=f"/v1/sessions/{id}/rewind", body={"to": "plan:none"})[0] == 404
    assert call(serving.url, path=f"/v1/sessions/{id}/rewind", body=b"[")[0] == 400
    assert call(serving.url, "GET", "/v1/sessions/conv_none")[0] == 404


def test_a_rewind_that_took_place_is_told_although_the_conversation_is_deleted_then(gateway, deleted_while_rewound):
    serving, _ = gateway(window=16_000, background=False)
    id = told(call(serving.url, body=chat(9))[1])["conversation"]
    deleted_while_rewound(serving.url)
    status, _, body = call(serving.url, path=f"/v1/sessions/{id}/rewind", body={"to": 0})
    assert (status, json.loads(body)["plans"]) == (200, [])
    assert call(serving.url, "GET", f"/v1/sessions/{id}")[0] == 404


def test_a_conversation_is_pinned_given_a_policy_rewound_and_forwarded_by_its_routes(gateway, tmp_path):
    serving, provider = gateway(window=16_000, background=False, store=str(tmp_path / "g.db"))

    def act(kind, body=None, status=200):
        answered, _, data = call(serving.url, path=f"/v1/sessions/{id}/{kind}", body=body)
        assert answered == status, data
        return json.loads(data)

    id = told(call(serving.url, body=chat(2))[1])["conversation"]
    assert "nothing was rewound" in act("forward", status=409)["error"]["message"].lower()
    pinned = act("pin", {"message": 4})
    assert act("pin", {"message": pinned["pinned"][0]}) == pinned, "by its id, which changes nothing"
    assert act("policy", {"policy": "opal"})["policy"] == "opal"
    call(serving.url, body=chat(9))
    assert chat(9)["messages"][3] in provider.received[-1].body["messages"]
    (plan,) = json.loads(call(serving.url, "GET", f"/v1/sessions/{id}")[2])["plans"]
    assert plan["policy"] == "opal"
    compacted = provider.received[-1].body
    assert act("rewind", {"to": 0})["plans"] == []
    call(serving.url, body=chat(9))
    assert provider.received[-1].body == chat(9), "which is not compacted again at once"
    assert act("forward")["plans"] == [plan]
    call(serving.url, body=chat(9))
    assert provider.received[-1].body == compacted
    act("forward", status=409)
    assert act("unpin", {"message": pinned["pinned"][0]})["pinned"] == []
    assert act("policy", {"policy": None})["policy"] is None
    recorded = call(serving.url, "GET", f"/page/c/{id}", None, {"x-refold-token": ADMIN})[2].decode()
    for said in ("went forward again", "took the policy back", "removed all pins", "rewound"):
        assert said in recorded


@pytest.mark.parametrize(("kind", "body", "status"), [
    ("pin", {}, 400), ("pin", {"message": 1.5}, 400), ("pin", {"message": True}, 400), ("pin", b"[", 400),
    ("pin", {"message": 0}, 404), ("pin", {"message": 99}, 404), ("unpin", {"message": "b2:none"}, 404),
    ("policy", {"policy": 3}, 400), ("policy", {"policy": "none/such"}, 400), ("forward", b"\xff", 400),
])  # fmt: skip
def test_an_act_that_names_nothing_is_refused_with_what_it_takes(gateway, kind, body, status):
    serving, _ = gateway()
    id = told(call(serving.url, body=chat(1))[1])["conversation"]
    answered, _, data = call(serving.url, path=f"/v1/sessions/{id}/{kind}", body=body)
    assert answered == status
    assert json.loads(data)["error"]["message"]


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


def gemini(count, **more):
    words = [" ".join(f"w{number}x{place}" for place in range(400)) for number in range(count)]
    said = [{"role": ("user", "model")[place % 2], "parts": [{"text": text}]} for place, text in enumerate(words)]
    return {"contents": [*said, {"role": ("user", "model")[count % 2], "parts": [{"text": "Go on."}]}], **more}


def test_compact_takes_a_body_of_gemini_whose_model_is_named_beside_it(gateway):
    serving, provider = gateway(window=8_000)
    status, _, data = call(serving.url, path="/v1/compact", body=gemini(8))
    assert status == 400
    assert "?model=" in json.loads(data)["error"]["message"]
    status, headers, data = call(serving.url, path="/v1/compact?model=gemini-2.5-pro", body=gemini(8))
    assert (status, told(headers)["done"]) == (200, "compacted")
    assert "model" not in json.loads(data)
    call(serving.url, path="/v1beta/models/gemini-2.5-pro:generateContent", body=gemini(8))
    assert provider.received[0].body["contents"] == json.loads(data)["contents"]


def test_compact_takes_compressed_bodies_as_the_other_paths_do(gateway):
    serving, _ = gateway(window=16_000, max_body=100_000)
    packed = gzip.compress(json.dumps(chat(6)).encode())
    gzipped = {"content-encoding": "gzip"}
    assert told(call(serving.url, path="/v1/compact", body=packed, headers=gzipped)[1])["done"] == "compacted"
    bomb = gzip.compress(b" " * 10_000_000)
    assert call(serving.url, path="/v1/compact", body=bomb, headers=gzipped)[0] == 413
    assert call(serving.url, path="/v1/compact", body=b"{}", headers=gzipped)[0] == 415


def test_compact_reads_json_as_leniently_as_the_other_paths(gateway):
    serving, _ = gateway(window=16_000)
    body = b'{"model": "gpt-4o", "temperature": NaN, "messages": [{"role": "user", "content": "half \\ud83d"}]}'
    status, headers, data = call(serving.url, path="/v1/compact", body=body)
    assert (status, told(headers)["done"], data) == (200, "nothing", body)


@pytest.mark.parametrize("body", [
    {"model": "claude-opus-4-6", "system": "s", "messages": [7]}, {"model": "gpt-4o", "input": [7]},
])  # fmt: skip
def test_compact_names_the_message_that_it_cannot_read(gateway, body):
    serving, _ = gateway()
    status, _, data = call(serving.url, path="/v1/compact", body=body)
    assert status == 400
    assert "message 0" in json.loads(data)["error"]["message"]


def test_a_shadow_compacts_nothing_when_asked_and_says_so(gateway):
    serving, provider = gateway(window=8_000, shadow=True)
    body = json.dumps(chat(10)).encode()
    status, headers, data = call(serving.url, path="/v1/compact", body=body)
    assert (status, data, told(headers)["done"]) == (200, body, "forwarded")
    assert int(told(headers)["shadow-tokens-after"]) < int(told(headers)["shadow-tokens-before"])
    (listed,) = json.loads(call(serving.url, "GET", "/v1/sessions")[2])["sessions"]
    assert listed["shadow"]["id"] == told(headers)["shadow-plan"]
    assert (listed["plans"], listed["stored"]) == (0, False)
    call(
        serving.url, path="/v1/responses/compact", body={"model": "gpt-4o", "input": [{"role": "user", "content": "x"}]}
    )
    assert len(provider.received) == 0, "which is the provider's own to refuse"


def test_a_shadow_keeps_nothing(gateway, tmp_path):
    serving, _ = gateway(window=8_000, shadow=True, store=str(tmp_path / "g.db"))
    assert "shadow-plan" in told(call(serving.url, body=chat(10))[1])
    (listed,) = json.loads(call(serving.url, "GET", "/v1/sessions")[2])["sessions"]
    assert not listed["stored"]


@pytest.mark.parametrize("path", ["..", "%00", "%ff", "conv_none", "a/b/c", "conv_none/rewind/x", "x" * 5_000])
def test_what_is_no_conversation_is_not_found(gateway, path):
    serving, _ = gateway()
    status, _, data = call(serving.url, "GET", f"/v1/sessions/{path}")
    assert status == 404
    assert "GET /v1/sessions" in json.loads(data)["error"]["message"]
    assert call(serving.url, path=f"/v1/sessions/{path}/rewind", body={"to": 0})[0] == 404
    assert call(serving.url, "DELETE", f"/v1/sessions/{path}")[0] == 404


def test_the_name_of_a_conversation_may_be_escaped(gateway):
    serving, _ = gateway()
    id = told(call(serving.url, body=chat(1))[1])["conversation"]
    assert call(serving.url, "GET", "/v1/sessions/" + id.replace("_", "%5F"))[0] == 200


def test_health_is_told_to_whoever_asks_for_the_head_alone(gateway):
    serving, _ = gateway()
    for path in ("/livez", "/readyz", "/metrics", "/v1/sessions"):
        status, _, data = call(serving.url, "HEAD", path)
        assert (status, data) == (200, b"")


@pytest.mark.parametrize(("method", "path", "allowed"), [
    ("POST", "/livez", "GET"), ("GET", "/v1/compact", "POST"), ("DELETE", "/v1/recall", "GET"), ("PUT", "/v1/sessions", "GET"),
    ("PUT", "/v1/sessions/conv_a", "GET, DELETE"), ("GET", "/v1/sessions/conv_a/rewind", "POST"),
])  # fmt: skip
def test_a_method_that_a_path_has_not_is_told_with_those_it_has(gateway, method, path, allowed):
    serving, provider = gateway()
    status, headers, _ = call(serving.url, method, path)
    assert (status, headers["allow"]) == (405, allowed)
    assert not provider.received


@pytest.mark.parametrize("body", [{"to": 1.5}, {"to": None}, {"to": []}, {"to": True}, b"null", b"\xff", b'"x"'])
def test_a_rewind_that_says_nothing_is_refused_with_what_it_takes(gateway, body):
    serving, _ = gateway()
    id = told(call(serving.url, body=chat(1))[1])["conversation"]
    status, _, data = call(serving.url, path=f"/v1/sessions/{id}/rewind", body=body)
    assert status == 400
    assert '"to"' in json.loads(data)["error"]["message"]


def test_what_was_kept_is_recalled_and_rewound_before_its_next_request(gateway, tmp_path):
    store = str(tmp_path / "g.db")
    first, _ = gateway(window=16_000, background=False, store=store)
    headers = told(call(first.url, body=chat(9))[1])
    hidden = json.loads(call(first.url, "GET", f"/v1/recall/{headers['plan']}")[2])
    first.stop()
    again, provider = gateway(window=16_000, background=False, store=store)
    assert json.loads(call(again.url, "GET", f"/v1/recall/{headers['plan']}")[2]) == hidden
    assert json.loads(call(again.url, "GET", "/v1/recall/plan:none")[2]) == {"messages": []}
    id = headers["conversation"]
    assert call(again.url, path=f"/v1/sessions/{id}/rewind", body={"to": "plan:none"})[0] == 404
    rewound = json.loads(call(again.url, path=f"/v1/sessions/{id}/rewind", body={"to": 0})[2])
    assert rewound == {"id": id, "stored": True, "plans": []}
    call(again.url, body=chat(9), headers={"x-refold-trigger": "never"})
    assert provider.received[-1].body == chat(9)


@pytest.mark.parametrize("messages", ["1", "{}", "true"])
def test_messages_that_are_no_list_are_refused(gateway, messages):
    serving, _ = gateway()
    status, _, data = call(serving.url, path="/v1/compact", body=b'{"model":"m","messages":%b}' % messages.encode())
    assert (status, json.loads(data)["error"]["code"]) == (400, "bad_body")


def test_the_list_says_no_number_of_plans_where_it_is_not_known(gateway, tmp_path):
    store = str(tmp_path / "g.db")
    serving, _ = gateway(window=8_000, background=False, store=store)
    call(serving.url, body=chat(10))
    other, _ = gateway(window=8_000, store=store)
    (listed,) = json.loads(call(other.url, "GET", "/v1/sessions")[2])["sessions"]
    assert listed["plans"] is None
    assert len(json.loads(call(other.url, "GET", f"/v1/sessions/{listed['id']}")[2])["plans"]) == 1


def test_a_store_that_fails_is_told_without_its_place(gateway, tmp_path):
    place = tmp_path / "g.db"
    serving, provider = gateway(window=8_000, background=False, store=str(place), host="127.0.0.1", token="t0k")
    inside = {"x-refold-token": "t0k"}
    for file in tmp_path.glob("g.db*"):
        file.write_bytes(b"no database " * 1_000)
    status, _, data = call(serving.url, "GET", "/readyz")
    assert (status, str(place).encode() in data) == (503, False)
    status, _, data = call(serving.url, "GET", "/v1/sessions", headers=inside)
    assert (status, str(place).encode() in data) == (503, False)
    assert b"the store could not be used" in data
    assert call(serving.url, "GET", "/livez")[0] == 200
    status, headers, _ = call(serving.url, body=chat(10), headers=inside)
    assert (status, told(headers)["done"], told(headers)["unsaved"]) == (200, "compacted", "1")
    assert provider.received[0].body != chat(10)


def test_a_body_that_may_be_of_two_dialects_is_of_the_one_that_the_headers_tell(gateway):
    serving, provider = gateway(window=8_000)
    words = [" ".join(f"w{number}x{place}" for place in range(400)) for number in range(8)]
    said = [
        {"role": ("user", "assistant")[place % 2], "content": text} for place, text in enumerate([*words, "Go on."])
    ]
    body = {"model": "claude-opus-4-6", "max_tokens": 9, "messages": said}
    version = {"anthropic-version": "2023-06-01"}
    compacted = json.loads(call(serving.url, path="/v1/compact", body=body, headers=version)[2])
    call(serving.url, path="/v1/messages", body=body, headers=version)
    assert provider.received[0].body == compacted
