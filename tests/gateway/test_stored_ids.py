"""Two teams behind one key of a provider: what one of them has stored there is nothing that the other can name."""

import gzip
import json
import time
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace

import anthropic
import openai
import pytest
from google import genai

from refold._gateway.server import ownership
from refold._gateway.server.serving import Serving
from refold._gateway.server.tokens import TokenFile
from refold._gateway.settings import GatewaySettings
from refold._gateway.wire import body as bodies
from refold.errors import StoreError
from tests.gateway.scripted_upstream import ADMIN, call
from tests.gateway.storing_upstream import storing
from tests.gateway.talking import opened

HELLO = [{"role": "user", "content": "Hello."}]
PROVIDERS = ("openai", "anthropic", "gemini")


@contextmanager
def gateways(folder):
    """Start gateways before one provider that stores; `red` and `blue` are the tokens of two teams."""
    file = TokenFile(folder / "tokens.jsonl")
    tokens = {name: file.create(f"team:{name}")[1] for name in ("red", "blue")}
    with ExitStack() as stack:
        url, seen = stack.enter_context(storing())

        def stand(shared=True, **settings):
            keys = dict.fromkeys(PROVIDERS, "upstream-key") if shared else {}
            settings = {"store": None, "tokens": str(folder / "tokens.jsonl"), **settings}
            settings |= {"upstreams": dict.fromkeys(PROVIDERS, url), "upstream_keys": keys, "admin_token": ADMIN}
            return stack.enter_context(Serving(GatewaySettings(port=0, **settings)))

        yield SimpleNamespace(stand=stand, seen=seen, **tokens)


@pytest.fixture
def teams(tmp_path):
    with gateways(tmp_path) as made:
        made.place = str(tmp_path / "g.db")
        yield made


@pytest.fixture(scope="module")
def replicas(tmp_path_factory):
    """Two gateways with one store, which have the provider's key."""
    folder = tmp_path_factory.mktemp("replicas")
    with gateways(folder) as made:
        made.place = str(folder / "g.db")
        made.both = [made.stand(store=made.place) for _ in range(2)]
        yield made


@pytest.fixture(scope="module")
def by_key(replicas):
    """A gateway that sends its own key, and one that sends the client's."""
    return {True: replicas.both[0], False: replicas.stand(shared=False, store=replicas.place)}


def client(serving, token):
    return opened(openai.OpenAI(base_url=f"{serving.url}/v1", api_key=token, max_retries=0))


def claude(serving, token):
    return opened(anthropic.Anthropic(base_url=serving.url, api_key=token, max_retries=0))


def google(serving, token):
    return opened(genai.Client(api_key=token, http_options={"base_url": serving.url}))


def respond(openai, **more):
    return openai.responses.create(model="gpt-4o", **{"input": "Hello.", **more})


def streamed(openai, **more):
    return list(respond(openai, stream=True, **more))[-1].response


def say(claude, **more):
    return claude.beta.messages.create(model="claude-opus-4-6", max_tokens=9, messages=HELLO, **more)


CODE = [{"type": "code_execution_20250825", "name": "code_execution"}]
IMAGE = {"type": "image_generation_call", "status": "completed"}
REASONING = {"type": "reasoning", "summary": []}
USES = {  # how an id comes to be, and the ways to name it
    "response": (lambda sdk: respond(sdk).id, {
        "GET": lambda sdk, id: sdk.responses.retrieve(id),
        "DELETE": lambda sdk, id: sdk.responses.delete(id),
        "cancel": lambda sdk, id: sdk.responses.cancel(id),
        "input_items": lambda sdk, id: sdk.responses.input_items.list(id),
        "previous_response_id": lambda sdk, id: respond(sdk, previous_response_id=id),
        "streamed": lambda sdk, id: streamed(sdk, previous_response_id=id),
        "compact": lambda sdk, id: sdk.responses.compact(model="gpt-4o", previous_response_id=id),
        "input_tokens": lambda sdk, id: sdk.responses.input_tokens.count(model="m", previous_response_id=id),
    }),
    "streamed response": (lambda sdk: streamed(sdk).id, {
        "GET": lambda sdk, id: sdk.responses.retrieve(id),
        "previous_response_id": lambda sdk, id: streamed(sdk, previous_response_id=id),
    }),
    "item": (lambda sdk: respond(sdk).output[0].id, {
        "reference": lambda sdk, id: respond(sdk, input=[*HELLO, {"type": "item_reference", "id": id}]),
        "id alone": lambda sdk, id: respond(sdk, input=[*HELLO, {"id": id}]),
        "reasoning": lambda sdk, id: respond(sdk, input=[*HELLO, {**REASONING, "id": id}]),
        "image": lambda sdk, id: respond(sdk, input=[*HELLO, {**IMAGE, "id": id}]),
        "long image": lambda sdk, id: respond(sdk, input=[*HELLO, {**IMAGE, "id": id, "x": "x" * 70_000}]),
        "of a conversation": lambda sdk, id: sdk.conversations.create(items=[{"type": "item_reference", "id": id}]),
    }),
    "streamed item": (lambda sdk: streamed(sdk).output[0].id, {
        "reference": lambda sdk, id: respond(sdk, input=[*HELLO, {"type": "item_reference", "id": id}]),
    }),
    "conversation": (lambda sdk: sdk.conversations.create().id, {
        "GET": lambda sdk, id: sdk.conversations.retrieve(id),
        "POST": lambda sdk, id: sdk.conversations.update(id, metadata={}),
        "DELETE": lambda sdk, id: sdk.conversations.delete(id),
        "items": lambda sdk, id: sdk.conversations.items.list(id),
        "new item": lambda sdk, id: sdk.conversations.items.create(id, items=HELLO),
        "response": lambda sdk, id: respond(sdk, conversation=id),
        "response of an object": lambda sdk, id: respond(sdk, conversation={"id": id}),
    }),
    "stored chat": (lambda sdk: sdk.chat.completions.create(model="m", messages=HELLO, store=True).id, {
        "GET": lambda sdk, id: sdk.chat.completions.retrieve(id),
        "POST": lambda sdk, id: sdk.chat.completions.update(id, metadata={}),
        "DELETE": lambda sdk, id: sdk.chat.completions.delete(id),
        "messages": lambda sdk, id: sdk.chat.completions.messages.list(id),
    }),
}  # fmt: skip
CASES = [
    pytest.param(*USES[kind][:1], use, id=f"{kind}: {name}") for kind in USES for name, use in USES[kind][1].items()
]


def refusal(use, *given):
    """Return what an SDK raises for a refused request, without the id that was named."""
    with pytest.raises(openai.APIStatusError) as error:
        use(*given)
    assert error.value.status_code in (400, 404)
    return error.value.status_code, json.dumps(error.value.body).replace(given[1], "ID")


@pytest.mark.parametrize(("make", "use"), CASES)
def test_what_one_team_stores_another_cannot_name(replicas, make, use):
    id = make(client(replicas.both[0], replicas.red))
    for serving in replicas.both:
        blue, before = client(serving, replicas.blue), len(replicas.seen)
        assert refusal(use, blue, id) == refusal(use, blue, "resp_" + "0" * 8), "not yours and not there are one answer"
        assert len(replicas.seen) == before, "nothing of it reaches the provider"
        use(client(serving, replicas.red), id)
        use(client(serving, ADMIN), id)


def test_what_one_team_stores_another_cannot_continue_over_a_websocket(replicas):
    def asked(connection, **more):
        connection.response.create(model="m", input=HELLO, **more)
        while (event := connection.recv()).type not in ("response.completed", "error"):
            pass
        return event

    red, blue = (client(replicas.both[0], token) for token in (replicas.red, replicas.blue))
    with red.responses.connect() as owner, blue.responses.connect() as other:
        id = asked(owner).response.id
        before = len(replicas.seen)
        refused = asked(other, previous_response_id=id)
        assert (refused.status, refused.error.code) == (400, "previous_response_not_found")
        assert len(replicas.seen) == before
        assert asked(owner, previous_response_id=id).type == "response.completed"
        assert json.loads(replicas.seen[-1][1])["input"][0] == HELLO[0]
        assert b"upstream-key" in replicas.seen[-1][0]


def test_containers_of_code_are_their_teams_own(replicas):
    serving, teams = replicas.both[1], replicas
    id = say(claude(serving, teams.red), tools=CODE).container.id
    say(claude(serving, teams.red), container=id)
    for container in (id, {"id": id}):
        with pytest.raises(anthropic.NotFoundError, match="Container not found"):
            say(claude(serving, teams.blue), container=container)


def test_caches_of_gemini_are_their_teams_own(replicas):
    red, blue = (google(replicas.both[1], token) for token in (replicas.red, replicas.blue))
    name = red.caches.create(model="m", config={"contents": "Hello."}).name
    red.models.generate_content(model="m", contents="Hello.", config={"cached_content": name})
    red.caches.get(name=name)
    for use in (
        lambda: blue.models.generate_content(model="m", contents="Hello.", config={"cached_content": name}),
        lambda: blue.caches.get(name=name),
        lambda: blue.caches.delete(name=name),
        lambda: blue.caches.update(name=name, config={"ttl": "9s"}),
    ):
        with pytest.raises(genai.errors.ClientError, match="CachedContent not found"):
            use()


def raw_uses(id):
    """Return requests that name a response in unusual ways: method, path and body."""
    plain = {"model": "gpt-4o", "input": "Hello."}
    named_body = {**plain, "previous_response_id": id}
    named = json.dumps(named_body)
    letters = named.replace(id, "".join(f"\\u{ord(letter):04x}" for letter in id))
    twice = (
        named.replace("{", '{"previous_response_id": null, ', 1),
        named.replace("}", ', "previous_response_id": null}'),
    )
    return {
        "escaped": ("POST", "/v1/responses", named.replace("previous_", "previous\\u005f").encode()),
        "escaped id": ("POST", "/v1/responses", letters.encode()),
        "twice, last": ("POST", "/v1/responses", twice[0].encode()),
        "twice, first": ("POST", "/v1/responses", twice[1].encode()),
        "UTF-16": ("POST", "/v1/responses", json.dumps({**plain, "previous_response_id": id}).encode("utf-16")),
        "long UTF-16": (
            "POST",
            "/v1/responses",
            json.dumps({**named_body, "instructions": "x" * 70_000}).encode("utf-16"),
        ),
        "after a list": ("POST", "/v1/responses", {"model": "m", "input": HELLO, "previous_response_id": id}),
        "encoded letters": ("GET", f"/v1/responses/{id.replace('_', '%5F')}", None),
        "encoded collection": ("GET", f"/v1/%72esponses/{id}", None),
        "two slashes": ("GET", f"/v1/responses//{id}", None),
        "another prefix": ("GET", f"/openai/v1/responses/{id}", None),
        "capitals": ("GET", f"/v1/Responses/{id}", None),
        "behind another id": ("GET", f"/v1/responses/x/{id}", None),
        "as of models": ("GET", f"/v1/responses/{id}/models", None),
    }


@pytest.mark.parametrize("shared", [True, False], ids=["the gateway's key", "the client's key"])
@pytest.mark.parametrize("way", raw_uses("resp_1"))
def test_no_way_of_writing_an_id_makes_it_anothers(replicas, by_key, way, shared):
    serving, teams = by_key[shared], replicas
    headers = {} if shared else {"authorization": "Bearer own"}
    body = {"model": "gpt-4o", "input": "Hello."}
    made = call(serving.url, path="/v1/responses", body=body, headers={"x-refold-token": teams.red, **headers})
    before = len(teams.seen)
    method, path, body = raw_uses(json.loads(made[2])["id"])[way]
    for more in ({}, {"x-refold-bypass": "1"}):
        sent = {"x-refold-token": teams.blue, **headers, **more}
        assert call(serving.url, method, path, body, sent)[0] in (400, 403, 404)
    assert len(teams.seen) == before


def test_what_is_new_in_a_long_conversation_is_looked_at_wherever_it_stands(replicas):
    red, blue = (client(replicas.both[0], token) for token in (replicas.red, replicas.blue))
    item = {"type": "item_reference", "id": respond(red).output[0].id}
    talk = []
    for turn in range(6):
        talk += [{"role": "user", "content": f"turn {turn}"}, {"role": "assistant", "content": "ok"}]
        respond(blue, input=talk, tools=[])
        tools = [{"type": "code_interpreter", "container": item["id"]}]
        for changed in ({"input": [*talk, item]}, {"input": [item, *talk[1:]]}, {"input": talk, "tools": tools}):
            with pytest.raises(openai.NotFoundError):
                respond(blue, **changed)


CITED = {"type": "container_file_citation", "container_id": "cntr_1", "file_id": "cfile_1", "filename": "a.txt"}
TEXT = {"type": "output_text", "text": "ok", "annotations": [CITED]}
INLINE = [
    {"type": "message", "role": "assistant", "status": "completed", "content": [TEXT]},
    {"type": "reasoning", "summary": [], "encrypted_content": "sealed"},
    {"type": "image_generation_call", "status": "completed", "result": "AAAA"},
    {"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "x"}},
]


@pytest.mark.parametrize("item", INLINE, ids=lambda item: item["type"])
def test_what_was_not_stored_is_sent_again_with_its_ids_and_nothing_of_another_team(replicas, item):
    red, blue = (client(replicas.both[0], token) for token in (replicas.red, replicas.blue))
    respond(blue, input=[*HELLO, {**item, "id": "unknown_1"}], store=False)
    stored = respond(red).output[0].id
    respond(red, input=[*HELLO, {**item, "id": stored}])
    with pytest.raises(openai.NotFoundError):
        respond(blue, input=[*HELLO, {**item, "id": stored}])
    with pytest.raises(openai.NotFoundError):
        respond(blue, input=[*HELLO, {**item, "id": "unknown_1"}, {"type": "item_reference", "id": "unknown_1"}])


def test_a_vector_store_that_an_administrator_has_made_is_for_all_and_one_of_a_team_its_own(replicas, by_key):
    own = {"authorization": "Bearer x", "x-refold-token": replicas.red}
    theirs = json.loads(call(by_key[False].url, "POST", "/v1/vector_stores", {}, own)[2])["id"]
    blue = client(replicas.both[0], replicas.blue)
    respond(blue, tools=[{"type": "file_search", "vector_store_ids": ["vs_of_an_administrator"]}])
    with pytest.raises(openai.NotFoundError, match="Vector store"):
        respond(blue, tools=[{"type": "file_search", "vector_store_ids": ["vs_of_an_administrator", theirs]}])


def test_results_of_claudes_own_tools_are_sent_again_with_their_files(replicas):
    output = {"type": "bash_code_execution_output", "file_id": "file_1"}
    result = {"type": "bash_code_execution_result", "stdout": "", "stderr": "", "return_code": 0, "content": [output]}
    block = {"type": "bash_code_execution_tool_result", "tool_use_id": "srvtoolu_1", "content": result}
    document = {"type": "document", "source": {"type": "file", "file_id": "file_1"}}
    path, headers = "/v1/messages", {"x-refold-token": replicas.red, "anthropic-version": "2023-06-01"}

    def ask(*messages):
        body = {"model": "claude-opus-4-6", "max_tokens": 9, "messages": [HELLO[0], *messages]}
        return call(replicas.both[0].url, "POST", path, body, headers)[0]

    assert ask({"role": "assistant", "content": [block]}, HELLO[0]) == 200
    assert ask({"role": "user", "content": [document]}) == 404
    tool_result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [document]}
    assert ask({"role": "user", "content": [tool_result]}) == 404


@pytest.mark.parametrize("limit", ["LONGEST_MESSAGE", "MOST_VALUES"])
def test_what_is_too_long_to_be_read_and_may_name_an_id_goes_no_further(replicas, monkeypatch, limit):
    for module in (bodies, ownership):
        monkeypatch.setattr(module, limit, 1_000, raising=module is bodies)
    body = {"model": "m", "input": [*HELLO, {"role": "user", "content": "x" * 100_000}] + [{"id": "x"}] * 2_000}
    before, headers = len(replicas.seen), {"x-refold-token": replicas.red}
    for more in ({}, {"x-refold-bypass": "1"}):
        assert call(replicas.both[0].url, "POST", "/v1/responses", body, headers | more)[0] == 413
    assert len(replicas.seen) == before


def test_what_a_tool_calls_an_id_is_none_of_the_providers(replicas):
    red, blue = (client(replicas.both[0], token) for token in (replicas.red, replicas.blue))
    id = respond(red).id
    schema = {"type": "object", "properties": {"file_id": {"type": "string"}}, "example": {"file_id": id}}
    call = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": json.dumps({"file_id": id})}
    output = {"type": "function_call_output", "call_id": "c1", "output": json.dumps({"file_id": id})}
    tools = [{"type": "function", "name": "f", "parameters": schema}]
    respond(blue, input=[*HELLO, call, output], tools=tools, metadata={"conversation": id})


@pytest.mark.parametrize(
    ("shared", "setting", "passes"),
    [(True, "", False), (False, "", True), (True, "pass", True), (False, "refuse", False)],
)
def test_an_id_from_elsewhere_is_let_through_or_refused_as_the_settings_say(teams, shared, setting, passes):
    serving = teams.stand(shared, unknown_ids=setting)
    headers = {"x-refold-token": teams.red} | ({} if shared else {"authorization": "Bearer own"})
    body = {"model": "m", "input": "Hello.", "previous_response_id": "resp_elsewhere"}
    assert call(serving.url, path="/v1/responses", body=body, headers=headers)[0] == (200 if passes else 400)
    path = "/v1/responses/resp_elsewhere"
    assert call(serving.url, "GET", path, headers=headers)[0] == (418 if passes else 404)


def test_files_and_batches_that_go_by_a_clients_key_are_their_teams_own(replicas, by_key):
    serving, teams = by_key[False], replicas

    def ask(token, method, path, body=None):
        status, _, data = call(serving.url, method, path, body, {"x-refold-token": token, "authorization": "Bearer x"})
        return status, json.loads(data)

    file = ask(teams.red, "POST", "/v1/files", {})[1]["id"]
    batch = ask(teams.red, "POST", "/v1/batches", {"input_file_id": file})[1]
    for id in (file, batch["output_file_id"]):
        part = {"type": "input_file", "file_id": id}
        body = {"model": "m", "input": [{"role": "user", "content": [part]}]}
        for token, status in ((teams.blue, 404), (teams.red, 200)):
            assert ask(token, "GET", f"/v1/files/{id}")[0] == status
            assert ask(token, "POST", "/v1/batches", {"input_file_id": id})[0] == status
            assert ask(token, "POST", "/v1/responses", body)[0] == status
    assert ask(teams.blue, "GET", f"/v1/batches/{batch['id']}")[0] == 404


def test_images_that_are_changed_are_their_teams_own(replicas, by_key):
    headers = {"authorization": "Bearer x", "x-refold-token": replicas.red}
    file = json.loads(call(by_key[False].url, "POST", "/v1/files", {}, headers)[2])["id"]
    body = {"model": "gpt-image-1.5", "prompt": "p", "images": [{"file_id": file}]}
    for serving in by_key.values():
        before = len(replicas.seen)
        for path in ("/v1/images/edits", "/v1/images/edits/", "/v1/images/%65dits"):
            assert call(serving.url, "POST", path, body, {**headers, "x-refold-token": replicas.blue})[0] in (403, 404)
        assert len(replicas.seen) == before
        call(serving.url, "POST", "/v1/images/edits", body, headers)
        assert len(replicas.seen) == before + 1


WRITTEN = {  # how a body can be sent, and under which header
    "plain": (lambda raw: raw, {}),
    "escaped": (lambda raw: raw.replace(b"msg_", b"msg\\u005f"), {}),
    "gzip": (gzip.compress, {"content-encoding": "gzip"}),
}


@pytest.mark.parametrize("way", WRITTEN)
def test_what_a_client_names_itself_is_not_made_its_own(replicas, way):
    serving, (write, header) = replicas.both[0], WRITTEN[way]
    red, blue = (client(serving, token) for token in (replicas.red, replicas.blue))
    path = f"/v1/conversations/{red.conversations.create().id}/items"
    for named in (f"msg_{way}", f"path/msg_{way}"):
        body = write(json.dumps({"items": [{**HELLO[0], "id": named}]}).encode())
        status, _, data = call(serving.url, "POST", path, body, {"x-refold-token": replicas.red, **header})
        assert (status, json.loads(data)["data"][0]["id"]) == (200, named), "the provider takes the name"
        for sdk in (red, blue):
            with pytest.raises(openai.NotFoundError):
                respond(sdk, input=[*HELLO, {"type": "item_reference", "id": f"msg_{way}"}])


def test_an_id_stays_the_first_teams_whoever_else_is_given_it(tmp_path):
    with ExitStack() as stack:
        folders = [tmp_path / name for name in ("here", "there")]  # two providers, which give the same ids
        for folder in folders:
            folder.mkdir()
        teams = [stack.enter_context(gateways(folder)) for folder in folders]
        servings = [each.stand(store=str(tmp_path / "g.db")) for each in teams]
        red, late_red = (client(*pair) for pair in zip(servings, (teams[0].red, teams[1].red), strict=True))
        blue = client(servings[1], teams[1].blue)
        for answer in (respond, streamed):
            id = answer(red).id
            assert answer(blue).id == id
            refusal(lambda sdk, id: sdk.responses.retrieve(id), blue, id)
            assert late_red.responses.retrieve(id).id == id


def test_the_name_of_a_vector_store_is_no_id(by_key, replicas):
    headers = {"authorization": "Bearer x", "x-refold-token": replicas.red}
    status, _, data = call(by_key[False].url, "POST", "/v1/vector_stores", {"name": "resp_named"}, headers)
    assert (status, json.loads(data)["name"]) == (200, "resp_named")
    path = f"/v1/vector_stores/{json.loads(data)['id']}"
    assert call(by_key[False].url, "GET", path, headers=headers)[0] == 200
    red = client(by_key[True], replicas.red)
    assert refusal(lambda sdk, id: sdk.responses.retrieve(id), red, "resp_named")[0] == 404


@pytest.mark.parametrize("name", ["doc", "args", "input"])
def test_a_variable_of_a_prompt_hides_no_file_whatever_its_name(replicas, by_key, name):
    headers = {"authorization": "Bearer x", "x-refold-token": replicas.red}
    file = json.loads(call(by_key[False].url, "POST", "/v1/files", {}, headers)[2])["id"]
    variables = {"type": "tool_use", name: {"type": "input_file", "file_id": file}}
    red, blue = (client(replicas.both[0], token) for token in (replicas.red, replicas.blue))
    respond(red, prompt={"id": "pmpt_1", "variables": variables})
    with pytest.raises(openai.NotFoundError, match="File"):
        respond(blue, prompt={"id": "pmpt_1", "variables": variables})


@pytest.mark.parametrize(
    "path", ["/v1/conversations", "/v1/responses", "/v1/chat/completions", "/v1beta/cachedContents"]
)
def test_lists_of_what_a_shared_key_stores_are_for_administrators(replicas, path):
    serving, teams = replicas.both[0], replicas
    assert call(serving.url, "GET", path, headers={"x-refold-token": teams.red})[0] == 403
    assert call(serving.url, "GET", path, headers={"x-refold-token": ADMIN})[0] == 200


def test_an_answer_that_is_not_stored_writes_nothing_and_one_that_is_writes_once(teams, monkeypatch):
    serving = teams.stand()
    store, written = serving.gateway._keeper._store, []
    claim = store.claim
    monkeypatch.setattr(store, "claim", lambda keys, owner: written.append((len(keys), owner)) or claim(keys, owner))
    red = client(serving, teams.red)
    for answer in (respond, streamed):
        answer(red, store=False)
        red.chat.completions.create(model="m", messages=HELLO)
        assert written == []
        answer(red)
        assert written == [(2, "team:red")], "the id of the answer and that of its item"
        written.clear()


def test_without_owners_nothing_is_recorded(tmp_path, monkeypatch):
    with (
        storing() as (url, _),
        Serving(GatewaySettings(upstreams={"openai": url}, port=0, tokens=str(tmp_path / "none.jsonl"))) as serving,
    ):
        monkeypatch.setattr(ownership, "blake2b", None)
        sdk = client(serving, "own")
        assert respond(sdk, previous_response_id=respond(sdk).id).id
        assert sdk.responses.retrieve("resp_00000002").id


def test_while_the_store_fails_what_is_known_here_goes_on_and_all_else_waits(teams, monkeypatch):
    serving = teams.stand(store=teams.place)
    store, failing = serving.gateway._keeper._store, []
    red = client(serving, teams.red)
    early = respond(red).id
    serving.gateway._ownership._known.clear()  # as after ten minutes

    def fails(name):
        method = getattr(store, name)

        def called(*given):
            if failing:
                raise StoreError("down")
            return method(*given)

        monkeypatch.setattr(store, name, called)

    for name in ("claim", "owners", "check_write"):
        fails(name)
    failing.append(True)
    late = respond(red).id
    respond(red, previous_response_id=late)
    with pytest.raises(openai.InternalServerError) as error:
        respond(red, previous_response_id=early)
    assert error.value.status_code == 503
    failing.clear()
    end = time.monotonic() + 10
    while serving.gateway._keeper._access.down and time.monotonic() < end:
        time.sleep(0.05)
    respond(red, previous_response_id=early)
    respond(red)  # with which the others are written
    other = teams.stand(store=teams.place)
    assert refusal(lambda sdk, id: respond(sdk, previous_response_id=id), client(other, teams.blue), late)[0] == 400
    respond(client(other, teams.red), previous_response_id=late)


def test_an_id_is_forgotten_when_it_was_not_used_for_the_retention(teams):
    serving = teams.stand(retention=1.0)
    red = client(serving, teams.red)
    used, unused = red.conversations.create().id, red.conversations.create().id
    end = time.monotonic() + 2.2
    while time.monotonic() < end:
        red.conversations.retrieve(used)
        time.sleep(0.1)
    red.conversations.retrieve(used)
    assert refusal(lambda sdk, id: sdk.conversations.retrieve(id), red, unused)[0] == 404
