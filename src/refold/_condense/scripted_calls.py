"""Reads the calls in a script, as agents write it that act by code in place of calls.

Such as `const r = await tools.exec_command({cmd: "git status", workdir: "/src"}); text(r.output)`, or a patch in a
variable that `tools.apply_patch` is given.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from refold.core._json import mapping, string

if TYPE_CHECKING:
    from refold.core._json import Json

__all__ = ["COMMANDS", "scripted_arguments"]

COMMANDS = "commands"  # among the arguments of a script with several: each of them

CALLED = re.compile(r"\btools\.(\w+)\(\s*(\{)?")
QUOTED = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|`(?:\\.|[^`\\])*`', re.S)
TOKEN = re.compile(rf"({QUOTED.pattern})|\b([A-Za-z_]\w*)(?=\s*:)|\.\.\.\w+\s*,?|\s+|[^\"'`\s]", re.S)
ESCAPED = re.compile(r"\\(.)", re.S)
ENDS_OF_LINES = {"n": "\n", "t": "\t"}
LONGEST = 200_000  # characters of a script


def scripted_arguments(script: str) -> Json:
    """Return the arguments of the first call in a script, with the commands of all; of a patch the command for it.

    What else a variable holds is not known: a script that gives no object in plain words has no arguments.
    """
    if "tools." not in script:
        return {}
    commands: list[str] = []
    first: Json = {}
    for called in CALLED.finditer(script, 0, LONGEST):
        if called[1] == "apply_patch":
            texts = (_unquoted(quoted[0]) for quoted in QUOTED.finditer(script))
            patch = next((text for text in texts if "*** Begin Patch" in text), "")
            return {"cmd": f"apply_patch <<'EOF'\n{patch}\nEOF"} if patch else {}
        arguments = _object_at(script, called.start(2)) if called[2] else {}
        commands += filter(None, (string(arguments, "cmd"),))
        first = first or arguments
    joint = "\n" if any("<<" in command for command in commands) else "; "
    return {**first, "cmd": joint.join(commands), COMMANDS: commands} if len(commands) > 1 else first


def _object_at(script: str, start: int) -> Json:
    """Return the object that begins at a place of a script; an empty one where it holds more than plain values."""
    depth = 0
    pieces: list[str] = []
    for token in TOKEN.finditer(script, start, LONGEST):
        text, name = token.groups()
        if text or name:
            pieces.append(json.dumps(_unquoted(text) if text else name))
        elif len(sign := token[0].strip()) == 1:
            if sign in "}]" and pieces[-1] == ",":
                del pieces[-1]
            pieces.append(sign)
            depth += (sign == "{") - (sign == "}")
            if not depth:
                break
    try:
        return mapping(json.loads("".join(pieces)))
    except ValueError:
        return {}


def _unquoted(text: str) -> str:
    """Return what a text in quotes says."""
    if text[0] == '"':
        try:
            return str(json.loads(text, strict=False))
        except ValueError:
            return text[1:-1]
    return ESCAPED.sub(lambda sign: ENDS_OF_LINES.get(sign[1], sign[1]), text[1:-1])
