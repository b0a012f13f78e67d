"""Finds secrets in a text by their shapes and removes them, before the text is sent to a summarizer.

The shapes are the rules of Gitleaks, which `tools/refresh_secrets.py` writes into `secrets.json`, and a few of our own.
A rule costs nothing until one of its words occurs in a text; then its pattern is compiled, once.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from msgspec import Struct, convert

from refold._counting.memo import remembered

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["REMOVED", "without_secrets"]

REMOVED = "[secret removed]"
LONG = 4_000  # characters from which it is quicker to look for words among the different ones of a text

# Our own rules. Gitleaks demands the exact length of a token that exists; what was cut by a tool, or begins as one and
# is longer, is removed too. Sources: the prefixes that providers document, and detect-secrets (basic auth).
OWN: tuple[dict[str, Any], ...] = (
    {
        "id": "key with a known beginning",
        "words": ["sk-", "sk_", "rk_", "pk_live", "whsec_"],
        "pattern": r"(?<![A-Za-z0-9_-])("
        r"(?:sk-(?:ant|proj|svcacct|admin|or|live|test|lf)-|[sr]k_(?:live|test|prod)_|whsec_)[A-Za-z0-9_-]{8,})",
        "digit": True,
    },
    {"id": "key", "words": ["sk-"], "pattern": r"(?<![A-Za-z0-9_-])(sk-[A-Za-z0-9]{20,})", "digit": True},
    {
        "id": "token of a code host or registry",
        "words": ["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "npm_", "hf_", "pypi-", "dckr_pat_"],
        "pattern": r"(?<![A-Za-z0-9_-])((?:gh[pousr]_|github_pat_|npm_|hf_|dckr_pat_)[A-Za-z0-9_]{16,}"
        r"|(?:glpat-|pypi-AgE)[A-Za-z0-9_-]{16,})",
        "digit": True,
    },
    {
        "id": "token of a chat or a model's provider",
        "words": ["xox", "xapp-", "gsk_", "xai-", "r8_", "pplx-", "tvly-", "lsv2_", "nvapi-", "fw_"],
        "pattern": r"(?<![A-Za-z0-9_-])((?:xox[abeoprs]-|xapp-|gsk_|xai-|r8_|pplx-|tvly-|lsv2_(?:pt|sk)_|nvapi-|fw_)"
        r"[A-Za-z0-9_-]{16,})",
        "digit": True,
    },
    {
        "id": "token of Google",
        "words": ["aiza", "ya29.", "gocspx-"],
        "pattern": r"(?<![A-Za-z0-9_-])((?:AIza|ya29\.|GOCSPX-)[A-Za-z0-9_.-]{20,})",
        "digit": True,
    },
    {
        "id": "key id of AWS",
        "words": ["akia", "asia", "abia", "acca"],
        "pattern": r"\b((?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16})\b",
    },
    {
        "id": "secret key of AWS",
        "words": ["secret"],
        "pattern": r"(?i)aws.{0,20}?secret.{0,20}?[\s'\"\\:=]{1,8}([A-Za-z0-9/+=]{40})(?![A-Za-z0-9/+=])",
    },
    {
        "id": "private key that was cut",
        "words": ["private key"],
        "pattern": r"-----BEGIN[ A-Z0-9_-]{0,100}PRIVATE KEY(?: BLOCK)?-----(?:(?:\s|\\+[nr])*[A-Za-z0-9+/=]{20,})*"
        r"(?:(?:\s|\\+[nr]|[A-Za-z0-9+/=])*-----END[ A-Z0-9_-]{0,100}KEY(?: BLOCK)?-----)?",
    },
    {
        "id": "password in an address",
        "words": ["://"],
        "pattern": r"(?<=://)[^\s/:@'\"<>]{0,80}:([^\s/@'\"<>{}$*]{3,200})@(?=[A-Za-z0-9\[])",
        "not_secret": [r"(?i)^(?:pass(?:word|wd)?|pwd|secret|token|user(?:name)?|x+|\.+|your.*|my.*)$"],
    },
    {
        "id": "header of a request",
        "words": ["bearer", "basic", "api-key", "apikey"],
        "pattern": r"(?i)"
        r"(?:\bauthorization\b[\s'\"\\]{0,5}[:=,][\s'\"\\]{0,5}(?:(?:bearer|basic|token)\s+)?|\bbearer\s+|"
        r"\bx-(?:[a-z]+-)?api-?key\b[\s'\"\\]{0,5}[:=,][\s'\"\\]{0,5})([A-Za-z0-9_.~+/-]{12,}=*)",
        "digit": True,
    },
    {
        "id": "password with a name",
        "words": ["passw", "pwd", "secret", "passphrase"],
        "pattern": r"(?i)(?:passw(?:or)?d|passphrase|pwd|secret)s?(?:[\s'\"\\]{0,5}(?:=|:|=>|:=)|\s+is\b)[\s'\"\\]{0,6}"
        r"([^\s'\"\\,;(){}\[\]<>$&|]{6,80})(?=[\s'\"\\,;}\])&]|$)",
        "digit": True,
        "entropy": 2.5,
        "not_secret": [
            r"(?:[A-Za-z_]\w*)?\.[A-Za-z_]",
            r"^[\d.:]+$",
            r"^[-/]",
            r"://",
            r"^[A-Z_0-9]+$",
            r"^[a-z_]+$",
            r"(?i)^u?(?:int|float|bytes?|base)\d+(?:array|\[\])?$",
        ],
    },
)
PLACEHOLDER = re.compile(
    r"(?i)^\D*(?<![a-z])(?:your|my|example|sample|placeholder|dummy|redacted|insert|replace|changeme)(?![a-z])\D*$"
    r"|x{6,}|\*{3,}|\.{3,}|…|^(.)\1+$"
)
REST = re.compile(r"[A-Za-z0-9_+/~-]*={0,2}")  # of a token that is longer than its rule says


class SecretShape(Struct, frozen=True, dict=True):
    """One shape; `named` ones know a secret by the name before it, the others by how it begins."""

    id: str
    pattern: str
    words: tuple[str, ...]
    entropy: float = 0.0
    group: int = 0
    named: bool = False
    digit: bool = False
    stopwords: tuple[str, ...] = ()
    not_secret: tuple[str, ...] = ()
    not_match: tuple[str, ...] = ()

    def spans(self, text: str, placeholders: tuple[str, ...]) -> Iterator[tuple[int, int]]:
        """Yield where a text holds secrets of this shape."""
        for match in _compiled(self.pattern).finditer(text):
            group = self.group or next((number for number, value in enumerate(match.groups(), 1) if value), 0)
            start, stop = match.span(group)
            if not self._excused(text[start:stop], match[0], placeholders):
                whole = REST.match(text, stop) if not self.named else None
                yield start, whole.end() if whole else stop

    def _excused(self, secret: str, match: str, placeholders: tuple[str, ...]) -> bool:
        """Tell whether what looks like a secret is none: a placeholder, a word, a name."""
        small = secret.lower()
        return (
            (self.digit and not any(sign.isdigit() for sign in secret))
            or (self.entropy > 0 and _entropy(secret) <= self.entropy)
            or bool(PLACEHOLDER.search(secret))
            or any(_compiled(each).search(secret) for each in (*placeholders, *self.not_secret))
            or any(_compiled(each).search(match) for each in self.not_match)
            or any(word in small for word in self.stopwords)
        )


def without_secrets(text: str) -> str:
    """Return a text with `[secret removed]` in place of each known shape of a secret; the same text without any.

    Known are keys and tokens by their beginnings, private keys, JSON web tokens, passwords in addresses, credentials in
    headers, and values of enough disorder behind a name such as `api_key`. Placeholders, UUIDs, hashes and paths stay.
    That a text holds none is remembered by its digest.
    """
    if remembered("without secrets", text, _is_clean):
        return text
    pieces: list[str] = []
    end = 0
    for start, stop in _merged(_spans(text)):
        pieces += [text[end:start], REMOVED]
        end = stop
    return "".join([*pieces, text[end:]])


def _is_clean(text: str) -> bool:
    return not _spans(text)


def _spans(text: str) -> list[tuple[int, int]]:
    """Return where a text holds secrets: in most texts no word of a rule occurs."""
    rules, placeholders, words = _table()
    small = text.lower()
    if len(small) > LONG:  # a long text says most of its words again and again
        small = "\n".join({*small.split(), *(word for word in words if " " in word and word in small)})
    present = {word for word in words if word in small}
    return [span for rule in rules if not present.isdisjoint(rule.words) for span in rule.spans(text, placeholders)]


def _merged(spans: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    start, stop = -1, -1
    for first, last in sorted(spans):
        if first > stop:
            if stop > start:
                yield start, stop
            start, stop = first, last
        stop = max(stop, last)
    if stop > start:
        yield start, stop


def _entropy(text: str) -> float:
    """Return Shannon's bits for each sign, as Gitleaks measures them."""
    size = len(text)
    return -sum(count / size * math.log2(count / size) for count in Counter(text).values()) if size else 0.0


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


@cache
def _table() -> tuple[tuple[SecretShape, ...], tuple[str, ...], frozenset[str]]:
    """Return the rules, the placeholders, and every word of a rule."""
    table = json.loads((files("refold.summaries") / "secrets.json").read_text("utf-8"))
    rules = tuple(convert(row, SecretShape) for row in (*table["rules"], *OWN))
    return rules, tuple(table["placeholders"]), frozenset(word for rule in rules for word in rule.words)
