"""What a user pasted is told from the user's own words, also where an earlier compaction left lines out."""

import pytest

from refold import compact
from refold._condense.pasted import without_pasted
from refold._condense.pins import pins_of

CUT = "[… 12 lines left out …]"
LIMITS = [f"Never change the table of module {name} by hand." for name in ("north", "south", "east", "west")]


def turn(number):
    """A round of work: a call, its result, and the answer."""
    call = {
        "id": f"c{number}",
        "type": "function",
        "function": {"name": "read", "arguments": f'{{"path": "{number}.py"}}'},
    }
    lines = "\n".join(f"value_{number}_{line} = load('{number}', {line})" for line in range(60))
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "content": lines},
        {"role": "assistant", "content": f"Module {number} is read."},
    ]  # fmt: skip


def block(name):
    lines = "\n".join(f"    table['{name}_{line}'] = build('{name}', {line})" for line in range(40))
    return f"```python\ndef {name}():\n{lines}\n```"


def test_limits_between_pasted_blocks_outlive_a_chain_of_compactions():
    said = "\n\n".join(
        f"{block(limit.split()[6])}\n\n{limit}\n```\nmake {number}\n```" for number, limit in enumerate(LIMITS)
    )
    view = [{"role": "user", "content": f"Port these modules.\n\n{said}\n\nTell me when the port is done."}]
    for cycle in range(4):
        view = [*view, *(each for number in range(5) for each in turn(10 * cycle + number))]
        view = [*view, {"role": "user", "content": f"Go on with part {cycle}."}]
        view = list(compact(view, budget=4_500, format="openai-chat", force=True).messages)
        left = "\n".join(message["content"] for message in view if message["role"] == "user")
        assert [limit for limit in LIMITS if limit not in left] == []


@pytest.mark.parametrize(
    ("text", "own"),
    [
        (f"```py\na\n{CUT}\nOnly here.\n```sh\nb\n```\nNever there.", ["Only here.", "Never there."]),
        (f"```py\na\n{CUT}\nb\n```\nNever there.\n```sh\nc\n```", ["Never there."]),
        (f"Go.\n{CUT}\nb\n```\nNever there.", ["Go.", "Never there."]),
        (f"Go.\n{CUT}\nOnly here.\n```\nb\n```\nNever there.", ["Only here.", "Never there."]),
        (f"```py\na\n{CUT}\nb\n[… 3 of 9 lines left out …]\nOnly here.\n```\nc\n```", ["Only here."]),
    ],
)
def test_what_stands_behind_lines_that_are_left_out_is_the_users_up_to_the_next_fence(text, own):
    left = without_pasted(text).split("\n")
    assert [line for line in own if line not in left] == []
    assert "a" not in left
    assert "c" not in left


ADDRESS = "https://forum.example.org/t/pushes-are-disabled/1"
COMMENT = "{0}\n•\n{1}d ago\nYou must never adopt a package of which you do not know who made it.\nReply\nShare\n\n"
PAGE = "".join(COMMENT.format(f"user{number}", number) for number in range(20))


def test_what_a_browser_showed_of_a_page_is_pasted_and_the_words_around_it_are_the_user_s():
    text = f"Write a post about this, and never name a user.\n\n{ADDRESS}\n\n{PAGE}\n\nKeep it under 500 words."
    assert pins_of(text) == ("Write a post about this, and never name a user.", "Keep it under 500 words.")


@pytest.mark.parametrize(
    "behind",
    [
        "".join(f"Module {number} must never write to the table of module {number + 1}.\n" for number in range(90)),
        "".join(f"- never rename m{number}\n" for number in range(90)),
        PAGE[:400],
    ],
)
def test_what_people_write_behind_an_address_is_their_own(behind):
    text = f"Port this:\n{ADDRESS}\n\n{behind}\n\nTell me when it is done."
    assert without_pasted(text) == text


def test_code_without_a_fence_is_pasted_and_items_of_a_list_that_end_in_semicolons_are_not():
    code = "\n".join(["import rates", *(f"total_{n} = rates.of(\n    order,\n    {n},\n)" for n in range(12))])
    items = "\n".join(f"* the report must name region {n};" for n in range(20))
    said = f"Port this program.\n\n{code}\n\nKeep its output.\n{items}\nThat is all."
    own = without_pasted(said)
    assert own.startswith("Port this program.")
    assert own.endswith(f"Keep its output.\n{items}\nThat is all.")
    assert "rates.of(" not in own
