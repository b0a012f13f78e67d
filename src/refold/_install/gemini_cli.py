"""Gemini CLI: a hook and the MCP server in settings.json; the gateway as a variable in the .env file that it reads."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from refold._install import json_edit
from refold._install.changes import FileEdit, block, without_blocks
from refold._install.options import is_hook, is_server

if TYPE_CHECKING:
    from refold._install.options import InstallOptions

__all__ = ["edits"]

# With what they are limited to: an automatic PreCompress comes before every request, whether it compacts or not.
EVENTS = {"AfterTool": "*", "PreCompress": "manual"}
SERVER = ("mcpServers", "refold")


def edits(options: InstallOptions) -> list[FileEdit]:
    """Return the changes of Gemini CLI's settings, and of the file of variables that it reads."""
    place = options.project or options.home
    path = place / ".gemini" / "settings.json"
    edits = [FileEdit(path, partial(_added, options, str(path)), partial(_removed, str(path)), "{}\n")]
    if options.gateway or options.installed:
        own, shared = place / ".gemini" / ".env", place / ".env"
        used = shared if shared.exists() and not own.exists() else own  # the other one is not read
        edits += [
            FileEdit(file, partial(_with_gateway, options.gateway if file == used else ""), _without_gateway)
            for file in (own, shared)
        ]
    return edits


def _with_gateway(gateway: str, text: str) -> str:
    if not gateway:
        return text
    end = "" if text.endswith("\n") or not text else "\n"
    return f"{text}{end}{block(text, f'GOOGLE_GEMINI_BASE_URL={gateway}')}"  # of two lines the last one holds


def _without_gateway(text: str, _before: str) -> str:
    return without_blocks(text)


def _added(options: InstallOptions, name: str, text: str) -> str:
    json_edit.parsed(text, name)
    for event, matcher in EVENTS.items() if options.hooks else ():
        command = options.hook_command("gemini-cli", event)
        hook = {"name": "refold", "type": "command", "command": command, "timeout": 10_000}
        text = json_edit.append_item(text, ("hooks", event), {"matcher": matcher, "hooks": [hook]}, name)
    if options.mcp:
        program, arguments = options.server
        text = json_edit.set_value(text, SERVER, {"command": program, "args": arguments}, name)
    return text


def _removed(name: str, text: str, before: str) -> str:
    for event in EVENTS:
        text = json_edit.remove_items(text, ("hooks", event), is_hook, before, name)
    return json_edit.restored(text, before, SERVER, is_server, name)[0]
