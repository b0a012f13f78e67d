"""Ids of what a provider stores for its key: those that a request names, and those that an answer makes known.

Theory of operation. A request names what is stored in its path (`/v1/responses/ID`), or in its body: at a key such as
`file_id`, as a reference to an item, or as reasoning without its content, which the provider looks up by its id. What
a tool's own arguments or schemas hold means nothing to a provider and is passed over. All segments behind the name of
a collection count as ids, so that no way of writing a path hides one.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec
from msgspec import Struct

from refold._gateway.wire.body import check_values, find_any, native
from refold.core._json import Json, listing, mapping, objects

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from refold._gateway.wire.body import Bytes

__all__ = [
    "StoredId",
    "StoredPath",
    "made_in_answer",
    "made_in_event",
    "made_in_resource",
    "makes_ids",
    "may_name",
    "named_in",
    "named_in_bytes",
    "named_in_raws",
    "named_in_values",
    "not_found",
    "stored_path",
    "strings_in",
]

LARGE_VALUE = 64 * 1024  # bytes of a value, from which on it is searched before it is read
KINDS = {
    "previous_response_id": "previous response", "conversation": "conversation",
    "container": "container", "container_id": "container", "audio": "audio",
    "vector_store_id": "vector store", "vector_store_ids": "vector store", "skill_id": "skill",
    "cachedContent": "cache", "cached_content": "cache", "fileUri": "file", "file_uri": "file",
    "fileSearchStoreNames": "store", "file_search_store_names": "store",
    **dict.fromkeys(("file_id", "file_ids", "input_file_id", "training_file", "validation_file"), "file"),
}  # fmt: skip
SHARED = frozenset(
    {"vector store", "store", "skill"}
)  # what serves many, and only an administrator makes for a shared key
OPAQUE = frozenset(
    {
        "args", "arguments", "input_schema", "json_schema", "metadata", "parameters", "parametersJsonSchema",
        "parameters_json_schema", "response", "responseJsonSchema", "responseSchema", "schema",
    }
)  # fmt: skip
MARKS = (
    b'"id"', b"_id", b'"container"', b'"conversation"', b'_file"', b'"item_reference"', b'"reasoning"', b'"audio"',
    b'ileUri"', b'file_uri"', b"cached", b"StoreNames", b"store_names", b"\\u00", b"\0",
)  # fmt: skip # one of them stands in every value that names an id; the last two are how a key can be written to hide
CONTENTS = {"reasoning": "encrypted_content", "image_generation_call": "result"}  # of items that are looked up without
INLINE = re.compile(r".+_tool_result")  # types of what a provider's own tools have returned
ITEMS = ("input", "items")  # keys at which a list is one of items, which an id alone refers to
OWN_FILE = re.compile(r"(?:https?://[^/]+/v1(?:alpha|beta)?/)?files/([\w-]+)")  # a file of the provider, and no other's
COLLECTIONS = {
    "responses": "response", "conversations": "conversation", "chat/completions": "chat completion",
    "cachedContents": "cache", "files": "file", "batches": "batch", "uploads": "upload",
    "vector_stores": "vector store", "containers": "container", "fine_tuning/jobs": "job", "videos": "video",
    "evals": "eval", "threads": "thread", "assistants": "assistant", "skills": "skill", "tunedModels": "model",
    "fileSearchStores": "store", "interactions": "interaction", "corpora": "corpus",
}  # fmt: skip
OPEN = frozenset({"responses", "conversations", "chat/completions", "cachedContents"})
MADE_BY_POST = frozenset({"conversations", "cachedContents"})  # of the open ones; the others are made by models
_PATH = re.compile(rf"(?:.*?/)({'|'.join(COLLECTIONS)})(?:[/:?#;](.*))?", re.I | re.S)
_SPLIT = re.compile(r"[/:?#;]+")
_NAMES = {name.lower(): name for name in COLLECTIONS}


class StoredId(Struct, frozen=True):
    """An id of what a provider stores, and what that is.

    One that is `inline` stands beside its content, as in an answer that is sent again, or is shared by many: it may be
    nobody's.
    """

    kind: str
    id: str
    inline: bool = False


class StoredPath(Struct, frozen=True):
    """A path of what a provider stores: the name of its collection, and what stands behind that."""

    collection: str
    ids: tuple[StoredId, ...]

    def is_open(self, method: str) -> bool:
        """Tell whether it may be used with a key that several owners share: it is of one thing, or makes one."""
        if self.collection not in OPEN:
            return False
        return bool(self.ids) or (method == "POST" and self.collection in MADE_BY_POST)


def stored_path(path: str) -> StoredPath | None:
    """Return what a path names of what a provider stores; None for any other path."""
    match = _PATH.fullmatch(re.sub("/{2,}", "/", unquote(path)))
    if match is None:
        return None
    collection = _NAMES[match[1].lower()]
    ids = [part.strip() for part in _SPLIT.split(match[2] or "")]
    return StoredPath(collection, tuple(StoredId(COLLECTIONS[collection], id) for id in ids if id))


def may_name(raw: Bytes) -> bool:
    """Tell from bytes alone whether a value may name an id; True for short ones, which are read as quickly."""
    text = memoryview(raw)
    return len(text) < LARGE_VALUE or find_any(bytes(raw), MARKS, 0, len(text))


def named_in(value: object, *, items: bool = False) -> list[StoredId]:
    """Return the ids that a JSON value of a request names; with `items` it is a list of messages or items."""
    return list(dict.fromkeys(_named(value, items=items)))


def named_in_raws(raws: Iterable[Bytes]) -> list[StoredId]:
    """Return the ids that JSON values of a request name, given as bytes; long ones are read only where need be."""
    return named_in([native(raw) for raw in raws if may_name(raw)], items=True)


def named_in_values(values: Mapping[str, Bytes]) -> list[StoredId]:
    """Return the ids that stand at keys of a request beside its messages."""
    return named_in({key: native(raw) for key, raw in values.items() if may_name(raw)})


def named_in_bytes(body: bytes) -> tuple[Json, list[StoredId]]:
    """Return a body and the ids that it names.

    Raises:
        ValueError: it is no JSON object, or has a key twice, of which a provider might read the other one.
    """
    check_values(body)
    value = json.loads(body, object_pairs_hook=_single)
    if not isinstance(value, dict):
        raise ValueError("the body is no JSON object")
    return value, named_in(value)


def makes_ids(format: str, raw: Callable[[str], Bytes | None]) -> bool:
    """Tell whether the answer to a request has ids that a later one can name; `raw` returns the bytes at a key."""

    def is_at(key: str, text: bytes) -> bool:
        return bytes(raw(key) or b"") == text

    match format:
        case "openai-responses":
            return not is_at("store", b"false") or b'"container' in bytes(raw("tools") or b"")
        case "openai-chat":
            return is_at("store", b"true") or raw("audio") is not None
        case "anthropic":
            return raw("container") is not None or b"code_execution" in bytes(raw("tools") or b"")
        case _:
            return False


def made_in_answer(answer: Json) -> list[str]:
    """Return the ids that a model's whole answer makes known."""
    ids = [answer.get("id"), mapping(answer.get("container")).get("id")]
    for item in objects(answer.get("output")):
        ids += (item.get("id"), item.get("container_id"))
    for choice in objects(answer.get("choices")):
        for part in (choice.get("message"), choice.get("delta")):
            ids.append(mapping(mapping(part).get("audio")).get("id"))
    return _texts(ids)


def made_in_event(data: bytes) -> list[str]:
    """Return the ids that an event of a stream makes known."""
    try:
        event = mapping(msgspec.json.decode(data))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return []
    kind = event.get("type")
    if kind is None:
        return made_in_answer(event)
    delta = mapping(event.get("delta"))
    answer = mapping(event.get("response")) or mapping(event.get("message"))
    return made_in_answer(answer) + _texts([mapping(delta.get("container")).get("id")])


def made_in_resource(resource: Json, provider: str, known: Collection[str] = ()) -> list[str]:
    """Return the ids that the description of what is stored makes known: its own, and those of what came of it.

    `known` are the ids of its path. What is listed below them came of it; a list of everything makes nothing known.
    """
    file = mapping(resource.get("file"))
    keys = ("id", "name") if provider == "gemini" else ("id",)  # elsewhere a name is what a client likes
    ids = [each.get(key) for each in (resource, file) for key in keys]
    ids += [resource.get(key) for key in ("output_file_id", "error_file_id")]
    for item in objects(resource.get("output")) + (objects(resource.get("data")) if known else []):
        ids += (item.get("id"), item.get("container_id"))
    return [id for text in _texts(ids) if (id := text.rpartition("/")[2]) not in known]


def strings_in(value: object) -> Iterator[str]:
    """Yield the strings that stand at keys and in lists of a JSON value."""
    values = [value]
    while values:
        match values.pop():
            case str(text):
                yield text
            case list(inner):
                values += inner
            case dict(inner):
                values += inner.values()


def not_found(stored: StoredId, provider: str) -> tuple[int, str, str]:
    """Return status, message and code by which a provider says that it does not know an id."""
    kind, id = stored.kind, stored.id[:200]
    if provider == "gemini":  # whose ids are as good as a permission
        if kind == "cache":
            return 403, "CachedContent not found (or permission denied)", "not_found"
        return 403, f"You do not have permission to access the {kind} {id} or it may not exist.", "not_found"
    if provider == "anthropic":
        return 404, f"{kind.capitalize()} not found: {id}", "not_found"
    if kind == "previous response":
        return 400, f"Previous response with id '{id}' not found.", "previous_response_not_found"
    return 404, f"{kind.capitalize()} with id '{id}' not found.", "not_found"


def _named(value: object, *, items: bool = False, inline: bool = False, variables: bool = False) -> Iterator[StoredId]:
    """Yield the ids that a value names; keys of `variables` are names of a client's choice, and hide nothing."""
    if isinstance(value, list):
        for each in value:
            if isinstance(each, (dict, list)):
                yield from _named(each, items=items, inline=inline)
        return
    if not isinstance(value, dict):
        return
    type, id = value.get("type"), value.get("id")
    kind = type if isinstance(type, str) and not variables else ""
    if isinstance(id, str) and (items or kind == "item_reference" or kind in CONTENTS):
        is_whole = value.get(CONTENTS[kind]) if kind in CONTENTS else not value.keys() <= {"id", "type"}
        yield StoredId("item", id, inline=bool(is_whole) and kind != "item_reference")
    inline = inline or INLINE.fullmatch(kind) is not None
    for key, inner in value.items():
        if (key in OPAQUE and not variables) or (key == "input" and kind.endswith("tool_use")):
            continue
        is_inline = inline or (key == "annotations" and not variables)
        if (named := KINDS.get(key)) is not None and not (key == "skill_id" and kind == "anthropic"):
            yield from _at(named, key, inner, is_inline)
        if isinstance(inner, (dict, list)):
            is_variables = key == "variables" and not variables
            yield from _named(inner, items=key in ITEMS, inline=is_inline, variables=is_variables)


def _at(kind: str, key: str, value: object, inline: bool) -> Iterator[StoredId]:
    """Yield the ids that stand at a key: one, a list of them, or an object with its id."""
    inner, inline = mapping(value).get("id"), inline or kind in SHARED
    for id in (inner,) if kind == "audio" else (value, inner, *listing(value)):
        if not isinstance(id, str) or not id or id == "auto":
            continue
        if key in ("fileUri", "file_uri"):
            if match := OWN_FILE.fullmatch(id):
                yield StoredId(kind, match[1], inline)
        else:
            yield StoredId(kind, id.rpartition("/")[2], inline)


def _texts(values: Iterable[object]) -> list[str]:
    return [value for value in values if isinstance(value, str) and value]


def _single(pairs: Sequence[tuple[str, Any]]) -> Json:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key stands twice")
    return value
