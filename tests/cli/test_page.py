"""`refold page`: its address, its token, and what it says where it cannot start."""

import http.client
import re
import signal
import socket
import subprocess
import sys

import pytest

from refold.sessions import Session, open_store


@pytest.fixture
def place(tmp_path):
    with open_store(tmp_path / "s.db") as store:
        Session(store, "a", policy="refold", window=32_000).append([{"role": "user", "content": "Hello there."}])
    return str(tmp_path / "s.db")


def started(*arguments):
    command = [sys.executable, "-m", "refold", "page", "--no-browser", *arguments]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def test_the_page_of_a_store_opens_with_the_token_that_is_printed(place):
    with started("--store", place, "--port", "0") as process:
        try:
            port, token = re.search(r"http://127\.0\.0\.1:(\d+)/\?token=([\w-]+)", process.stderr.readline()).groups()
            bodies = {}
            for name, headers in (("in", {"x-refold-token": token}), ("out", {})):
                connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)
                connection.request("GET", "/", headers=headers)
                answer = connection.getresponse()
                bodies[name] = answer.status, answer.read().decode()
                connection.close()
            watching = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)
            watching.request("GET", "/c/a/events", headers={"x-refold-token": token})
            events = watching.getresponse()
        finally:
            process.send_signal(signal.SIGINT)
        assert events.read().startswith(b"retry: "), "who watches a conversation is let go"
        watching.close()
        process.wait(30)
        assert "Traceback" not in process.stderr.read()
    assert bodies["in"][0] == 200
    assert "Hello there." in bodies["in"][1]
    assert bodies["out"][0] == 401


def test_the_page_of_this_machine_believes_no_header_of_a_proxy(place):
    with started("--store", place, "--port", "0") as process:
        try:
            port, token = re.search(r"http://127\.0\.0\.1:(\d+)/\?token=([\w-]+)", process.stderr.readline()).groups()
            connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)
            connection.request("GET", f"/?token={token}", headers={"x-forwarded-proto": "https"})
            cookie = connection.getresponse().headers["set-cookie"]
            connection.close()
        finally:
            process.send_signal(signal.SIGINT)
    assert "HttpOnly" in cookie
    assert "Secure" not in cookie, "or it would not come back"


def test_a_port_that_is_in_use_is_told_with_the_option_for_another(place, run):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run("page", "--store", place, "--port", str(port), "--no-browser")
    assert result.exit_code == 2
    assert "--port" in result.stderr


def test_without_its_extra_the_page_says_which_one_to_install(place, run, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    for name in [name for name in sys.modules if name.startswith("refold._page")]:
        monkeypatch.delitem(sys.modules, name)
    result = run("page", "--store", place, "--no-browser")
    assert result.exit_code == 2
    assert "pip install 'refold[gateway]'" in result.stderr
