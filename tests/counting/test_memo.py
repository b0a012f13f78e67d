from refold._counting import memo
from refold._counting.memo import forget, remembered


def test_a_question_is_worked_out_once_for_each_text() -> None:
    forget()
    asked: list[str] = []

    def work(text: str) -> int:
        asked.append(text)
        return len(text)

    for text in ("short", "long " * 100, "half \ud800 " * 100):
        assert remembered("length", text, work) == remembered("length", text, work) == len(text)
    assert len(asked) == 3
    assert remembered("other", "short", lambda text: 7) == 7


def test_the_memo_stays_bounded() -> None:
    forget()
    for number in range(memo.REMEMBERED + 10):
        remembered("n", str(number), len)
    assert len(memo._memo) <= memo.REMEMBERED
