"""Imported by the process from which others are forked: loads what a conversation needs, and tries it."""

import tempfile
from importlib import import_module

import openai

from refold.sessions import Session, open_store

for name in (
    *("openai.lib.streaming.chat", "rich.live", "rich.status", "sqlalchemy.dialects.postgresql.psycopg", "tenacity"),
    *("refold._cli.chat", "refold._cli.chat_screen", "refold._cli.chat_session", "refold._cli.main"),
    *("refold._cli.slash_commands", "refold.clients._openai", "refold.policies.opal", "refold.summaries._guard"),
):
    import_module(name)
with tempfile.TemporaryDirectory() as folder, open_store(f"{folder}/sessions.db") as store:
    session = Session(store, window=100_000)
    session.append([{"role": "user", "content": "hello " * 1_000}])
    session.check()
with openai.OpenAI(api_key="none") as client:
    assert client.chat.completions  # which loads it
