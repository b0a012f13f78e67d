import stat
from pathlib import Path

import pytest
from msgspec.structs import replace

from refold import policies
from refold.agent._tool_output import OutputLimit, most_tokens, saving
from refold.core.budget import Budget, Share
from refold.core.counting import CharCounter
from tests.agent.kit import Watched, calls, results

FOUR = CharCounter(4)


def test_equal_outputs_share_a_file_and_others_never_do(tmp_path):
    save = saving(tmp_path / "outputs")
    assert save("x") == save("x")
    assert save("x") != save("y")
    assert stat.S_IMODE(Path(save("x")).stat().st_mode) == 0o600


@pytest.mark.parametrize(("budget", "expected"), [(1_000_000, 40_000), (32_000, 8_000), (1, 1)])  # a share of 0.25
def test_a_small_window_archives_smaller_outputs(budget, expected):
    assert most_tokens(budget, 0.25) == expected


def test_without_a_folder_what_would_be_archived_is_cut():
    limit = OutputLimit("archive", FOUR, max_tokens=1_000)
    assert limit("x" * 4_000) == "x" * 4_000
    assert len(limit("x" * 40_000)) <= 4_000


@pytest.mark.parametrize("how", ["cut", "archive"])
def test_where_the_folder_cannot_be_written_an_output_is_cut_and_not_lost(tmp_path, how):
    taken = tmp_path / "taken"
    taken.write_text("a file where the folder should be")
    limits = {"max_tokens": 1_000, "max_bytes": 1_000}
    assert OutputLimit(how, FOUR, taken, **limits)("x" * 40_000) == OutputLimit(how, FOUR, **limits)("x" * 40_000)


def test_an_archive_that_others_could_read_is_closed_to_them(tmp_path):
    path = Path(saving(tmp_path)("x"))
    path.chmod(0o644)
    saving(tmp_path)("x")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_transcript_gets_what_the_model_gets(tmp_path):
    run = Watched([calls("word " * 40_000), "Done."], folder=tmp_path, policy="claude-code")
    run.agent.run("go")
    (shown,) = results(run.agent.originals)
    assert len(shown) < 3_000
    assert str(tmp_path) in shown
    assert (tmp_path / shown.split(str(tmp_path) + "/")[1].split("]")[0]).read_text() == "word " * 40_000


def test_an_empty_output_says_so():
    run = Watched([calls(""), "Done."])
    run.agent.run("go")
    assert results(run.agent.originals) == ["(no output)"]


def test_an_oversized_output_is_cut_before_it_is_sent_and_stays_the_same_in_later_calls():
    lines = "\n".join(f"src/part_{n}.py:{n}: value_{n}" for n in range(1_500))
    others = [calls(lines[: len(lines) * 3 // 5])] * 6  # which fill the window up to the trigger, and stay
    policy = replace(policies.find("refold"), trigger=Share(0.8, inclusive=True))  # does not wait until it pays
    run = Watched([*others, calls(lines), calls("small"), "Done."], policy=policy, budget=Budget(100_000, 4_000))
    run.agent.run("go")
    before, first, second = (results(run.sent(number)) for number in (6, 7, 8))
    *same, cut = first
    assert same == before
    assert len(cut) < len(lines) // 2
    assert "recall b2:" in cut.split("\n")[0]
    assert second[:-1] == first
    assert results(run.agent.originals)[6] == lines
