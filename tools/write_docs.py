"""Writes what the docs take from the code: tables and trees between markers, pictures, and the golden plans.

    python tools/write_docs.py            write what is out of date, and say what it was
    python tools/write_docs.py --check    write nothing; exit 1 when something is out of date

A part stands between `<!-- generated:NAME -->` and `<!-- /generated -->`; NAME is a key of PARTS.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import rich_click as click
from msgspec import NODEFAULT, Struct

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

import pictures  # noqa: E402

import refold  # noqa: E402
from refold import errors, formats, policies, rules, stages, transcripts  # noqa: E402
from refold.cli.main import cli  # noqa: E402
from refold.core import budget, counting, events, gauge, messages, needs, policy, view  # noqa: E402
from refold.counting import exact  # noqa: E402
from refold.limits import models, overflow  # noqa: E402
from refold.transcripts import readers  # noqa: E402
from tests.golden import cases  # noqa: E402

__all__ = ["PARTS", "main", "outdated"]

MARK = re.compile(r"(<!-- generated:([\w-]+) -->\n)(.*?)(<!-- /generated -->)", re.S)
PICTURES = ROOT / "docs" / "pictures"


def main(arguments: Sequence[str]) -> int:
    """Write what is out of date, or with `--check` only say it; return the exit code."""
    found = dict(outdated())
    for path, content in found.items():
        print(f"out of date: {path.relative_to(ROOT)}")
        if "--check" not in arguments:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    return 1 if found and "--check" in arguments else 0


def outdated() -> Iterator[tuple[Path, bytes]]:
    """Yield each file whose content is not what the code gives, with what it should be."""
    for path, content in (*_golden(), *_pages()):
        if not path.exists() or path.read_bytes() != content:
            yield path, content


def _golden() -> Iterator[tuple[Path, bytes]]:
    yield PICTURES / "process.svg", pictures.process().encode()
    for name in policies.names():
        for case in cases.CASES:
            made = cases.made(name, case)
            yield cases.path(name, case), cases.wire(made.plan)
            if case in _telling(name):
                picture = pictures.before_and_after(made.plan, made.messages, made.counter)
                yield PICTURES / f"{name}-{case}.svg", picture.encode()


def _telling(policy: str) -> tuple[str, ...]:
    """Return the cases that show steps which no case before them shows."""
    shown: set[str] = set()
    found = []
    for case in cases.CASES:
        used = set(cases.made(policy, case).plan.stages_used)
        if used - shown:
            found.append(case)
        shown |= used
    return tuple(found)


def _pages() -> Iterator[tuple[Path, bytes]]:
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        yield path, _rewritten(path).encode()


def _rewritten(path: Path) -> str:
    return MARK.sub(lambda found: f"{found[1]}{_part(found[2], path)}{found[4]}", path.read_text("utf-8"))


def _part(name: str, path: Path) -> str:
    if name not in PARTS:
        raise SystemExit(f"{path.relative_to(ROOT)}: no generated part is called {name}; there are {', '.join(PARTS)}")
    return f"\n{PARTS[name](path).strip()}\n\n"


# Policies


def _policies(path: Path) -> str:
    folder = "docs/policies" if path.parent == ROOT else "policies"
    rows = []
    for name in policies.names():
        found = policies.find(name)
        steps = " · ".join(step.name for step in found.steps)
        rows.append((f"[`{name}`]({folder}/{name}.md)", found.summary, _limit(found.trigger), _goal(found.goal), steps))
    return _table(("policy", "what it does", "starts", "stops", "steps"), rows)


def _policy(path: Path) -> str:
    found = policies.find(path.stem)
    counter = "exactly, by the model's tokenizer" if found.counter is None else f"`{_shown(found.counter)}`"
    facts = [
        ("counts", counter),
        ("measures", _sentence(type(found.gauge))),
        ("starts", _limit(found.trigger)),
        ("stops", _goal(found.goal)),
        ("keeps for the answer", _reserve(found.reserve)),
        ("renews the session", "yes") if found.renews_session else ("", ""),
        *_after_overflow(found),
    ]
    steps = [
        (str(number), step.name, f"`{step.when}`", f"`{_shown(step.stage)}`")
        for number, step in enumerate(found.steps, 1)
    ]
    return (
        f"{_table(('what', 'how'), [fact for fact in facts if fact[0]])}\n\n"
        f"{_table(('', 'step', 'when', 'stage and its options'), steps)}"
    )


def _after_overflow(found: policy.Policy) -> Iterator[tuple[str, str]]:
    after = found.after_overflow
    if after is None:
        yield "after an overflow", "the same"
        return
    changed = [f"stops {_goal(after.goal)}"] if after.goal != found.goal else []
    same = {step.stage for step in found.steps}
    changed += [f"{step.name} with `{_shown(step.stage)}`" for step in after.steps if step.stage not in same]
    yield "after an overflow", "; ".join(changed) or "the same"


def _pictures(path: Path) -> str:
    found = []
    for case in _telling(path.stem):
        made = cases.made(path.stem, case)
        sizes, used = made.plan.sizes, ", ".join(made.plan.stages_used) or "nothing to do"
        window = cases.window(path.stem, case)
        found.append(
            f"![{path.stem}: {case}, before and after](../pictures/{path.stem}-{case}.svg)\n\n"
            f"*{case}*: {len(made.messages)} messages of {sizes.before:,} tokens in a window of {window:,}, "
            f"{sizes.after:,} tokens after ({used}). Tokens are this policy's own count; the plan is "
            f"[tests/golden/{path.stem}/{case}.plan.json](../../tests/golden/{path.stem}/{case}.plan.json)."
        )
    return "\n\n".join((*found, "`make docs` makes these pictures and figures from the plans."))


def _limit(limit: budget.Limit) -> str:
    match limit:
        case budget.Share(share=share, of_window=of_window, minus=minus, inclusive=inclusive, floor=floor, free=free):
            whole = "window" if of_window else "input budget"
            said = f"the {whole}" if share == 1 else f"{round(100 * share)} % of the {whole}"
            less = f" − {minus:,} tokens" if minus else ""
            least = f", at least {round(100 * floor)} %" if floor else ""
            rest = f", with {round(100 * free)} % of what system prompt and tools leave for messages" if free else ""
            return f"{'at' if inclusive else 'above'} {said}{less}{least}{rest}"
        case budget.LeastCost(size=size, most=most):
            return f"at {size:,} tokens, the size of least cost, at most {round(100 * most)} % of the input budget"
        case budget.Exactly(count=count, inclusive=inclusive):
            return f"{'at' if inclusive else 'above'} {count:,} tokens"
        case budget.Never():
            return "never"


def _goal(limit: budget.Limit) -> str:
    return _limit(limit).replace("above", "at")


def _reserve(reserve: budget.Reserve) -> str:
    given = "the given maximum" if reserve.given_cap is None else f"the given maximum, at most {reserve.given_cap:,}"
    return f"{given}; without one min({reserve.cap:,}, {round(100 * reserve.share)} % of the window)"


# Stages, formats, rules


def _stages(path: Path) -> str:
    return "\n\n".join(_stage(found) for found in _structs(stages) if hasattr(found, "needs"))


def _selectors(path: Path) -> str:
    found = [each for each in _structs(stages) if each.__module__.endswith(".choose") and callable(each)]
    return "\n\n".join(_stage(each, asks=False) for each in found if each.__name__ != "Target")


def _stage(found: type[Struct], *, asks: bool = True) -> str:
    file = found.__module__.rpartition(".")[2]
    said = f"Asks for {_asks(found)}. " if asks else ""
    grows = "May make the view larger. " if getattr(found, "grows", False) else ""
    options = [(f"`{name}`", f"`{kind}`", default) for name, kind, default in _options(found)]
    table = _table(("option", "type", "default"), options) if options else "No options."
    source = f"[{file}.py](../src/refold/stages/{file}.py)"
    return f"### {found.__name__}\n\n{_prose(found)}\n\n{said}{grows}{source}\n\n{table}"


def _asks(found: type[Struct]) -> str:
    if issubclass(found, policy.Pure):
        return "nothing"
    source = inspect.getsource(import_module(found.__module__))
    words = {
        r"\b(?:ask|need_of)\(": "a summary (`Summarize`)",
        r"\bReadFile\(": "files (`ReadFile`)",
        r"needs\.Archive\(": "an archive (`Archive`)",
        r"\bCountExactly\(": "an exact count (`CountExactly`)",
    }
    return ", ".join(said for pattern, said in words.items() if re.search(pattern, source)) or "nothing"


def _options(found: type[Struct]) -> Iterator[tuple[str, str, str]]:
    names, defaults = found.__struct_fields__, found.__struct_defaults__
    padded = (NODEFAULT,) * (len(names) - len(defaults)) + tuple(defaults)
    for name, default in zip(names, padded, strict=True):
        noted = (inspect.get_annotations(base) for base in found.__mro__)
        kind = next((known[name] for known in noted if name in known), "")
        yield name, str(kind), "*required*" if default is NODEFAULT else f"`{_shown(default)}`"


def _formats(path: Path) -> str:
    rows = []
    for name in formats.names():
        found = formats.find(name)
        traits = found.traits
        rows.append(
            (
                f"`{name}`",
                _sentence(type(found)),
                ", ".join(f"`{rule.name}`" for rule in found.rules),
                "joined in one message" if traits.results_together else "one message each",
                "stays" if traits.system_in_list else "becomes a user message",
                "joined" if traits.alternates else "stay apart",
                "yes" if traits.assistant_last else "no",
            )
        )
    head = ("format", "", "rules", "results of a batch", "system message in the list", "neighbors of one role",
            "assistant may be last")  # fmt: skip
    return _table(head, rows)


def _rules(path: Path) -> str:
    rows = []
    for module in _modules(rules):
        name = module.__name__.rpartition(".")[2]
        used = [each for each in formats.names() if any(type(r).__module__ == module.__name__ for r in _own(each))]
        file = f"[`{name}`](../src/refold/rules/{name}.py)"
        rows.append((file, _first(module.__doc__), ", ".join(f"`{each}`" for each in used) or "none"))
    return _table(("rule", "what it demands", "formats"), rows)


def _own(name: str) -> tuple[view.Rule, ...]:
    return formats.find(name).rules


# Errors, refusals, transcripts, counting


def _errors(path: Path) -> str:
    tree = (errors.__doc__ or "").split("\n\n")[1]
    rows = [(f"`{name}`", _sentence(getattr(errors, name))) for name in errors.__all__]
    return f"```text\n{tree}\n```\n\n{_table(('error', 'what it says'), rows)}"


def _refusals(path: Path) -> str:
    rows = [
        (f"`{row.kind}`", row.provider or "many", row.name, f"`{_cut(row.sample, 110).replace('`', chr(39))}`")
        for row in sorted(overflow.rows(), key=lambda row: row.kind)
    ]
    return _table(("kind", "wording of", "row", "sample"), rows)


def _kinds(path: Path) -> str:
    rows = []
    for kind in transcripts.kinds():
        module = import_module(f"{readers.__name__}.{kind.replace('-', '_')}")
        rows.append((f"`{kind}`", _joined(module.__doc__ or "")))
    return _table(("kind", "what it reads"), rows)


def _families(path: Path) -> str:
    rows = []
    for family in exact.families():
        how = "the model's own" if family.exact else "a near one, calibrated" if family.factors else "a near one"
        rows.append((family.name, f"`{family.encoding}`", how, f"`{family.images}`"))
    return _table(("family", "vocabulary", "it is", "rule for pictures"), rows)


def _models(path: Path) -> str:
    table = models.table()
    hosts = sum(map(len, table.hosts.values()))
    sources = " and ".join(f"{package} {version}" for package, version in sorted(table.sources.items()))
    return (
        f"The table is dated {table.dated}: {len(table.models):,} models, and {hosts:,} rows of hosts whose "
        f"own figures differ, from {sources}."
    )


# Library and command line


def _library(path: Path) -> str:
    rows = [(f"`{name}`", _sentence(getattr(refold, name))) for name in refold.__all__]
    return _table(("name", "what it is"), rows)


def _arguments(path: Path) -> str:
    body = inspect.cleandoc(refold.compact.__doc__ or "").partition("Args:\n")[2].partition("\n\nRaises:")[0]
    defaults = inspect.signature(refold.compact).parameters
    found = re.findall(r"^    (\w+): (.*?)(?=^    \w+: |\Z)", body + "\n", re.M | re.S)
    rows = [(f"`{name}`", _default(defaults[name]), _joined(words)) for name, words in found]
    return _table(("argument", "default", "meaning"), rows)


def _default(parameter: inspect.Parameter) -> str:
    return "*required*" if parameter.default is parameter.empty else f"`{parameter.default!r}`"


def _events(path: Path) -> str:
    return _table(
        ("event", "what happened"), [(f"`{each.__name__}`", _sentence(each)) for each in _union(events.Event)]
    )


def _needs(path: Path) -> str:
    return _table(
        ("need", "what is asked for"), [(f"`{each.__name__}`", _sentence(each)) for each in _union(needs.Need)]
    )


def _values(path: Path) -> str:
    parts = [(f"`{each.__name__}`", _prose(each)) for each in _union(messages.Part)]
    return _table(("part", "what it is"), parts)


def _gauges(path: Path) -> str:
    return _table(("gauge", "what it takes as the size"), [(f"`{e.__name__}`", _prose(e)) for e in _union(gauge.Gauge)])


def _causes(path: Path) -> str:
    words = {
        view.Cause.THRESHOLD: "the trigger was reached (the default)",
        view.Cause.OVERFLOW: "the provider refused the request for its size; the policy's `after_overflow` runs",
        view.Cause.SILENT_OVERFLOW: "the provider reported more input than the window holds; `after_overflow` runs",
        view.Cause.MANUAL: "somebody asked (`force=True`, `--force`)",
    }
    return _table(("cause", "why a run started"), [(f"`{cause}`", words[cause]) for cause in view.Cause])


def _counter(path: Path) -> str:
    options = [(f"`{name}`", f"`{kind}`", default) for name, kind, default in _options(counting.CharCounter)]
    return f"{_prose(counting.CharCounter)}\n\n{_table(('option', 'type', 'default'), options)}"


def _commands(path: Path) -> str:
    top = click.Context(cli, info_name="refold")
    return "\n\n".join(_command(cli.get_command(top, name), name, top) for name in cli.list_commands(top))


def _command(command: click.Command | None, name: str, top: click.Context) -> str:
    assert command is not None, name
    context = click.Context(command, info_name=name, parent=top)
    usage = " ".join(command.collect_usage_pieces(context))
    rows = []
    for option in command.params:
        record = option.get_help_record(context) if isinstance(option, click.Option) else None
        if record is not None:
            rows.append((f"`{record[0]}`", re.sub(r"\s+", " ", record[1])))
    said = inspect.cleandoc(command.help or "").replace("\b\n", "")
    return f"## {name}\n\n```sh\nrefold {name} {usage}\n```\n\n{said}\n\n{_table(('option', 'meaning'), rows)}"


def _main_help(path: Path) -> str:
    top = click.Context(cli, info_name="refold")
    rows = []
    for name in cli.list_commands(top):
        command = cli.get_command(top, name)
        assert command is not None, name
        rows.append((f"[`{name}`](#{name})", _first(command.help)))
    return f"{inspect.cleandoc(cli.help or '')}\n\n{_table(('command', 'what it does'), rows)}"


# Architecture


def _layout(path: Path) -> str:
    rows = []
    for module in sorted(iter_modules(refold.__path__), key=lambda each: (not each.ispkg, each.name)):
        name = f"{module.name}/" if module.ispkg else f"{module.name}.py"
        said = _first(import_module(f"refold.{module.name}").__doc__)
        rows.append((f"[`{name}`](../src/refold/{name})", said))
    return _table(("in `src/refold/`", "what it is"), rows)


def _imports(path: Path) -> str:
    rows = []
    for name, allowed in import_module("tests.test_architecture").MAY_IMPORT.items():
        others = sorted(allowed - {name, "errors"})
        rows.append((f"`{name}`", ", ".join(f"`{each}`" for each in others) or "nothing else"))
    return _table(("module", "may import"), rows)


# Words and tables


def _modules(package: Any) -> Iterator[Any]:
    for module in sorted(iter_modules(package.__path__), key=lambda module: module.name):
        yield import_module(f"{package.__name__}.{module.name}")


def _structs(package: Any) -> Iterator[type[Struct]]:
    """Yield the public values of a package that are callable or have edits: stages and selectors."""
    for module in _modules(package):
        for name in getattr(module, "__all__", ()):
            found = getattr(module, name)
            own = inspect.isclass(found) and issubclass(found, Struct) and found.__module__ == module.__name__
            if own and (hasattr(found, "edits") or module.__name__.endswith(".choose")):
                yield found


def _union(union: Any) -> tuple[type, ...]:
    members: tuple[type, ...] = union.__args__
    return members


def _sentence(thing: Any) -> str:
    return _first(thing.__doc__)


def _first(docstring: str | None) -> str:
    return _joined(inspect.cleandoc(docstring or "").split("\n\n")[0])


def _prose(thing: Any) -> str:
    """Return a docstring as paragraphs, sections such as Raises in one line each."""
    return "\n\n".join(map(_joined, inspect.cleandoc(thing.__doc__ or "").split("\n\n")))


def _joined(text: str) -> str:
    return " ".join(text.split())


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _shown(value: Any) -> str:
    """Return a value as one would write it: a struct with what differs from its defaults, sets sorted."""
    match value:
        case Struct():
            names, defaults = value.__struct_fields__, value.__struct_defaults__
            padded = (NODEFAULT,) * (len(names) - len(defaults)) + tuple(defaults)
            given = [
                f"{name}={_shown(getattr(value, name))}"
                for name, default in zip(names, padded, strict=True)
                if getattr(value, name) != default
            ]
            return f"{type(value).__name__}({', '.join(given)})"
        case frozenset():
            return f"{{{', '.join(map(repr, sorted(value)))}}}" if value else "{}"
        case bool() | None:
            return repr(value)
        case int():
            return f"{value:_}"
        case str():
            return f'"{value}"'
        case _:
            return repr(value)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)


def _cell(text: str) -> str:
    return _joined(text).replace("|", "\\|")


PARTS: dict[str, Callable[[Path], str]] = {
    "arguments": _arguments,
    "causes": _causes,
    "char-counter": _counter,
    "command-list": _main_help,
    "commands": _commands,
    "errors": _errors,
    "events": _events,
    "families": _families,
    "formats": _formats,
    "gauges": _gauges,
    "imports": _imports,
    "kinds": _kinds,
    "layout": _layout,
    "library": _library,
    "models": _models,
    "needs": _needs,
    "parts": _values,
    "pictures": _pictures,
    "policies": _policies,
    "policy": _policy,
    "refusals": _refusals,
    "rules": _rules,
    "selectors": _selectors,
    "stages": _stages,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
