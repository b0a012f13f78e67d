"""What sort of text this is, from a small sample: tokenizers of different makers differ most by that."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

__all__ = ["Kind", "kind_of"]

Kind: TypeAlias = Literal["prose", "latin", "code", "json", "log", "base64", "cjk", "other"]

SAMPLE = 768  # characters looked at in each of three places
SHORT = 24  # below this a text has no sort

# Chinese and Japanese; Korean and the scripts of other languages are "other", accented ones "latin".
CJK = re.compile("[\u2e80-\u312f\u3190-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")
ACCENTED = re.compile("[\u00c0-\u024f]")
ASCII = re.compile("[\x00-\x7f]")
RUN = re.compile(r"[A-Za-z0-9+/=_-]{60,}")  # long runs without a space, as base64 has
STAMPED = re.compile(
    r"^\W{0,3}(?:\d{2,4}[-/.:]\d\d|\d{9,}|(?:DEBUG|INFO|WARN|ERROR|TRACE|FATAL)\b|\w{3} +\d+ \d\d:)", re.M
)
MARKS = re.compile(r"[{}()\[\];=<>_|&#@$\\/:]")
QUOTED = re.compile(r"\"[^\"\n]{1,64}\" ?:|\\\"[^\"\n\\]{1,64}\\\" ?:")
DIGITS = re.compile(r"[0-9]")
INDENTED = re.compile(r"^(?: {2,}|\t+)\S", re.M)


def kind_of(text: str) -> Kind:
    """Return the sort of a text, judged by at most 2,304 of its characters."""
    sample = _sample(text)
    size = len(sample)
    if size < SHORT:
        return "prose"
    if _count(CJK, sample) > 0.25 * size:
        return "cjk"
    if sum(map(len, RUN.findall(sample))) > 0.6 * size:
        return "base64"
    if _count(ASCII, sample) < 0.6 * size:
        return "other"
    if 25 * _count(QUOTED, sample) > size:
        return "json"
    lines = sample.count("\n") + 1
    if (lines >= 3 and 2 * _count(STAMPED, sample) > lines) or _count(DIGITS, sample) > 0.2 * size:
        return "log"
    if _count(MARKS, sample) > 0.05 * size or (lines >= 4 and 3 * _count(INDENTED, sample) > lines):
        return "code"
    return "latin" if _count(ACCENTED, sample) > 0.008 * size else "prose"


def _sample(text: str) -> str:
    if len(text) <= 3 * SAMPLE:
        return text
    middle = (len(text) - SAMPLE) // 2
    return text[:SAMPLE] + text[middle : middle + SAMPLE] + text[-SAMPLE:]


def _count(pattern: re.Pattern[str], sample: str) -> int:
    return len(pattern.findall(sample))
