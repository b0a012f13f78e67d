"""The sample conversations as values, and as files."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from refold._samples import SampleConversation
from refold.testing._seeded_random import SeededRandom
from refold.testing.provider._mails import mail, mail_tools
from tools.sample_sessions.session_generator import Story, agent

__all__ = ["conversations", "write_examples", "write_samples"]

SEED = 20_260_302


def conversations() -> list[SampleConversation]:
    """Return all sample conversations: long-session, small, mail. They are shared: do not change."""
    return [long_session(), small(), e_mails()]


@cache
def long_session() -> SampleConversation:
    """Return nine tasks of a coding agent in one repository, in Anthropic's shape."""
    system, tools = agent()
    title = "Nine tasks of a coding agent in a web shop's order service"
    return SampleConversation("long-session", title, "anthropic", Story(SeededRandom(SEED)).messages, system, tools)


@cache
def small() -> SampleConversation:
    """Return a chat of a coding agent that fits on two screens."""
    body = json.loads(_small())
    title = "Two small corrections by a coding agent"
    return SampleConversation("small", title, "openai-chat", body["messages"], None, body["tools"])


@cache
def e_mails() -> SampleConversation:
    """Return a task over forty-one e-mails, all read and not yet summed up."""
    title = "Forty-one unread e-mails in three batches"
    return SampleConversation("mail", title, "openai-chat", mail(SeededRandom(SEED).fork("mail")), None, mail_tools())


def write_examples(folder: Path) -> list[Path]:
    """Write long-session.json and small.json into a folder as request bodies, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {"long-session.json": _lines(long_session().body), "small.json": _small()}
    for name, text in texts.items():
        (folder / name).write_bytes(text.encode())
    return [folder / name for name in texts]


def write_samples(folder: Path) -> list[Path]:
    """Write what `refold demo` reads, a compressed file for each conversation, and return their paths."""
    paths = [folder / f"{each.name}.json.gz" for each in conversations()]
    for path, each in zip(paths, conversations(), strict=True):
        path.write_bytes(gzip.compress(msgspec.json.encode(each), mtime=0))
    return paths


def _lines(body: dict[str, Any]) -> str:
    """Return a body as JSON with one line for each message, so that changes can be read."""
    fields = []
    for key, value in body.items():
        rows = ",\n".join(json.dumps(item, ensure_ascii=False) for item in value)
        fields.append(f'"{key}": [\n{rows}\n]')
    return "{" + ",\n".join(fields) + "}\n"


def _small() -> str:
    return (Path(__file__).parent / "data" / "small.json").read_text("utf-8")
