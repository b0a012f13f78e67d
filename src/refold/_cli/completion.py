"""`refold completion`: the script by which a shell completes the command line."""

from __future__ import annotations

import rich_click as click
from click.shell_completion import get_completion_class

from refold._cli import options

SHELLS = ("bash", "zsh", "fish")


@options.examples("refold completion bash > ~/.local/share/bash-completion/completions/refold")
@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS), metavar="[bash|zsh|fish]")
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the script that completes `refold` in a shell.

    Put it where the shell looks: for bash into ~/.local/share/bash-completion/completions/refold, for zsh as _refold
    into a folder of its fpath, for fish into ~/.config/fish/completions/refold.fish.
    """
    of_shell = get_completion_class(shell)
    assert of_shell is not None
    click.echo(of_shell(ctx.find_root().command, {}, "refold", "_REFOLD_COMPLETE").source())
