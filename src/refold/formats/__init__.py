"""Formats: lenses on the messages of each provider, found by listing this folder."""

from refold.formats._bodies import (
    RequestBody,
    close_body,
    loaded_in,
    open_body,
    system_text,
    tools_text,
)
from refold.formats._native_list import assemble, assemble_with_sources
from refold.formats._registry import (
    Format,
    broken,
    detect,
    detect_again,
    find,
    names,
    open_calls,
    read,
)

__all__ = [
    "Format",
    "RequestBody",
    "assemble",
    "assemble_with_sources",
    "broken",
    "close_body",
    "detect",
    "detect_again",
    "find",
    "loaded_in",
    "names",
    "open_body",
    "open_calls",
    "read",
    "system_text",
    "tools_text",
]
