"""Reports by a button: one at a time, with progress, cancelled or taken away as a file."""

import re
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.testclient import TestClient

from refold._page.access import StartToken
from refold._page.app import page_app
from refold._page.conversations import Conversations
from refold.sessions import MemoryStore, Session
from tests.page.conftest import MARKUP, working


@pytest.fixture
def client():
    """A page whose event loop goes on between requests, with two conversations."""
    store, access = MemoryStore(), StartToken()
    session = Session(store, "work", policy="refold", window=16_000, model="gpt-4o")
    session.append([{"role": "user", "content": MARKUP}, *working(6)[2:]])
    Session(store, "short", window=16_000, model="gpt-4o").append(working(0))
    with TestClient(page_app(Conversations(store), access, b"key"), base_url="http://127.0.0.1:8788") as client:
        client.get("/", params={"token": access.token})
        client.token = re.search(r'name="form" value="(\w+)"', client.get("/reports").text)[1]
        yield client


def begin(client, *ids, kind="cost", status=303):
    answer = client.post("/reports", data={"form": client.token, "kind": kind, "id": list(ids)}, follow_redirects=False)
    assert answer.status_code == status, answer.text


def finished(client):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        text = client.get("/reports", headers={"hx-request": "true"}).text
        if "<progress" not in text:
            return text
        time.sleep(0.1)
    raise AssertionError(text)


def test_a_report_has_tables_plots_and_a_file(client):
    begin(client, "work", "short")
    assert "of 14 runs, on 2 conversations" in client.get("/reports").text
    begin(client, "work", status=409)
    text = finished(client)
    assert "<td" in text
    assert "wolffish</th>" in text
    assert "too few to replay" in text
    assert "<img src=x" not in text
    plot = client.get(re.search(r'src="(/reports/plots/[^"]+context[^"]*)"', text)[1])
    assert plot.headers["content-type"] == "image/svg+xml"
    assert "sandbox" in plot.headers["content-security-policy"]
    file = client.get("/reports/report.html")
    assert file.headers["content-disposition"].startswith("attachment")
    assert "<svg" in file.text
    assert client.get("/reports/plots/none.svg").status_code == 404


def test_of_forms_that_arrive_together_one_begins_a_report(client):
    data = {"form": client.token, "kind": "replay", "id": ["work", "short"]}
    with ThreadPoolExecutor(4) as threads:
        sent = [threads.submit(client.post, "/reports", data=data, follow_redirects=False) for _ in range(4)]
    assert sorted(each.result().status_code for each in sent) == [303, 409, 409, 409]
    client.post("/reports/cancel", data={"form": client.token})


def test_a_report_is_cancelled(client):
    begin(client, "work", kind="replay")
    client.post("/reports/cancel", data={"form": client.token})
    assert "Cancelled after" in finished(client)
    begin(client, "work")
    client.post("/reports/cancel", data={"form": client.token})


@pytest.mark.parametrize(
    ("data", "status"),
    [({"kind": "other", "id": ["work"]}, 400), ({"id": []}, 400), ({"id": ["none"]}, 404),
     ({"id": ["work"] + [f"s{n}" for n in range(20)]}, 400), ({"form": "wrong", "id": ["work"]}, 403)],
)  # fmt: skip
def test_what_cannot_be_reported_is_refused(client, data, status):
    assert client.post("/reports", data={"form": client.token, **data}).status_code == status
    assert client.get("/reports/report.html").status_code == 404
