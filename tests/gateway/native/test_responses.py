"""OpenAI's own compaction, asked for by its SDK and answered by the gateway."""

import json

import openai
import pytest

from tests.gateway.conftest import standing
from tests.gateway.native.upstream import ignorant, responses_turns
from tests.gateway.scripted_upstream import call
from tests.gateway.talking import opened

TOOLS = [{"type": "function", "name": "read", "parameters": {"type": "object", "properties": {}}, "strict": False}]
GO = {"role": "user", "content": "Go through the modules. Never touch setup.py."}
ON = {"role": "user", "content": "Which module was first?"}
MANAGED = [{"type": "compaction", "compact_threshold": 20_000}]


class Agent:
    def __init__(self, url, provider):
        self.client = opened(openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0))
        self.provider = provider

    def ask(self, items, *, streaming=False, model="gpt-4o", **more):
        given = {"model": model, "input": items, "tools": TOOLS, "store": False, **more}
        if not streaming:
            return self.client.responses.create(**given)
        with self.client.responses.stream(**given) as stream:
            numbers = [event.sequence_number for event in stream]
            assert numbers == list(range(len(numbers)))
            return stream.get_final_response()

    @property
    def sent(self):
        return self.provider.received[-1].body["input"]


@pytest.fixture
def agent(gateway):
    serving, provider = gateway(behave=ignorant, window=200_000, limit=200_000)
    made = Agent(serving.url, provider)
    made.gateway = serving
    return made


def echoed(response):
    return [item.model_dump(exclude_none=True, warnings=False) for item in response.output]


both = pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])


@both
def test_a_compaction_begins_the_answer_and_stands_for_what_was_before(agent, streaming):
    history = [GO, *responses_turns(0, 30)]
    response = agent.ask(history, context_management=MANAGED, streaming=streaming)
    assert [item.type for item in response.output] == ["compaction", "message"]
    assert response.output_text == "Answer 1."
    first = agent.sent
    answer = agent.ask([*echoed(response), ON], context_management=MANAGED, streaming=streaming)
    assert [item.type for item in answer.output] == ["message"]
    assert agent.sent[: len(first)] == first
    second = agent.sent
    agent.ask([*history, *echoed(response), ON], context_management=MANAGED)
    assert agent.sent == second


@both
def test_a_trigger_is_answered_with_an_item_alone_and_loses_nothing(agent, streaming):
    response = agent.ask([GO, *responses_turns(0, 8), {"type": "compaction_trigger"}], streaming=streaming)
    (item,) = response.output
    assert item.type == "compaction"
    assert "setup.py" not in item.encrypted_content
    assert not agent.provider.received
    answer = agent.ask([*echoed(response), ON], streaming=streaming)
    assert answer.output_text == "Answer 1."
    assert agent.sent[0] == GO
    assert agent.sent[-1] == ON


def test_a_compaction_request_is_answered_with_what_the_user_said_and_an_item(agent):
    made = agent.client.responses.compact(model="gpt-4o", input=[GO, *responses_turns(0, 30)])
    assert made.object == "response.compaction"
    *users, item = made.output
    assert [user.content[0].text for user in users] == [GO["content"]]
    assert item.type == "compaction"
    assert made.usage.output_tokens < made.usage.input_tokens
    assert not agent.provider.received
    # Codex puts its newest instructions before what came back
    fresh = {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "It is noon."}]}
    agent.ask([fresh, *echoed(made), ON])
    texts = [str(item) for item in agent.sent]
    (conversation,) = agent.gateway.gateway.tracker.all()
    assert sum(GO["content"].encode() in bytes(raw) for raw in conversation.body.raws) == 1
    assert "setup.py" in str(texts)
    assert sum("It is noon." in text for text in texts) == 1
    assert len(str(texts)) < 60_000


LONG = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Once more."}]}


def test_messages_of_a_compaction_have_what_the_schema_of_the_responses_api_requires(agent):
    # as in the test `compact-response` of the Open Responses suite
    said = [{"type": "message", "role": "user", "content": "We launch on Tuesday."}, LONG, LONG]
    reply = {"type": "message", "role": "assistant", "content": "Understood."}
    sent = [said[0], reply, *said[1:]]
    body = {"model": "gpt-4o", "prompt_cache_key": "cache", "input": sent}
    status, _, data = call(agent.gateway.url, path="/v1/responses/compact", body=body)
    made = json.loads(data)
    *messages, item = made["output"]
    assert (status, made["object"], item["type"]) == (200, "response.compaction", "compaction")
    assert {message["status"] for message in messages} == {"completed"}
    assert len({message["id"] for message in messages}) == 3
    assert all(isinstance(message["content"], list) for message in messages)
    agent.ask([*made["output"], ON])  # and they are known again when they come back
    (conversation,) = agent.gateway.gateway.tracker.all()
    assert [json.loads(bytes(raw)) for raw in conversation.body.raws] == [*sent, ON]


def test_messages_come_back_known_in_whichever_form_they_were_sent_first(agent):
    image = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}
    no_names = {"id": None, "status": None, "type": "message", "role": "user", "content": "We launch on Tuesday."}
    sent = [GO, no_names, {"role": "user", "content": [image]}]
    status, _, data = call(agent.gateway.url, path="/v1/responses/compact", body={"model": "gpt-4o", "input": sent})
    *messages, item = json.loads(data)["output"]
    assert status == 200
    assert {message["status"] for message in messages} == {"completed"}
    assert len({message["id"] for message in messages}) == 3
    assert messages[2]["content"] == [{**image, "detail": "auto"}]
    unnamed = [{key: value for key, value in each.items() if key not in ("id", "status")} for each in messages]
    for again in (messages, unnamed):  # typed clients leave out what they do not know
        agent.ask([*again, item, ON])
        (conversation,) = agent.gateway.gateway.tracker.all()
        assert [json.loads(bytes(raw)) for raw in conversation.body.raws] == [*sent, ON]


# the fields of a response in the schema of Open Responses of 2026-04-24
REQUIRED = """
    id object created_at completed_at status incomplete_details model previous_response_id instructions output error
    tools tool_choice truncation parallel_tool_calls text top_p presence_penalty frequency_penalty top_logprobs
    temperature reasoning usage max_output_tokens max_tool_calls store background service_tier metadata
    safety_identifier prompt_cache_key
"""


@both
def test_an_answer_to_a_trigger_has_what_the_schema_of_the_responses_api_requires(agent, streaming):
    asked = {"reasoning": {"effort": "low"}, "metadata": {"a": "b"}, "temperature": 0.5, "instructions": "Be brief."}
    bare = [{"type": "function", "name": "read"}]
    input = [GO, *responses_turns(0, 8), {"type": "compaction_trigger"}]
    response = agent.ask(input, streaming=streaming, **asked, tools=bare).to_dict()
    assert not set(REQUIRED.split()) - response.keys()
    assert response["reasoning"] == {"effort": "low", "summary": None}
    assert response["tools"] == [{**bare[0], "description": None, "parameters": None, "strict": None}]
    assert {name: response[name] for name in ("metadata", "temperature", "instructions")} == {
        name: asked[name] for name in ("metadata", "temperature", "instructions")
    }
    assert (response["completed_at"], response["store"]) == (response["created_at"], False)


def test_a_compaction_request_without_a_model_is_refused(agent):
    # as in the test `compact-missing-model` of the Open Responses suite
    status, _, data = call(agent.gateway.url, path="/v1/responses/compact", body={"input": [GO]})
    assert (status, json.loads(data)["error"]["code"]) == (400, "bad_body")


def test_a_compaction_request_of_one_string_is_answered(agent):
    made = agent.client.responses.compact(model="gpt-4o", input="Hello.")
    assert [item.type for item in made.output] == ["message", "compaction"]


def test_compactions_follow_one_another_and_the_first_words_stay(agent):
    response = agent.ask([GO, *responses_turns(0, 30)], context_management=MANAGED)
    items, number = echoed(response), 30
    for _ in range(4):
        items += [ON, *responses_turns(number, number + 30)]
        number += 30
        response = agent.ask(items, context_management=MANAGED)
        assert response.output[0].type == "compaction"
        items = echoed(response)
        assert "setup.py" in str(agent.sent)
        assert agent.provider.received[-1].tokens < 30_000
    plans = agent.gateway.gateway.tracker.all()[0].plans
    assert len(plans) == 5


def test_an_item_is_read_after_a_restart_and_by_any_replica(gateway, tmp_path):
    store = str(tmp_path / "g.db")
    serving, provider = gateway(behave=ignorant, window=200_000, limit=200_000, store=store)
    response = Agent(serving.url, provider).ask([GO, *responses_turns(0, 30)], context_management=MANAGED)
    sent = provider.received[-1].body["input"]
    with standing(provider, window=200_000, store=store) as other:
        agent = Agent(other.url, provider)
        agent.ask([*echoed(response), ON], context_management=MANAGED)
        assert agent.sent[: len(sent)] == sent


def test_originals_of_a_conversation_that_a_replica_deleted_are_sent_by_no_other(gateway, tmp_path):
    store = str(tmp_path / "g.db")
    serving, provider = gateway(behave=ignorant, window=200_000, limit=200_000, store=store)
    response = Agent(serving.url, provider).ask([GO, *responses_turns(0, 30)], context_management=MANAGED)
    items = [*echoed(response), ON]
    with standing(provider, window=200_000, store=store) as other:
        agent = Agent(other.url, provider)
        agent.ask(items, context_management=MANAGED)
        assert len(agent.sent) > 3
        (conversation,) = serving.gateway.tracker.all()
        assert call(serving.url, "DELETE", f"/v1/sessions/{conversation.session_id}")[0] == 200
        agent.ask(items, context_management=MANAGED)
        words, _, on = agent.sent
        assert "it was compacted" in str(words)
        assert on["content"] == ON["content"]


def test_of_a_deleted_conversation_no_history_is_remembered_behind_its_items(gateway, tmp_path):
    store = str(tmp_path / "g.db")
    serving, provider = gateway(behave=ignorant, window=200_000, limit=200_000, store=store)
    response = Agent(serving.url, provider).ask([GO, *responses_turns(0, 30)], context_management=MANAGED)
    (conversation,) = serving.gateway.tracker.all()
    with standing(provider, window=200_000, store=store) as other:
        Agent(other.url, provider).ask([*echoed(response), ON], context_management=MANAGED)
        remembered = other.gateway._native.expansion._histories
        assert len(remembered) == 1
        assert call(other.url, "DELETE", f"/v1/sessions/{conversation.session_id}")[0] == 200
        assert not remembered


def test_a_conversation_goes_on_with_another_model_of_another_upstream(agent, gateway, tmp_path):
    store = str(tmp_path / "g.db")
    serving, provider = gateway(behave=ignorant, window=200_000, limit=200_000, store=store)
    first = Agent(serving.url, provider)
    made = first.client.responses.compact(model="gpt-4o", input=[GO, *responses_turns(0, 30)])
    with standing(agent.provider, window=400_000, policy="vibe", store=store, native_compaction="pass") as other:
        moved = Agent(other.url, agent.provider)
        moved.ask([*echoed(made), ON], model="gpt-5")
        assert "setup.py" in str(moved.sent)
        (conversation,) = other.gateway.tracker.all()
        assert len(conversation.body.raws) == 62, "nothing is lost, whatever plans leave of it"


@pytest.mark.parametrize("change", ["other store", "altered"])
def test_an_item_that_was_not_sealed_here_is_refused_with_what_to_do(agent, gateway, change):
    made = agent.client.responses.compact(model="gpt-4o", input=[GO, *responses_turns(0, 8)])
    items, target = echoed(made), agent
    if change == "other store":
        serving, provider = gateway(behave=ignorant)
        target = Agent(serving.url, provider)
    else:
        sealed = items[-1]["encrypted_content"]
        items[-1]["encrypted_content"] = sealed[:-9] + ("A" if sealed[-9] != "A" else "B") + sealed[-8:]
    with pytest.raises(openai.BadRequestError, match="send the messages that it stands for"):
        target.ask([*items, ON])


def test_an_item_of_a_provider_that_nobody_knows_is_forwarded(gateway):
    serving, provider = gateway()
    item = {"type": "compaction", "id": "cmp_1", "encrypted_content": "of somebody"}
    Agent(serving.url, provider).ask([item, ON])
    assert provider.received[-1].body["input"][0] == item
