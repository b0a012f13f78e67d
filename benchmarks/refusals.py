"""Tells overflows from other refusals, beside a list of substrings such as most clients carry.

    python -m benchmarks.refusals

The texts are those of the test suite: reported refusals, the sample of each wording in each wrapping, and what only
looks like an overflow. The list of substrings is the union of those that agents and proxies look for.
"""

from __future__ import annotations

from refold.models.provider_errors import classify_error
from tests.models.test_refusals import NONE, ROWS, TEXTS, WRAPPINGS

SUBSTRINGS = (
    "context length", "context window", "context_length_exceeded", "maximum context", "context limit",
    "prompt is too long", "input is too long", "too many tokens", "token limit", "exceeds the maximum number of tokens",
    "exceed_context_size", "maximum number of tokens", "reduce the length",
)  # fmt: skip


def ours(error: object) -> bool:
    return classify_error(error).kind == "context_overflow"


def rival(error: object) -> bool:
    text = f"{error} {getattr(error, 'body', '')} {getattr(error, '__cause__', '')}".lower()
    return any(known in text for known in SUBSTRINGS)


def main() -> None:
    sets = {
        "reported overflows": [(error, True) for error, kind, *_ in TEXTS if kind == "context_overflow"],
        "wordings, plain": [(row.sample, True) for row in ROWS if row.kind == "context_overflow"],
        "wordings, wrapped": [
            (wrapped(row.sample), True) for row in ROWS if row.kind == "context_overflow" for wrapped in WRAPPINGS
        ],
        "other refusals, reported": [(error, False) for error, kind, *_ in TEXTS if kind != "context_overflow"],
        "other wordings": [(row.sample, False) for row in ROWS if row.kind != "context_overflow"],
        "near misses": [(row.miss, False) for row in ROWS] + [(error, False) for error, *_ in NONE],
    }
    print(f"{'texts':28}{'number':>8}{'refold right':>14}{'substrings right':>18}")
    for name, texts in sets.items():
        right = [sum(judge(error) is expected for error, expected in texts) for judge in (ours, rival)]
        print(f"{name:28}{len(texts):8}{right[0]:14}{right[1]:18}")


if __name__ == "__main__":
    main()
