"""Whoever recalls finds the same originals in the same order for the same words."""

import json
import random
import re

import pytest
from click.testing import CliRunner

from refold import formats
from refold._cli.main import cli
from refold._counting import counter_for
from refold._recall.search import RemovedMessages
from refold.sessions import MemoryStore, Session, open_store, search
from tests.mcp.conftest import asked, text_of
from tests.mcp.conftest import over as mcp_server
from tests.page.conftest import opened as page

WORDS = [
    "load_items",
    "trace",
    "parser",
    "gateway",
    "albatross",
    "window",
    "tariff",
    "région",
    "足球联赛",
    "zone9",
    "HTTPServer",
    "retry",
]
COMMON = ["the", "of", "and", "a", "file", "line", "code", "test", "value", "name"]
OPENING = 12  # messages that are out of the view


def conversation(dice):
    """Steps that read files, in an order of words that is different in each."""
    said = [{"role": "user", "content": "Read them all."}]
    for number in range(8):
        arguments = json.dumps({"path": f"m{dice.randrange(4)}.py"})
        call = {"id": f"c{number}", "type": "function", "function": {"name": "read", "arguments": arguments}}
        lines = [" ".join(dice.choices(WORDS, k=2) + dice.choices(COMMON, k=6)) for _ in range(dice.randrange(3, 90))]
        said.append({"role": "assistant", "content": " ".join(dice.choices(WORDS, k=3)), "tool_calls": [call]})
        said.append({"role": "tool", "tool_call_id": f"c{number}", "content": "\n".join(lines)})
    return said


@pytest.fixture(params=["memory", "sqlite"])
def place(request, tmp_path):
    with MemoryStore() if request.param == "memory" else open_store(tmp_path / "store.db") as store:
        yield store


@pytest.mark.parametrize("seed", range(4))
def test_every_way_to_recall_finds_the_same_originals_in_the_same_order(place, tmp_path, seed):
    dice = random.Random(seed)
    session = Session(place, "talk", policy="opal", window=200_000)
    session.append(conversation(dice))
    session.condense(session.ids[0], session.ids[OPENING], "what was read")
    messages = formats.read(formats.find(session.format), session.messages).messages
    removed = RemovedMessages(messages, session.plans, counter_for("gpt-4o"))
    viewer = page(place).client
    for _ in range(4):
        query = " ".join(dice.sample(WORDS, k=dice.randrange(1, 4)))
        found = ids(session.search(query, 100))
        assert found
        assert ids(session.recall(query, 100)) == found
        assert ids(search(place, query, (), 100)) == found
        assert ids(search(place, query, ("talk",), 100)) == found
        tool = list(dict.fromkeys(text.id for text in removed.ranked(query)))
        assert [id for id in found if id in tool] == [id for id in tool if id in found]
        assert tool[0] == next(id for id in found if session.ids.index(id) <= OPENING)
        assert (
            list(dict.fromkeys(re.findall(r"/c/talk/m/(b2:\w+)", viewer.get("/search", params={"q": query}).text)))[:10]
            == found[:10]
        )
        (answer,) = asked(mcp_server(place), [("refold_search", {"query": query, "scope": "session"})])
        numbers = dict.fromkeys(int(number) for number in re.findall(r"- message (\d+),", text_of(answer)))
        assert [session.ids[number - 1] for number in numbers] == found[: len(numbers)]
        if not isinstance(place, MemoryStore):
            path = tmp_path / "store.db"
            printed = CliRunner().invoke(cli, ["sessions", "search", query, "--store", str(path), "--json"]).stdout
            assert [hit["id"] for hit in json.loads(printed)] == found[:20]


def ids(recalled):
    return [each.id for each in recalled]
