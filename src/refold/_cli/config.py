"""`refold config`: shows the effective settings and where each value comes from."""

from __future__ import annotations

import rich_click as click

from refold._cli import options


@options.examples("refold config", "refold config --set threshold=0.7")
@click.command("config")
@click.option(
    "--file", metavar="FILE", type=options.PATH, help="Read this file instead of refold.toml in the working folder."
)
@click.option("--set", "assignments", multiple=True, metavar="NAME=VALUE", help="Override a setting; can be repeated.")
@options.as_json
def command(file: str | None, assignments: tuple[str, ...], as_json: bool) -> None:
    """Show the settings in force and where they come from.

    An argument overrides the environment (`REFOLD_THRESHOLD=0.7`), and the environment overrides `refold.toml`.
    """
    from refold._cli import show
    from refold.config import Settings, names

    settings = Settings.load(_arguments(assignments), file=file)
    settings.chosen()  # settings that contradict each other, or a policy that is none, are said here
    values = {name: getattr(settings, name) for name in names()}
    if as_json:
        rows = {name: {"value": value, "source": settings.sources[name]} for name, value in values.items()}
        show.emit({"settings": rows, "unknown": _unknown()})
        return
    cells = [(name, _as_text(value), show.clean(settings.sources[name])) for name, value in values.items()]
    styles = ["bold" if settings.is_set(name) else "dim" for name in values]
    show.table(("setting", "*value", "*from"), cells, styles=styles)
    for name in _unknown():
        show.note(f"refold: {name} is set and is no setting")


def _arguments(assignments: tuple[str, ...]) -> dict[str, str]:
    from refold.errors import UsageError

    values: dict[str, str] = {}
    for each in assignments:
        name, sign, value = each.partition("=")
        if not sign:
            raise UsageError(f"--set {each} has no value: write it as in --set threshold=0.7")
        values[name.strip()] = value.strip()
    return values


def _unknown() -> list[str]:
    """Return variables that look like ours and set nothing."""
    import os

    from refold.config import NAMED_BY, names, variable

    known = {NAMED_BY, *map(variable, names())}
    return sorted(name for name in os.environ if name.startswith("REFOLD_") and name not in known)


def _as_text(value: object) -> str:
    from refold._cli import show

    match value:
        case bool():
            return "true" if value else "false"
        case None:
            return "not set"
        case int():
            return f"{value:,}"
        case dict():
            return ", ".join(f"{show.clean(str(key))} = {each}" for key, each in value.items()) or "none"
        case _:
            return show.clean(str(value))
