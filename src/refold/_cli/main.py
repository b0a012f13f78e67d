"""The `refold` command: imports the module of a subcommand on demand, and prints an error as one line."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import rich_click as click

from refold._cli import options
from refold._cli.groups import LazyGroup

__all__ = ["cli", "main"]

PANELS = {
    "Inspect": ("stats", "plan", "diff", "check", "cost"),
    "Compact": ("compact", "apply", "repair"),
    "Measure": ("replay", "batch", "demo"),
    "Run": ("chat", "run", "serve", "mcp"),
    "Agents": ("install", "uninstall", "doctor"),
    "Stores": ("sessions", "page", "tokens"),
    "Look up": ("models", "policies"),
    "Set up": ("config", "completion"),
}
COMMANDS = tuple(name for names in PANELS.values() for name in names)
HIDDEN = {"hook": "hook", "loop": "chat"}
OK, BROKEN, USAGE, INTERRUPTED = 0, 1, 2, 130


class Refold(LazyGroup):
    """The group of all commands: it ends each with an exit code, and errors as one line."""

    def main(self, *args: Any, **options: Any) -> NoReturn:
        """Run a command line and leave with its exit code: 0 done, 1 broken or cannot fit, 2 usage, 130 Ctrl-C."""
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")  # a narrow terminal shows "?" and is no reason to stop
        sys.exit(_ran(lambda: super(Refold, self).main(*args, **(options | {"standalone_mode": False}))))


def _ran(run: Any) -> int:
    try:
        code = run()
    except click.Abort:
        return _print_error("interrupted: no file was left half-written", INTERRUPTED)
    except click.NoSuchOption as error:
        return _print_error(
            _one_line(f"there is no option {error.option_name} here{_elsewhere(error)}{_help(error)}"), USAGE
        )
    except click.UsageError as error:
        return _print_error(f"{_one_line(error.format_message())}{_help(error)}", USAGE)
    except click.ClickException as error:
        return _print_error(_one_line(error.format_message()), USAGE)
    except SystemExit:  # click's own end where whoever reads our output has seen enough (`| head`)
        return OK
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        return _print_error(f"{place}{error.strerror or error}: check the path, the space and the permissions", USAGE)
    except RecursionError:
        return _print_error("the content is nested too deeply to be read: flatten it, or leave that message out", USAGE)
    except Exception as error:
        return _of_refold(error)
    return code if isinstance(code, int) else OK


def _of_refold(error: Exception) -> int:
    """Say an error of the library in one line; anything else is a fault of ours and is raised on."""
    from refold.errors import RefoldError, SessionNotFound, UsageError

    if not isinstance(error, RefoldError):
        raise error
    return _print_error(_one_line(str(error)), USAGE if isinstance(error, UsageError | SessionNotFound) else BROKEN)


def _elsewhere(error: click.NoSuchOption) -> str:
    """Say which option is meant, or which commands have one of that name."""
    close = [name for name in error.possibilities or () if name[:4] == error.option_name[:4]]
    if close:
        return f"; did you mean {' or '.join(close)}?"
    have = [name for name in COMMANDS if _has(name, error.option_name)]
    return f"; {', '.join(have)} {'have' if len(have) > 1 else 'has'} it" if have else ""


def _has(command: str, option: str) -> bool:
    module_command = cli.get_command(click.Context(cli), command)
    return module_command is not None and any(option in each.opts for each in module_command.params)


def _help(error: click.UsageError) -> str:
    return f"; see {error.ctx.command_path} --help" if error.ctx else ""


def _one_line(text: str) -> str:
    return " ".join(text.split()).rstrip(".")


def _print_error(what: str, code: int) -> int:
    click.echo(f"refold: {what}", err=True)
    return code


@options.examples("refold demo", "refold stats session.jsonl", "refold run -- claude", "refold COMMAND --help")
@click.group(
    "refold",
    cls=Refold,
    modules={name: name for name in COMMANDS},
    hidden=HIDDEN,
    panels=[click.RichCommandPanel(title, commands=list(names)) for title, names in PANELS.items()],
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="refold", message="%(prog)s %(version)s")
def cli() -> None:
    """Keep an agent's conversation inside the context window.

    FILE is a session file of any agent, a request body, or a list of messages: a file, a folder, a pattern, or `-`
    for standard input. Inspect first (`stats`, `plan`, `diff`), then write (`compact`).

    Exit codes: 0 success, 1 the conversation is invalid or cannot fit, 2 wrong input, 130 interrupted.
    """


def main() -> NoReturn:
    """Run the command line of this process."""
    cli.main(prog_name="refold")
