import json
import subprocess
import sys
from pathlib import Path

from benchmarks.budget import Run, run, sources, summary
from refold._samples import SampleConversation, conversations

ROOT = Path(__file__).parents[2]


def a_run(outcome: str, after: int = 0, violations: int = 0) -> Run:
    return Run("refold", "talk", "50%", 1_000, 2_000, after, outcome, violations, 2.0)


def test_a_pass_on_the_small_sample_fits_and_breaks_no_rule():
    small = next(each for each in conversations() if each.name == "small")
    found = run(small, "refold", "50%")
    assert found.outcome == "fits"
    assert 0 < found.after <= found.asked == found.before // 2
    assert found.violations == 0


def test_a_goal_that_cannot_be_met_is_a_row_with_the_error_s_name():
    tools = next(each for each in conversations() if each.name == "mail").tools
    heavy = SampleConversation("heavy", "", "openai-chat", [{"role": "user", "content": "Hello."}], None, tools * 9)
    assert run(heavy, "refold", "25%").outcome == "BadBudget"


def test_a_summary_counts_what_fits_what_is_over_and_what_broke():
    found = summary([a_run("fits", 900), a_run("over", 1_100, 2), a_run("CannotFit"), a_run("fits", 1_000)], "refold")
    assert found["fits"] == 0.5
    assert found["used"] == 0.95
    assert (found["over"], found["violations"]) == (1, 2)
    assert found["others"] == {"CannotFit": 1, "over": 1}


def test_without_recorded_sessions_the_samples_are_left(tmp_path):
    assert sources(tmp_path) == ["long-session", "small", "mail"]


def test_the_speed_benchmark_prints_figures_as_json():
    done = subprocess.run(
        [sys.executable, "benchmarks/speed.py", "--json", "--sizes", "50k", "--policies", "refold"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    assert found["check"]["50k"]["exact"] is True
    assert found["pass"]["refold"]["50k"]["used"].endswith("%")
    assert found["import"]["unwanted"] == []


def test_the_benchmark_of_peers_lists_its_rows():
    done = subprocess.run(
        [sys.executable, "benchmarks/peers/run.py", "--list"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    names = {line.split("  ")[0] for line in done.stdout.splitlines()}
    assert {"refold", "wolffish", "tessera compact"} <= names
