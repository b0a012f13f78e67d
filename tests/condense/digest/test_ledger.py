from refold._condense.digest.ledger import ALL_DONE, ledger
from refold._condense.digest.state import state
from refold.testing import talk, view_of

REQUEST = "u: Please do these:\n1. `load` reads twice\n2. no test of `save`\n3. a copy of `rest`\n4. the docs are old"


def account(*lines):
    return list(ledger(view_of(talk(*lines))))


def test_each_item_of_a_numbered_request_is_told_with_what_became_of_it():
    assert account(
        "u: go",
        "a: ok",
        REQUEST,
        "a: Good news: item 4 is fine. Let me fix the remaining items.\n\n**Item 1: read once** | edit(a.py) as c1",
        "t: c1 = ok",
        "a: **Item 2: Add a test** | read(b.py) as c2",
        "t: c2 = x",
    ) == [
        "item 1, done: `load` reads twice",
        "item 2, in work: no test of `save`",
        "item 3, open: a copy of `rest`",
        "item 4, checked, nothing to do: the docs are old",
    ]


def test_an_item_that_nothing_was_changed_for_is_open_once_the_work_went_on():
    lines = account(
        REQUEST, "a: Item 1 first. | read(a.py) as c1", "t: c1 = x", "a: Item 3: | edit(c.py) as c2", "t: c2 = ok"
    )
    assert lines[0] == "item 1, open: `load` reads twice"
    assert lines[2] == "item 3, in work: a copy of `rest`"


def test_where_every_item_is_done_the_report_is_what_is_left():
    done = "a: Items 1, 2 and 3 are done now, and item 4 is fine. | edit(a.py) as c1"
    assert account(REQUEST, done, "t: c1 = ok")[-1] == ALL_DONE


def test_what_is_to_be_done_is_asked_or_opens_again_is_not_told_as_done():
    said = "a: Item 1 needs to be fixed. Item 2 is not done. Should item 3 be implemented? Step 4 completed. | read(a) as c"
    assert [line.partition(":")[0] for line in account(REQUEST, said, "t: c = ok")] == [
        "item 1, open",
        "item 2, in work",
        "item 3, open",
        "item 4, open",
    ]
    done = ("a: Items 1, 2, 3 and 4 are done. | edit(a.py) as c1", "t: c1 = ok")
    again = (*done, "a: Item 2 is still broken. | read(a) as c")
    assert "item 2, open: no test of `save`" in account(REQUEST, *again)


def test_what_is_left_beside_items_that_are_finished_opens_none_of_them():
    done = ("a: Items 1, 2, 3 and 4 are done. | edit(a.py) as c1", "t: c1 = ok")
    said = "Items 1 and 2 are done; the remaining risk is small. Fixed item 3, the bug left over from the last release."
    assert account(REQUEST, *done, f"a: {said} | read(a) as c")[-1] == ALL_DONE


def test_of_items_that_nobody_speaks_of_by_number_nothing_is_told():
    assert account(REQUEST, "a: I look at `load`. | edit(a.py) as c1", "t: c1 = ok") == []


def test_items_of_a_request_that_was_answered_are_not_told():
    assert account(REQUEST, "a: Item 1 is done, item 2 is next.", "u: thanks, what is the time?") == []


def test_findings_of_a_review_are_open_until_a_file_they_name_was_changed():
    review = ("u: review it and fix what it finds", "a: x | task(review the changes) as c1")
    report = "t: c1 = Two bugs:\n- **High** — `reset` in `api.py` never fails\n- **Low** — `stop` in `db.py` leaks"
    findings = ["open finding: High — `reset` in `api.py` never fails", "open finding: Low — `stop` in `db.py` leaks"]
    assert account(*review, report) == findings
    assert account(*review, report, "a: x | edit(src/api.py) as c2", "t: c2 = ok") == findings[1:]
    passed = "t: c1 = Fine:\n- No bugs\n- 15 tests pass"
    assert account(*review, passed) == []
    looked = ("u: look around", "a: x | task(list the modules) as c1", report)
    assert account(*looked) == []


def test_the_account_stands_with_the_state_of_the_work():
    lines = state(view_of(talk(REQUEST, "a: Item 1: | edit(a.py) as c1", "t: c1 = ok")))
    assert "item 1, in work: `load` reads twice" in lines
