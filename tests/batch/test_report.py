"""The report on a batch says what `refold replay` says of the same files."""

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor

import duckdb
import pytest
from click.testing import CliRunner

from refold._cli.main import cli
from refold.batch import BatchSettings, run_batch
from tests.batch.transcripts import MODEL, transcript
from tests.replay.test_equal_size import turn

SETTINGS = BatchSettings(policies=("opal", "refold"), model=MODEL, window=8_000, sizes=(0.25, 0.5))


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    place = tmp_path_factory.mktemp("batch")
    for number in range(4):
        (place / "in").mkdir(exist_ok=True)
        (place / "in" / f"{number:03}.json").write_text(
            working(100 if number == 3 else 16 + 4 * number, f"case{number}")
        )
    (place / "in" / "short.json").write_text(transcript(1))
    with ThreadPoolExecutor(1) as threads:
        run_batch([str(place / "in")], str(place / "out"), SETTINGS, executor=threads, workers=1)
    return place


def working(turns, name):
    """A session that names what it was shown a while ago, so that there is something to preserve."""
    text = json.dumps({"model": MODEL, "messages": [message for each in range(turns) for message in turn(each)]})
    return text.replace("part_", f"{name}_").replace("helper_", f"{name}_helper_")


def invoke(*arguments):
    result = CliRunner().invoke(cli, [str(each) for each in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_figures_are_those_of_a_replay(results):
    report = json.loads(invoke("batch", "report", results / "out", "--json"))
    sizes = ("--size", "25%", "--size", "50%")
    command = ("replay", results / "in", "-p", "opal", "-p", "refold", "-m", MODEL, "-w", "8k", *sizes, "--no-cache")
    replay = json.loads(invoke(*command, "--jobs", "1", "--json"))
    by_name = {row["policy"]: row for row in replay["policies"]}
    assert report["policies"][0]["policy"] == "none"
    assert {row["policy"] for row in report["policies"]} == set(by_name)
    for figures in ("compactions", "quality", "at_sizes", "cycles"):
        assert any(row[figures] for row in report["policies"])
    for row in report["policies"]:
        same_figures(row, by_name[row["policy"]])
    assert report["limits"].keys() == replay["limits"].keys()
    for size, limits in report["limits"].items():
        same_figures(limits, replay["limits"][size])


def same_figures(mine, other):
    """Compare two trees of figures; the errors of one are by bootstrap, so they only have to be near."""
    assert mine.keys() == other.keys()
    for name, value in mine.items():
        if isinstance(value, dict) and "count" in value:
            assert value["value"] == pytest.approx(other[name]["value"], abs=1e-9), name
            assert value["count"] == other[name]["count"], name
            rough = 1.0 if name in ("change", "drift") else 0.35  # of a ratio over four conversations
            assert (value["error"] or 0) == pytest.approx(other[name]["error"] or 0, rel=rough, abs=0.002), name
        elif isinstance(value, dict):
            same_figures(value, other[name])
        else:
            assert value == pytest.approx(other[name]), name


def test_the_terminal_shows_costs_models_and_errors(results):
    text = invoke("batch", "report", results / "out")
    for part in ("5 files, 4 conversations replayed; 1 file with an error", "Cost: 4 conversations", "Recall at equal size",
                 "Kept at 25% of the history", "By model", "too few to replay"):  # fmt: skip
        assert part in text


def test_the_page_is_one_file_with_the_same_tables(results, tmp_path):
    invoke("batch", "report", results / "out", "--out", tmp_path / "report.html")
    html = (tmp_path / "report.html").read_text()
    assert "<h2>By model</h2>" in html
    assert "<svg" in html
    assert "http" not in html.replace("http://www.w3.org", "")


def test_rows_that_a_later_task_replaced_are_not_counted_though_they_are_still_there(results, tmp_path):
    """A run may be ended after it replayed a changed file and before it removed the old rows."""
    shutil.copytree(results / "out", tmp_path / "out")
    entry = next(path for path in (tmp_path / "out" / "manifest").iterdir() if b"000.json" in path.read_bytes())
    later = json.loads(entry.read_text()) | {"name": "00002-later", "run": 2}
    later["files"] = [file for file in later["files"] if file["path"].endswith("000.json")]
    (entry.parent / "00002-later.json").write_text(json.dumps(later))
    tables = tmp_path / "out" / "results"
    rows = duckdb.read_parquet(f"{tables}/{entry.stem}.parquet").filter("file LIKE '%000.json'")
    rows.write_parquet(f"{tables}/00002-later.parquet")
    before = json.loads(invoke("batch", "report", results / "out", "--json"))
    after = json.loads(invoke("batch", "report", tmp_path / "out", "--json"))
    for mine, other in zip(before["policies"], after["policies"], strict=True):
        same_figures(mine, other)


@pytest.mark.parametrize("name", ["nowhere", "empty"])
def test_a_folder_without_results_is_refused(tmp_path, name):
    (tmp_path / "empty").mkdir()
    result = CliRunner().invoke(cli, ["batch", "report", str(tmp_path / name)])
    assert (result.exit_code, "no results of a batch are here" in result.stderr) == (2, True)
    assert not os.path.exists(tmp_path / "nowhere")
