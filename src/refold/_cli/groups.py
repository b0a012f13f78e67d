"""A group of commands, each in a module of its own that is imported when the command is used."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import rich_click as click

from refold._text.suggestions import did_you_mean

__all__ = ["LazyGroup"]


class LazyGroup(click.RichGroup):
    """A group whose commands are the `command` of modules.

    `modules` maps each listed command to its module, in the order of the help; `hidden` maps those that are not listed.
    """

    def __init__(
        self, *args: Any, modules: Mapping[str, str], hidden: Mapping[str, str] | None = None, **attributes: Any
    ) -> None:
        super().__init__(*args, **attributes)
        self.modules = dict(modules)
        self.hidden_modules = dict(hidden or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all listed commands, in the order of use."""
        return list(self.modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a name, or None."""
        module = self.modules.get(cmd_name) or self.hidden_modules.get(cmd_name)
        if module is None:
            return None
        command: click.Command = import_module(f"refold._cli.{module}").command
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Return the command that the first word names; for a word that names none, suggest one that is near."""
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            near = self._in_a_group(ctx, args[0]) or did_you_mean(args[0], list(self.modules))
            raise click.UsageError(f"there is no command {args[0]!r}{near}", ctx)
        return super().resolve_command(ctx, args)

    def _in_a_group(self, ctx: click.Context, name: str) -> str:
        """Return a question that names the command of a group with this name, nothing where none has it."""
        for group in self.modules:
            command = self.get_command(ctx, group)
            if isinstance(command, click.Group) and name in command.list_commands(ctx):
                return f"; did you mean `{ctx.command_path} {group} {name}`?"
        return ""
