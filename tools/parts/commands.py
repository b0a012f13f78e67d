"""What the docs say of the library"s names, the arguments of `compact`, and the command line."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
from collections.abc import Callable
from pathlib import Path

import rich_click as click
from msgspec.structs import asdict

import refold
from refold._cli.main import PANELS, cli
from refold._compaction.options import read_call
from refold.core import _native
from tools.parts.words import first, joined, sentence, table

__all__ = ["PARTS"]


def _library(path: Path) -> str:
    aliases = _alias_docs(Path(_native.__file__))
    rows = [(f"`{name}`", aliases.get(name) or sentence(getattr(refold, name))) for name in refold.__all__]
    return table(("name", "what it is"), rows)


def _alias_docs(module: Path) -> dict[str, str]:
    """Read the strings that stand behind the type aliases of a module."""
    body = ast.parse(module.read_text("utf-8")).body
    return {
        alias.target.id: str(ast.literal_eval(text.value))
        for alias, text in itertools.pairwise(body)
        if isinstance(alias, ast.AnnAssign) and isinstance(alias.target, ast.Name) and isinstance(text, ast.Expr)
    }


def _arguments(path: Path) -> str:
    body = inspect.cleandoc(refold.compact.__doc__ or "").partition("Args:\n")[2].partition("\n\nRaises:")[0]
    defaults = {"messages": "*required*"} | {name: f"`{value!r}`" for name, value in _defaults().items()}
    found = re.findall(r"^    (\w+): (.*?)(?=^    \w+: |\Z)", body + "\n", re.M | re.S)
    rows = [(f"`{name}`", defaults[name], joined(words)) for name, words in found]
    return table(("argument", "default", "meaning"), rows)


def _defaults() -> dict[str, object]:
    """The values that the options of `compact` have where they are left out."""
    call = read_call("compact", {}, refold.CompactOptions)
    return {"summarize": None, "handlers": None, "redact": call.handlers.redact} | asdict(call.options) | {
        "meter": call.meter, "alternate": call.alternate, "observers": call.observers,
    }  # fmt: skip


def _commands(path: Path) -> str:
    top = click.Context(cli, info_name="refold")
    return "\n\n".join(_command(cli.get_command(top, name), name, top) for name in cli.list_commands(top))


def _command(command: click.Command | None, name: str, top: click.Context, level: str = "##") -> str:
    assert command is not None, name
    context = click.Context(command, info_name=name, parent=top)
    usage = " ".join(command.collect_usage_pieces(context))
    rows = []
    for option in command.params:
        record = option.get_help_record(context) if isinstance(option, click.Option) else None
        if record is not None:
            rows.append((f"`{record[0]}`", re.sub(r"\s+", " ", record[1])))
    said = inspect.cleandoc(command.help or "").replace("\b\n", "")
    heading = context.command_path.partition(" ")[2]  # of a command of a group with its group: names repeat
    parts = [f"{level} {heading}", f"```sh\n{context.command_path} {usage}\n```", said]
    if command.epilog:
        heads, *lines = command.epilog.split("\n\n")
        parts.append(f"{heads}\n\n```sh\n{chr(10).join(lines)}\n```")
    if isinstance(command, click.Group):
        parts += [
            _command(command.get_command(context, each), each, context, level + "#")
            for each in command.list_commands(context)
        ]
    else:
        parts.append(table(("option", "meaning"), rows))
    return "\n\n".join(parts)


def _main_help(path: Path) -> str:
    top = click.Context(cli, info_name="refold")
    rows = []
    for panel, names in PANELS.items():
        for place, name in enumerate(names):
            command = cli.get_command(top, name)
            assert command is not None, name
            rows.append(("" if place else f"**{panel}**", f"[`{name}`](#{name})", first(command.help)))
    return f"{inspect.cleandoc(cli.help or '')}\n\n{table(('', 'command', 'what it does'), rows)}"


PARTS: dict[str, Callable[[Path], str]] = {
    "arguments": _arguments,
    "command-list": _main_help,
    "commands": _commands,
    "library": _library,
}
