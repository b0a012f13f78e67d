"""`refold demo`: compacts a session of a coding agent before your eyes, without a key, a file or a network."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import rich_click as click
from msgspec.structs import replace

from refold._cli import options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold._inspect.plan_table import PlanRow
    from refold._samples import SampleConversation
    from refold.replay._run import Run

MODEL = "claude-sonnet-4-5"  # sets the prices of the bill
WINDOW = 200_000
LINES = 7  # of a message that stands in the comparison
DIGEST_LINES = 11
REQUEST = 90  # characters shown of a request of the user
SESSION = "long-session"
FATES = {
    "kept": "word for word: the very same objects",
    "shortened": "parts are left, with a marker for the rest",
    "changed": "a note stands for an image that the agent has seen",
    "cleared": "a pointer to the original stands for the text",
    "hidden": "left out of the request",
    "inserted": "what is said of the rest: a digest or a summary",
}
AFTER = {"kept": "=", "hidden": "left out"}


class FateCount(NamedTuple):
    """How many messages met one fate, and their tokens before and after."""

    messages: int
    before: int
    after: int


class DemoResult(NamedTuple):
    """What the demo shows: the compaction of the whole session, and the session replayed call by call.

    `user_messages_kept` counts the messages of the user whose words are all still there. `rewound` tells whether the
    undo gave back every message. `largest` holds, for each message of the user, the largest request until the next
    one in tokens, without and with compactions. `bill` is in US dollars, without and with them. `over` is the number
    of calls that are larger than the window without any.
    """

    policy: str
    window: int
    messages: int
    before: int
    after: int
    fates: dict[str, FateCount]
    user_messages: int
    user_messages_kept: int
    violations: int
    rewound: bool
    model: str
    calls: int
    over: int
    compactions: int
    summaries: int
    bill: tuple[float, float]
    largest: list[tuple[int, int]]


@options.examples("refold demo", "refold demo --compare --window 32k")
@click.command("demo")
@options.policy_option("by default refold")
@click.option(
    "-w", "--window", "windows", type=options.TokenNumber(), multiple=True,
    help="Context window in tokens; by default 200k; can be repeated with --compare.",
)  # fmt: skip
@click.option("--compare", is_flag=True, help="Show what every policy makes of several conversations.")
@options.as_json
def command(policy: str | None, windows: tuple[int, ...], compare: bool, as_json: bool) -> None:
    """Compact a sample session: what was kept, why, the cost.

    The session of a coding agent is generated. Shown are also the prices of its calls, and the undo.
    """
    from refold._cli import demo_policies, show

    if policy:
        options.policy_of(policy)
    if compare:
        demo_policies.compare(policy, windows, as_json=as_json)
        return
    with show.working("Compacting a session and pricing its calls"):
        result, rows = _tried(policy or "refold", windows[0] if windows else WINDOW)
    if as_json:
        show.emit(result._asdict() | {"fates": {fate: count._asdict() for fate, count in result.fates.items()}})
        return
    _print_result(result, rows)


def _tried(policy: str, window: int) -> tuple[DemoResult, list[PlanRow]]:
    from refold import _samples, api
    from refold._compaction.options import Options
    from refold._inspect import plan_table
    from refold.core.counting import count_all

    session = next(each for each in _samples.conversations() if each.name == SESSION)
    wanted = Options(
        format=session.format, policy=policy, window=window, model=MODEL, system=session.system, tools=session.tools,
        wait=False,
    )  # fmt: skip
    request, plan = plan_table.planned(session.messages, wanted)
    rows = [  # every policy is measured exactly, and not by its own estimate
        replace(
            row,
            before=count_all(request.exact, [row.old]) if row.old else 0,
            after=count_all(request.exact, [row.new]) if row.new else 0,
        )
        for row in plan_table.rows(request, plan)
    ]
    result = api.apply(plan, session.messages, format=session.format, system=session.system)
    fates = {fate: [row for row in rows if row.fate == fate] for fate in FATES}
    users = [row for row in rows if row.role == "user" and row.old]
    none, run = _replayed(session, policy, window)
    before, after = (
        api.count(each, model=MODEL, format=session.format, system=session.system, tools=session.tools)
        for each in (session.messages, result.messages)
    )
    return DemoResult(
        policy, window, len(session.messages), before, after,
        {
            fate: FateCount(len(some), sum(row.before for row in some), sum(row.after for row in some))
            for fate, some in fates.items() if some
        },
        len(users), sum(_words_kept(row) for row in users),
        len(api.violations(result.messages, format=session.format)), api.rewind(result) == session.messages,
        MODEL, len(none.context), sum(size > window for size in none.context), len(run.compactions), run.summaries,
        (none.bill, run.bill), _largest(session, none, run),
    ), rows  # fmt: skip


def _words_kept(row: PlanRow) -> bool:
    from refold.core.messages import Text

    if row.old is None or row.new is None:
        return False
    after = {part.text for part in row.new.parts if isinstance(part, Text)}
    return all(part.text in after for part in row.old.parts if isinstance(part, Text))


def _replayed(session: SampleConversation, policy: str, window: int) -> list[Run]:
    from refold.replay._parallel import Job, ReplaySettings, done
    from refold.transcripts import RecordedConversation

    recorded = RecordedConversation(
        session.name, session.format, session.messages, session.system, session.tools, MODEL, window
    )
    settings = ReplaySettings(window=window, judge=False)
    return done(Job(recorded, session.name, b"", ("none", policy)), settings)


def _largest(session: SampleConversation, none: Run, run: Run) -> list[tuple[int, int]]:
    """Return the largest request that follows each message of the user: a call stands where an answer does."""
    largest: list[tuple[int, int]] = []
    sizes = iter(zip(none.context, run.context, strict=True))
    for message in session.messages:
        if message["role"] == "assistant":
            without, compacted = next(sizes, largest[-1])
            largest[-1] = (max(largest[-1][0], without), max(largest[-1][1], compacted))
        elif any(part["type"] != "tool_result" for part in message["content"]):
            largest.append((0, 0))
    return largest


def _print_result(result: DemoResult, rows: Sequence[PlanRow]) -> None:
    from refold._cli import show

    show.line(
        f"A coding agent has worked on {show.many(result.user_messages, 'request')} of its user: "
        f"{show.many(result.messages, 'message')}. The model's window holds {result.window:,} tokens.",
        style="bold",
    )
    _sizes(result)
    if result.after == result.before:
        show.line("\nIt fits: nothing has to be compacted. A smaller window: refold demo --window 200k")
        return
    _growth(result, rows)
    _bill(result)
    _fates(result)
    _extract(rows)
    show.line("\nUndo", style="bold")
    answer = f"gives back all {result.messages:,} messages, equal to the originals" if result.rewound else "failed"
    show.line(f"refold.rewind(result) {answer}.")
    show.line("\nGo on", style="bold")
    show.lines(
        [
            ("refold plan FILE --window 200k", "the same for a session file of your own agent"),
            ("refold run -- AGENT", "an agent that you cannot change, behind the gateway"),
            ("refold demo --compare", "what the six policies make of several conversations"),
        ]
    )


def _sizes(result: DemoResult) -> None:
    from refold._cli import show

    fits = "fits" if result.before <= result.window else "too long: the provider refuses it"
    valid = "breaks no rule of the provider" if not result.violations else f"{result.violations} violations"
    rows = [("as it is", show.number(result.before), show.bar(result.before, result.before), fits)]
    if result.after < result.before:
        bar = show.bar(result.after, result.before)
        rows.append((f"with {result.policy}", show.number(result.after), bar, f"fits, {valid}"))
    show.table(("conversation", ">tokens", "#", "*"), rows, title="The next request", styles=["", "bold green"])


def _fates(result: DemoResult) -> None:
    from refold._cli import show
    from refold._cli.plan import STYLES

    rows = [
        (show.number(count.messages), fate, show.number(count.before), show.number(count.after), FATES[fate])
        for fate, count in result.fates.items()
    ]  # fmt: skip
    styles = [STYLES.get(fate, "") for fate in result.fates]
    show.table(
        (">messages", "fate", ">tokens", ">after", "*meaning"), rows, title="What became of the messages", styles=styles
    )
    kept = f"{result.user_messages_kept} of {show.many(result.user_messages, 'message')}"
    show.line(f"\nThe user's own words are kept in {kept} of the user.")


def _extract(rows: Sequence[PlanRow]) -> None:
    """Show one message of each fate side by side, in the order of the conversation."""
    from refold._cli import show
    from refold._cli.diff import sides
    from refold._cli.plan import STYLES

    chosen = sorted(_examples(rows), key=rows.index)
    cells: list[tuple[str, str, str]] = []
    for row in chosen:
        before, after = sides(row, DIGEST_LINES if row.old is None else LINES)
        place = "new" if row.position is None else str(row.position)
        cells.append((f"{place}\n{row.fate}", before, AFTER.get(row.fate, after)))
    show.line("\nBefore and after, one message of each kind", style="bold")
    show.side_by_side(("message", "before", "after"), cells, [STYLES.get(row.fate, "") for row in chosen])


def _examples(rows: Sequence[PlanRow]) -> list[PlanRow]:
    """Return for each fate the message that lost most; of those kept the last of the user."""
    examples: list[PlanRow] = []
    for fate in FATES:
        some = [row for row in rows if row.fate == fate and (fate != "kept" or row.role == "user")]
        if fate == "kept":
            examples += some[-1:]
        elif some:
            examples.append(max(some, key=lambda row: row.before - row.after))
    return examples


def _growth(result: DemoResult, rows: Sequence[PlanRow]) -> None:
    from refold._cli import show
    from refold._inspect.message_labels import full_text

    users = [row.old for row in rows if row.role == "user" and row.old]
    requests = [show.clean(full_text(message).splitlines()[-1], REQUEST) for message in users]
    most = max(without for without, _ in result.largest)
    table_rows = [
        (str(place), show.number(without), show.bar(without, most), show.number(compacted), show.bar(compacted, most),
         text)
        for place, ((without, compacted), text) in enumerate(zip(result.largest, requests, strict=True), 1)
    ]  # fmt: skip
    headers = (">request", ">as it is", "#", f">with {result.policy}", "#", "~of the user")
    show.table(headers, table_rows, title="The largest call of the model while the agent works on each request")


def _bill(result: DemoResult) -> None:
    from refold._cli import show

    without, compacted = result.bill
    refused = f"{result.over:,} of {result.calls:,} calls are too long for the window" if result.over else ""
    models = f"{result.summaries:,} calls of a model for summaries" if result.summaries else "none needs a model"
    done = f"{show.many(result.compactions, 'compaction')}, {models}"
    rows = [
        ("as it is", f"{without:.2f}", "", refused),
        (f"with {result.policy}", f"{compacted:.2f}", f"{compacted / without - 1:+.0%}", done),
    ]
    title = f"The bill of the {result.calls:,} calls in US$, prices of {result.model} with its prompt cache"
    show.table(("session", ">US$", ">change", "*"), rows, title=title, styles=["", "bold green"])
