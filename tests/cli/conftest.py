import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from refold._cli.main import cli

Run = Callable[..., Result]


@pytest.fixture
def run() -> Run:
    def invoke(*args: object, input: str | bytes | None = None, env: dict[str, str] | None = None) -> Result:
        result = CliRunner().invoke(cli, [str(arg) for arg in args], input=input, env=env or {})
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return invoke


def call(number: int) -> list[dict[str, Any]]:
    arguments = json.dumps({"path": f"src/module_{number % 7}.py"})
    lines = "\n".join(f"{number:03} line {line} of the module does {line * 7 % 11} things" for line in range(60))
    asked = {"id": f"c{number}", "type": "function", "function": {"name": "read_file", "arguments": arguments}}
    return [
        {"role": "user", "content": f"Look at step {number}, please."},
        {"role": "assistant", "content": None, "tool_calls": [asked]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": lines},
        {"role": "assistant", "content": f"Step {number} is fine."},
    ]


def talk(calls: int = 20) -> list[dict[str, Any]]:
    messages = [message for number in range(calls) for message in call(number)]
    return [{"role": "system", "content": "Be brief."}, *messages, {"role": "user", "content": "Go on."}]


def anthropic_body(calls: int = 20) -> dict[str, Any]:
    messages: list[dict[str, Any]] = []
    for number in range(calls):
        used = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": f"cat notes_{number}.md"}}
        shown = "\n".join(f"note {line} of {number}" for line in range(120))
        messages += [
            {"role": "user", "content": f"Show notes {number}."},
            {"role": "assistant", "content": [used]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"t{number}", "content": shown}]},
            {"role": "assistant", "content": "Shown."},
        ]
    messages.append({"role": "user", "content": "Thanks, now what?"})
    tools = [{"name": "Bash", "description": "Runs a command.", "input_schema": {"type": "object", "properties": {}}}]
    return {
        "model": "claude-sonnet-4-5",
        "max_tokens": 1000,
        "temperature": 0.5,
        "system": [{"type": "text", "text": "You show notes.", "cache_control": {"type": "ephemeral"}}],
        "tools": tools,
        "messages": messages,
    }


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(talk()))
    return path


@pytest.fixture
def body(tmp_path: Path) -> Path:
    path = tmp_path / "body.json"
    path.write_text(json.dumps(anthropic_body()))
    return path


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    messages = talk(2)
    del messages[3]
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(messages))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "sessions"
    (place / "deep").mkdir(parents=True)
    (place / "one.json").write_text(json.dumps(talk(3)))
    (place / "deep" / "two.jsonl").write_text("".join(json.dumps(message) + "\n" for message in talk(5)))
    (place / "settings.json").write_text('{"theme": "dark"}')
    (place / "notes.txt").write_text("not for us")
    return place
