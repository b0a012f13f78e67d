"""The sample conversations as values, and as files."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from msgspec import Struct

from refold._demo.mail import mail, mail_tools
from refold._demo.seeded_random import Dice
from refold._demo.session_generator import Story, agent

__all__ = ["Example", "conversations", "write_examples"]

SEED = 20_260_302


class Example(Struct, frozen=True):
    """A conversation with its format, and system prompt and tools where they stand apart."""

    name: str
    title: str
    format: str
    messages: list[dict[str, Any]]
    system: Any = None
    tools: list[dict[str, Any]] | None = None

    @property
    def body(self) -> dict[str, Any]:
        """The conversation as a request's body."""
        apart = {"system": self.system} if self.system is not None else {}
        return apart | ({"tools": self.tools} if self.tools else {}) | {"messages": self.messages}


def conversations() -> list[Example]:
    """Return all sample conversations: long-session, small, mail. They are shared: do not change."""
    return [long_session(), small(), e_mails()]


@cache
def long_session() -> Example:
    """Return nine tasks of a coding agent in one repository, in Anthropic's shape."""
    system, tools = agent()
    title = "Nine tasks of a coding agent in a web shop's order service"
    return Example("long-session", title, "anthropic", Story(Dice(SEED)).messages, system, tools)


@cache
def small() -> Example:
    """Return a chat of a coding agent that fits on two screens."""
    body = json.loads(_small())
    title = "Two small corrections by a coding agent"
    return Example("small", title, "openai-chat", body["messages"], None, body["tools"])


@cache
def e_mails() -> Example:
    """Return a task over forty-one e-mails, all read and not yet summed up."""
    title = "Forty-one unread e-mails in three batches"
    return Example("mail", title, "openai-chat", mail(Dice(SEED).fork("mail")), None, mail_tools())


def write_examples(folder: Path) -> list[Path]:
    """Write long-session.json and small.json into a folder as request bodies, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {"long-session.json": _lines(long_session().body), "small.json": _small()}
    for name, text in texts.items():
        (folder / name).write_bytes(text.encode())
    return [folder / name for name in texts]


def _lines(body: dict[str, Any]) -> str:
    """Return a body as JSON with one line for each message, so that changes can be read."""
    fields = []
    for key, value in body.items():
        rows = ",\n".join(json.dumps(item, ensure_ascii=False) for item in value)
        fields.append(f'"{key}": [\n{rows}\n]')
    return "{" + ",\n".join(fields) + "}\n"


def _small() -> str:
    return files(__package__).joinpath("data", "small.json").read_bytes().decode()
