import pytest
from rich.cells import cell_len

from refold._cli.chat_screen import Screen, Wrapping, readable
from refold.agent.cards import DoneCard, FailedCard, ShortenedMessage, StartedCard
from refold.agent.events import ToolFinished, ToolStarted, Warned
from refold.core.view import Cause

CARD = DoneCard(
    (ShortenedMessage("read", 9_000, 90, "clear"), ShortenedMessage("user", 200, 0, "summarize")), 200_000, 15_000, 80, 12, 250_000, 1.25, 900
)  # fmt: skip


@pytest.fixture
def screen() -> Screen:
    return Screen()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1_000])
def test_an_answer_is_broken_between_words_however_it_comes(size: int) -> None:
    text = "one two three  four\n\nfive and-a-half six 七八九 ten eleven"
    wrapping = Wrapping(12)
    shown = "".join(wrapping.add(text[at : at + size]) for at in range(0, len(text), size)) + wrapping.end()
    assert shown.split() == text.split()
    assert all(cell_len(line) <= 12 for line in shown.splitlines())
    assert "\n\n" in shown
    assert shown.endswith("\n")
    assert wrapping.end() == ""


def test_without_a_width_nothing_is_broken_or_held_back() -> None:
    wrapping = Wrapping(0)
    assert wrapping.add("word " * 100) == "word " * 100
    assert wrapping.add("end") == "end"
    assert wrapping.end() == "\n"
    assert wrapping.add("line\n") + wrapping.end() == "line\n"


def test_a_text_cannot_steer_a_terminal_and_keeps_its_lines() -> None:
    assert readable("a\tb\nc\x1b[31m\x07\u202e\r") == "a\tb\nc�[31m���"
    assert readable("häß 漢字 🎈") == "häß 漢字 🎈"


def test_cards_and_tools_go_beside_the_answer_where_nobody_watches(
    screen: Screen, capsys: pytest.CaptureFixture[str]
) -> None:
    screen(StartedCard(80, 2, 200_000, 187_000, 250_000, Cause.THRESHOLD))
    screen(CARD)
    screen(FailedCard("no model"))
    screen(ToolStarted("read", "c1", '{"path": "a.py"}'))
    screen(ToolFinished("read", "c1", "one\ntwo\n", 8))
    screen(ToolFinished("read", "c2", "it is\nnot there", 8, True))
    screen(Warned("half of it is used"))
    screen.text("The answer")
    screen.idle()
    out, err = capsys.readouterr()
    assert out == "The answer\n"
    assert err.splitlines() == [
        "Compacting conversation history… 80 messages, 2 of them to be shortened",
        "Compaction complete: 200,000 → 15,000 tokens (-92%)",
        "  80 → 12 messages, 2 made smaller, 185,000 tokens saved, 1.2 s, summary of 900 characters",
        "Compaction failed, nothing was changed: no model",
        "● read a.py",
        "  ⎿ 2 lines",
        "  ⎿ it is not there",
        "half of it is used",
    ]


def test_a_terminal_gets_a_card_with_each_target(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": "100"}.items():
        monkeypatch.setenv(name, value)
    Screen()(CARD)
    shown = capsys.readouterr().out
    assert "\x1b[1;32mCompaction complete: 200,000 → 15,000 tokens (-92%)" in shown
    assert all(word in shown for word in ("╭", "read", "9,000", "90", "-99%", "clear", "user", "hidden", "summarize"))
    assert max(len(line) for line in shown.splitlines()) < 200


def test_nothing_runs_where_nobody_can_be_asked(screen: Screen, capsys: pytest.CaptureFixture[str]) -> None:
    assert not screen.allow("rm -r .")
    assert Screen(agreed=True).allow("ls")
    assert "--yes" in capsys.readouterr().err
