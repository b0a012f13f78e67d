"""Claude Code: hooks and variables in settings.json, the MCP server in .claude.json or .mcp.json."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from refold._install import json_edit
from refold._install.changes import FileEdit
from refold._install.options import is_hook

if TYPE_CHECKING:
    from refold._install.options import InstallOptions

__all__ = ["edits"]

EVENTS = {"PostToolUse": "*", "PreCompact": "", "SessionStart": ""}
SERVER = ("mcpServers", "refold")
BASE_URL, TOOL_SEARCH = ("env", "ANTHROPIC_BASE_URL"), ("env", "ENABLE_TOOL_SEARCH")


def edits(options: InstallOptions) -> list[FileEdit]:
    """Return the changes of Claude Code's settings."""
    home = options.folder_of("CLAUDE_CONFIG_DIR", ".claude")
    if options.project is not None:
        settings, servers = options.project / ".claude" / "settings.json", options.project / ".mcp.json"
    else:
        own_folder = options.environ.get("CLAUDE_CONFIG_DIR")
        settings, servers = home / "settings.json", (home if own_folder else options.home) / ".claude.json"
    name = str(settings)
    return [
        FileEdit(settings, partial(_added, options, name), partial(_removed, options, name), "{}\n"),
        json_edit.settings_edit(servers, (SERVER, _server(options) if options.mcp else None)),
    ]


def _server(options: InstallOptions) -> dict[str, Any]:
    program, arguments = options.server
    return {"type": "stdio", "command": program, "args": arguments}


def _added(options: InstallOptions, name: str, text: str) -> str:
    json_edit.parsed(text, name)
    for event, matcher in EVENTS.items() if options.hooks else ():
        hook = {"type": "command", "command": options.hook_command("claude-code", event), "timeout": 10}
        entry = {"matcher": matcher} if matcher else {}
        text = json_edit.append_item(text, ("hooks", event), {**entry, "hooks": [hook]}, name)
    if options.gateway:
        text = json_edit.set_value(text, BASE_URL, options.gateway, name)
        # behind any base URL but Anthropic's own, its search for tools is off, which makes the context larger
        text = json_edit.set_value(text, TOOL_SEARCH, "true", name)
    return text


def _removed(options: InstallOptions, name: str, text: str, before: str) -> str:
    for event in EVENTS:
        text = json_edit.remove_items(text, ("hooks", event), is_hook, before, name)
    text, ours = json_edit.restored(text, before, BASE_URL, lambda url: url == options.installed != "", name)
    return json_edit.restored(text, before, TOOL_SEARCH, lambda value: value == "true", name)[0] if ours else text
