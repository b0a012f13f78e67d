"""pi: an extension that asks the hook, the MCP server in mcp.json, and the gateway in models.json."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold._install import json_edit
from refold._install.extension import extension_edit
from refold.errors import UsageError

if TYPE_CHECKING:
    from refold._install.changes import FileEdit
    from refold._install.options import InstallOptions

__all__ = ["edits"]

# The providers that a gateway serves, and what their clients have in their base URL.
BASE_URLS: dict[tuple[str, ...], str] = {
    ("providers", name, "baseUrl"): version
    for name, version in (("anthropic", ""), ("openai", "/v1"), ("google", "/v1beta"))
}


def edits(options: InstallOptions) -> list[FileEdit]:
    """Return the changes of pi's settings.

    Raises:
        UsageError: a gateway is named for a project, whose settings have none.
    """
    user = options.folder_of("PI_CODING_AGENT_DIR", ".pi/agent")
    home = user if options.project is None else options.project / ".pi"
    program, arguments = options.server
    server = {"command": program, "args": arguments} if options.mcp else None
    changed = [
        extension_edit(home / "extensions" / "refold.ts", "pi_extension.ts", "pi", options),
        json_edit.settings_edit(home / "mcp.json", (("mcpServers", "refold"), server)),
    ]
    if options.project is None:
        addresses = json_edit.Addresses(BASE_URLS, options.gateway, options.installed)
        changed.append(json_edit.settings_edit(user / "models.json", addresses=addresses))
    elif options.gateway:
        raise UsageError("pi has base URLs in the user's models.json alone: leave out --project, or --gateway")
    return changed
