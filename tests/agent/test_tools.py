from typing import Annotated, Literal

import msgspec
import pytest

from refold.agent import Tool, ToolOutcome, tool
from refold.agent._tools import definitions, perform
from refold.core.messages import ToolCall
from refold.errors import UsageError


@tool
def find(
    pattern: Annotated[str, msgspec.Meta(description="what to look for")],
    where: Literal["names", "text"] = "names",
    limit: int | None = None,
    kinds: list[str] = [],  # noqa: B006 - a default that must not be shared
) -> str:
    """Look for something.

    Says where it is.
    """
    kinds.append("seen")
    return f"{pattern} in {where}, {limit}, {kinds}"


def done(arguments, *, given=find):
    return perform({given.name: given}, ToolCall("c1", given.name, arguments))


def test_a_typed_function_becomes_a_tool_with_a_schema():
    assert find.name == "find"
    assert find.description == "Look for something.\n\nSays where it is."
    assert find.schema["required"] == ["pattern"]
    assert find.schema["properties"]["pattern"] == {"type": "string", "description": "what to look for"}
    assert find.schema["properties"]["where"]["enum"] == ["names", "text"]
    assert find.schema["additionalProperties"] is False


def test_arguments_are_checked_and_converted_before_the_function_is_called():
    assert done('{"pattern": "x", "limit": "3"}').text == "x in names, 3, ['seen']"
    assert done('{"pattern": "y"}').text == "y in names, None, ['seen']"  # the default list was not shared


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("{}", "missing required field `pattern`"),
        ('{"pattern": 3}', "Expected `str`, got `int` - at `$.pattern`"),
        ('{"pattern": "x", "where": "here"}', "Invalid enum value 'here' - at `$.where`"),
        ('{"pattern": "x", "how": 1}', "unknown field `how`"),
        ('{"pattern": ', "truncated"),
        ("", "missing required field"),
        ("[1]", "Expected `object`"),
    ],
)
def test_arguments_that_do_not_fit_are_an_error_that_names_the_place(arguments, said):
    outcome = done(arguments)
    assert outcome.is_error
    assert said in outcome.text


def test_a_tool_with_a_schema_of_its_own_gets_what_came():
    plain = Tool("plain", "", {"type": "object"}, lambda **given: given)
    assert done('{"a": [1]}', given=plain) == ToolOutcome('{"a":[1]}')
    assert done('"words"', given=plain).is_error
    assert done("", given=plain).text == "{}"


def test_what_a_function_returns_becomes_text():
    for value, text in (("x", "x"), (None, ""), ({"a": 1}, '{"a":1}'), (3, "3")):
        assert done("{}", given=Tool("t", "", {}, lambda value=value: value)).text == text
    assert done("{}", given=Tool("t", "", {}, lambda: ToolOutcome("no", True))) == ToolOutcome("no", True)


def test_what_cannot_become_text_is_an_error_that_the_model_is_told():
    outcome = done("{}", given=Tool("t", "", {}, object))
    assert outcome == ToolOutcome("TypeError: Encoding objects of type object is unsupported", True)


def test_half_an_emoji_in_arguments_or_in_what_is_returned_stops_no_call():
    plain = Tool("plain", "", {"type": "object"}, lambda **given: {**given, "out\ud83d": ["x\ud83d"]})
    expected = '{"a":"\ufffd","out\ufffd":["x\ufffd"]}'
    assert done('{"a": "\ud83d"}', given=plain).text == expected
    assert done('{"a": "\\ud83d"}', given=plain).text == expected


def test_arguments_nested_too_deeply_are_an_error_that_the_model_is_told():
    outcome = done("[" * 100_000, given=Tool("t", "", {}, print))
    assert outcome.is_error
    assert "do not fit t" in outcome.text


def test_definitions_have_the_shape_of_each_provider():
    assert definitions([find], "anthropic")[0]["input_schema"]["required"] == ["pattern"]
    assert definitions([find], "openai-chat")[0]["function"]["parameters"]["required"] == ["pattern"]
    assert definitions([find], "openai-chat")[0]["type"] == "function"


def test_a_function_that_no_schema_can_describe_is_refused():
    with pytest.raises(UsageError, match="the argument x of bare has no type"):

        @tool
        def bare(x): ...

    with pytest.raises(UsageError, match="name every argument"):

        @tool
        def many(*x: str): ...


def test_a_coroutine_function_is_refused_before_it_is_never_awaited():
    with pytest.raises(UsageError, match="later is a coroutine function"):

        @tool
        async def later(x: str) -> str: ...


def test_a_tool_can_be_given_another_name():
    @tool(name="other", description="Words.")
    def function(x: str) -> str: ...

    assert (function.name, function.description) == ("other", "Words.")


def test_structures_as_arguments_keep_their_definitions():
    class Point(msgspec.Struct):
        x: int
        y: int

    @tool
    def draw(points: list[Point]) -> str:
        return str(sum(point.x for point in points))

    draw_globals = draw.schema
    assert draw_globals["properties"]["points"]["items"] == {"$ref": "#/$defs/Point"}
    assert "Point" in draw_globals["$defs"]
    assert done('{"points": [{"x": 1, "y": 2}, {"x": 3, "y": 4}]}', given=draw).text == "4"
