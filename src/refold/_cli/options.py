"""Options that several commands share, and the numbers they take."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

import rich_click as click

from refold._cli import completers
from refold._text.token_numbers import parse_tokens

if TYPE_CHECKING:
    from refold._compaction.options import Options
    from refold.config import Settings
    from refold.core.policy import Policy
    from refold.handlers import Handlers
    from refold.summaries.summarizers import SummaryCost
    from refold.transcripts import RecordedConversation

__all__ = [
    "ALL",
    "FOLDER",
    "MEGABYTE",
    "PATH",
    "Goal",
    "Megabytes",
    "PolicyOptions",
    "ReadOptions",
    "TokenNumber",
    "Trigger",
    "as_json",
    "budgeted",
    "counter_option",
    "examples",
    "file",
    "files",
    "jobs_option",
    "keep_secrets_option",
    "limit_option",
    "model_option",
    "output",
    "policies_option",
    "policy_of",
    "policy_option",
    "port_option",
    "reading",
    "sized",
    "store_option",
    "summarized",
    "summarizer_option",
    "summarizer_url_option",
    "window_option",
    "yes_option",
]

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=click.Command)
ALL = "all"
MEGABYTE = 1024 * 1024
LEAST_MEGABYTES, MOST_MEGABYTES = 0.001, 1024 * 1024
PATH = click.Path(readable=False, path_type=str)  # whether it can be read is told where it is read
FOLDER = click.Path(file_okay=False, readable=False, path_type=str)
MOST = 100_000_000  # the largest window that refold.models takes


def examples(*lines: str) -> Callable[[C], C]:
    """Show lines of a shell below the help of a command."""

    def add(command: C) -> C:
        command.epilog = "\n\n".join(("Examples:" if len(lines) > 1 else "Example:", *lines))
        return command

    return add


class PolicyOptions(NamedTuple):
    """What the user said about policy and budget."""

    policy: str | None = None
    window: int | None = None
    model: str | None = None
    budget: int | None = None
    goal: int | float | None = None
    max_output: int | None = None
    counter: str | None = None
    force: bool = False
    instructions: str | None = None
    reported: bool = False
    no_wait: bool = False
    expected_calls: int | None = None

    @property
    def sized(self) -> bool:
        """Tell whether the user said how much may be in a request."""
        return not (self.window is None and self.model is None and self.budget is None)

    def of(self, conversation: RecordedConversation) -> Options:
        """Return the arguments for one conversation; window and model of the file hold where none were given.

        Policy, switches and the user's own windows are those of the settings in force.

        Raises:
            UnknownModel: no table knows the model, and no window was given.
            BadBudget: neither the user nor the file says how much a request may hold.
        """
        from refold._compaction.options import Options
        from refold.config import Settings
        from refold.transcripts._conversation import last_report

        settings = Settings.load({"policy": self.policy})
        window, model = self.window, self.model
        if not self.sized:
            window, model = conversation.window, conversation.model
        if window is None and self.budget is None:
            window, model = _configured(settings, model)
        if window is None and self.budget is None:
            _known(model, in_file=self.model is None)
        _fitting(self, window)
        return Options(
            format=conversation.format,
            policy=settings.apply_to(policy_of(settings.policy)),
            budget=self.budget,
            model=model or conversation.model,
            window=window,
            goal=self.goal,
            system=conversation.system,
            tools=conversation.tools,
            usage=last_report(conversation) if self.reported else None,
            force=self.force,
            instructions=self.instructions,
            max_output=self.max_output,
            counter=self.counter,
            wait=not self.no_wait,
            expected_calls=self.expected_calls,
        )


class ReadOptions(NamedTuple):
    """What the user said about how files are to be read."""

    kind: str | None = None
    format: str | None = None
    lenient: bool = False
    select: str | None = None


class TokenNumber(click.ParamType[int]):
    """A number of tokens: 200000, 200_000, 200k, 1m."""

    name = "tokens"

    def __init__(self, least: int = 1, most: int = MOST) -> None:
        self.least, self.most = least, most

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number."""
        number = parse_tokens(str(value))
        if number is None or not self.least <= number <= self.most:
            between = f"{self.least:,} to {self.most:,}"
            self.fail(f"{str(value)!r} is no number of tokens: give {between}, as in 200000 or 200k", param, ctx)
        return number


class Goal(click.ParamType[int | float]):
    """A number of tokens, or a share of the input budget: 60k, 0.5, 50%."""

    name = "tokens|share"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number of tokens, or the share as a float."""
        text = str(value).strip()
        try:
            share = float(text[:-1]) / 100 if text.endswith("%") else float(text) if "." in text else None
        except ValueError:
            share = None
        if share is not None and 0 < share <= 1:
            return share
        number = None if share is not None else parse_tokens(text)
        if number is None or not 0 < number <= MOST:
            self.fail(f"{str(value)!r} is no size: give tokens as in 60k, or a share as in 0.5 or 50%", param, ctx)
        return number


class Trigger(click.ParamType[int | float]):
    """A size that starts a compaction: as a goal, or `never`, which 0 and less are too (V01)."""

    name = "size"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number of tokens, 0 for never, or the share as a float."""
        try:
            never = str(value) == "never" or float(str(value)) <= 0
        except ValueError:
            never = False
        return 0 if never else Goal().convert(value, param, ctx)


class Megabytes(click.ParamType[float]):
    """A number of megabytes: 64, 0.5, or with a unit 512k, 64M, 1G."""

    name = "mb"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number of megabytes."""
        number, unit = re.fullmatch(r"(.*?)([kmg]?)b?", str(value).strip().lower(), re.S).groups()  # type: ignore[union-attr]
        try:
            size = float(number) * {"k": 1 / 1024, "g": 1024}.get(unit, 1)
        except ValueError:
            size = 0
        if not LEAST_MEGABYTES <= size <= MOST_MEGABYTES:
            self.fail(
                f"{str(value)!r} is no size: give megabytes as in 64, or with a unit as in 512k, 8M or 1G", param, ctx
            )
        return size


def policy_option(default: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return the option `-p`, one policy; `default` says which it is by default."""
    return click.option(
        "-p", "--policy", metavar="POLICY", shell_complete=completers.policies,
        help=f"Policy by name, or a file with one; {default}.",
    )  # fmt: skip


def policies_option(default: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return the option `-p` for policies that are compared."""
    return click.option(
        "-p", "--policy", "names", multiple=True, default=(default,), show_default=True, metavar="POLICY",
        shell_complete=completers.policies,
        help="Policy by name, a file with one, `all`, or `none` for no compaction; can be repeated.",
    )  # fmt: skip


def model_option(what: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return the option `-m`; `what` says what the model sets."""
    return click.option("-m", "--model", metavar="MODEL", shell_complete=completers.models, help=f"Model; {what}.")


def window_option(default: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return the option `-w`; `default` says which window it is by default."""
    return click.option("-w", "--window", type=TokenNumber(), help=f"Context window in tokens; {default}.")


def store_option(meaning: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return the option `--store`; `meaning` says what is stored there."""
    return click.option("--store", metavar="PLACE", type=PATH, help=meaning)


def limit_option(default: int = 20) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return the option `--limit`, the rows of a table."""
    return click.option(
        "--limit", type=click.IntRange(1, 10_000), default=default, show_default=True, metavar="N",
        help="Maximum number of rows.",
    )  # fmt: skip


def port_option(default: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return the option `--port`, where a server listens."""
    return click.option(
        "--port", type=click.IntRange(0, 65_535), default=default, show_default=True, metavar="PORT",
        help="Port to listen on; 0: any free one.",
    )  # fmt: skip


counter_option = click.option(
    "--counter",
    type=click.Choice(["exact", "policy"]),
    help="Count with the model's tokenizer, or with the policy's estimate.",
)
jobs_option = click.option(
    "-j", "--jobs", type=click.IntRange(1, 256), metavar="N", help="Number of parallel processes; by default all cores."
)
yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
summarizer_option = click.option(
    "--summarizer", metavar="MODEL", shell_complete=completers.models,
    help="Model that writes summaries; by default the configured one, if there is one.",
)  # fmt: skip
summarizer_url_option = click.option(
    "--summarizer-url", metavar="URL", help="Base URL of that model: any OpenAI-compatible server."
)
keep_secrets_option = click.option(
    "--keep-secrets", is_flag=True, help="Do not remove keys and passwords from what that model receives."
)


def files(function: Callable[P, R]) -> Callable[P, R]:
    """Add the files to read."""
    return click.argument("files", nargs=-1, required=True, metavar="FILE...", type=PATH)(function)


def file(function: Callable[P, R]) -> Callable[P, R]:
    """Add the one file to read."""
    return click.argument("file", type=PATH)(function)


def as_json(function: Callable[P, R]) -> Callable[P, R]:
    """Add `--json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")(function)


def output(function: Callable[P, R]) -> Callable[P, R]:
    """Add `-o OUT`."""
    return click.option(
        "-o", "--out", default="-", metavar="OUT", type=PATH,
        help="Where to write: a file (one message a line if it ends in .jsonl), `-`, or a folder for several files.",
    )(function)  # fmt: skip


def reading(function: Callable[..., R]) -> Callable[..., R]:
    """Add the options on reading; the command gets them as one `how`."""

    @click.option(
        "--kind", metavar="KIND", shell_complete=completers.kinds,
        help="Kind of session file; by default detected from the content.",
    )  # fmt: skip
    @click.option(
        "--format", "shape", metavar="FORMAT", shell_complete=completers.formats,
        help="Format of the messages; by default detected.",
    )  # fmt: skip
    @click.option("--lenient", is_flag=True, help="Skip damaged lines and list them.")
    @click.option(
        "--select",
        metavar="NAME|N|all",
        help="The conversation to read if a file contains several; by default the first.",
    )
    @functools.wraps(function)
    def read(kind: str | None, shape: str | None, lenient: bool, select: str | None, *args: Any, **rest: Any) -> R:
        how = ReadOptions(kind=kind, format=shape, lenient=lenient, select=select)
        return function(*args, how=how, **rest)

    return read


def summarized(function: Callable[..., R]) -> Callable[..., R]:
    """Add the options on a model that writes summaries; the command gets them as `handlers`."""

    @summarizer_option
    @summarizer_url_option
    @keep_secrets_option
    @functools.wraps(function)
    def summarize(summarizer: str | None, summarizer_url: str | None, keep_secrets: bool, *args: Any, **rest: Any) -> R:
        redact = False if keep_secrets else None
        return function(*args, handlers=_summary_handlers(summarizer, summarizer_url, redact), **rest)

    return summarize


def sized(function: Callable[..., R]) -> Callable[..., R]:
    """Add the options on policy and size of a request, not on a run; the command gets them as one `policy_options`."""
    return _gathered(function, (*_POLICY, *_SIZE))


def budgeted(function: Callable[..., R]) -> Callable[..., R]:
    """Add the options on policy and budget; the command gets them as one `policy_options`."""
    return _gathered(function, (*_POLICY, *_SIZE, *_RUN))


_POLICY = (policy_option("by default the configured one (refold)"),)
_SIZE = (
    window_option("by default that of the model or the file"),
    model_option("sets the window and the tokenizer; by default the file's own"),
    click.option("--budget", type=TokenNumber(), help="Maximum size of the whole request in tokens, counted exactly."),
    click.option("--max-output", type=TokenNumber(), help="Maximum size of the response in tokens."),
    counter_option,
    click.option(
        "--reported", is_flag=True, help="Measure with the provider's last usage report in the file, if there is one."
    ),
    click.option(
        "--no-wait", is_flag=True, help="Compact as soon as the trigger is reached, even if it does not pay yet."
    ),
    click.option(
        "--expected-calls",
        type=click.IntRange(min=0),
        metavar="N",
        help="How many more calls the session will make; by default as many as so far.",
    ),
)
_RUN = (
    click.option("--goal", type=Goal(), help="Size at which compaction may stop."),
    click.option("--force", is_flag=True, help="Compact even if it is not due."),
    click.option("--instructions", metavar="TEXT", help="What a summary should pay attention to."),
)


def _gathered(function: Callable[..., R], options: tuple[Any, ...]) -> Callable[..., R]:
    @functools.wraps(function)
    def gather(*args: Any, **arguments: Any) -> R:
        mine = {name: arguments.pop(name) for name in PolicyOptions._fields if name in arguments}
        return function(*args, policy_options=PolicyOptions(**mine), **arguments)

    for option in reversed(options):
        gather = option(gather)
    return gather


def policy_of(name: str) -> Policy:
    """Return a policy by name or file.

    Raises:
        UnknownPolicy: no such policy, or a file that cannot be run.
    """
    from refold import policies
    from refold.errors import RefoldError, UnknownPolicy

    if os.path.basename(name) != name and not name.endswith(".py"):
        raise UnknownPolicy(f"{name}: a policy's file ends in .py and has a POLICY: name one, or a policy by its name")
    try:
        return policies.find(name)
    except RefoldError:
        raise
    except Exception as error:  # whatever the user's own file raises
        raise UnknownPolicy(f"{name} cannot be run ({type(error).__name__}: {error}): correct that file") from None


def _fitting(policy_options: PolicyOptions, window: int | None) -> None:
    """Refuse numbers that the window leaves no room for, by the names of their options."""
    from refold.errors import BadBudget

    if window is None:
        return
    for option, tokens in (("--budget", policy_options.budget), ("--max-output", policy_options.max_output)):
        if tokens is not None and (tokens > window or (tokens == window and option == "--max-output")):
            raise BadBudget(
                f"{option} {tokens:,} does not fit a window of {window:,} tokens: give less, or more to --window"
            )


def _configured(settings: Settings, model: str | None) -> tuple[int | None, str | None]:
    """Return the window that the user set for all models or for this one, and the model that a deployment is."""
    if settings.window is not None or (model is not None and settings.window_of(model).source == "override"):
        return settings.window_of(model).window, model
    return None, settings.deployments.get(model or "", model)


def _summary_handlers(model: str | None, base_url: str | None, redact: bool | None) -> Handlers:
    """Return who answers needs: a summarizer where a model is named or configured, else nobody."""
    from refold.config import Settings
    from refold.handlers import Handlers

    settings = Settings.load({"summarizer": model, "summarizer_url": base_url, "redact_secrets": redact})
    if settings.summarizer_model is None:
        return Handlers()
    from refold.clients._factory import client
    from refold.summaries.summarizers import guarded, model_summarizer, retrying

    policy_options = client(
        settings.summarizer_model, settings.summarizer_base_url, provider=settings.summarizer_provider
    )
    if (context := click.get_current_context()) is not None:
        context.call_on_close(policy_options.close)
    size = settings.window_of(policy_options.model)
    window = size.window if size.source == "override" else None
    summarize = guarded(retrying(model_summarizer(policy_options, window=window, observers=[_print_cost])))
    return Handlers(summarize=summarize, redact=settings.redact_secrets)


def _print_cost(cost: SummaryCost) -> None:
    """Say on standard error what a summary cost."""
    from refold._cli import show

    dollars = "" if cost.dollars is None else f", US$ {cost.dollars:.4f}"
    show.note(f"summary by {cost.model}: {cost.usage.prompt:,} tokens in, {cost.usage.completion:,} out{dollars}")


def _known(model: str | None, *, in_file: bool) -> None:
    from refold._cli import show
    from refold._text.suggestions import did_you_mean
    from refold.errors import BadBudget, UnknownModel
    from refold.models import _catalog as catalog

    if model is None:
        raise BadBudget("how much may a request hold? Give --window, --model or --budget")
    known = catalog.window(model)
    if known.source == "default":
        near = did_you_mean(model, catalog.known())
        named = (
            f"the file names the model {model}, which no table knows" if in_file else f"no table knows model {model}"
        )
        raise UnknownModel(f"{named}{near}: give --window, or an id that {catalog.listing(model)} shows")
    if known.assumed:
        show.note(f"model {model} is in no table: its window is taken to be {known.window:,} tokens, as a near name's")
