"""Tasks done after a compaction, without a model: text games, and a scripted agent whose only memory is the context.

    python -m venv /tmp/games && /tmp/games/bin/pip install -r benchmarks/tasks-requirements.txt    (needs Java)
    python benchmarks/tasks.py --games /tmp/games/bin/python
    python benchmarks/tasks.py --games /tmp/games/bin/python --policies all --count 200 --json > ROWS.jsonl

In each game the agent walks through all rooms, opens everything and reads what there is, which makes a conversation of
tool calls. It is compacted to a share of its exact size. Then the user asks for the task: cook the recipe of the cookbook,
bring a coin to a box, or fetch a coin. The agent knows a recipe, a way between rooms or the place of a thing only if the
sentence that says so is in the compacted messages, with the room that it is about. What it does not know it has to look
for once more, room by room. The game says whether it succeeds, and it must do so within the number of steps that the same
agent takes with the full text, and a quarter more (`--slack`). Errors are 95 % intervals.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from collections import deque
from functools import cache
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

from msgspec import Struct, convert
from rich.table import Table

from refold import formats
from refold._counting import counter_for
from refold.core.messages import Message, texts

sys.path.append(str(Path(__file__).resolve().parent.parent))

from benchmarks import rivals
from benchmarks.pool import print_rows, worked

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

FORMAT = "openai-chat"
GAMES = ("cookingworld", "cookingworld", "cookingworld", "mapreader", "coin")  # three of five are cooked
COUNT = 200
SLACK = 1.25  # times the steps with the full text: more are a game lost
LOOKS = 200
FULL = "(full text)"
SYSTEM = "You play a text game. Use the tool act for each action."
FIRST = "Walk through all rooms first, open everything and read what there is to read. Take nothing yet."
THEN = "Good, you have seen everything. Now do the task. {0}"
EXIT = re.compile(r"(?i)\bto the (north|south|east|west) you see the ([^.]+)\.")
ROOM = re.compile(r"You are in the ([^.]+)\.")
COOKED = {"fry": "stove", "roast": "oven", "grill": "barbeque"}
CUT = ("chop", "slice", "dice")


class Memory:
    """What a text says of rooms, things and the recipe; only sentences that name their room count."""

    def __init__(self) -> None:
        """Know nothing."""
        self.exits: dict[str, dict[str, str]] = {}
        self.seen: dict[str, str] = {}  # the room whose text says so, by room: all its sentences
        self.recipe: list[str] = []
        self.ingredients: list[str] = []
        self.visited: set[str] = set()

    def read(self, messages: Iterable[Message]) -> None:
        """Take in messages: an output is about one room, words of others are read line by line."""
        for message in messages:
            for text in texts(message):
                self.observe(text, whole=bool(message.results))

    def observe(self, text: str, *, whole: bool) -> None:
        """Take in a text; `whole` if all of it is about one room."""
        room = ""
        part = ""  # of a recipe
        for line in text.split("\n"):
            if match := ROOM.search(line):
                room = match[1]
            elif not whole:
                room = ""
            if room:
                self.seen[room] = f"{self.seen.get(room, '')} {line}"
                self.exits.setdefault(room, {}).update((way.lower(), other) for way, other in EXIT.findall(line))
            stripped = line.strip()
            if stripped in ("Ingredients:", "Directions:"):
                part = stripped
            elif not stripped:
                part = part if part == "Ingredients:" and not self.ingredients else ""
            elif part == "Ingredients:" and line.startswith("  ") and stripped not in self.ingredients:
                self.ingredients.append(stripped)
            elif part == "Directions:" and line.startswith("  ") and stripped not in self.recipe:
                self.recipe.append(stripped)

    def way(self, start: str, end: str) -> list[str] | None:
        """Return the shortest known way between rooms as actions."""
        waiting = deque([(start, ())])
        known = {start}
        while waiting:
            room, steps = waiting.popleft()
            if room == end:
                return [f"move {step}" for step in steps]
            for direction, other in self.exits.get(room, {}).items():
                if other not in known:
                    known.add(other)
                    waiting.append((other, (*steps, direction)))
        return None

    def unseen(self, start: str) -> list[str]:
        """Return the way to the nearest room of which nothing is known but where it is, or nothing is known at all."""
        known = {room for exits in self.exits.values() for room in exits.values()} - {start}
        ways = [way for room in sorted(known - self.visited) if (way := self.way(start, room))]
        fresh = [way for room in sorted(known - self.seen.keys()) if (way := self.way(start, room))]
        return min(fresh or ways, key=len, default=[])

    def room_of(self, thing: str) -> str | None:
        """Return the room in which a thing was seen."""
        sign = re.compile(rf"(?i)\b(?:an?|some|the) (?:raw )?{re.escape(thing)}\b(?! door)")
        return next((room for room, text in self.seen.items() if sign.search(text)), None)


class Unknown(Exception):
    """The agent would have to know something that its memory has not."""


class Plan:
    """Actions that follow from a memory, one after another."""

    def __init__(self, memory: Memory, room: str) -> None:
        """Begin in a room."""
        self.memory = memory
        self.room = room
        self.actions: list[str] = []

    def go(self, room: str | None) -> None:
        """Walk to a room."""
        steps = self.memory.way(self.room, room) if room else None
        if steps is None:
            raise Unknown(f"the way to {room}")
        self.actions += steps
        self.room = room or self.room

    def take(self, thing: str) -> None:
        """Fetch a thing from where it was seen."""
        self.go(self.memory.room_of(thing))
        self.actions.append(f"take {thing}")


class World:
    """What the agent sees when it comes to a room again: all doors and containers are open since the walk."""

    def __init__(self, steps: Sequence[Sequence[str]]) -> None:
        """Take the newest look at each room, and what is read."""
        self.looks = {match[1]: text for _, text in steps if (match := ROOM.match(text))}
        self.cookbook = next((text for action, text in steps if action == "read cookbook"), "")
        self.last = next(text for _, text in reversed(steps) if ROOM.match(text))


def played(game: str, task: str, memory: Memory, world: World) -> list[str]:
    """Return the actions of the agent: it looks around until it knows enough, and then does the task.

    Raises:
        Unknown: it has looked everywhere that it can.
    """
    memory.observe(world.last, whole=True)
    room = ROOM.findall(world.last)[0]
    actions: list[str] = []
    for _ in range(LOOKS):
        try:
            return actions + planned(game, task, memory, room)
        except Unknown as reason:
            if str(reason) == "the recipe" and room == "kitchen":
                actions.append("read cookbook")
                memory.observe(world.cookbook, whole=True)
                continue
            wanted = "kitchen" if str(reason) == "the recipe" else ""
            steps = (memory.way(room, wanted) if wanted else None) or memory.unseen(room)
            if not steps:
                raise
            for step in steps:
                room = memory.exits[room][step.removeprefix("move ")]
                memory.observe(world.looks[room], whole=True)
                memory.visited.add(room)
            actions += steps
    raise Unknown("everything")


def planned(game: str, task: str, memory: Memory, room: str) -> list[str]:
    """Return the actions that do the task, as far as the memory knows.

    Raises:
        Unknown: the memory has not all that it takes.
    """
    plan = Plan(memory, room)
    if game == "coin":
        plan.take("coin")
    elif game == "mapreader":
        match = re.search(r"located in the ([^,]+), and put it into the box found in the ([^.]+)\.", task)
        if match is None:
            raise Unknown("the task")
        plan.go(match[1])
        plan.actions.append("take coin")
        plan.go(match[2])
        plan.actions.append("put coin in box")
    else:
        _cook(plan)
    return plan.actions


def _cook(plan: Plan) -> None:
    memory = plan.memory
    if not memory.ingredients or "prepare meal" not in memory.recipe:
        raise Unknown("the recipe")
    steps = [step.replace(" the ", " ", 1).split(" ", 1) for step in memory.recipe if step != "prepare meal"]
    if any(verb in CUT for verb, _ in steps):
        plan.take("knife")
    for thing in memory.ingredients:
        plan.take(thing)
    for verb, thing in steps:
        if verb in CUT:
            plan.actions.append(f"{verb} {thing}")
        else:
            plan.go(memory.room_of(COOKED[verb]))
            plan.actions.append(f"cook {thing} in {COOKED[verb]}")
    plan.go("kitchen")
    plan.actions += ["prepare meal", "eat meal"]


class Attempt(Struct, frozen=True):
    """Whether one game was won after one compaction."""

    policy: str
    game: str
    seed: int
    goal: str
    won: bool
    steps: int = 0
    least: int = 0  # steps with the full text
    why: str = ""

    def within(self, slack: float) -> bool:
        """Tell whether the game was won in time."""
        return self.won and self.steps <= self.least * slack


def conversation(steps: Sequence[Sequence[str]], task: str) -> list[dict[str, Any]]:
    """Return the walk as messages in the shape of OpenAI's chat completions, and the request for the task."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": FIRST}]
    for number, (action, observation) in enumerate(steps):
        arguments = json.dumps({"action": action})
        call = {"id": f"call_{number}", "type": "function", "function": {"name": "act", "arguments": arguments}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"call_{number}", "content": observation})
    messages.append({"role": "assistant", "content": "I have seen all rooms."})
    messages.append({"role": "user", "content": THEN.format(task)})
    return messages


@cache
def _server(python: str) -> subprocess.Popen[str]:
    command = [python, str(Path(__file__).parent / "task_games.py")]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )


def _asked(python: str, request: dict[str, Any]) -> dict[str, Any]:
    server = _server(python)
    assert server.stdin
    assert server.stdout
    server.stdin.write(json.dumps(request) + "\n")
    server.stdin.flush()
    answer: dict[str, Any] = json.loads(server.stdout.readline())
    return answer


def attempts(number: int, python: str, policies: Sequence[str], goals: Sequence[str]) -> list[Attempt]:
    """Return how one game ends after every compaction."""
    game = GAMES[number % len(GAMES)]
    where = {"game": game, "seed": number}
    walk = _asked(python, where)
    steps, task = walk["steps"], walk["task"]
    messages = conversation(steps, task)
    whole = formats.read(formats.find(FORMAT), messages).messages
    counter = counter_for("gpt-4o")
    size = sum(map(counter.message, whole)) + counter.per_conversation
    world = World(steps)
    known: dict[tuple[str, ...], bool] = {}
    least = 0

    def attempt(policy: str, goal: str, kept: Sequence[Message] | str) -> Attempt:
        case = (policy, game, number, goal)
        if isinstance(kept, str):
            return Attempt(*case, won=False, why=kept)
        memory = Memory()
        memory.read(kept)
        try:
            actions = tuple(played(game, task, memory, world))
        except Unknown as reason:
            return Attempt(*case, won=False, why=str(reason))
        if actions not in known:
            known[actions] = bool(_asked(python, where | {"actions": actions})["success"])
        return Attempt(*case, known[actions], len(actions), least or len(actions))

    least = attempt(FULL, "", whole).steps
    found = [attempt(FULL, goal, whole) for goal in goals]
    for goal in goals:
        for policy in policies:
            result = rivals.compacted(policy, messages, FORMAT, int(size * float(goal[:-1]) / 100))
            found.append(attempt(policy, goal, result if isinstance(result, str) else result.messages))
    return found


def tables(found: Sequence[Attempt], slack: float) -> Iterator[Table]:
    """Yield a table for each goal: the share of games won, and of those that the full text wins."""
    for goal in dict.fromkeys(each.goal for each in found):
        here = [each for each in found if each.goal == goal]
        games = list(dict.fromkeys(each.game for each in here))
        shown = Table(title=f"games won at {goal} of the text · {len({each.seed for each in here})} games")
        for column in ("policy", *games, "all", "of full text", "extra steps"):
            shown.add_column(column, justify="left" if column == "policy" else "right")
        full = mean(each.within(slack) for each in here if each.policy == FULL)
        for policy in dict.fromkeys(each.policy for each in here):
            mine = [each for each in here if each.policy == policy]
            cells = [_share([each.within(slack) for each in mine if each.game == game]) for game in games]
            every = [each.within(slack) for each in mine]
            shown.add_row(policy, *cells, _share(every), f"{mean(every) / full:.0%}" if full else "–", _extra(mine))
        yield shown


def _extra(some: Sequence[Attempt]) -> str:
    """Return how many more steps than with the full text games took that were won at all."""
    shares = [each.steps / each.least - 1 for each in some if each.won]
    return f"{mean(shares):+.0%}" if shares else "–"


def wilson(won: Sequence[bool]) -> tuple[float, float]:
    """Return the 95 % interval of a share by Wilson's formula."""
    count, share, z = len(won), mean(won), 1.96
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z * (share * (1 - share) / count + z * z / (4 * count * count)) ** 0.5 / (1 + z * z / count)
    return max(middle - half, 0.0), min(middle + half, 1.0)


def _share(won: Sequence[bool]) -> str:
    """Return a share with its interval."""
    low, high = wilson(won)
    return f"{mean(won):.0%} ({low:.0%}-{high:.0%})"


def main() -> None:
    """Play all games with all policies, and print tables or rows."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--games", default="", help="a Python that has textworld-express")
    asked.add_argument("--policies", default=",".join(("refold", *rivals.RIVALS)), help="names between commas, or all")
    asked.add_argument("--goals", default="50%,25%,10%")
    asked.add_argument("--count", type=int, default=COUNT)
    asked.add_argument("--slack", type=float, default=SLACK, help="steps, times those with the full text")
    asked.add_argument("--jobs", type=int, default=2, help="processes, each with a game server")
    asked.add_argument("--json", action="store_true")
    asked.add_argument("--rows", type=Path, help="attempts that --json has written, instead of new ones")
    options = asked.parse_args()
    if options.rows:
        found = [convert(json.loads(line), Attempt) for line in options.rows.read_text("utf-8").splitlines()]
    else:
        if missing := _missing(options.games):
            sys.exit(f"skipped: {missing}")
        names = rivals.names() if options.policies == "all" else options.policies.split(",")
        found = []
        given = (options.games, names, options.goals.split(","))
        for some in worked("games", attempts, range(options.count), *given, jobs=options.jobs):
            found += some
    print_rows(found, tables(found, options.slack), as_json=options.json, width=140)


def _missing(python: str) -> str:
    """Return what the games lack, or nothing."""
    if not python or not shutil.which(python):
        return "name a Python with the packages of benchmarks/tasks-requirements.txt by --games"
    if not shutil.which("java"):
        return "the games need Java (Debian: default-jre-headless)"
    if subprocess.run([python, "-c", "import textworld_express"], capture_output=True, check=False).returncode:
        return f"{python} has no textworld-express: pip install -r benchmarks/tasks-requirements.txt"
    return ""


if __name__ == "__main__":
    main()
