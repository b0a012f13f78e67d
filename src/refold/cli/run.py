"""`refold run`: a command with a gateway before its provider, for as long as it runs."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import Any

import rich_click as click

from refold.cli.serve import NAMES, acting, made, serving

__all__ = ["command"]


@click.command("run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("words", nargs=-1, required=True, metavar="-- COMMAND", type=click.UNPROCESSED)
@acting
def command(words: tuple[str, ...], acts: dict[str, Any]) -> int:
    """Run COMMAND with a gateway on a free port before its provider, and say at the end what it saved.

    The variables that tell clients of OpenAI, Anthropic and Gemini where their provider is are set for COMMAND; where
    one of them is set already, the gateway sends there. The exit code is COMMAND's.
    """
    settings = made(acts, port=0)
    gateway = serving(settings)
    environment = {**os.environ, **{name: gateway.url + tail for name, (_, tail) in NAMES.items()}}
    with gateway:
        try:
            code = _ran(list(words), environment)
        except OSError as error:
            raise click.UsageError(f"{words[0]} cannot be run: {error.strerror}") from None
    metrics = gateway.gateway.metrics
    click.echo(
        f"refold: {metrics.total_requests:,} requests, {metrics.total_compactions:,} compactions, "
        f"{metrics.total_saved:,} input tokens not sent",
        err=True,
    )
    return code


def _ran(words: list[str], environment: dict[str, str]) -> int:
    """Run a command in the foreground; an interrupt is its own to handle."""
    with subprocess.Popen(words, env=environment) as child:  # noqa: S603 # the user's own command
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            code = child.wait()
        finally:
            signal.signal(signal.SIGINT, before)
    return 128 - code if code < 0 else code
