"""Extensions of agents that have no hooks: a file of TypeScript that asks the hook."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from refold._install.changes import FileEdit
from refold._install.options import HOOK
from refold.errors import UsageError

if TYPE_CHECKING:
    from refold._install.options import InstallOptions

__all__ = ["extension_edit"]


def extension_edit(path: Path, template: str, agent: str, options: InstallOptions) -> FileEdit:
    """Return the change that puts an extension in its place: what asks the hook, then a file for this agent."""

    def added(text: str) -> str:
        if text:
            raise UsageError(f"{path} is there already and not refold's: give it another name, then try again")
        if not options.hooks:
            return text
        command = json.dumps(options.hook_arguments(agent, "")[:-1])
        asking, own = (Path(__file__).with_name(name).read_text("utf-8") for name in ("ask_hook.ts", template))
        head = f"// Written by `refold install {agent}`; `refold uninstall {agent}` removes it.\n"
        return head + asking.replace("[] as string[]", command) + "\n" + own

    def removed(text: str, _before: str) -> str:
        return "" if HOOK.name in text else text

    return FileEdit(path, added, removed)
