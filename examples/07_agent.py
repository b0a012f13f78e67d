"""An agent with a tool, a session in SQLite and a small window: it compacts before its calls and loses nothing."""

import tempfile
from pathlib import Path

from refold.agent import Agent, tool
from refold.agent.cards import DoneCard
from refold.core.budget import Budget
from refold.sessions import Session, open_store
from refold.testing.client import ScriptedClient  # a real one: refold.clients.client("gpt-5")
from refold.testing.provider import ScriptedReply


@tool
def read_shelf(number: int) -> str:
    """Say what stands on a shelf."""
    return "\n".join(f"book {number}-{place}, in good order" for place in range(150))


def card(event: object) -> None:
    if isinstance(event, DoneCard):
        print(event.line)


script = [ScriptedReply(f"Shelf {number}.", [("read_shelf", {"number": number})]) for number in range(20)]
client = ScriptedClient([*script, "All shelves are read."], window=16_000)

with tempfile.TemporaryDirectory() as folder, open_store(Path(folder) / "sessions.db") as store:
    session = Session(store, format=client.format)
    agent = Agent(client, tools=[read_shelf], session=session, budget=Budget(16_000, 2_000), observers=[card])
    print(agent.run("Read all shelves. Never lend a book."))
    print(f"{len(agent.originals)} original messages, the model sees {len(agent.messages)}")

    again = Session(store, session.id, must_exist=True)  # as another process would
    assert again.messages == agent.originals
    assert any("Never lend a book." in str(message["content"]) for message in again.view())
    (original,) = again.recall(again.ids[2])  # the first result, of which the view holds only a pointer
    print(original.message["content"].splitlines()[0])
