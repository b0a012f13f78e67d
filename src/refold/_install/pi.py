"""pi: an extension that asks the hook about each tool's output, and the MCP server in mcp.json."""

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
    """Return the changes of pi's settings.

    Raises:
        UsageError: a gateway is named, which these settings have for each provider.
    """
    if options.gateway:
        raise UsageError(
            f"pi has a base URL for each provider: set providers.NAME.baseUrl to {options.gateway} in models.json"
        )
    home = options.folder_of("PI_CODING_AGENT_DIR", ".pi/agent")
    if options.project is not None:
        home = options.project / ".pi"
    program, arguments = options.server
    server = {"command": program, "args": arguments} if options.mcp else None
    return [
        extension_edit(home / "extensions" / "refold.ts", "pi_extension.ts", "pi", options),
        json_edit.server_edit(home / "mcp.json", ("mcpServers", "refold"), server),
    ]
