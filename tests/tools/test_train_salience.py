import json
import sys
from importlib import import_module

import pytest

from refold._salience import model

pytest.importorskip("numpy")


@pytest.fixture
def tool(monkeypatch):
    made = import_module("tools.train_salience")
    monkeypatch.setattr(made, "RANDOM", made.np.random.default_rng(5))
    return made


def turns(project, steps=24):
    """A session whose assistant keeps using the names of its own project, and never what tools show once."""
    said = [{"role": "user", "content": "Mend the totals."}]
    for step in range(steps):
        name = f"{project}_total_{step % 4}"
        call = {
            "id": f"c{step}",
            "type": "function",
            "function": {"name": "edit", "arguments": json.dumps({"path": f"src/{name}.py", "what": f"fix {name}"})},
        }
        shown = " ".join(f"{project}_noise_{step}_{n}" for n in range(12))
        said += [
            {"role": "assistant", "content": f"I mend {name}.", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{step}", "content": f"{name} {shown}"},
        ]
    return said


@pytest.fixture
def folder(tmp_path):
    for agent in ("one", "two"):
        for project in ("alpha", "beta"):
            path = tmp_path / "sessions" / agent / f"{agent}-{project}" / "session.json"
            path.parent.mkdir(parents=True)
            path.write_text(json.dumps(turns(project)))
    (tmp_path / "sessions" / "one" / "one-alpha" / "broken.json").write_text('{"role": ')
    return tmp_path / "sessions"


def trained(tool, folder, monkeypatch, *options):
    out = folder.parent / "weights.json"
    monkeypatch.setattr(sys, "argv", ["train_salience", str(folder), "--out", str(out), *options])
    tool.main()
    return out.read_bytes()


def test_training_writes_weights_that_the_package_reads_with_figures_for_sources_it_did_not_see(
    tool, folder, monkeypatch, capsys
):
    folds = folder.parent / "folds"
    made = trained(tool, folder, monkeypatch, "--folds", str(folds))
    assert model.loaded(made).features == model.NAMES
    card = json.loads(made)["card"]
    assert set(card["held out by source"]) == {"one-alpha", "one-beta", "two-alpha", "two-beta"}
    assert set(card["held out by agent"]) == {"one", "two"}
    assert all(each["auc"] > 0.8 for each in card["held out by source"].values())
    assert {path.stem for path in folds.iterdir()} == set(card["held out by source"])
    assert json.loads(capsys.readouterr().out) == card


def test_the_card_compares_predicted_coverage_with_the_true_one(tool, folder, monkeypatch):
    card = json.loads(trained(tool, folder, monkeypatch))["card"]
    rows = card["coverage by the share of atoms kept, predicted and true"]
    assert [row[0] for row in rows] == sorted(tool.SHARES)
    for column in (1, 2):
        values = [row[column] for row in rows]
        assert values == sorted(values)
        assert 0 <= values[0] <= values[-1] <= 1


def test_trees_are_judged_beside_the_regression_and_not_written(tool, folder, monkeypatch):
    made = json.loads(trained(tool, folder, monkeypatch, "--trees", "3"))
    assert all(each["auc_trees"] > 0.7 for each in made["card"]["held out by source"].values())
    assert made.keys() == {"features", "weights", "bias", "slope", "shift", "card"}


def test_the_area_under_the_curve_is_the_share_of_pairs_in_order(tool):
    scores, labels = tool.np.array([0.1, 0.4, 0.35, 0.8]), tool.np.array([False, False, True, True])
    assert tool.area(scores, labels) == pytest.approx(0.75)
