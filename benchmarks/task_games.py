"""Plays TextWorldExpress for `benchmarks.tasks`, in an environment of its own: a request a line on stdin, an answer a line.

{"game": "coin", "seed": 3}                       the transcript of a walk through all rooms, and the task
{"game": "coin", "seed": 3, "actions": [...]}     whether these actions, after that walk, win the game
"""

from __future__ import annotations

import json
import os
import re
import sys
from typing import Any

PARAMETERS = {
    "cookingworld": "numLocations=11,numIngredients=4,numDistractorItems=10,includeDoors=1,limitInventorySize=0",
    "mapreader": "numLocations=11,maxDistanceApart=5,includeDoors=1,maxDistractorItemsPerLocation=3",
    "coin": "numLocations=11,numDistractorItems=10,includeDoors=1,limitInventorySize=0",
}
OPPOSITE = {"north": "south", "south": "north", "east": "west", "west": "east"}
ROOM = re.compile(r"You are in the ([^.]+)\.")
MOST = 600  # steps of a walk
EXAMINED = 6  # things of a room


class Walk:
    """A walk through all rooms: every door and container is opened, every room seen again, and nothing taken."""

    def __init__(self, environment: Any, observation: str, valid: list[str]) -> None:
        """Begin where the game begins."""
        self.environment = environment
        self.valid = valid
        self.steps: list[tuple[str, str]] = [("look around", observation)]
        self.rooms: set[str] = set()

    def act(self, action: str) -> str:
        """Do something and return what is seen."""
        observation, _, _, infos = self.environment.step(action)
        self.valid = list(infos["validActions"])
        self.steps.append((action, str(observation)))
        return str(observation)

    def visit(self) -> None:
        """See all of a room, and through each exit all rooms that were not seen."""
        room = self._room()
        self.rooms.add(room)
        for action in sorted(self.valid):
            if action.startswith("open ") or action in ("read cookbook", "read map"):
                self.act(action)
        for action in sorted(each for each in self.valid if each.startswith("examine "))[:EXAMINED]:
            self.act(action)
        self.act("look around")
        for direction in OPPOSITE:
            if f"move {direction}" not in self.valid or len(self.steps) > MOST:
                continue
            match = re.search(rf"(?i)\bto the {direction} you see the ([^.]+)\.", self.steps[-1][1])
            if match and match[1] in self.rooms:
                continue
            self.act(f"move {direction}")
            if self._room() not in self.rooms:
                self.visit()
            self.act(f"move {OPPOSITE[direction]}")

    def _room(self) -> str:
        for _, observation in reversed(self.steps):
            if match := ROOM.search(observation):
                return match[1]
        return ""


def walked(environment: Any, game: str, seed: int) -> tuple[Walk, str]:
    """Return a walk through a new game, and its task."""
    environment.load(gameName=game, gameParams=PARAMETERS[game])
    observation, infos = environment.reset(seed=seed, gameFold="train", generateGoldPath=False)
    walk = Walk(environment, str(observation), list(infos["validActions"]))
    walk.visit()
    return walk, str(infos["taskDescription"])


def main() -> None:
    """Serve requests until stdin ends; what the game's server prints goes to stderr."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    from textworld_express import TextWorldExpressEnv

    environment = TextWorldExpressEnv(envStepLimit=5_000)
    for line in sys.stdin:
        request = json.loads(line)
        walk, task = walked(environment, request["game"], request["seed"])
        if "actions" in request:
            success = False
            for action in request["actions"]:
                _, _, _, infos = environment.step(action)
                success = success or bool(infos["tasksuccess"])
            answer: dict[str, Any] = {"success": success}
        else:
            answer = {"steps": walk.steps, "task": task}
        out.write(json.dumps(answer) + "\n")
        out.flush()
    environment.close()


if __name__ == "__main__":
    main()
