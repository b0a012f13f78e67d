"""A tool: name, description, argument schema, and the function that runs it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, get_type_hints, overload

import msgspec
from msgspec import Struct

from refold._text.surrogates import repair_surrogate_escapes, repair_surrogates, repair_surrogates_in_json
from refold.core._decoders import decoder
from refold.core._json import Json
from refold.core.messages import ToolCall
from refold.errors import UsageError

__all__ = ["Tool", "ToolOutcome", "by_name", "definitions", "perform", "tool"]

Function: TypeAlias = Callable[..., Any]


class Tool(Struct, frozen=True):
    """A function that a model may call.

    `schema` is the JSON schema of its arguments, an object. `accepts` is a type that checks and converts them before
    the function is called; without it they are passed as they are, by name.
    """

    name: str
    description: str
    schema: Mapping[str, Any]
    function: Function
    accepts: Any = None


class ToolOutcome(Struct, frozen=True):
    """What a call led to: the text for the model, and whether it is an error."""

    text: str
    is_error: bool = False


@overload
def tool(function: Function) -> Tool: ...
@overload
def tool(*, name: str | None = None, description: str | None = None) -> Callable[[Function], Tool]: ...
def tool(
    function: Function | None = None, *, name: str | None = None, description: str | None = None
) -> Tool | Callable[[Function], Tool]:
    """Make a tool of a typed function: its name, its docstring, and a schema from its annotations and defaults.

    `Annotated[str, msgspec.Meta(description="…")]` says what one argument means.

    Raises:
        UsageError: an argument without a type, one that has no JSON schema, or a coroutine function.
    """
    if function is None:
        return lambda result: _tool(result, name, description)
    return _tool(function, name, description)


def by_name(tools: Sequence[Tool]) -> dict[str, Tool]:
    """Return tools by their names.

    Raises:
        UsageError: two of them have one.
    """
    named = {each.name: each for each in tools}
    if len(named) < len(tools):
        raise UsageError("two tools have one name: give each its own")
    return named


def definitions(tools: Sequence[Tool], format: str) -> list[Json]:
    """Return what a request's `tools` holds, in the shape of "openai-chat" or "anthropic"."""
    if format == "anthropic":
        return [
            {"name": each.name, "description": each.description, "input_schema": dict(each.schema)} for each in tools
        ]
    return [
        {
            "type": "function",
            "function": {"name": each.name, "description": each.description, "parameters": dict(each.schema)},
        }
        for each in tools
    ]


def perform(tools: Mapping[str, Tool], call: ToolCall) -> ToolOutcome:
    """Do what a call asks for; whatever goes wrong is told to the model as an error, and nothing is raised."""
    wanted = tools.get(call.name)
    if wanted is None:
        return ToolOutcome(f"No tool is called {call.name!r}; there are {', '.join(sorted(tools)) or 'none'}.", True)
    try:
        arguments = _arguments(wanted, call.arguments)
    except (msgspec.MsgspecError, UsageError, RecursionError) as error:
        return ToolOutcome(f"The arguments do not fit {call.name}: {error}", True)
    try:
        result = wanted.function(**arguments)
        return result if isinstance(result, ToolOutcome) else ToolOutcome(_text(result))
    except Exception as error:  # the model is told, and may try something else
        return ToolOutcome(f"{type(error).__name__}: {error}", True)


def _tool(function: Function, name: str | None, description: str | None) -> Tool:
    called = name or function.__name__
    if inspect.iscoroutinefunction(function):
        raise UsageError(f"{called} is a coroutine function: give a plain one that calls it by asyncio.run")
    accepts = _accepted(function, called)
    try:
        ((schema,), _) = msgspec.json.schema_components([accepts], ref_template="#/$defs/{name}")
        whole = msgspec.json.schema(accepts)
    except TypeError as error:
        raise UsageError(f"the arguments of {called} have no JSON schema: {error}") from None
    inner = dict(whole["$defs"][accepts.__name__]) if "$ref" in schema else dict(whole)
    inner.pop("title", None)
    others = {key: value for key, value in whole.get("$defs", {}).items() if key != accepts.__name__}
    if others:
        inner["$defs"] = others
    return Tool(called, description or inspect.getdoc(function) or "", inner, function, accepts)


def _accepted(function: Function, name: str) -> type[Struct]:
    """Return a struct whose fields are the function's arguments."""
    hints = get_type_hints(function, include_extras=True)
    fields: list[Any] = []
    for argument in inspect.signature(function).parameters.values():
        if argument.kind in (argument.VAR_POSITIONAL, argument.VAR_KEYWORD, argument.POSITIONAL_ONLY):
            raise UsageError(f"{name} takes {argument}, which no schema can say: name every argument")
        if argument.name not in hints:
            raise UsageError(f"the argument {argument.name} of {name} has no type: annotate it")
        kind = hints[argument.name]
        fields.append(
            (argument.name, kind)
            if argument.default is argument.empty
            else (argument.name, kind, _default(argument.default))
        )
    return msgspec.defstruct(f"{name}_arguments", fields, kw_only=True, forbid_unknown_fields=True)


def _default(value: object) -> Any:
    return msgspec.field(default_factory=value.copy) if isinstance(value, list | dict | set) else value


def _arguments(wanted: Tool, text: str) -> Mapping[str, Any]:
    source = (
        repair_surrogate_escapes(repair_surrogates(text.strip())) or "{}"
    )  # some models send nothing where there is nothing to say
    if wanted.accepts is None:
        named = msgspec.json.decode(source)
        if not isinstance(named, dict):
            raise UsageError("they are no JSON object")
        return named
    values = decoder(wanted.accepts, strict=False)(source)
    return {name: getattr(values, name) for name in wanted.accepts.__struct_fields__}


def _text(result: object) -> str:
    if result is None:
        return ""
    return result if isinstance(result, str) else msgspec.json.encode(repair_surrogates_in_json(result)).decode()
