"""An agent of LangGraph with two tools; writes the state of its thread. Run by the recorder with the agent's Python."""

import json
import pathlib
import subprocess
import sys

from langchain.agents import create_agent
from langchain_core.load import dumpd
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver


@tool
def read(path: str) -> str:
    """Read a file."""
    file = pathlib.Path(path)
    return file.read_text() if file.exists() else f"There is no file {path}."


@tool
def run(command: str) -> str:
    """Run a command."""
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
    return f"{done.stdout}{done.stderr}exit code {done.returncode}"


target, *questions = sys.argv[1:]
agent = create_agent(ChatOpenAI(model="gpt-4o"), [read, run], checkpointer=InMemorySaver())
thread = {"configurable": {"thread_id": "recorded"}}
for question in questions:
    agent.invoke({"messages": [("user", question)]}, thread)
values = dumpd(agent.get_state(thread).values)
pathlib.Path(target).write_text(json.dumps({"values": values}, indent=2))
