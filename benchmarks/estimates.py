"""How near our token counts come: characters against vocabularies, and both against what providers reported.

    python benchmarks/estimates.py                 the table of text sorts
    REFOLD_SHARED=… python benchmarks/estimates.py also recorded sessions: growth between usage reports, and the next call

A session's system prompt and tools are not in its file, so the first report also measures that fixed part; only the
growth between two reports is ours to meet. Lines that a client sends without keeping them in the messages
(attachments, reminders) make a single growth larger than any count could be: the median, weighted by growth, says how
good the counter is, the sum says how complete the file is.
"""

from __future__ import annotations

import base64
import json
import os
import random
import statistics
import time
from collections import defaultdict
from pathlib import Path

from msgspec import Struct

from refold._counting import ExactCounter, counter_for
from refold._counting.image_tokens import image_tokens
from refold._counting.memo import forget
from refold._counting.token_slices import tokens
from refold.core.counting import CharCounter
from refold.core.messages import Image, MessageId
from refold.errors import RefoldError
from refold.formats import find
from refold.transcripts import RecordedConversation, read

ROOT = Path(__file__).parent.parent
SHARED = Path(os.environ.get("REFOLD_SHARED", ROOT.parent / "shared"))
NUMBERS = random.Random(11)
CHARS = {
    "characters / 4": CharCounter(),
    "characters / 1.5 (W)": CharCounter(1.5),
    "NeuroLink, openai": CharCounter(4, margin=1.15),
}
LEAST_REPORT, LEAST_GROWTH = 1_000, 300


LEAST_RATIO, MOST_RATIO = 0.5, 2.5  # beyond these a report covers something else than what was estimated
FEW = 200  # a ratio of fewer tokens is mostly framing


def calibrate(estimated: int, reported: int) -> float:
    """Return by what to multiply estimates so that they meet a report; 0.5 to 2.5, 1 where either is too small."""
    if estimated < FEW or reported <= 0:
        return 1.0
    return min(MOST_RATIO, max(LEAST_RATIO, reported / estimated))


class Calibration(Struct, frozen=True):
    """What reports taught about estimates: a ratio, and the fixed part that no message holds.

    A report covers system prompt and tools that the estimate may not know; the growth between two reports does
    not, so from the second on the ratio is of growth alone.
    """

    ratio: float = 1.0
    fixed: int = 0
    last: tuple[int, int] | None = None

    def after(self, estimated: int, reported: int) -> Calibration:
        """Return it with one report more; `estimated` is our own figure for the messages it covers."""
        if self.last is None:
            return Calibration(calibrate(estimated, reported), 0, (estimated, reported))
        grown, reported_growth = estimated - self.last[0], reported - self.last[1]
        if grown < FEW or reported_growth <= 0:  # a compaction in between, or hardly anything new
            ratio, last = self.ratio, (self.last if grown >= 0 and reported_growth >= 0 else (estimated, reported))
        else:
            ratio, last = calibrate(grown, reported_growth), (estimated, reported)
        return Calibration(ratio, max(0, reported - round(estimated * ratio)), last)

    def estimate(self, estimated: int) -> int:
        """Return our own figure as the provider would report it: from the last report on, only growth is guessed."""
        if self.last is None:
            return estimated
        return max(0, self.last[1] + round((estimated - self.last[0]) * self.ratio))


def samples() -> dict[str, str]:
    """Return about 100,000 characters of each sort of text, made here or from our own source."""
    words = [
        "the",
        "build",
        "test",
        "runner",
        "reads",
        "every",
        "package",
        "then",
        "writes",
        "a",
        "report",
        "and",
        "a",
        "user",
        "asks",
        "why",
        "it",
        "failed",
    ]
    prose = " ".join(f"{' '.join(NUMBERS.sample(words, 9)).capitalize()}." for _ in range(1_800))
    code = "\n".join(path.read_text() for path in sorted((ROOT / "src").rglob("*.py")))
    rows = [{"id": n, "name": f"item-{n}", "tags": ["a", "b"], "price": n / 7, "ok": n % 3 == 0} for n in range(1_200)]
    log = "\n".join(
        f"2026-01-{n % 28 + 1:02} 10:{n % 60:02}:11,{n % 1000:03} INFO worker-{n % 9} took job {n * 7919} in {n % 300} ms"
        for n in range(1_400)
    )
    return {
        "prose": prose[:100_000],
        "code": code[:100_000],
        "JSON": json.dumps(rows)[:100_000],
        "logs": log[:100_000],
        "CJK": "请重新运行所有测试，然后告诉我结果。すべてのテストを再実行してください。모든 테스트를 다시 실행하세요. "
        * 1_500,
        "emoji": "👍🏽🚀 done 👨‍👩‍👧 ok ❤️ " * 4_000,
        "base64": base64.b64encode(NUMBERS.randbytes(75_000)).decode(),
        "hex ids": " ".join(NUMBERS.randbytes(20).hex() for _ in range(2_400)),
    }


def by_sort() -> None:
    """Print the error of each estimate against the exact o200k count."""
    exact = ExactCounter()
    names = ["sort", "tokens", *CHARS, "Claude < 4.7", "Claude 4.7+", "MB/s"]
    print(" | ".join(names))
    for sort, text in samples().items():
        forget()
        start = time.perf_counter()
        true = exact.text(text)
        speed = len(text.encode()) / 1e6 / (time.perf_counter() - start)
        errors = [f"{counter.text(text) / true - 1:+.0%}" for counter in CHARS.values()]
        claude = [f"x{counter_for(model).text(text) / true:.2f}" for model in ("claude-opus-4-6", "claude-opus-4-7")]
        print(" | ".join([sort, f"{true:,}", *errors, *claude, f"{speed:.0f}"]))
    picture = Image("image/png", 900_000, 1_568, 900)
    as_text = tokens("o200k_base", base64.b64encode(NUMBERS.randbytes(picture.bytes)).decode())
    rules = ("tile-85-170", "anthropic", "gemini", "qwen")
    costs = ", ".join(f"{rule} {image_tokens(picture, rule):,}" for rule in rules)
    print(f"a picture of 1,568 x 900 and 900 kB: {costs}; its base64 counted as text would be {as_text:,}")


def recorded() -> None:
    """Print how our growth compares with the reported one, by sort of session and family of model."""
    rows: dict[tuple[str, str], list[Session]] = defaultdict(list)
    for path in sorted((SHARED / "data").rglob("*")):
        for found in _found(path, 5):
            session = Session(found, counter_for(found.model))
            rows[session.kind, session.family].append(session)
    print(
        "sessions | family | pairs | growth, ours / reported: weighted median | sum | cold | within 10 % of the prompt | next call: median error | within 5 %"
    )
    for (kind, family), sessions in sorted(rows.items()):
        pairs = [pair for session in sessions for pair in session.pairs]
        if sum(told for _, told in pairs) < 3_000:
            continue
        total = sum(ours for ours, _ in pairs) / sum(told for _, told in pairs)
        cold = [error for session in sessions for error in session.cold]
        following = [error for session in sessions for error in session.following]
        print(
            f"{kind} x {len(sessions)} | {family} | {len(pairs)} | {_median(pairs):.3f} | {total:.3f} | "
            f"{statistics.median(cold):.2%} | {_share(cold, 0.10):.1%} | "
            f"{statistics.median(following):.2%} | {_share(following, 0.05):.1%}"
        )


def unnamed() -> None:
    """Print what is counted without a model's name: by the vocabulary that nothing tells, and by the format."""
    rows: dict[tuple[str, str], list[tuple[Session, Session]]] = defaultdict(list)
    for path in sorted((SHARED / "data").rglob("*")):
        for found in _found(path, 2):
            counters = counter_for(None), counter_for(None, None, found.format)
            plain, by_format = (Session(found, counter) for counter in counters)
            rows[found.format, counter_for(found.model).family].append((plain, by_format))
    print("format | family of the model | pairs | without a model, ours / reported: o200k | by the format")
    for (format, family), sessions in sorted(rows.items()):
        plain_pairs, format_pairs = ([pair for each in sessions for pair in each[side].pairs] for side in (0, 1))
        print(f"{format} | {family} | {len(plain_pairs)} | {_median(plain_pairs):.3f} | {_median(format_pairs):.3f}")


class Session:
    """One recorded session: pairs of (our growth, reported growth), and errors as shares of the reported prompt.

    `cold` are those of an estimate that starts at the first report and is never corrected, `following` those of an
    estimate of the next call that was corrected at each report before it.
    """

    def __init__(self, found: RecordedConversation, counter: ExactCounter) -> None:
        self.kind, self.family = found.kind, counter.family
        self.pairs: list[tuple[int, int]] = []
        self.cold: list[float] = []
        self.following: list[float] = []
        self._follow(found, _sums(found, counter))

    def _follow(self, found: RecordedConversation, sums: list[int]) -> None:
        first = last = (0, 0, -1)
        learned = Calibration()
        for report in found.usage:
            if report.prompt < LEAST_REPORT:
                continue
            begin = max((place for place in found.boundaries if place <= report.covers), default=0)
            ours = sums[min(report.covers, len(sums) - 1)] - sums[begin]
            if last[2] != begin or report.prompt < last[1]:  # compacted, or another branch: a new beginning
                first, learned = (ours, report.prompt, begin), Calibration(learned.ratio)
            else:
                self.pairs.append((ours - last[0], report.prompt - last[1]))
                self.cold.append(abs(first[1] + ours - first[0] - report.prompt) / report.prompt)
                self.following.append(abs(learned.estimate(ours) - report.prompt) / report.prompt)
            learned, last = learned.after(ours, report.prompt), (ours, report.prompt, begin)


def _found(path: Path, least: int) -> list[RecordedConversation]:
    """Return the conversations of a file that have so many usage reports; none where it is no session."""
    try:
        return [found for found in read(path) if len(found.usage) >= least] if path.is_file() else []
    except RefoldError:
        return []


def _sums(found: RecordedConversation, counter: ExactCounter) -> list[int]:
    reader = find(found.format)
    sums = [0]
    for number, native in enumerate(found.messages):
        sums.append(sums[-1] + counter.message(reader.read(native, MessageId(str(number)))))
    return sums


def _median(pairs: list[tuple[int, int]]) -> float:
    """Return the median ratio, each pair weighing its growth."""
    ratios = sorted((ours / told, told) for ours, told in pairs if told >= LEAST_GROWTH)
    half, passed = sum(told for _, told in ratios) / 2, 0
    for ratio, told in ratios:
        passed += told
        if passed >= half:
            return ratio
    return 0.0


def _share(errors: list[float], most: float) -> float:
    return sum(error <= most for error in errors) / max(1, len(errors))


if __name__ == "__main__":
    by_sort()
    if (SHARED / "data").is_dir():
        print()
        recorded()
        print()
        unnamed()
