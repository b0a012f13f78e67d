import json
from math import exp
from operator import mul

import pytest

from refold._salience.features import NAMES, features
from refold._salience.model import Model, Scorer, loaded, shipped
from refold.errors import RefoldError
from refold.testing import talk


def session():
    lines = ["u: mend the totals"]
    for step in range(12):
        lines += [
            f"a: step | read(src/part_{step}.py) as c{step}",
            f"t: c{step} = def only_shown_{step}: see used_often",
        ]
        lines += [f"a: used_often is wrong | edit(src/used_often.py) as e{step}", f"t: e{step} = done"]
    return talk(*lines).messages


def likelihoods(messages, model=None):
    """The likelihood of need of every atom of the messages."""
    scorer = Scorer(messages, model)
    return {atom: scorer(atom) for atom in features(messages)}


def test_every_atom_has_a_row_with_an_entry_for_each_name():
    rows = features(session())
    assert {"used_often", "only_shown_3", "src/part_4.py"} <= rows.keys()
    assert {len(row) for row in rows.values()} == {len(NAMES)}


def test_what_the_assistant_uses_all_the_time_is_likelier_needed_than_what_a_tool_showed_once_long_ago():
    likely = likelihoods(session())
    assert all(0 < chance < 1 for chance in likely.values())
    assert likely["used_often"] > 3 * likely["only_shown_1"]
    often, once = Scorer(session()).worths(("used_often", "only_shown_1"))
    assert often > once


def test_the_same_messages_give_the_same_likelihoods():
    assert likelihoods(session()) == likelihoods(session())


def test_the_shipped_weights_come_with_a_card():
    from importlib.resources import files

    card = json.loads(files("refold._salience").joinpath("weights.json").read_bytes())["card"]
    assert {"data", "date", "held out by source", "held out by agent", "limits"} <= card.keys()
    assert set(shipped().features) == set(NAMES)


def test_weights_for_other_features_are_refused():
    with pytest.raises(RefoldError, match="train them again"):
        loaded(json.dumps({"features": ["age"], "weights": [1.0], "bias": 0.0}).encode())


def test_a_likelihood_is_the_calibrated_regression_over_the_row_of_features():
    weights = tuple((place % 7 - 3) / 10 for place in range(len(NAMES)))
    model = Model(tuple(reversed(NAMES)), weights, bias=-0.5, slope=0.8, shift=-0.2)
    likely = likelihoods(session(), model)
    for atom, row in features(session()).items():
        score = 0.8 * (sum(map(mul, reversed(weights), row)) - 0.5) - 0.2
        assert likely[atom] == pytest.approx(1 / (1 + exp(-score)))
