import pytest

from refold.core.counting import CharCounter
from refold.core.needs import FileNeed, Provided, Refused, SummaryNeed
from refold.replay._fake_summarizer import FakeHandlers, outlined
from refold.testing import talk

TALK = talk(
    "u: Mend the totals of main_ledger.",
    "a: I look | read(src/store.py) as c1",
    "t: c1 = def load_items(path):",
    "a: Done, totals are right.",
).messages


def need(**given):
    return SummaryNeed(messages=TALK, text="the record " * 100, **given)


def test_an_outline_names_what_was_asked_and_called():
    said = outlined(need())
    assert said.splitlines()[0] == "- user: Mend the totals of main_ledger."
    assert "read src/store.py" in said
    assert "def load_items" not in said


def test_an_outline_keeps_within_its_length_and_leaves_out_the_oldest_of_the_assistant_first():
    said = outlined(need(max_tokens=20))
    assert len(said) <= 80
    assert "main_ledger" in said
    assert "totals are right" in said
    assert "src/store.py" not in said


def test_an_earlier_summary_stands_first_in_the_next():
    assert outlined(need(previous="Before: vault_k7.")).startswith("Before: vault_k7.\n- user:")


def test_what_a_model_would_have_read_and_written_is_noted():
    stand_ins = FakeHandlers(TALK, CharCounter(4), ratio=2.0)
    answer = stand_ins.handlers(4).answer(need(instructions="Sum it up."))
    assert isinstance(answer, Provided)
    (call,) = stand_ins.calls
    assert call.prompt == pytest.approx(2 * (1_100 + 12) / 4, abs=3)
    assert call.output == pytest.approx(2 * len(answer.text) / 4, abs=2)
    assert (call.read, call.written) == (0, 0)


def test_a_request_above_the_window_comes_again_in_parts():
    stand_ins = FakeHandlers(TALK, CharCounter(4), window=2_000)
    large = SummaryNeed(messages=(), text="\n".join(f"line {number} of the record" for number in range(1_000)))
    answer = stand_ins.handlers(4).answer(large)
    assert isinstance(answer, Provided)
    assert len(stand_ins.calls) > 2
    assert max(each.prompt for each in stand_ins.calls) <= 2_000


def test_a_file_is_what_the_recording_showed_of_it_by_then():
    stand_ins = FakeHandlers(TALK, CharCounter(4))
    assert stand_ins.handlers(4).answer(FileNeed("src/store.py", 100)) == Provided(text="def load_items(path):")
    for known, path in ((2, "src/store.py"), (4, "src/other.py")):
        answer = stand_ins.handlers(known).answer(FileNeed(path, 100))
        assert isinstance(answer, Refused) or not answer.text
    assert stand_ins.calls == []
