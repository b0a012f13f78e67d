import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters, stdio_client

from refold.sessions import open_store
from tests.mcp.conftest import CLAUDE, FOLDER, over

COMMAND = ["-m", "refold", "mcp", "--folder", FOLDER]


def environment(home: Path) -> dict[str, str]:
    return {"HOME": str(home), "PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)}


def schemas(tools: Any) -> list[dict[str, Any]]:
    return [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools.tools]


def test_the_official_client_uses_every_tool_and_the_resource_over_standard_input_and_output(home: Path) -> None:
    server = StdioServerParameters(command=sys.executable, args=COMMAND, env=environment(home))

    async def main() -> tuple[Any, ...]:
        async with Client(stdio_client(server)) as client:
            return (
                await client.list_tools(),
                await client.call_tool("refold_context", {}),
                await client.call_tool("refold_recall", {"what": "notes.md"}),
                await client.call_tool("refold_search", {"query": "polite"}),
                await client.read_resource(f"refold://session/{CLAUDE}/plan"),
            )

    tools, context, recalled, found, plan = asyncio.run(main())
    assert [tool.name for tool in tools.tools] == ["refold_recall", "refold_search", "refold_context"]
    assert f"session {CLAUDE} of claude-code" in context.content[0].text
    assert "it begins with Good morning" in recalled.content[0].text
    assert "greeting is polite" in found.content[0].text
    assert json.loads(plan.contents[0].text)["plan"]["policy"] == "refold"


def test_standard_output_carries_the_protocol_alone_and_the_server_ends_with_its_input(home: Path) -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    requests = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "refold_context", "arguments": {}}},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "refold_recall", "arguments": {}}},
    ]
    command = [sys.executable, *COMMAND]
    with subprocess.Popen(
        command, env=environment(home), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        lines = []
        for request in requests:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            if "id" in request:
                lines.append(process.stdout.readline())
        process.stdin.close()
        rest, errors = process.stdout.read(), process.stderr.read()
        assert process.wait(30) == 0
    answers = [json.loads(line) for line in lines]
    assert [(answer["jsonrpc"], answer["id"]) for answer in answers] == [("2.0", 1), ("2.0", 2), ("2.0", 3)]
    assert answers[0]["result"]["serverInfo"]["name"] == "refold"
    assert rest == ""
    assert "greet" not in errors


def test_the_schemas_of_all_tools_together_are_smaller_than_1500_bytes() -> None:
    async def main() -> Any:
        async with Client(over(open_store("memory"), allow_undo=True).app()) as client:
            return await client.list_tools()

    tools = schemas(asyncio.run(main()))
    assert len(tools) == 4
    assert len(json.dumps(tools, separators=(",", ":"))) < 1_500
