import json
from types import SimpleNamespace

import pytest
from starlette.testclient import TestClient

from refold._page.access import StartToken
from refold._page.app import page_app
from refold._page.conversations import Conversations
from refold.sessions import MemoryStore, Session

MARKUP = "<script>alert('x')</script><img src=x onerror=alert(1)>"
ESCAPES = "\x1b[31mred\x1b[0m \u202etfel ot thgir\u2066 \u200bzero\ud800"
RULE = "Never touch setup.py."


def log(number, lines=120):
    return "\n".join(f"part {number} line {line}: value {(line * 7919 + number) % 10007}" for line in range(lines))


def working(turns):
    """A coding session: each turn reads a file whose output is long."""
    messages = [{"role": "system", "content": "You are careful."}]
    messages += [{"role": "user", "content": f"Find the bug in the parser. {RULE}"}]
    for number in range(turns):
        arguments = json.dumps({"path": f"src/m{number}.py"})
        call = {"id": f"c{number}", "type": "function", "function": {"name": "read_file", "arguments": arguments}}
        messages.append({"role": "assistant", "content": f"Looking at part {number}.", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": log(number)})
    return [*messages, {"role": "user", "content": "And now the last line."}]


@pytest.fixture(scope="session")
def store():
    """A store with a compacted session, one with hostile text, and one of another owner."""
    store = MemoryStore()
    session = Session(store, "work", policy="refold", window=32_000, model="gpt-4o")
    messages = working(24)
    for start in range(0, len(messages), 10):
        session.append(messages[start : start + 10])
        if start in (20, 40):
            session.compact(force=True)
    assert len(session.plans) == 2
    hostile = Session(store, "hostile", policy="refold", window=32_000)
    hostile.append(
        [
            {"role": "user", "content": MARKUP},
            {"role": "assistant", "content": ESCAPES},
            {"role": "user", "content": "long " * 100_000},
        ]
    )
    odd = Session(store, "an id/with ünusual signs?", policy="refold", window=32_000)
    odd.append([{"role": "user", "content": "hello"}])
    store.create("theirs", "openai-chat", "team:red")
    return store


def opened(store, **more):
    """A page over a store; its client is signed in, `outsider` is not."""
    access = StartToken()
    app = page_app(Conversations(store, **more), access, b"key")
    client, outsider = (TestClient(app, base_url="http://127.0.0.1:8788") for _ in range(2))
    answer = client.get("/", params={"token": access.token}, follow_redirects=False)
    return SimpleNamespace(client=client, outsider=outsider, token=access.token, access=access, answer=answer)


@pytest.fixture(scope="session")
def page(store):
    return opened(store)


@pytest.fixture
def get(page):
    """Read an address of the page as text; any other status than the expected one fails."""

    def read(path, status=200, **query):
        answer = page.client.get(path, params=query or None)
        assert answer.status_code == status, answer.text
        return answer.text

    return read
