import json

import pytest

from refold._condense.digest.identifier_ledger import Atom
from refold._condense.identifier_scores import likeliest, need_in, worth_of
from refold._salience.features import COUNTS, counted, features
from refold.core.transcript import Transcript
from refold.testing import talk

SAID = talk(
    "u: mend src/pay.py", "a: total_sum is wrong | read(src/pay.py) as c", "t: c = def total_sum(): only_here", "a: ok"
)


def test_the_need_of_atoms_runs_from_nothing_to_all_there_is():
    whole = need_in(SAID)
    assert need_in(SAID, ()) == 0
    assert need_in(SAID, features(SAID.messages)) == pytest.approx(whole)
    assert 0 < need_in(SAID, ["total_sum"]) < whole
    assert need_in(Transcript()) == 0


def test_what_was_never_mentioned_is_worth_nothing():
    assert worth_of(SAID)["total_sum"] > worth_of(SAID)["only_here"] > worth_of(SAID)["never_said"] == 0


def test_a_name_in_a_digest_that_a_client_sent_back_was_shown_and_is_no_word_of_the_user():
    digest = "[Digest of earlier messages: background, not a new request]\n\n## Files read\n- src/store.py"
    for text, by_tool, by_user in ((digest, 1, 0), (digest.replace("[Digest", "[Notes"), 0, 1)):
        conversation = talk("u: go", "a: ok", f"u: {text}", "a: ok")
        note = worth_of(conversation).scorer.tally.notes["src/store.py"]
        assert counted(note[COUNTS], lived=False)[3:5] == (by_tool, by_user)


def test_names_of_tests_and_of_files_that_the_work_only_read_need_the_worth_of_what_stands_elsewhere():
    edit = json.dumps({"file_path": "src/new.py", "old_string": "a", "new_string": "total_sum"})
    transcript = talk(
        "u: look at src/old.py",
        "a: x | read(src/old.py) as c",
        "t: c = total_sum",
        "a: It adds total_sum.",
        "u: change src/new.py",
        f"a: x | edit({edit}) as d",
        "t: d = ok",
        "a: x | read(tests/test_new.py) as e",
        "t: e = total_sum",
    )
    named = {source: Atom("total_sum", source, 4.0) for source in ("old.py", "new.py", "tests/test_new.py")}
    path = Atom("total_sum", "old.py", 4.0, "path")
    atoms = (*named.values(), path)

    def listed(least):
        return likeliest(atoms, transcript, 9, least, 2 * least)

    worth = next(least / 1_000 for least in range(1, 1_000) if named["new.py"] not in listed(least / 1_000))
    assert set(listed(worth * 0.7)) == {named["new.py"]}
    assert set(listed(worth * 0.45)) == set(atoms)
