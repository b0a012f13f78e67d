"""Formats: lenses on the messages of each provider, found by listing this folder."""

from refold.formats.assembly import assemble
from refold.formats.bodies import Request, close_body, loaded_in, open_body, system_text, tools_text
from refold.formats.finding import Format, broken, detect, find, names, read

__all__ = [
    "Format",
    "Request",
    "assemble",
    "broken",
    "close_body",
    "detect",
    "find",
    "loaded_in",
    "names",
    "open_body",
    "read",
    "system_text",
    "tools_text",
]
