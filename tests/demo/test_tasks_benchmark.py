"""The benchmark of tasks: what its agent takes from a context, without the games themselves."""

import pytest

from benchmarks.tasks import Memory, Unknown, World, conversation, played
from refold.formats import find, read

KITCHEN = (
    "You are in the kitchen. In one part of the room you see a stove. There is also a counter that has a raw potato, "
    "and a cookbook on it. There is also an open drawer, that contains a knife. \n"
    "To the North you see the garden. Through an open plain door, to the East you see the pantry. "
)
GARDEN = "You are in the garden. There is also a barbeque. \nTo the South you see the kitchen. "
PANTRY = "You are in the pantry. There is also a shelf that has some salt on it. \nTo the West you see the kitchen. "
COOKBOOK = (
    " Gather all following ingredients and follow the directions to prepare this tasty meal.\n\nIngredients:\n  potato\n"
    "  salt\n\nDirections:\n  chop the potato\n  grill the potato\n  prepare meal\n\n"
)
WALK = [
    ("look around", KITCHEN),
    ("read cookbook", COOKBOOK),
    ("move north", GARDEN),
    ("move south", KITCHEN),
    ("move east", PANTRY),
    ("move west", KITCHEN),
]
BEST = [
    "take knife",
    "take potato",
    "move east",
    "take salt",
    "chop potato",
    "move west",
    "move north",
    "cook potato in barbeque",
    "move south",
    "prepare meal",
    "eat meal",
]


def memory_of(*steps: int) -> Memory:
    walk = conversation([WALK[step] for step in steps], "Cook.")
    memory = Memory()
    memory.read(read(find("openai-chat"), walk).messages)
    return memory


def test_with_the_full_text_the_plan_is_the_shortest():
    assert played("cookingworld", "Cook.", memory_of(*range(len(WALK))), World(WALK)) == BEST


def test_what_is_not_in_the_context_is_looked_for_again():
    actions = played("cookingworld", "Cook.", memory_of(0, 2, 4), World(WALK))
    assert actions == ["read cookbook", *BEST]
    without_the_rooms = played("cookingworld", "Cook.", memory_of(1), World(WALK))
    assert len(without_the_rooms) > len(BEST)


def test_a_list_of_names_tells_the_agent_nothing():
    memory = Memory()
    names = [{"role": "user", "content": "potato salt barbeque garden pantry north east"}]
    memory.read(read(find("openai-chat"), names).messages)
    assert (memory.exits, memory.seen, memory.recipe) == ({}, {}, [])


def test_a_sentence_without_its_room_tells_the_agent_nothing():
    memory = Memory()
    memory.observe("There is also a shelf that has some salt on it.\nTo the West you see the kitchen.", whole=True)
    assert memory.room_of("salt") is None
    assert memory.way("pantry", "kitchen") is None


def test_an_agent_that_has_looked_everywhere_gives_up():
    with pytest.raises(Unknown):
        played("coin", "Take the coin.", memory_of(*range(len(WALK))), World(WALK))
