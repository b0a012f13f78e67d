"""`refold run`: a command with a gateway before its provider, for as long as it runs."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import rich_click as click
from msgspec.structs import replace

from refold._cli import options
from refold._cli.gateway_file import KEYS, SECRETS
from refold._cli.serve import NAMES, acting, gateway_settings, serving, started

if TYPE_CHECKING:
    from refold._gateway.observability.metrics import Metrics

__all__ = ["command"]

UNUSED = (
    "sent no conversation through the gateway: if it reads none of the variables OPENAI_BASE_URL, ANTHROPIC_BASE_URL "
    "and GOOGLE_GEMINI_BASE_URL, set its base URL to that of a gateway which refold serve runs"
)
PRIVATE = {*SECRETS.values(), *KEYS.values()}  # variables of the gateway that COMMAND does not get
PASSED_ON = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGINT", "SIGQUIT")
FROM_KEYS = ("SIGINT", "SIGQUIT")  # which a terminal sends to all processes in its foreground


@options.examples("refold run -- claude", 'refold run --window 64k --recall-tool -- codex exec "Fix the test"')
@click.command("run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("words", nargs=-1, required=True, metavar="-- COMMAND", type=click.UNPROCESSED)
@acting
def command(words: tuple[str, ...], acts: dict[str, Any]) -> int:
    """Run COMMAND behind a gateway, and report the savings.

    The gateway listens on a free port, between COMMAND and its provider.
    COMMAND gets the variables with which clients of OpenAI, Anthropic and Gemini find their provider. If one of them
    is already set, the gateway forwards to its value. REFOLD_ADMIN_TOKEN is a token for the gateway's own routes
    (`x-refold-token`), made for this run; the gateway's keys and other tokens are not in COMMAND's environment. The
    exit code is COMMAND's. Codex reads no such variable; it gets `-c openai_base_url=…`.
    """
    if words[0].startswith("-"):
        raise click.UsageError(f"there is no option {words[0]}: options of refold stand before --, COMMAND after it")
    if shutil.which(words[0]) is None:
        raise _unrunnable(words[0], "no such program, or not executable")
    admin_token = token_urlsafe(32)  # of this gateway alone: those of the environment are for others
    settings = gateway_settings(acts, port=0, admin_token=admin_token)
    if settings.needs_token:
        settings = replace(settings, token=token_urlsafe(32))
    gateway = serving(settings)
    place = gateway.url + (f"/token/{quote(settings.token, safe='')}" if settings.token else "")
    inherited = {name: value for name, value in os.environ.items() if name not in PRIVATE}
    own = {"REFOLD_ADMIN_TOKEN": admin_token, **{name: place + tail for name, (_, tail) in NAMES.items()}}
    environment = {**inherited, **own, **_unproxied()}
    if settings.is_vendor("anthropic"):  # Claude Code turns its search for tools off behind any other base URL
        environment.setdefault("ENABLE_TOOL_SEARCH", "true")
    with started(gateway):
        try:
            code = _ran(_pointed(words, gateway.url, hidden=settings.needs_token), environment)
        except OSError as error:
            raise _unrunnable(words[0], str(error.strerror)) from None
    metrics = gateway.gateway.metrics
    click.echo(f"refold: {_report(metrics)}", err=True)
    if not metrics.total_requests + metrics.total_refused:
        click.echo(f"refold: {words[0]} {UNUSED}", err=True)
    if gateway.gateway.left_store:  # Python would wait for the threads that wait for it
        sys.stderr.flush()
        os._exit(code)
    return code


def _unrunnable(program: str, reason: str) -> click.UsageError:
    return click.UsageError(f"{program} cannot be run ({reason}): name a program that is there, with its path")


def _pointed(words: tuple[str, ...], url: str, *, hidden: bool) -> list[str]:
    """Return a command with the gateway's address where it reads no variable for that.

    A command line can be read by others on the machine, so an address with a token (`hidden`) does not go there.
    """
    if Path(words[0]).stem != "codex" or hidden:
        return list(words)
    return [words[0], "-c", f'openai_base_url="{url}/v1"', *words[1:]]


def _unproxied() -> dict[str, str]:
    """Return the variables that keep a proxy of this machine's clients away from the gateway."""
    names = ("NO_PROXY", "no_proxy")
    without = ",".join(dict.fromkeys(value for name in names if (value := os.environ.get(name))))
    return dict.fromkeys(names, f"{without},127.0.0.1" if without else "127.0.0.1")


def _report(metrics: Metrics) -> str:
    """Say what was done and saved; plans that only cut new output are told apart from compactions."""
    requests, compactions, cuts = metrics.total_requests, metrics.total_compactions, metrics.total_cuts
    requests += metrics.total_refused
    parts = [f"{requests:,} request{'s'[: requests != 1]}", f"{compactions:,} compaction{'s'[: compactions != 1]}"]
    if refused := metrics.total_refused:
        parts.insert(1, f"{refused:,} of them answered with an error of the gateway")
    if cuts:
        parts.append(f"new output cut {cuts:,} time{'s'[: cuts != 1]}")
    if shadows := metrics.total_shadows:
        parts.append(f"{shadows:,} plan{'s'[: shadows != 1]} in shadow")
    return ", ".join([*parts, f"{metrics.total_saved:,} input tokens not sent"])


def _ran(words: list[str], environment: dict[str, str]) -> int:
    """Run a command in the foreground; signals are its own to handle, and what should end us ends it first."""
    started: list[subprocess.Popen[bytes]] = []
    early: list[int] = []  # signals that came before there was a command to send them to

    def forward(number: int, _: object) -> None:
        if not started:
            early.append(number)
        elif not (signal.Signals(number).name in FROM_KEYS and _in_foreground()):
            started[0].send_signal(number)

    numbers = [getattr(signal, name) for name in PASSED_ON if hasattr(signal, name)]
    before = {number: signal.signal(number, forward) for number in numbers}  # which the command does not inherit
    try:
        with subprocess.Popen(words, env=environment) as child:  # noqa: S603 # the user's own command
            started.append(child)
            for number in early:
                child.send_signal(number)
            code = child.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return 128 - code if code < 0 else code


def _in_foreground() -> bool:
    """Tell whether a terminal sends what is typed to us, and so to our command too."""
    if not hasattr(os, "tcgetpgrp"):  # Windows, whose console does
        return True
    try:
        with open("/dev/tty", "rb") as terminal:
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except OSError:
        return False
