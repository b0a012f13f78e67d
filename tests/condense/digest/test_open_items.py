from refold._condense.digest.state import state
from refold.testing import talk, view_of

LEFT = "Done with `parse`.\n\n**Remaining:**\n- WP15: the mode in `mode.py`\n- WP16: the docs\n\nShall I go on?"


def told(*lines):
    return [line for line in state(view_of(talk(*lines), window=20_000)) if line.startswith("open, ")]


def test_what_an_answer_lists_as_open_is_told_with_its_heading_and_its_turn():
    assert told("u: go", f"a: {LEFT}", "u: commit it") == [
        'open, as listed under "Remaining" in turn 1: WP15: the mode in `mode.py`; WP16: the docs'
    ]
    steps = "Built it.\n\n## Next steps (WP17)\n\n1. Move the parts\n   - all of them\n2. Test"
    assert told("u: go", f"a: {steps}", "u: and now?") == [
        'open, as listed under "Next steps (WP17)" in turn 1: Move the parts; Test'
    ]
    assert told("u: go", "a: Built it.\n\nNext step: move the parts to `old`.", "u: and now?") == [
        'open, as listed under "Next step" in turn 1: move the parts to `old`'
    ]


def test_an_item_whose_file_was_changed_since_is_not_told():
    work = ("a: x | edit(src/mode.py) as c", "t: c = ok")
    assert told("u: go", f"a: {LEFT}", "u: go on", *work) == [
        'open, as listed under "Remaining" in turn 1: WP16: the docs'
    ]


def test_only_the_newest_list_of_the_last_answers_counts_and_none_beside_a_list_of_tasks():
    newer = "a: Next steps:\n- Ship it to the test stage"
    assert told("u: go", f"a: {LEFT}", "u: on", newer, "u: and now?") == [
        'open, as listed under "Next steps" in turn 2: Ship it to the test stage'
    ]
    others = [line for n in range(4) for line in (f"u: what of {n}?", f"a: It is {n}.")]
    assert told("u: go", f"a: {LEFT}", *others, "u: and now?") == []
    tasks = ('a: x | TodoWrite({"todos": [{"content": "Test it", "status": "pending"}]}) as c', "t: c = ok")
    assert told("u: go", f"a: {LEFT}", "u: go on", *tasks) == []


def test_what_only_looks_like_such_a_list_is_none():
    assert told("u: go", "a: These remain:\n- a\n- b", "u: and now?") == []
    assert told("u: go", "a: The remaining files are fine. All of them pass.", "u: and now?") == []
    assert told("u: go", "a: Remaining:\n- [x] the docs", "u: and now?") == []
    assert told("u: go", "a: ## Todo-app Subdirectory\n- /todo-app/: the application", "u: and now?") == []
    assert told("u: go", "a: Missing values are:\n- a\n- b", "u: and now?") == []


def test_what_an_answer_found_missing_or_crossed_out_is_no_task():
    assert told("u: look", "a: What's missing:\n- No `tools` parameter\n- No client", "u: and now?") == []
    assert told("u: look", "a: Still open:\n- ❌ No `tools` parameter\n- ✗ No client", "u: and now?") == []


def test_where_the_last_list_says_that_nothing_is_open_none_is_told():
    for nothing in ("Remaining: nothing.", "## Known issues\n- None", "**Open questions:**\n- none so far"):
        assert told("u: go", f"a: {LEFT}", "u: on", f"a: {nothing}", "u: and now?") == []


def test_an_item_that_is_done_or_that_tells_to_commit_what_was_committed_since_is_not_told():
    listed = (
        "a: Works.\n\n**Next steps:**\n- The proxy is already deployed\n- The change should be committed\n- Test `sum`"
    )
    commit = ('a: x | bash({"command": "git commit -qm sum"}) as c', "t: c = [main 1a2b3c4] sum")
    assert told("u: go", listed, "u: and now?") == [
        'open, as listed under "Next steps" in turn 1: The change should be committed; Test `sum`'
    ]
    assert told("u: go", listed, "u: push it", *commit) == ['open, as listed under "Next steps" in turn 1: Test `sum`']
