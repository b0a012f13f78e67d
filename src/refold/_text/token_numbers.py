"""Reads numbers of tokens as people write them: 200000, 200_000, 200,000, 200k, 1.5m."""

from __future__ import annotations

import re

__all__ = ["parse_tokens"]

NUMBER = re.compile(r"(-?)(\d+(?:[_,]\d{3})*|\d*\.\d+)\s*([km]?)", re.ASCII)
UNITS = {"": 1, "k": 1_000, "m": 1_000_000}


def parse_tokens(text: str) -> int | None:
    """Return a number of tokens, None where the text is none; a fraction needs a unit, as in 1.5m."""
    match = NUMBER.fullmatch(text.strip().lower())
    if match is None or ("." in match[2] and not match[3]):
        return None
    number = re.sub(r"[_,]", "", match[2])
    tokens = round(float(number) * UNITS[match[3]]) if "." in number else int(number) * UNITS[match[3]]
    return -tokens if match[1] else tokens
