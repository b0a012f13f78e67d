"""opencode (version 1): a plugin that asks the hook; the MCP server and the gateway in opencode.json."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold._install import json_edit
from refold._install.extension import extension_edit

if TYPE_CHECKING:
    from refold._install.changes import FileEdit
    from refold._install.options import InstallOptions

__all__ = ["edits"]

# The providers that a gateway serves, and what their clients have in their base URL.
BASE_URLS: dict[tuple[str, ...], str] = {
    ("provider", name, "options", "baseURL"): version
    for name, version in (("anthropic", "/v1"), ("openai", "/v1"), ("google", "/v1beta"))
}


def edits(options: InstallOptions) -> list[FileEdit]:
    """Return the changes of opencode's settings."""
    if options.project is not None:
        plugins, settings = options.project / ".opencode" / "plugins", options.project / "opencode.json"
    else:
        home = options.folder_of("XDG_CONFIG_HOME", ".config") / "opencode"
        plugins, settings = home / "plugins", home / "opencode.json"
    program, arguments = options.server
    server = {"type": "local", "command": [program, *arguments]} if options.mcp else None
    addresses = json_edit.Addresses(BASE_URLS, options.gateway, options.installed)
    return [
        extension_edit(plugins / "refold.ts", "opencode_plugin.ts", "opencode", options),
        json_edit.settings_edit(settings, (("mcp", "refold"), server), addresses),
    ]
