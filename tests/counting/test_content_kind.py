import base64
import random

import pytest

from refold._counting.content_kind import kind_of

NOISE = random.Random(7).randbytes(3_000)

SAMPLES = {
    "prose": "The reader wants to know what happened and why it matters. It rained for days, and nobody came. " * 4,
    "code": "def total(rows):\n    result = {}\n    for row in rows:\n        result[row.key] += row.n\n    return result\n"
    * 4,
    "json": '{"id": 1, "name": "alpha", "size": 12, "tags": ["a", "b"], "nested": {"ok": true}}\n' * 4,
    "log": "2026-01-02 10:11:12,345 INFO worker started\n2026-01-02 10:11:13,001 WARN slow disk on node\n" * 4,
    "base64": base64.b64encode(NOISE).decode(),
    "cjk": "请重新运行所有测试，然后告诉我结果。如果有失败，请查看日志。" * 4,
    "latin": "Bitte führe alle Tests noch einmal aus, prüfe das Protokoll und berichte über die Ergebnisse. " * 4,
    "other": "Запустите все тесты снова и сообщите о результатах. " * 4,
}


@pytest.mark.parametrize("kind", SAMPLES)
def test_a_plain_sample_is_told(kind: str) -> None:
    assert kind_of(SAMPLES[kind]) == kind


@pytest.mark.parametrize("kind", SAMPLES)
def test_a_long_text_is_judged_by_a_sample(kind: str) -> None:
    assert kind_of(SAMPLES[kind] * 2_000) == kind


def test_short_and_empty_texts_are_prose() -> None:
    assert kind_of("") == "prose"
    assert kind_of("{}") == "prose"
