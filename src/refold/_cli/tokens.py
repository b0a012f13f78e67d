"""`refold tokens`: creates, lists and revokes the tokens with which users and teams use a gateway."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click
from click.shell_completion import CompletionItem

from refold._cli import options

if TYPE_CHECKING:
    from refold._gateway.server.tokens import Token, TokenFile

__all__ = ["command", "default_file", "file_option"]

file_option = click.option(
    "--token-file",
    metavar="FILE",
    type=options.PATH,
    help="File with the tokens of users and teams; by default in your data folder.",
)


@click.group("tokens")
def command() -> None:
    """Create, list or revoke tokens for a gateway.

    Users and teams use a gateway with them.
    A running gateway applies a change within a second. The file holds hashes of tokens.
    """


@options.examples("refold tokens create --team research > research.token")
@click.command("create")
@click.option("--user", metavar="NAME", help="A token of one user, who sees only the conversations of this name.")
@click.option("--team", metavar="NAME", help="A token of a team, whose members share their conversations.")
@click.option("--admin", is_flag=True, help="A token that sees and changes all conversations, and reads metrics.")
@click.option("--rate", type=click.IntRange(1), metavar="N", help="Requests a minute; by default the gateway's --rate.")
@click.option("--max-body", type=options.Megabytes(), help="Largest body of a request; by default the gateway's.")
@file_option
def create(
    user: str | None, team: str | None, admin: bool, rate: int | None, max_body: float | None, token_file: str | None
) -> None:
    """Create a token and print it: it cannot be shown again."""
    if (user is not None) + (team is not None) + admin != 1:
        raise click.UsageError(
            "a token is of one user (--user NAME), one team (--team NAME) or an administrator (--admin)"
        )
    owner = f"user:{user}" if user is not None else f"team:{team}" if team is not None else ""
    token, text = _file(token_file).create(
        owner, admin=admin, rate=rate or 0, max_body=round((max_body or 0) * options.MEGABYTE)
    )
    click.echo(f"refold: token {token.id} of {_owner(token)}; send it as x-refold-token or as the API key:", err=True)
    click.echo(text)


@options.examples("refold tokens list")
@click.command("list")
@file_option
@options.as_json
def listed(token_file: str | None, as_json: bool) -> None:
    """List the tokens in force, the oldest first."""
    from refold._cli import show

    in_force = _file(token_file).in_force()
    if as_json:
        names = ("id", "owner", "admin", "created", "rate", "max_body")
        show.emit([{name: getattr(token, name) for name in names} for token in in_force])
        return
    if not in_force:
        show.note("refold: there are no tokens; `refold tokens create --team NAME` makes one")
        return
    cells = [
        (
            token.id,
            _owner(token),
            time.strftime("%Y-%m-%d", time.gmtime(token.created)),
            show.number(token.rate) if token.rate else "",
            show.number(token.max_body) if token.max_body else "",
        )
        for token in in_force
    ]
    show.table(("token", "owner", "created", ">requests a minute", ">bytes of a body"), cells)


def complete_ids(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete ids of the tokens in the file that the command line names."""
    from refold.errors import RefoldError

    try:
        in_force = _file(ctx.params.get("token_file")).in_force()
    except (RefoldError, OSError, ImportError):
        return []
    return [CompletionItem(token.id, help=_owner(token)) for token in in_force if token.id.startswith(incomplete)]


@options.examples("refold tokens revoke 1a2b3c4d")
@click.command("revoke")
@click.argument("id", shell_complete=complete_ids)
@file_option
def revoke(id: str, token_file: str | None) -> None:
    """Revoke the token ID, the eight characters that `list` shows."""
    token = _file(token_file).revoke(id)
    click.echo(f"refold: token {token.id} of {_owner(token)} is revoked", err=True)


for each in (create, listed, revoke):
    command.add_command(each)


def default_file() -> str:
    """Return where tokens are by default."""
    from platformdirs import user_data_path

    return str(user_data_path("refold", appauthor=False) / "tokens.jsonl")


def _file(token_file: str | None) -> TokenFile:
    """Return the file of tokens that the command line names, or the default one."""
    from refold._gateway.server.tokens import TokenFile

    return TokenFile(Path(token_file or default_file()).expanduser())


def _owner(token: Token) -> str:
    return "an administrator" if token.admin else token.owner.replace(":", " ")
