"""What commands print in the made-up repository: test runs, logs of services, queries, git."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.sample_sessions.shop import prose, shop

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from refold.testing._seeded_random import SeededRandom
    from tools.sample_sessions.shop import Task
    from tools.sample_sessions.workspace import DemoRepository

__all__ = ["git_log", "query_plan", "service_log", "suite", "test_run", "web_run"]

_LEVELS = ("info", "info", "info", "debug", "warning")


def test_run(
    workspace: DemoRepository, paths: Sequence[str], failed: Sequence[str], task: Task, dice: SeededRandom
) -> str:
    """Return what `pytest -v` prints for some test files; `failed` are the names of the tests that fail."""
    chosen = [(path, name) for path in paths for at, name in workspace.tests(path) if at == path]
    width = len(chosen)
    lines = [_head(dice), f"collected {width} items", ""]
    for number, (path, name) in enumerate(chosen, 1):
        word = "FAILED" if name in failed else "PASSED"
        lines.append(f"{path}::{name} {word:<40}[{number * 100 // width:>3}%]")
    return "\n".join([*lines, *_failures(chosen, failed, task, workspace, dice), _end(width, len(failed), dice)])


def suite(workspace: DemoRepository, failed: Sequence[str], task: Task, dice: SeededRandom) -> str:
    """Return what a quiet run of all tests prints, with the slowest of them."""
    chosen = workspace.tests()
    marks = "".join("F" if name in failed else "." for _, name in chosen)
    rows = [
        f"{marks[at : at + 72]:<72} [{min(at + 72, len(marks)) * 100 // len(marks):>3}%]"
        for at in range(0, len(marks), 72)
    ]
    slow = sorted(((dice.between(40, 4_100), path, name) for path, name in dice.some(chosen, 18)), reverse=True)
    lines = [
        f"{cost / 1000:.2f}s {dice.pick(('call', 'call', 'setup')):<8} {path}::{name}" for cost, path, name in slow
    ]
    return "\n".join(
        [
            *rows,
            *_failures(chosen, failed, task, workspace, dice),
            "slowest durations:",
            *lines,
            _end(len(chosen), len(failed), dice),
        ]
    )


def web_run(task: Task, passed: bool, dice: SeededRandom) -> str:
    """Return what the tests of the TypeScript side print."""
    lines = [" RUN  v3.2.4 /srv/orderdesk/web", ""]
    for entity in shop().entities:
        count, cost = dice.between(4, 30), dice.between(3, 190)
        lines.append(f" ✓ src/api/{entity.name}.test.ts ({count} tests) {cost}ms")
    if not passed:
        lines += [
            f" ❯ src/promise.test.ts (6 tests | 1 failed) {dice.between(9, 40)}ms",
            f"   × {task.failing}",
            f"     → {task.error}",
        ]
    lines += [
        "",
        f" Tests  {'6 passed' if passed else '1 failed | 5 passed'} in src/promise.test.ts",
        f" Duration  {dice.between(900, 4_000)}ms",
    ]
    return "\n".join(lines)


def service_log(task: Task, dice: SeededRandom, ids: Sequence[str], lines: int = 40) -> str:
    """Return lines of a service's log as JSON; `ids` come up in some of them."""
    second = dice.between(20_000, 80_000)
    own = next(entity for entity in shop().entities if entity.name == task.entity)
    day = task.ticket % 20 + 1
    out = []
    for _ in range(lines):
        second += dice.below(90)
        entity = dice.pick(shop().entities) if dice.chance(0.6) else own
        subject = dice.pick(ids) if dice.chance(0.15) else f"{entity.name[:3]}_{dice.letters(10)}"
        clock = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.{dice.below(1000):03}"
        out.append(
            f'{{"at":"2026-02-{day:02}T{clock}Z","level":"{dice.pick(_LEVELS)}",'
            f'"event":"{entity.name}.{dice.pick(entity.verbs)}","id":"{subject}","request_id":"req_{dice.hex(12)}",'
            f'"ms":{dice.between(1, 900)},"worker":"{dice.pick(shop().warehouses)}/{dice.between(1, 6)}",'
            f'"note":"{dice.pick(shop().adjectives)} {dice.pick(shop().nouns)}"}}'
        )
    return "\n".join(out)


def query_plan(table: str, dice: SeededRandom) -> str:
    """Return a database's plan of a query."""
    rows = dice.between(900, 80_000)
    cost = dice.between(300, 9_000)
    return "\n".join(
        [
            f"Limit  (cost=0.42..{cost}.{dice.between(10, 99)} rows=200 width={dice.between(60, 300)}) "
            f"(actual time=0.{dice.between(11, 99)}..{dice.between(40, 9_000)}.{dice.between(1, 9)} rows=200 loops=1)",
            f"  ->  Nested Loop  (cost=0.42..{cost * 3}.11 rows={rows} width={dice.between(60, 300)})",
            f"        ->  Index Scan using {table}_pkey on {table}  (actual rows={rows} loops=1)",
            f"              Index Cond: (id > '{table[:3]}_{dice.letters(10)}'::text)",
            f"              Buffers: shared hit={dice.between(100, 9_000)} read={dice.between(1, 700)}",
            f"        ->  Seq Scan on {dice.pick(shop().entities).table}  "
            f"(actual rows={dice.between(1, 90)} loops={rows})",
            f"              Filter: (status = '{dice.pick(shop().adjectives)}'::text)",
            f"Planning Time: 0.{dice.between(100, 999)} ms",
            f"Execution Time: {dice.between(12, 9_400)}.{dice.between(100, 999)} ms",
        ]
    )


def git_log(dice: SeededRandom, slots: Callable[[], dict[str, object]], count: int = 14) -> str:
    """Return one line for each of the newest commits; `slots` gives what fills the subject of one."""
    return "\n".join(
        f"{dice.hex(9)} {dice.pick(shop().people):<7} 2026-02-{28 - number:02} "
        f"{dice.fill(dice.pick(prose().commits), **slots())} (OD-{dice.between(1_100, 1_430)})"
        for number in range(count)
    )


def _failures(
    chosen: Sequence[tuple[str, str]], failed: Sequence[str], task: Task, workspace: DemoRepository, dice: SeededRandom
) -> list[str]:
    out = ["", "=" * 35 + " FAILURES " + "=" * 35] if failed else [""]
    for path, name in chosen:
        if name in failed:
            body = workspace.files[path].split(f"def {name}(", 1)[1].split("\n\n\n", 1)[0]
            own = name == task.failing
            error = task.error if own else f"assert {dice.between(1, 4)} == {dice.between(5, 9)}"
            out += [f"{'_' * 20} {name} {'_' * 20}", "", f"    def {name}({body.rstrip()}", f"E   {error}", ""]
            kind = error.split(":")[0] if ":" in error else "AssertionError"
            out.append(f"{task.path if own else path}:{dice.between(9, 40)}: {kind}")
    return out


def _head(dice: SeededRandom) -> str:
    return (
        f"{'=' * 25} test session starts {'=' * 25}\nplatform linux -- Python 3.12.7, pytest-8.3.4\n"
        f"rootdir: /srv/orderdesk, configfile: pyproject.toml, seed: {dice.between(10_000, 99_999)}"
    )


def _end(count: int, failed: int, dice: SeededRandom) -> str:
    words = f"{failed} failed, {count - failed} passed" if failed else f"{count} passed"
    return f"{'=' * 20} {words} in {dice.between(2, 70)}.{dice.between(10, 99)}s {'=' * 20}"
