"""Codex: hooks in hooks.json; the MCP server and the gateway as blocks between marks in config.toml."""

from __future__ import annotations

import json
import re
import tomllib
from functools import partial
from typing import TYPE_CHECKING, Any

from refold._install import json_edit
from refold._install.changes import FileEdit, block, without_blocks
from refold._install.options import is_hook
from refold.errors import UsageError

if TYPE_CHECKING:
    from refold._install.options import InstallOptions

__all__ = ["edits"]

EVENTS = ("PostToolUse", "PreCompact", "SessionStart")
PROVIDER = re.compile(r"^(model_provider\s*=.*)$", re.M)
REPLACED = "# replaced by refold: "


def edits(options: InstallOptions) -> list[FileEdit]:
    """Return the changes of Codex's settings."""
    home = options.project / ".codex" if options.project is not None else options.folder_of("CODEX_HOME", ".codex")
    hooks, config = home / "hooks.json", home / "config.toml"
    return [
        FileEdit(hooks, partial(_with_hooks, options, str(hooks)), partial(_without_hooks, str(hooks)), "{}\n"),
        FileEdit(config, partial(_with_blocks, options, str(config)), partial(_without_blocks, str(config))),
    ]


def _with_hooks(options: InstallOptions, name: str, text: str) -> str:
    json_edit.parsed(text, name)
    for event in EVENTS if options.hooks else ():
        hook = {"type": "command", "command": options.hook_command("codex", event), "timeout": 10}
        text = json_edit.append_item(text, ("hooks", event), {"hooks": [hook]}, name)
    return text


def _without_hooks(name: str, text: str, before: str) -> str:
    for event in EVENTS:
        text = json_edit.remove_items(text, ("hooks", event), is_hook, before, name)
    return text


def _with_blocks(options: InstallOptions, name: str, text: str) -> str:
    settings = _parsed(text, name)
    tables = []
    if options.mcp:
        program, arguments = options.server
        tables += ["[mcp_servers.refold]", f"command = {json.dumps(program)}", f"args = {json.dumps(arguments)}"]
    if options.gateway:
        chosen = settings.get("model_provider", "openai")
        provider = settings.get("model_providers", {}).get(chosen, {})
        key = provider.get("env_key")
        tables += [
            "[model_providers.refold]",
            f"name = {json.dumps(provider.get('name', 'OpenAI'))}",
            f"base_url = {json.dumps(f'{options.gateway}/v1')}",
            'wire_api = "responses"',
            f"env_key = {json.dumps(key)}" if key else "requires_openai_auth = true",
        ]
        if "model_provider" in settings:  # the first such line: tables come after the values of the whole
            text = PROVIDER.sub(lambda line: REPLACED + line[1], text, count=1)
        text = block(text, 'model_provider = "refold"') + text
    if tables:
        line = "\r\n" if "\r\n" in text else "\n"
        end = "" if text.endswith("\n") or not text else line
        text = f"{text}{end}{line}{block(text, *tables)}"
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(
            f"{name} has settings that refold's would repeat ({error}): remove [mcp_servers.refold] and "
            "[model_providers.refold] from it, and write an inline `mcp_servers = {…}` as tables, then try again; "
            "nothing was written"
        ) from None
    return text


def _without_blocks(name: str, text: str, _before: str) -> str:
    _parsed(text, name)
    return without_blocks(text).replace(REPLACED, "", 1)


def _parsed(text: str, name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{name} is not TOML ({error}): correct it, then try again; nothing was written") from None
