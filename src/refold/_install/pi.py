"""pi: an extension that asks the hook about each tool's output, and the MCP server in mcp.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from refold._install import json_edit
from refold._install.changes import FileEdit
from refold._install.options import HOOK
from refold.errors import UsageError

if TYPE_CHECKING:
    from refold._install.options import InstallOptions

__all__ = ["edits"]

EXTENSION = Path(__file__).with_name("pi_extension.ts")


def edits(options: InstallOptions) -> list[FileEdit]:
    """Return the changes of pi's settings.

    Raises:
        UsageError: a gateway is named, or a file of another is in the extension's place.
    """
    if options.gateway:
        raise UsageError(
            f"pi has a base URL for each provider: set providers.NAME.baseUrl to {options.gateway} in models.json"
        )
    home = options.folder_of("PI_CODING_AGENT_DIR", ".pi/agent")
    if options.project is not None:
        home = options.project / ".pi"
    path = home / "extensions" / "refold.ts"

    def added(text: str) -> str:
        if text:
            raise UsageError(f"{path} is there already and not refold's: give it another name, then try again")
        if not options.hooks:
            return text
        command = json.dumps([options.python, "-P", str(HOOK), "pi", str(options.data), "PostToolUse"])
        return EXTENSION.read_text("utf-8").replace("[] as string[]", command)

    def removed(text: str, _before: str) -> str:
        return "" if HOOK.name in text else text

    program, arguments = options.server
    server = {"command": program, "args": arguments} if options.mcp else None
    return [
        FileEdit(path, added, removed),
        json_edit.server_edit(home / "mcp.json", ("mcpServers", "refold"), server),
    ]
