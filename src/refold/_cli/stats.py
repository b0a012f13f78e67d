"""`refold stats`: where the tokens go."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rich_click as click

from refold._cli import options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold._inspect.token_table import TokenShare, TokenTable


@options.examples("refold stats session.jsonl", "refold stats ~/.claude/projects", "refold stats - < request.json")
@click.command("stats")
@options.files
@options.reading
@options.model_option("sets the tokenizer; by default the file's own")
@options.counter_option
@options.limit_option(10)
@options.as_json
def command(
    files: tuple[str, ...], how: options.ReadOptions, model: str | None, counter: str | None, limit: int, as_json: bool
) -> None:
    """Show where the tokens go: roles, tools, files, turns.

    Tokens are shown by role, kind, tool, file and turn, with the largest messages. Of a session that was compacted the
    messages since then are counted, which are its context; of one that refold compacted, all messages. Of several
    conversations each has a row.
    """
    from refold._cli import files as reading
    from refold._cli import show
    from refold._inspect.token_table import tallied
    from refold._text.suggestions import did_you_mean
    from refold.models import _catalog as catalog
    from refold.transcripts._conversation import beginning_at, context_start

    if model is not None and catalog.window(model).source == "default":
        near = did_you_mean(model, catalog.known())
        show.note(f"no table knows model {model}{near}: counted with the default tokenizer")
    token_tables: list[TokenTable] = []
    for talk in reading.conversations(files, how, "Counting"):
        if start := context_start(talk.recorded):
            earlier = show.many(start, "message")
            show.note(f"{talk.label}: {earlier} before the session's last compaction, which the model no longer sees")
        elif talk.recorded.boundaries:
            show.note(
                f"{talk.label}: all messages as they were received; `refold sessions show` tells what is still sent"
            )
        context = beginning_at(talk.recorded, start)
        token_tables.append(tallied(context, talk.label, model=model, counter=counter, top=limit))
    if as_json:
        show.emit(token_tables[0] if len(token_tables) == 1 else token_tables)
    elif len(token_tables) == 1:
        _one(token_tables[0], limit)
    else:
        _many(token_tables)


def _one(tally: TokenTable, top: int) -> None:
    from refold._cli import show

    show.lines(
        [
            ("file", show.clean(f"{tally.file} ({tally.kind}, {tally.format})")),
            ("model", tally.model or f"not named in the file: counted as {tally.counter}"),
            (
                "total",
                f"{show.many(tally.total, 'token')} in {show.many(tally.messages, 'message')} "
                f"with {show.many(tally.calls, 'tool call')}",
            ),
            *([("system", f"{tally.system:,} tokens")] if tally.system else []),
            *([("tools", f"{tally.schemas:,} tokens of definitions")] if tally.schemas else []),
            *_reported(tally),
        ]
    )
    for title, shares, counted in (
        ("By role", tally.roles, "messages"),
        ("By kind of part", tally.kinds, "parts"),
        ("By tool (call and result)", tally.tools, "calls"),
        ("By file (read or written)", tally.files, "calls"),
        ("By turn", tally.turns, "messages"),
    ):
        _bars(title, shares, counted, tally.total, top)
    headers = (">position", "role", ">tokens", ">share", "#", "~what")
    rows = [
        (str(item.position), item.role, show.number(item.tokens), show.share(item.tokens, tally.total),
         show.bar(item.tokens, tally.largest[0].tokens), item.what)
        for item in tally.largest
    ]  # fmt: skip
    show.table(headers, rows, title="Largest messages")
    if tally.notes:
        show.table(("*Left aside",), [(show.clean(note),) for note in tally.notes], title=" ")


def _bars(title: str, shares: Sequence[TokenShare], counted: str, total: int, top: int) -> None:
    from refold._cli import show

    if not shares:
        return
    largest = sorted(range(len(shares)), key=lambda place: (-shares[place].tokens, place))[:top]
    listed = [shares[place] for place in sorted(largest)]
    most = max(each.tokens for each in listed)
    rows = [
        (show.number(each.tokens), show.share(each.tokens, total), show.bar(each.tokens, most),
         show.number(each.count), show.clean(each.name))
        for each in listed
    ]  # fmt: skip
    others = len(shares) - len(listed)
    if others:
        tokens = sum(each.tokens for each in shares) - sum(each.tokens for each in listed)
        count = sum(each.count for each in shares) - sum(each.count for each in listed)
        rows.append(
            (
                show.number(tokens),
                show.share(tokens, total),
                "",
                show.number(count),
                f"{others:,} other{'' if others == 1 else 's'}",
            )
        )
    mark = "~" if counted == "messages" else "*"  # turns are told by their first words, files need their whole path
    headers = (">tokens", ">share", "#", f">{counted}", f"{mark}{title}")
    show.table(headers, rows, title=" ")


def _reported(tally: TokenTable) -> list[tuple[str, str]]:
    if not tally.reported:
        return []
    from refold._cli import show

    last = tally.reported[-1]
    most = max(each.prompt for each in tally.reported)
    return [
        (
            "reported",
            f"{last.prompt:,} tokens of input and {last.completion:,} of output at the last of "
            f"{show.many(len(tally.reported), 'call')}, which covered {show.many(last.covers, 'message')}; "
            f"at most {most:,} of input",
        )
    ]


def _many(token_tables: Sequence[TokenTable]) -> None:
    from refold._cli import show

    headers = ("*file", "kind", ">messages", ">turns", ">calls", ">tokens", ">results", ">reported")
    rows = [
        (show.clean(each.file), each.kind, show.number(each.messages), show.number(len(each.turns)),
         show.number(each.calls), show.number(each.total), show.share(_results(each), each.total),
         show.number(each.reported[-1].prompt) if each.reported else "")
        for each in token_tables
    ]  # fmt: skip
    total = sum(each.total for each in token_tables)
    rows.append(
        (
            f"total of {len(token_tables):,}",
            "",
            show.number(sum(each.messages for each in token_tables)),
            show.number(sum(len(each.turns) for each in token_tables)),
            show.number(sum(each.calls for each in token_tables)),
            show.number(total),
            show.share(sum(map(_results, token_tables)), total),
            "",
        )
    )
    show.table(headers, rows, styles=[*[""] * len(token_tables), "bold"])


def _results(tally: TokenTable) -> int:
    return sum(each.tokens for each in tally.kinds if each.name == "result")
