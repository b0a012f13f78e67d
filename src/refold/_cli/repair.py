"""`refold repair`: a conversation that its provider accepts again."""

from __future__ import annotations

import rich_click as click

from refold._cli import options


@options.examples("refold repair request.json -o valid.json")
@click.command("repair")
@options.files
@options.output
@options.reading
@options.as_json
def command(files: tuple[str, ...], out: str, how: options.ReadOptions, as_json: bool) -> int:
    """Make conversations valid for their provider.

    Calls and results are paired, empty content is dropped, and arguments are repaired.
    """
    from refold import api
    from refold._cli.compact import each

    return each(
        files, out, how, "Repairing",
        lambda talk: api.repair(talk.recorded.messages, format=talk.recorded.format), as_json=as_json,
    )  # fmt: skip
