"""How long the page takes to open: 10,000 conversations, and one of 20,000 messages.

    python -m benchmarks.page [--conversations N] [--messages N]

Both are made in a SQLite file in a temporary folder, which takes some ten minutes. Each address is opened through the
ASGI application, the first time and again, when what did not change is remembered; printed are the seconds on the
clock and of the processor. What `refold page` loads at its start, before anybody asks, is the first row.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from starlette.testclient import TestClient

from refold._page.access import StartToken
from refold._page.app import load, page_app
from refold._page.conversations import Conversations
from refold.sessions import Session, Store, open_store

LONG = "long"
LINES = 40  # of the output of a tool
CHUNK = 4_000  # messages between two compactions


def turns(count: int) -> list[dict[str, object]]:
    """A session of a coding agent with so many messages."""
    messages: list[dict[str, object]] = [
        {"role": "user", "content": "Find the bug in the parser. Never touch setup.py."}
    ]
    while len(messages) < count:
        number = len(messages)
        function = {"name": "read_file", "arguments": json.dumps({"path": f"src/m{number % 300}.py"})}
        call = {"id": f"c{number}", "type": "function", "function": function}
        output = "\n".join(f"{line} value_{number * line % 9973} = compute({line})" for line in range(LINES))
        messages.append({"role": "assistant", "content": f"Looking at part {number}.", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": output})
    return messages[:count]


def filled(store: Store, conversations: int, messages: int) -> None:
    """Fill a store with short conversations, every tenth compacted, and one long one."""
    for number in range(conversations):
        count = 30 if number % 10 == 0 else 6
        session = Session(store, f"s{number:05}", policy="refold", window=16_000, model="gpt-4o")
        session.append([{**turns(1)[0], "content": f"Task {number}: find the bug."}, *turns(count)[1:]])
        if number % 10 == 0:
            session.compact(force=True)
    session = Session(store, LONG, policy="refold", window=200_000, model="claude-sonnet-4-5")
    every = turns(messages)
    for start in range(0, messages, 2):
        session.append(every[start : start + 2])
        if (start + 2) % CHUNK == 0:
            session.compact(force=True)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--conversations", type=int, default=10_000)
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--store", help="a store that was filled before, or is to be filled and kept")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(wanted.store or f"{folder}/page.db")
        new = not place.exists()
        with open_store(place) as store:
            if new:
                filled(store, wanted.conversations, wanted.messages)
            measure(store, wanted.conversations, wanted.messages)


def measure(store: Store, conversations: int, messages: int) -> None:
    """Open each address twice."""
    paths = {
        f"list of {conversations:,} conversations": "/",
        "its last page": f"/?page={conversations // 50}",
        "search": "/search?q=value_17",
        f"conversation of {messages:,} messages": f"/c/{LONG}",
        "its plot": f"/c/{LONG}/plot.json",
        "its originals": f"/c/{LONG}?show=originals&from=10001",
    }
    print("| address | first, s | processor, s | again, s | processor, s | kB |")
    print("| --- | --- | --- | --- | --- | --- |")
    begun, cpu = time.perf_counter(), time.process_time()
    load()
    print(f"| loading | {time.perf_counter() - begun:.2f} | {time.process_time() - cpu:.2f} | | | |")
    for name, path in paths.items():
        access = StartToken()
        client = TestClient(page_app(Conversations(store), access, b"key"))  # one that remembers nothing
        client.get("/static/icon.svg")
        figures, size = [], 0
        for _ in range(2):
            begun, cpu = time.perf_counter(), time.process_time()
            answer = client.get(path, headers={"x-refold-token": access.token})
            figures += [time.perf_counter() - begun, time.process_time() - cpu]
            assert answer.status_code == 200, answer.text
            size = len(answer.content)
        print(f"| {name} | {' | '.join(f'{figure:.2f}' for figure in figures)} | {size // 1000:,} |")


if __name__ == "__main__":
    main()
