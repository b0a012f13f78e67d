"""Edits JSON text where it stands: what is not edited, comments too, stays as it was written, byte for byte."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from refold._install.changes import FileEdit
from refold._install.jsonc import COMMENT, as_json
from refold._install.options import is_server
from refold.errors import UsageError

__all__ = ["Addresses", "append_item", "parsed", "remove", "remove_items", "restored", "set_value", "settings_edit"]

SPACE = re.compile(r"[ \t\r\n]*")
UNIT = "  "


@dataclass
class _Node:
    """A value in the text: from `start` to `stop`; `entries` are those of an object (with the key's place) or list."""

    start: int
    stop: int
    value: Any
    entries: list[tuple[str | int, int, _Node]] = field(default_factory=list)


@dataclass(frozen=True)
class Addresses:
    """Where settings have the base URLs of providers, each with what follows the gateway's own, now and earlier."""

    paths: Mapping[tuple[str, ...], str]
    gateway: str
    installed: str


def parsed(text: str, name: str) -> Any:
    """Return the value of a JSON text.

    Raises:
        UsageError: it is no JSON object; `name` is the file that is named.
    """
    return _root(text, name).value


def set_value(text: str, path: Sequence[str], value: Any, name: str) -> str:
    """Return the text with a member set; objects on the way to it are made.

    Raises:
        UsageError: the text is no JSON object, or a value on the way is none.
    """
    node = _root(text, name)
    for depth, key in enumerate(path):
        _require(node, dict, path[:depth], name)
        match = next((entry for member, _, entry in node.entries if member == key), None)
        if match is None:
            for missing in reversed(path[depth + 1 :]):
                value = {missing: value}
            return _inserted(text, node, value, key)
        node = match
    line = "\r\n" if "\r\n" in text else "\n"
    return text[: node.start] + _written(value, _indent_at(text, node.start), line) + text[node.stop :]


def append_item(text: str, path: Sequence[str], item: Any, name: str) -> str:
    """Return the text with an item at the end of a list, which is made where there is none.

    Raises:
        UsageError: as `set_value`.
    """
    node = _node_at(_root(text, name), path)
    if node is None:
        return set_value(text, path, [item], name)
    _require(node, list, path, name)
    return _inserted(text, node, item)


def remove(text: str, path: Sequence[str], before: str, name: str) -> str:
    """Return the text without a member, and without what is empty then on the way to it, unless it was there before."""
    root, earlier = _root(text, name), _root(before, name)
    if _node_at(root, path) is None:
        return text
    while len(path) > 1 and len(_present(root, path[:-1]).entries) == 1 and _node_at(earlier, path[:-1]) is None:
        path = path[:-1]
    return _without(text, _present(root, path[:-1]), path[-1])


def remove_items(text: str, path: Sequence[str], ours: Callable[[Any], bool], before: str, name: str) -> str:
    """Return the text without the items of a list that are ours; a list with no other goes as in `remove`."""
    while True:
        node = _node_at(_root(text, name), path)
        places = [key for key, _, entry in node.entries if ours(entry.value)] if node is not None else []
        if node is None or not places or not isinstance(node.value, list):
            return text
        if len(node.entries) == 1 and _node_at(_root(before, name), path) is None:
            return remove(text, path, before, name)
        text = _without(text, node, places[0])


def restored(text: str, before: str, path: Sequence[str], ours: Callable[[Any], bool], name: str) -> tuple[str, bool]:
    """Return the text with a member as it was before, where its value is ours, and whether it was."""
    node, earlier = _node_at(_root(text, name), path), _node_at(_root(before, name), path)
    if node is None or not ours(node.value):
        return text, False
    return (remove(text, path, before, name) if earlier is None else set_value(text, path, earlier.value, name)), True


def settings_edit(
    file: Path, server: tuple[Sequence[str], object] | None = None, addresses: Addresses | None = None
) -> FileEdit:
    """Return the change of a file of JSON that has our server at a path, where it is not None, and a gateway's URLs."""
    name = str(file)

    def added(text: str) -> str:
        parsed(text, name)
        if server is not None and server[1] is not None:
            text = set_value(text, *server, name)
        if addresses is not None and addresses.gateway:
            for path, version in addresses.paths.items():
                text = set_value(text, path, addresses.gateway + version, name)
        return text

    def removed(text: str, before: str) -> str:
        if server is not None:
            text, _ = restored(text, before, server[0], is_server, name)
        if addresses is not None and addresses.installed:
            for path, version in addresses.paths.items():
                ours = addresses.installed + version
                text, _ = restored(text, before, path, ours.__eq__, name)
        return text

    return FileEdit(file, added, removed, "{}\n")


def _present(root: _Node, path: Sequence[str]) -> _Node:
    node = _node_at(root, path)
    assert node is not None
    return node


def _node_at(node: _Node, path: Sequence[str]) -> _Node | None:
    for key in path:
        match = next((entry for member, _, entry in node.entries if member == key), None)
        if match is None:
            return None
        node = match
    return node


def _require(node: _Node, kind: type, path: Sequence[str], name: str) -> None:
    if not isinstance(node.value, kind):
        wanted = "an object" if kind is dict else "a list"
        raise UsageError(f"{name}: {'.'.join(path) or 'the whole'} is not {wanted}: correct it, then try again")


def _inserted(text: str, node: _Node, value: Any, key: str | None = None) -> str:
    """Return the text with an entry at the end of an object or list, indented as the others are."""
    named = f"{json.dumps(key)}: " if key is not None else ""
    line = "\r\n" if "\r\n" in text else "\n"
    if not node.entries:
        outer = _indent_at(text, node.start)
        inside = text[node.start + 1 : node.stop - 1].rstrip()  # a comment stays
        entry = f"{inside}{line}{outer}{UNIT}{named}{_written(value, outer + UNIT, line)}{line}{outer}"
        return text[: node.start + 1] + entry + text[node.stop - 1 :]
    first, last = node.entries[0], node.entries[-1][2]
    space = text[node.start + 1 : first[1]]
    if "\n" not in space:
        return text[: last.stop] + f", {named}{json.dumps(value)}" + text[last.stop :]
    indent = space.rpartition("\n")[2]
    behind = text[last.stop : node.stop - 1].rstrip()  # a comment, or a comma at the end
    comma = "" if _comma(behind) >= 0 else ","
    entry = f"{comma}{behind}{line}{indent}{named}{_written(value, indent, line)}"
    return text[: last.stop] + entry + text[last.stop + len(behind) :]


def _without(text: str, node: _Node, key: str | int) -> str:
    """Return the text without an entry, and without the comma that it needed; comments stay."""
    place = next(number for number, entry in enumerate(node.entries) if entry[0] == key)
    _, first, entry = node.entries[place]
    if place + 1 < len(node.entries):
        after = node.entries[place + 1][1]
        between = text[entry.stop : after]
        return text[:first] + (between[_comma(between) + 1 :].lstrip() if "/" in between else "") + text[after:]
    begin = node.entries[place - 1][2].stop if place else node.start + 1
    before, behind = text[begin:first], text[entry.stop : node.stop - 1]
    at = _comma(before)
    before = (before[:at] + before[at + 1 :] if at >= 0 else before).rstrip()
    at = _comma(behind)
    behind = behind[:at] + behind[at + 1 :] if at >= 0 else behind
    if not place and not (before + behind).strip():
        behind = ""
    return text[:begin] + before + behind + text[node.stop - 1 :]


def _comma(text: str) -> int:
    """Return where the comma is among blanks and comments, or -1."""
    return COMMENT.sub(lambda match: " " * len(match[0]), text).find(",")


def _written(value: Any, indent: str, line: str) -> str:
    return json.dumps(value, indent=len(UNIT), ensure_ascii=False).replace("\n", f"{line}{indent}")


def _indent_at(text: str, place: int) -> str:
    line = text[text.rfind("\n", 0, place) + 1 : place]
    return line[: len(line) - len(line.lstrip())]


def _root(text: str, name: str) -> _Node:
    plain = as_json(text)
    try:
        json.loads(plain)  # refuses what the scanner below would let pass, and names the place
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name} is not JSON ({error}): correct it, then try again; nothing was written") from None
    node = _scanned(plain, _skipped(plain, 0))
    _require(node, dict, (), name)
    return node


def _skipped(text: str, place: int) -> int:
    match = SPACE.match(text, place)
    assert match is not None
    return match.end()


def _scanned(text: str, start: int) -> _Node:
    """Return the value that begins at a place of valid JSON."""
    if text[start] not in "{[":
        value, stop = json.JSONDecoder().raw_decode(text, start)
        return _Node(start, stop, value)
    is_object = text[start] == "{"
    node = _Node(start, start, {} if is_object else [])
    place = _skipped(text, start + 1)
    while text[place] not in "}]":
        first = place
        key: str | int = len(node.entries)
        if is_object:
            key, place = json.JSONDecoder().raw_decode(text, place)
            place = _skipped(text, _skipped(text, place) + 1)  # behind the colon
        entry = _scanned(text, place)
        node.entries.append((key, first, entry))
        if is_object:
            node.value[key] = entry.value
        else:
            node.value.append(entry.value)
        place = _skipped(text, entry.stop)
        if text[place] == ",":
            place = _skipped(text, place + 1)
    node.stop = place + 1
    return node
