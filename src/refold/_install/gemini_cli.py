"""Gemini CLI: a hook and the MCP server in settings.json; its base URL is a variable of the environment only."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from refold._install import json_edit
from refold._install.changes import FileEdit
from refold._install.options import is_hook, is_server
from refold.errors import UsageError

if TYPE_CHECKING:
    from refold._install.options import InstallOptions

__all__ = ["edits"]

HOOKS, SERVER = ("hooks", "AfterTool"), ("mcpServers", "refold")  # PreCompress comes before every request: too often


def edits(options: InstallOptions) -> list[FileEdit]:
    """Return the changes of Gemini CLI's settings.

    Raises:
        UsageError: a gateway is named, which these settings cannot.
    """
    if options.gateway:
        raise UsageError(
            f"Gemini CLI takes its base URL from the environment alone: set GOOGLE_GEMINI_BASE_URL={options.gateway}"
        )
    path = (options.project or options.home) / ".gemini" / "settings.json"
    return [FileEdit(path, partial(_added, options, str(path)), partial(_removed, str(path)), "{}\n")]


def _added(options: InstallOptions, name: str, text: str) -> str:
    json_edit.parsed(text, name)
    if options.hooks:
        command = options.hook_command("gemini-cli", HOOKS[-1])
        hook = {"name": "refold", "type": "command", "command": command, "timeout": 10_000}
        text = json_edit.append_item(text, HOOKS, {"matcher": "*", "hooks": [hook]}, name)
    if options.mcp:
        program, arguments = options.server
        text = json_edit.set_value(text, SERVER, {"command": program, "args": arguments}, name)
    return text


def _removed(name: str, text: str, before: str) -> str:
    text = json_edit.remove_items(text, HOOKS, is_hook, before, name)
    return json_edit.restored(text, before, SERVER, is_server, name)[0]
