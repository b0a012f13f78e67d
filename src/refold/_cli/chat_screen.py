"""Renders a chat in the terminal: streamed responses, tool calls, compaction cards, and a line after each turn."""

from __future__ import annotations

import os
import re
import select
import sys
import time
import unicodedata
from typing import TYPE_CHECKING, Any

import rich_click as click

from refold._cli import show
from refold._text.printable import BIDI
from refold.agent._compaction_log import Decision
from refold.agent.cards import DoneCard, FailedCard, StartedCard
from refold.agent.events import SessionRenewed, ToolFinished, ToolStarted, TurnEnded, Warned

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.status import Status

    from refold.agent.cards import ShortenedMessage
    from refold.agent.events import AgentEvent

__all__ = ["Screen", "readable"]

TARGETS = 5  # of a compaction, that its card names
COLUMNS = ("largest", ">characters", "", ">after", "", "by")  # `>` stands over numbers
CALL_WIDTH = 88  # characters of a call that are shown
STOP = "/stop"


class Screen:
    """Prints for eyes on a terminal; elsewhere answers go to standard output and all else, plain, to standard error.

    `typed` are lines that were entered while a turn ran, other than /stop, which calls `on_stop`.
    """

    def __init__(self, *, agreed: bool = False, decisions: bool = False) -> None:
        self._console = show.terminal()
        self.live = self._console.is_terminal and sys.stdin.isatty()
        self.agreed, self._decisions = agreed, decisions
        self.on_stop: Callable[[], None] | None = None
        self.typed: list[str] = []
        self._status: Status | None = None
        self._answer = Wrapping(self._console.width if self.live else 0)
        self.last_card: DoneCard | None = None
        self._answer_seconds = 0.0  # seconds that a person took to answer during the call that runs

    def __call__(self, event: AgentEvent) -> None:
        """Show an event of the agent."""
        match event:
            case StartedCard():
                self.waiting(event.line) if self.live else self.note(event.line)
            case DoneCard():
                self._done(event)
            case FailedCard():
                self.note(event.line, "red")
            case ToolStarted():
                self.line(f"● {_call(event)}", "cyan", note=True)
                self.waiting(f"{event.name}…")
            case ToolFinished():
                self._finished(event)
                self.waiting("Thinking…")
            case Warned(text=text):
                self.note(text, "yellow")
            case Decision() if self._decisions:
                self.note(event.line, "dim")
                self.waiting("Thinking…")
            case SessionRenewed(new=new):
                self.note(f"The session goes on as {new}", "dim")
            case TurnEnded(ending="stopped"):
                self.note("Stopped; calls that were still open were not done", "yellow")
            case TurnEnded(ending="steps", steps=steps):
                self.note(
                    f"Stopped after {show.many(steps, 'call')} of the model; say what to do, or that it goes on",
                    "yellow",
                )
            case _:
                pass
        self.listen()

    def text(self, piece: str) -> None:
        """Show a piece of an answer."""
        self._rest()
        _write(self._answer.add(readable(piece)))
        self.listen()

    def line(self, text: str, style: str = "", *, note: bool = False) -> None:
        """Show a line of ours, after what is open."""
        self.idle()
        if self._console.is_terminal:
            self._console.print(readable(text), style=style, soft_wrap=True)
        else:
            click.echo(readable(text), err=note)

    def note(self, text: str, style: str = "") -> None:
        """Show a line that is no answer."""
        self.line(text, style, note=True)

    def waiting(self, doing: str) -> None:
        """Show that work goes on, on a terminal."""
        if not self.live:
            return
        self.idle()
        from rich.text import Text

        self._status = self._console.status(Text(show.clean(doing), "dim"))
        self._status.start()

    def idle(self) -> None:
        """End what shows that work goes on, and the line of an answer that is open."""
        self._rest()
        _write(self._answer.end())

    def allow(self, command: str) -> bool:
        """Ask whether a command may run: yes only where a person says so, or has said so for all."""
        self.line(f"  $ {command}", "bold", note=True)
        if self.agreed:
            return True
        if not self.live:
            self.note("  Not run: nobody can be asked here; --yes allows all commands")
            return False
        start = time.monotonic()
        try:
            answer = input("  Run it? [y/N] ").strip().lower()
        except EOFError:
            _write("\n")
            return False
        finally:
            self._answer_seconds = time.monotonic() - start
        if answer == STOP and self.on_stop is not None:
            self.on_stop()
        return answer in ("y", "yes")

    def listen(self) -> None:
        """Take lines that were entered while a turn runs."""
        if self.on_stop is None or not self.live:
            return
        while select.select([sys.stdin], [], [], 0)[0]:
            entered = os.read(sys.stdin.fileno(), 65_536).decode(errors="replace")
            if not entered:
                return
            for text in entered.splitlines():
                if text.strip() == STOP:
                    self.on_stop()
                    self.note("Stopping after what is being done now", "yellow")
                elif text.strip():
                    self.typed.append(text)

    def _rest(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None

    def _finished(self, event: ToolFinished) -> None:
        if event.is_error:
            self.note(f"  ⎿ {show.clean(event.output, CALL_WIDTH)}", "red")
            return
        lines = len(event.output.splitlines())
        amount = f"{lines:,} line{'' if lines == 1 else 's'}" if lines > 1 else show.clean(event.output, CALL_WIDTH)
        seconds, self._answer_seconds = event.seconds - self._answer_seconds, 0.0
        slow = f" in {seconds:.1f} s" if seconds >= 1 else ""
        self.note(f"  ⎿ {amount or 'no output'}{slow}", "dim")

    def _done(self, card: DoneCard) -> None:
        about = [
            f"{card.messages_before:,} → {card.messages_after:,} messages",
            f"{len(card.targets):,} made smaller",
            f"{card.saved:,} tokens saved",
            f"{card.seconds:.1f} s",
        ]
        if card.summary:
            about.append(f"summary of {card.summary:,} characters")
        if card.deduplicated_files:
            about.append(f"earlier reads of {show.many(card.deduplicated_files, 'file')} replaced")
        if card.repaired_pairs:
            about.append(f"{show.many(card.repaired_pairs, 'tool call')} repaired")
        if card.break_even is not None and card.break_even.calls is not None:
            about.append(f"pays from call {card.break_even.calls:,} on")
        self.last_card = card
        if not self._console.is_terminal:
            self.note(card.line)
            self.note(f"  {', '.join(about)}")
            return
        self.idle()
        self._console.print(_card(card, ", ".join(about)))

    def expand(self, card: DoneCard) -> None:
        """Show everything that a compaction changed, the largest savings first (W15)."""
        self.line(card.line, "bold")
        rows = [
            (
                show.clean(each.name, 24),
                f"{each.original:,}",
                f"{each.compacted:,}",
                f"{-each.reduction:.0%}",
                each.method,
            )
            for each in _by_savings(card)
        ]
        show.table(("target", ">characters", ">after", ">change", "by"), rows)


class Wrapping:
    """Breaks a text that comes in pieces between words; the newest word is held back until it is whole.

    A width of 0 breaks nothing.
    """

    def __init__(self, width: int) -> None:
        self._width, self._column, self._pending = width, 0, ""

    def add(self, piece: str) -> str:
        """Return what of the text so far can be shown."""
        if not self._width:
            self._column = 0 if piece.endswith("\n") else self._column + len(piece)
            return piece
        *ready, self._pending = re.split(r"(\s)", self._pending + piece)
        return "".join(map(self._placed, ready))

    def end(self) -> str:
        """Return what is left, and the end of the line if one is open."""
        rest = self._placed(self._pending) if self._pending else ""
        self._pending = ""
        ending = "\n" if self._column else ""
        self._column = 0
        return f"{rest}{ending}"

    def _placed(self, word: str) -> str:
        from rich.cells import cell_len

        if word == "\n":
            self._column = 0
            return word
        size = cell_len(word)
        if self._column + size < self._width or not self._column:
            self._column = (self._column + size) % self._width if size else self._column
            return word
        if word.isspace():
            self._column = 0
            return "\n"
        self._column = size % self._width
        return f"\n{word}"


def readable(text: str) -> str:
    """Return a text without what would steer a terminal; line breaks and tabs stay."""
    if text.isprintable():
        return text
    return "".join(sign if sign in "\n\t" or sign.isprintable() else _replacement(sign) for sign in text)


def _write(text: str) -> None:
    if text:
        sys.stdout.write(text)
        sys.stdout.flush()


def _replacement(sign: str) -> str:
    return "�" if unicodedata.category(sign) in ("Cc", "Cs") or sign in BIDI else sign


def _call(event: ToolStarted) -> str:
    from refold._condense.call_facts import is_shell
    from refold._inspect.message_labels import target
    from refold.core.messages import ToolCall

    call = ToolCall(event.call_id, event.name, event.arguments)
    if is_shell(call):  # whose command is shown whole when it is asked about
        return event.name
    return f"{event.name} {show.clean(target(call), CALL_WIDTH)}".rstrip()


def _card(card: DoneCard, about: str) -> Any:
    """Return the card that takes the place of the one that said a compaction runs (W15)."""
    from rich import box
    from rich.console import Group
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    largest = _by_savings(card)[:TARGETS]
    rows = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for head in COLUMNS:
        rows.add_column(head.lstrip(">"), justify="right" if head.startswith(">") else "left", no_wrap=True)
    for target in largest:
        rows.add_row(*_row(target), style="dim")
    more = len(card.targets) - len(largest)
    rest = [Text(f"and {more:,} more: /card lists all", style="dim")] if more > 0 else []
    first = [Text(card.line, style="bold green"), Text(about)]
    return Panel(
        Group(*first, *([rows] if largest else []), *rest),
        box=box.ROUNDED,
        border_style="green",
        expand=False,
        padding=(0, 1),
    )


def _by_savings(card: DoneCard) -> list[ShortenedMessage]:
    return sorted(card.targets, key=lambda target: target.compacted - target.original)


def _row(target: ShortenedMessage) -> tuple[str, ...]:
    left = f"{target.compacted:,}" if target.compacted else "hidden"
    return (
        show.clean(target.name, 24), f"{target.original:,}", "→", left,
        f"-{target.reduction:.0%}" if target.compacted else "", show.clean(target.method, 24),
    )  # fmt: skip
