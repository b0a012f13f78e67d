"""opencode (version 1): a plugin that asks the hook about each tool's output, and the MCP server in opencode.json."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold._install import json_edit
from refold._install.extension import extension_edit
from refold.errors import UsageError

if TYPE_CHECKING:
    from refold._install.changes import FileEdit
    from refold._install.options import InstallOptions

__all__ = ["edits"]


def edits(options: InstallOptions) -> list[FileEdit]:
    """Return the changes of opencode's settings.

    Raises:
        UsageError: a gateway is named, which these settings have for each provider.
    """
    if options.gateway:
        raise UsageError(
            f"opencode has a base URL for each provider: set provider.NAME.options.baseURL to {options.gateway}/v1 "
            "in opencode.json"
        )
    if options.project is not None:
        plugins, settings = options.project / ".opencode" / "plugins", options.project / "opencode.json"
    else:
        home = options.folder_of("XDG_CONFIG_HOME", ".config") / "opencode"
        plugins, settings = home / "plugins", home / "opencode.json"
    program, arguments = options.server
    server = {"type": "local", "command": [program, *arguments]} if options.mcp else None
    return [
        extension_edit(plugins / "refold.ts", "opencode_plugin.ts", "opencode", options),
        json_edit.server_edit(settings, ("mcp", "refold"), server),
    ]
