import http.client
import ipaddress
import json
import math
import shutil
import ssl
import time
import urllib.request
from datetime import UTC, datetime

import anthropic
import openai
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from google import genai

from refold._gateway.server import serving as server_module
from refold._gateway.server import tokens
from refold._gateway.server.asgi import GatewayError
from refold._gateway.server.auth import Auth
from refold._gateway.server.serving import Serving
from refold._gateway.server.tokens import TokenFile
from refold._gateway.settings import GatewaySettings
from refold._page.access import WRONG
from refold.errors import UsageError
from tests.gateway.scripted_upstream import ADMIN, call, chat, raw, upstream, whole
from tests.gateway.talking import opened


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setattr(tokens, "CHECKED", 0.0)
    return TokenFile(tmp_path / "tokens.jsonl")


@pytest.fixture
def stand(file):
    """Start a gateway before a server that answers with an empty object; returns it, and what the server saw."""
    from contextlib import ExitStack

    with ExitStack() as stack:

        def make(**settings):
            url, seen = stack.enter_context(upstream(lambda head, body: whole(b"{}")))
            upstreams = dict.fromkeys(("openai", "anthropic", "gemini"), url)
            settings = {"upstreams": upstreams, "port": 0, "tokens": str(file._path), **settings}
            return stack.enter_context(Serving(GatewaySettings(**settings))), seen

        yield make


CHAT = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages",
        "gemini": "/v1beta/models/gemini-2.5-pro:generateContent"}  # fmt: skip
KEY_HEADER = {"openai": "authorization", "anthropic": "x-api-key", "gemini": "x-goog-api-key"}


def test_without_a_token_models_answer_on_loopback_and_nothing_else_does(stand):
    serving, seen = stand()
    assert call(serving.url, body=chat(1))[0] == 200
    assert call(serving.url, path="/v1/compact", body=chat(1))[0] == 200
    for path in ("/v1/sessions", "/metrics", "/v1/recall?q=x", "/v1/sessions/conv_a"):
        status, _, data = call(serving.url, "GET", path, headers={"x-refold-token": ""})
        assert status == 401
        assert "refold tokens create" in json.loads(data)["error"]["message"]
    assert len(seen) == 1


def test_a_token_that_is_made_or_revoked_counts_while_the_gateway_runs(stand, file):
    serving, _ = stand()
    token, text = file.create("", admin=True)
    assert call(serving.url, "GET", "/metrics", headers={"x-refold-token": text})[0] == 200
    file.revoke(token.id)
    assert call(serving.url, "GET", "/metrics", headers={"x-refold-token": text})[0] == 401
    assert call(serving.url, body=chat(1), headers={"x-refold-token": text})[0] == 401
    assert call(serving.url, body=chat(1))[0] == 200


@pytest.mark.parametrize("end", ["revoked", "removed"])
def test_one_token_for_all_is_no_administrators_again_when_the_last_other_one_ends(stand, file, end):
    token, _ = file.create("team:red")
    serving, _ = stand(token="shared")
    shared = {"x-refold-token": "shared"}
    assert call(serving.url, "GET", "/metrics", headers=shared)[0] == 403
    if end == "revoked":
        file.revoke(token.id)
    else:
        file._path.unlink()
    assert call(serving.url, "GET", "/metrics", headers=shared)[0] == 403


def test_one_token_for_all_is_an_administrators_only_while_there_is_no_other(stand, file):
    shared = {"x-refold-token": "shared"}
    serving, _ = stand(token="shared")
    assert call(serving.url, "GET", "/metrics", headers=shared)[0] == 200
    file.create("team:red")
    assert call(serving.url, "GET", "/metrics", headers=shared)[0] == 403
    assert call(serving.url, "GET", "/v1/sessions", headers=shared)[0] == 200
    other, _ = stand(token="shared", admin_token=ADMIN, tokens="")
    assert call(other.url, "GET", "/metrics", headers=shared)[0] == 403
    assert call(other.url, "GET", "/metrics")[0] == 200


@pytest.mark.parametrize(
    "settings", [{"host": "0.0.0.0"}, {"require_token": True}, {"upstream_keys": {"openai": "sk-1"}}]
)
def test_a_gateway_for_others_serves_nobody_without_a_token(stand, file, settings):
    _, text = file.create("user:ann")
    serving, seen = stand(**settings)
    url = serving.url.replace("0.0.0.0", "127.0.0.1")
    assert call(url, body=chat(1))[0] == 401
    assert not seen
    assert call(url, body=chat(1), headers={"x-refold-token": text})[0] == 200


@pytest.mark.parametrize("provider", CHAT)
@pytest.mark.parametrize("way", ["header", "path", "key", "query", "several"])
def test_a_token_goes_no_further_and_the_gateways_key_goes_instead_of_the_clients(stand, file, provider, way):
    _, text = file.create("user:ann")
    serving, seen = stand(upstream_keys=dict.fromkeys(CHAT, "upstream-key"))
    path, name = CHAT[provider], KEY_HEADER[provider]
    bearer = "Bearer " if provider == "openai" else ""
    path, headers = {
        "header": (path + "?key=own", {"x-refold-token": text, name: bearer + "own", "api-key": "own"}),
        "path": (f"/token/{text}{path}", {name: bearer + "own"}),
        "key": (path, {name: bearer + text}),
        "query": (f"{path}?alt=json&key={text}&x=1", {}),
        "several": (f"{path}?key={text}", dict.fromkeys(KEY_HEADER.values(), text) | {"x-refold-token": text}),
    }[way]
    body = {"contents": [{"role": "user", "parts": [{"text": "x"}]}]} if provider == "gemini" else chat(1)
    assert call(serving.url, path=path, body=body, headers=headers)[0] == 200
    assert call(serving.url, "GET", path.replace(CHAT[provider], "/v1/models"), headers=headers)[0] == 200
    for head, sent in seen:
        assert text.encode() not in head + sent
        assert b"own" not in head
        assert head.count(b"upstream-key") == 1
    assert f"{name}: {bearer}upstream-key\r\n".lower().encode() in seen[0][0].lower()


def test_without_a_key_of_its_own_the_gateway_sends_the_clients(stand, file):
    _, text = file.create("user:ann")
    serving, seen = stand()
    call(serving.url, body=chat(1), headers={"x-refold-token": text, "authorization": "Bearer own"})
    assert b"Bearer own" in seen[0][0]


def test_a_token_that_is_not_in_force_reaches_no_provider(stand, file):
    token, text = file.create("user:ann")
    file.revoke(token.id)
    serving, seen = stand()
    for headers in ({"authorization": f"Bearer {text}"}, {"x-api-key": text}, {"authorization": "bearer refold_x_y"}):
        assert call(serving.url, body=chat(1), headers=headers)[0] == 401
    assert call(serving.url, path=f"{CHAT['gemini']}?key={text}", body={})[0] == 401
    assert not seen


def test_the_clients_of_all_providers_take_a_token_as_their_key(gateway, file):
    _, text = file.create("user:ann")
    keys = dict.fromkeys(CHAT, "upstream-key")
    serving, provider = gateway(tokens=str(file._path), upstream_keys=keys, key="upstream-key")
    chatting = opened(openai.OpenAI(base_url=f"{serving.url}/v1", api_key=text, max_retries=0))
    said = [{"role": "user", "content": "Hello."}]
    assert chatting.chat.completions.create(model="gpt-4o", messages=said).choices
    claude = opened(anthropic.Anthropic(base_url=serving.url, api_key=text, max_retries=0))
    assert claude.messages.create(model="claude-opus-4-6", max_tokens=9, messages=said).content
    claude = opened(anthropic.Anthropic(base_url=serving.url, auth_token=text, max_retries=0))
    assert claude.messages.create(model="claude-opus-4-6", max_tokens=9, messages=said).content
    google = opened(genai.Client(api_key=text, http_options={"base_url": serving.url}))
    assert google.models.generate_content(model="gemini-2.5-pro", contents="Hello.").candidates
    assert [each.status for each in provider.received] == [200] * 4


@pytest.mark.parametrize(("method", "path", "status"), [
    ("GET", "/v1/models", 200), ("GET", "/v1/models/org%2Fname", 200), ("POST", "/v1/embeddings", 200),
    ("GET", "/v1/files", 403), ("GET", "/v1/responses/resp_1", 404), ("DELETE", "/v1/models/ft-1", 403),
    ("POST", "/v1/batches", 403), ("GET", "/v1/chat/completions", 403), ("POST", "/v1/files", 403),
    ("GET", "/v1beta/cachedContents", 403), ("GET", "/v1/conversations", 403), ("GET", "/v1/files/file-1", 404),
])  # fmt: skip
def test_with_a_shared_key_what_a_provider_stores_is_for_administrators(stand, file, method, path, status):
    _, text = file.create("user:ann")
    serving, seen = stand(upstream_keys=dict.fromkeys(CHAT, "upstream-key"), admin_token=ADMIN)
    assert call(serving.url, method, path, headers={"x-refold-token": text})[0] == status
    assert len(seen) == (status == 200)
    assert call(serving.url, method, path, headers={"x-refold-token": ADMIN})[0] == 200


@pytest.mark.parametrize("path", ["/v1/files#/models", "/v1/responses/resp_1#/models", "/v1/files%3F/models"])
def test_with_a_shared_key_no_end_of_a_path_makes_another_path_of_it(stand, file, path):
    _, text = file.create("user:ann")
    serving, seen = stand(upstream_keys={"openai": "upstream-key"})
    head = f"GET {path} HTTP/1.1\r\nhost: localhost\r\nx-refold-token: {text}\r\nconnection: close\r\n\r\n"
    assert raw(serving.url, head.encode()).startswith(b"HTTP/1.1 400")
    assert not seen


def guessed(auth, text, host="192.0.2.1", name=b"x-refold-token"):
    """Return the status that a request with a token would have, 200 where it is admitted."""
    headers = [(name, text.encode())]
    try:
        auth.admit("/v1/models", headers, dict(headers), b"", host)
    except GatewayError as error:
        return error.status
    return 200


@pytest.mark.parametrize("name", [b"x-refold-token", b"authorization", b"x-api-key"])
def test_an_address_that_guesses_tokens_waits_and_no_other_does(file, monkeypatch, name):
    now = 1_000.0
    monkeypatch.setattr("refold._page.rates.monotonic", lambda: now)
    _, text = file.create("user:ann")
    auth = Auth(GatewaySettings(admin_token=ADMIN, tokens=str(file._path), require_token=True))
    assert guessed(auth, ADMIN, "192.0.2.2") == 200
    for host in ("192.0.2.1", "192.0.2.2"):
        answers = [guessed(auth, f"wrong {number}", host, name) for number in range(WRONG + 5)]
        assert answers == [401] * WRONG + [429] * 5
    assert guessed(auth, ADMIN) == 429, "or a guess that is right would be told"
    assert guessed(auth, ADMIN, "192.0.2.2") == 200, "whose it is goes on"
    assert guessed(auth, text) == 200, "which nobody can guess"
    assert guessed(auth, "wrong", "192.0.2.3") == 401
    now += 60
    assert guessed(auth, ADMIN) == 200


def test_the_addresses_of_one_network_of_ipv6_are_one(file):
    auth = Auth(GatewaySettings(admin_token=ADMIN, require_token=True))
    answers = [guessed(auth, "wrong", f"2001:db8::{number:x}") for number in range(WRONG + 1)]
    assert answers == [401] * WRONG + [429]
    assert guessed(auth, "wrong", "2001:db8:0:1::1") == 401


def test_a_request_without_any_token_is_no_guess(stand):
    serving, _ = stand(require_token=True, admin_token=ADMIN)
    assert {call(serving.url, "GET", "/v1/models")[0] for _ in range(WRONG + 5)} == {401}
    status, headers, _ = [
        call(serving.url, "GET", "/v1/models", headers={"authorization": "Bearer wrong"}) for _ in range(WRONG + 1)
    ][-1]
    assert status == 429
    assert 1 <= int(headers["retry-after"]) <= 2
    assert call(serving.url, "GET", "/livez")[0] == 200


SHAPES = {
    "openai": lambda body: (body["error"]["code"], body["error"]["type"]),
    "anthropic": lambda body: body["error"]["type"],
    "gemini": lambda body: (body["error"]["code"], body["error"]["status"]),
}


@pytest.mark.parametrize(("provider", "slow", "large"), [
    ("openai", ("rate_limit_exceeded", "requests"), ("request_too_large", "invalid_request_error")),
    ("anthropic", "rate_limit_error", "request_too_large"),
    ("gemini", (429, "RESOURCE_EXHAUSTED"), (413, "INVALID_ARGUMENT")),
])  # fmt: skip
def test_limits_of_a_token_are_told_in_the_providers_shape(stand, file, provider, slow, large):
    _, text = file.create("team:red", rate=2, max_body=500)
    _, other = file.create("team:blue")
    serving, seen = stand()
    said = {"role": "user", "parts": [{"text": "x"}]} if provider == "gemini" else {"role": "user", "content": "x"}
    body = {"model": "m", "contents" if provider == "gemini" else "messages": [said]}
    headers = {"x-refold-token": text}
    assert call(serving.url, path=CHAT[provider], body=body, headers=headers)[0] == 200
    status, _, data = call(serving.url, path=CHAT[provider], body={**body, "x": "y" * 600}, headers=headers)
    assert (status, SHAPES[provider](json.loads(data))) == (413, large)
    assert "500 bytes" in data.decode()
    status, answered, data = call(serving.url, path=CHAT[provider], body=body, headers=headers)
    assert (status, SHAPES[provider](json.loads(data))) == (429, slow)
    assert 1 <= math.ceil(float(answered["retry-after"])) <= 30
    assert (
        call(serving.url, path=CHAT[provider], body={**body, "x": "y" * 600}, headers={"x-refold-token": other})[0]
        == 200
    )
    assert len(seen) == 2


def test_limits_hold_on_all_other_paths(stand, file):
    _, text = file.create("team:red", max_body=500)
    headers = {"x-refold-token": text}
    serving, _ = stand(rate=1)
    assert call(serving.url, path="/v1/files", body=b"x" * 600, headers=headers)[0] == 413
    assert call(serving.url, "GET", "/v1/sessions", headers=headers)[0] == 429
    other, _ = stand()
    chunked = {**headers, "transfer-encoding": "chunked"}
    assert call(other.url, path="/v1/files", body=b"258\r\n" + b"x" * 600 + b"\r\n0\r\n\r\n", headers=chunked)[0] == 413
    assert call(other.url, path="/v1/compact", body=b"x" * 600, headers=headers)[0] == 413


@pytest.mark.parametrize(("headers", "status"), [
    ({}, 200), ({"sec-fetch-site": "same-origin"}, 200), ({"sec-fetch-site": "none"}, 200),
    ({"sec-fetch-site": "cross-site"}, 403), ({"sec-fetch-site": "same-site"}, 403), ({"origin": "null"}, 403),
    ({"origin": "http://localhost:1"}, 403), ({"origin": "https://evil.test", "sec-fetch-site": "same-origin"}, 403),
    ({"host": "gateway.test", "origin": "https://gateway.test"}, 200),
])  # fmt: skip
def test_control_routes_are_not_for_pages_of_other_sites_whatever_their_token(stand, headers, status):
    serving, _ = stand(admin_token=ADMIN)
    assert call(serving.url, "GET", "/v1/sessions", headers=headers)[0] == status
    assert (
        call(serving.url, path="/token/" + ADMIN.replace(" ", "%20") + "/v1/compact", body=chat(1), headers=headers)[0]
        == status
    )


def self_signed(place):
    """Write a certificate of 127.0.0.1 that signs itself, and its key."""
    paths = place / "cert.pem", place / "key.pem"
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
        .not_valid_before(datetime(2020, 1, 1, tzinfo=UTC)).not_valid_after(datetime(2120, 1, 1, tzinfo=UTC))
        .add_extension(address, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    paths[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return paths


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return self_signed(tmp_path_factory.mktemp("tls"))


def test_clients_come_by_https_with_a_certificate(stand, certificate):
    serving, seen = stand(tls_certificate=str(certificate[0]), tls_key=str(certificate[1]))
    assert serving.url.startswith("https://127.0.0.1:")
    context = ssl.create_default_context(cafile=certificate[0])
    for path, size in ((CHAT["openai"], 1), ("/v1/files", 2_000)):  # a body in one part, and in many
        body = json.dumps(chat(size)).encode()
        request = urllib.request.Request(serving.url + path, body, {"content-type": "application/json"})
        with urllib.request.urlopen(request, context=context) as answer:
            assert answer.read() == b"{}"
        assert seen[-1][1] == body
    with pytest.raises(OSError, match=r"reset|closed|remote end|Connection"):
        call(serving.url.replace("https", "http"), body=chat(1))


def test_a_certificate_that_cannot_be_used_is_named_before_anything_listens(certificate, tmp_path):
    (tmp_path / "no.pem").write_text("no certificate")
    for pair in (
        (tmp_path / "none.pem", certificate[1]),
        (tmp_path / "no.pem", certificate[1]),
        (certificate[1], certificate[0]),
    ):
        with pytest.raises(UsageError, match=r"certificate .*\.pem .*PEM"):
            Serving(GatewaySettings(port=0, tls_certificate=str(pair[0]), tls_key=str(pair[1])))
    with pytest.raises(UsageError, match="both --tls-certificate and --tls-key"):
        GatewaySettings(tls_certificate="x")


def test_a_certificate_that_is_replaced_is_that_of_new_connections_once_its_key_is_there(
    stand, certificate, tmp_path, monkeypatch, caplog
):
    monkeypatch.setattr(server_module, "LOOK", 1)
    caplog.set_level("INFO", "refold.gateway")
    used = tmp_path / "cert.pem", tmp_path / "key.pem"
    old = certificate[0].read_text()
    for source, place in zip(certificate, used, strict=True):
        shutil.copy(source, place)
    serving, _ = stand(tls_certificate=str(used[0]), tls_key=str(used[1]))
    address = "127.0.0.1", int(serving.url.rpartition(":")[2])
    client = http.client.HTTPSConnection(*address, context=ssl.create_default_context(cafile=certificate[0]))
    client.request("GET", "/livez")
    assert client.getresponse().read()
    (tmp_path / "new").mkdir()
    new = self_signed(tmp_path / "new")

    def logged(text):
        end = time.monotonic() + 20
        while text not in caplog.text and time.monotonic() < end:
            time.sleep(0.02)
        return text in caplog.text

    new[0].replace(used[0])
    assert logged("the certificate in use stays")
    assert ssl.get_server_certificate(address) == old
    new[1].replace(used[1])
    assert logged("certificate renewed")
    assert ssl.get_server_certificate(address) == used[0].read_text()
    client.request("GET", "/livez")  # on a connection of before
    assert client.getresponse().status == 200
    client.close()


@pytest.mark.parametrize("key", ["two words", "line\nend", "ü"])
def test_a_key_for_a_provider_is_one_word(key):
    with pytest.raises(UsageError, match="key of openai") as raised:
        GatewaySettings(upstream_keys={"openai": key})
    assert key not in str(raised.value)
