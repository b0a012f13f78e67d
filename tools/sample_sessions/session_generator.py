"""The long session: nine tasks in one made-up repository, each looked into, mended, tested and committed."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from tools.sample_sessions import outputs, tools
from tools.sample_sessions.python_code import words
from tools.sample_sessions.recorder import CACHED, RecordedCall, Recorder
from tools.sample_sessions.shop import Entity, Task, prose, shop, tasks
from tools.sample_sessions.workspace import ROOT, DemoRepository

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.testing._seeded_random import SeededRandom

__all__ = ["Story", "agent"]

ROUNDS = 7  # of looking around, in each task
REPEATED = ("rfd_Qm4Xv81TzA", "req_7c41e09ab2d8", "ord_5HnT20bWkE", "rsv_8hQ2LmZp0c")  # come back much later


class _Agent(Struct, frozen=True):
    system: list[str]
    tools: list[dict[str, Any]]


def agent() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return system prompt and tools of the sample agent."""
    data = msgspec.json.decode(files(__package__).joinpath("data", "agent.json").read_bytes(), type=_Agent)
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text} for text in data.system]
    blocks[-1]["cache_control"] = CACHED
    return blocks, data.tools


class Story:
    """Plays the tasks one after the other; `messages` is the session, which ends with a tool's answer."""

    def __init__(self, dice: SeededRandom) -> None:
        self._dice = dice.fork("story")
        self._space = DemoRepository(dice.fork("files"))
        self._recorder = Recorder(dice.fork("ids"))
        self._commits: list[tuple[int, str]] = []
        self._seen: list[str] = []
        for number, task in enumerate(tasks(), 1):
            self._task(task, last=number == len(tasks()))

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages so far."""
        return self._recorder.messages

    def _task(self, task: Task, *, last: bool) -> None:
        entity = next(entity for entity in shop().entities if entity.name == task.entity)
        plan = [
            f"Understand OD-{task.ticket} in {task.path}",
            f"Reproduce it with {task.failing}",
            f"Mend {task.path}",
            f"Say more in the messages of the {entity.name} service",
            "Run all tests and commit",
        ]
        self._recorder.user(task.ask, task.picture)
        self._begin(task, entity, plan)
        for round in range(ROUNDS):
            self._look(task, entity, round)
        self._reproduce(task, entity, plan)
        self._mend(task, entity)
        self._improve(task, entity, plan)
        self._finish(task, entity, plan, last=last)

    def _begin(self, task: Task, entity: Entity, plan: Sequence[str]) -> None:
        space = self._space
        self._say("searching", entity, tools.todo(plan, 0), lead=f"I'll look into OD-{task.ticket} first.", think=3)
        searches = [tools.grep(space, word) for word in task.words[:3]]
        self._say("searching", entity, *searches, tools.glob(space, f"*{entity.name}*"), think=2)
        self._say("reading", entity, tools.read(space, task.path), *self._reads(entity, 2), think=2)
        if task.picture:
            shot = RecordedCall(
                "Read", {"file_path": f"{ROOT}/docs/shots/OD-{task.ticket}.png"}, "PNG picture", picture="middle"
            )
            self._say("asking", entity, shot, lead="There is an older screenshot in docs/shots to compare with.")

    def _look(self, task: Task, entity: Entity, round: int) -> None:
        space, dice = self._space, self._dice
        match dice.below(10):
            case 0:
                log = outputs.service_log(task, dice, REPEATED, dice.between(16, 44))
                unit = f"orderdesk@{dice.pick(shop().warehouses)}"
                call = tools.bash(f"journalctl -u {unit} --since '2 hours ago' | grep {task.entity}", log)
                self._say("asking", entity, call, think=dice.below(3))
            case 1:
                table = dice.pick(shop().entities).table
                plan = outputs.query_plan(table, dice)
                history = outputs.git_log(dice, lambda: self._slots(entity))
                call = tools.bash(f"psql -c 'EXPLAIN (ANALYZE, BUFFERS) TABLE {table} LIMIT 200'", plan)
                self._say("asking", entity, call, tools.bash(f"git log --oneline -14 -- {task.path}", history), think=2)
            case 2:
                path = f"orderdesk/{dice.pick(shop().nouns)}_{entity.name}.py"
                missing = tools.bash(f"wc -l {path}", f"wc: {path}: No such file or directory", 1)
                self._say("reading", entity, tools.read(space, path), missing, lead=f"There may be a {path}.", think=1)
            case 3 if self._seen:
                path = dice.pick(self._seen)
                start = dice.between(1, max(space.files[path].count("\n") - 40, 1))
                part = tools.read(space, path, start, dice.between(30, 90))
                self._say("reading", entity, part, lead=f"Back to {path} for the lines from {start} on.", think=2)
            case 4:
                other = dice.pick(shop().entities)
                calls = [
                    tools.grep(space, dice.pick(other.verbs), "orderdesk/"),
                    tools.grep(space, dice.pick(task.words)),
                ]
                self._say("searching", other, *calls, *self._reads(other, 1), think=1)
            case _:
                near = entity if round % 3 == 0 else dice.pick(shop().entities)
                self._say(
                    dice.pick(("reading", "reading", "found")),
                    near,
                    *self._reads(near, dice.between(1, 3)),
                    think=dice.below(4),
                )

    def _reproduce(self, task: Task, entity: Entity, plan: Sequence[str]) -> None:
        space, dice = self._space, self._dice
        if task.path.endswith(".ts"):
            made = tools.write(
                space, "web/src/promise.test.ts", f"import {{ promisedDate }} from './promise';\n\n{task.test}"
            )
            run = tools.bash("npm --prefix web test -- --run", outputs.web_run(task, False, dice), 1)
        else:
            made = tools.write(space, self._test_path(task), self._test_text(task))
            report = outputs.test_run(space, self._test_paths(task, entity), [task.failing], task, dice)
            run = tools.bash(
                f"python -m pytest -v {' '.join(self._test_paths(task, entity))}", report, 1, "tests of this task"
            )
        self._say("testing", entity, made, lead=f"A test first: {task.failing}.", think=1)
        self._say("testing", entity, run, tools.todo(plan, 2), think=1)

    def _mend(self, task: Task, entity: Entity) -> None:
        space = self._space
        self._recorder.assistant(
            f"I see it now. {task.insight}", self._thoughts(entity, 4), (tools.read(space, task.path, 1, 60),)
        )
        for number, change in enumerate(task.changes):
            lead = f"Another place in {task.path}." if number else f"Mending {task.path}."
            self._recorder.assistant(
                lead, self._thoughts(entity, number % 2), (tools.edit(space, task.path, change.old, change.new),)
            )
        stale = tools.stale_edit(task.path, task.changes[0].old, task.changes[0].new)
        self._say("editing", entity, stale, lead=f"One more pass over {task.path}.")
        self._say("found", entity, tools.read(space, task.path), lead="That part is changed already; reading it again.")

    def _improve(self, task: Task, entity: Entity, plan: Sequence[str]) -> None:
        space, dice = self._space, self._dice
        neighbors = [entity, dice.pick(shop().entities)]
        for near in neighbors:
            path = f"orderdesk/services/{near.name}.py"
            calls = [tools.read(space, path)]
            self._say("reading", near, *calls, lead=f"Now the messages in {path}.", think=dice.below(3))
            for _ in range(dice.between(2, 4)):
                if (pair := tools.small_change(space, path, dice)) is not None:
                    self._say("editing", near, tools.edit(space, path, *pair), think=dice.below(2))
            broken = dice.pick(space.tests(f"tests/services/test_{near.name}"))
            report = outputs.test_run(space, [broken[0]], [broken[1]], task, dice)
            self._say("testing", near, tools.bash(f"python -m pytest -v {broken[0]}", report, 1), think=2)
            lead = f"{broken[1]} pins the old text. It has to follow."
            self._say("found", near, tools.read(space, broken[0]), lead=lead)
            old = tools.head_of(space.files[broken[0]], broken[1])
            new = f"{old}  # new words since OD-{task.ticket}"
            self._recorder.assistant("", self._thoughts(near, 1), (tools.edit(space, broken[0], old, new),))
            report = outputs.test_run(space, [broken[0]], [], task, dice)
            self._say("testing", near, tools.bash(f"python -m pytest -v {broken[0]}", report))
        self._say("editing", entity, tools.todo(plan, 4), think=1)

    def _finish(self, task: Task, entity: Entity, plan: Sequence[str], *, last: bool) -> None:
        space, dice = self._space, self._dice
        broken = dice.pick(space.tests("tests/services/"))
        first = outputs.suite(space, [broken[1]], task, dice)
        self._say("testing", entity, tools.bash("python -m pytest -q --durations=18", first, 1), think=2)
        again = outputs.test_run(space, [broken[0]], [], task, dice)
        self._say(
            "found",
            entity,
            tools.bash(f"python -m pytest -v {broken[0]}", again),
            lead=f"{broken[1]} alone passes; it depends on the clock.",
        )
        paths = self._test_paths(task, entity)
        passed = (
            outputs.web_run(task, True, dice)
            if task.path.endswith(".ts")
            else outputs.test_run(space, paths, [], task, dice)
        )
        command = (
            "npm --prefix web test -- --run" if task.path.endswith(".ts") else f"python -m pytest -v {' '.join(paths)}"
        )
        self._say("testing", entity, tools.bash(command, passed), tools.bash("git diff", space.diff()), think=2)
        changed, commit = space.commit(), dice.hex(10)
        self._commits.append((task.ticket, commit))
        subject = f"OD-{task.ticket}: {task.insight.split('.')[0].split(',')[0]}"
        stat = f"[main {commit}] {subject}\n {len(changed)} files changed\n" + "\n".join(
            f" M {path}" for path in changed
        )
        self._say(
            "testing",
            entity,
            tools.bash(f'git add {" ".join(changed)} && git commit -m "{subject}"', stat),
            tools.todo(plan, 5),
        )
        if last:
            log = "\n".join(f"{id} OD-{ticket}" for ticket, id in reversed(self._commits))
            self._say("testing", entity, tools.bash("git log --format='%h %s' -9", log), lead=task.outcome, think=2)
        else:
            self._recorder.assistant(f"{task.outcome} Committed as {commit}.")

    def _say(self, kind: str, entity: Entity, *calls: RecordedCall, lead: str = "", think: int = 0) -> None:
        path = next(
            (call.input["file_path"].removeprefix(f"{ROOT}/") for call in calls if "file_path" in call.input), ""
        )
        slots = self._slots(entity) | ({"file": path} if path else {})
        sentence = self._dice.fill(self._dice.pick(getattr(prose(), kind)), **slots)
        text = " ".join(part for part in (lead, sentence if not lead or self._dice.chance(0.4) else "") if part)
        self._recorder.assistant(text, self._thoughts(entity, think), calls)

    def _thoughts(self, entity: Entity, count: int) -> str:
        chosen = self._dice.some(prose().thinking, count)
        return " ".join(self._dice.fill(sentence, **self._slots(entity)) for sentence in chosen)

    def _slots(self, entity: Entity) -> dict[str, object]:
        dice = self._dice
        paths = [path for path in self._space.files if entity.name in path and path.endswith(".py")]
        codes = re.findall(r'"([A-Z]{3}-\d{3})"', self._space.files[f"orderdesk/services/{entity.name}.py"])
        tests = self._space.tests(f"tests/services/test_{entity.name}")
        return words(entity, dice, dice.pick(entity.verbs)) | {
            "entity": entity.name, "file": dice.pick(paths), "file2": dice.pick(paths), "test": dice.pick(tests)[1],
            "code": dice.pick(codes),
        }  # fmt: skip

    def _reads(self, entity: Entity, count: int) -> list[RecordedCall]:
        places = ("config/", entity.name) if self._dice.chance(0.15) else (entity.name, entity.title)
        paths = [path for path in self._space.files if any(place in path for place in places)]
        chosen = self._dice.some(paths, count)
        self._seen.extend(chosen)
        return [tools.read(self._space, path) for path in chosen]

    def _test_path(self, task: Task) -> str:
        return f"tests/test_{task.path.rsplit('/', 1)[-1]}"

    def _test_paths(self, task: Task, entity: Entity) -> list[str]:
        own = [] if task.path.endswith(".ts") else [self._test_path(task)]
        return [*own, f"tests/services/test_{entity.name}.py"]

    def _test_text(self, task: Task) -> str:
        module = task.path.removesuffix(".py").replace("/", ".")
        return f"import pytest\n\nfrom {module} import *\n\n\n{task.test}"
