import pytest

from refold._condense.digest.conclusions import REVERSED, decisions, tried, verdicts
from refold._condense.digest.render import digest_text
from refold.testing import talk, view_of


def judged(*answers, standing=()):
    lines = [line for n, answer in enumerate(answers) for line in (f"a: {answer} | read(a.py) as c{n}", f"t: c{n} = x")]
    transcript = talk("u: go", *lines)
    return verdicts(transcript, transcript.messages, standing)


def decided(*answers):
    lines = [line for n, answer in enumerate(answers) for line in (f"a: {answer} | read(a.py) as c{n}", f"t: c{n} = x")]
    transcript = talk("u: go", *lines)
    return decisions(transcript, transcript.messages)


@pytest.mark.parametrize(
    "sentence",
    [
        "test_parse_header passes now.",
        "The `os` import is now unused.",
        "So `dupl` does not support generated files.",
        "Der Fehler ist in `parse_header`.",
        "Le test `parse_header` échoue encore.",
        "La función `parse_header` no está en uso.",
        "`parse_header` は空の行を返している。",
        "`parse_header` 没有处理空行。",
    ],
)
def test_what_an_answer_says_of_a_named_item_is_a_verdict(sentence):
    assert judged(sentence) == (sentence,)


def test_lines_that_an_answer_quotes_are_no_conclusions_of_its_own():
    draft = "Here is the intro:\n> The old engine did not work at all out there.\n\nWant more?"
    transcript = talk("u: go", f"a: {draft}")
    assert tried(transcript, transcript.messages) == ()
    transcript = talk("u: go", "a: “Pilot, the records are back online, but the ship is still broken.")
    assert tried(transcript, transcript.messages) == ()
    transcript = talk("u: go", "a: And you don't work alone anymore out there.")
    assert tried(transcript, transcript.messages) == ()


@pytest.mark.parametrize(
    "words", ["## Why the loader does not work", "Root cause: the upload failed because the lock timed out at once."]
)
def test_a_heading_or_a_labelled_cause_is_nothing_that_was_tried(words):
    transcript = talk("u: go", f"a: {words}", "u: on")
    assert tried(transcript, transcript.messages) == ()


def test_what_failed_on_the_way_of_a_turn_that_was_answered_was_overtaken():
    work = ("u: go", "a: The cache still fails because of its size. | read(a.py) as c", "t: c = x")
    transcript = talk(*work)
    assert tried(transcript, transcript.messages)
    transcript = talk(*work, "a: Now it is fast.", "u: on")
    assert tried(transcript, transcript.messages) == ()


def test_what_the_assistant_cannot_do_was_not_tried():
    transcript = talk("u: go", "a: Unfortunately, I don't have access to the console of the provider.")
    assert tried(transcript, transcript.messages) == ()


def test_what_was_blamed_is_marked_once_something_else_was_the_fault():
    first = "The `edge_cache` forwards all paths on purpose: it has no page of its own."
    transcript = talk("u: go", f"a: {first}", "u: no", "a: The problem wasn't the `edge_cache`: it was the router.")
    (line,) = decisions(transcript, transcript.messages)
    assert REVERSED in line
    transcript = talk("u: go", f"a: {first}", "u: no", "a: The problem wasn't the router: it was the `edge_cache`.")
    (line,) = decisions(transcript, transcript.messages)
    assert REVERSED not in line


def test_that_all_tests_pass_is_not_told_once_another_check_has_run():
    lines = ("u: go", "a: All 19 tests pass in `risk::`. | read(a.py) as c1", "t: c1 = x")
    transcript = talk(*lines)
    assert verdicts(transcript, transcript.messages, ())
    transcript = talk(*lines, 'a: x | bash({"command": "cargo test"}) as c2', "t: c2 = 1 failed")
    assert verdicts(transcript, transcript.messages, ()) == ()


def test_a_failure_is_told_with_the_short_sentence_behind_it_in_its_line():
    words = "The enum FILL_DOWN does not work here. I use its number instead.\nNow the rest."
    transcript = talk("u: go", f"a: {words}")
    assert tried(transcript, transcript.messages) == (
        "The enum FILL_DOWN does not work here. I use its number instead.",
    )
    transcript = talk("u: go", f"a: The enum FILL_DOWN does not work here. {'I use it ' * 40}.")
    assert tried(transcript, transcript.messages) == ("The enum FILL_DOWN does not work here.",)


@pytest.mark.parametrize(
    "sentence",
    [
        "Let me look at what `parse_header` does.",
        "Now I need to see what `parse_header` is.",
        "To fix this, I need to change how `parse_header` is called.",
        "Check that `parse_header` is called.",
        "Checking whether `parse_header` is called.",
        "`parse_header` might be what is broken.",
        "It seems that `parse_header` is broken.",
        "Is `parse_header` what is broken?",
        "`parse_header` is unused, so I'm deleting it.",
        "Here is what `parse_header` does:",
        "The header is empty.",
        "`parse_header` is indeed present at line 315.",
        "The issue described is related to how `parse_header` reads blank lines.",
        "Ich schaue, was `parse_header` ist.",
        "我来看 `parse_header` 是什么。",
    ],
)
def test_what_announces_doubts_asks_or_names_nothing_is_no_verdict(sentence):
    assert judged(sentence) == ()


def test_verdicts_are_newest_first_one_of_the_same_items_and_none_that_stands_elsewhere():
    first, second, third = "`load` fails.", "`save` works in both modes.", "`load` works now, too."
    assert judged(first, second, third, "`stay` is elsewhere.", standing=["`stay` is elsewhere."]) == (third, second)


def test_a_verdict_stands_in_the_digest_word_for_word_and_once():
    said = "The header is read twice. `parse_header` drops the last line of a file."
    transcript = talk("u: go", f"a: {said} | read(a.py) as c", "t: c = x", "a: ok | read(b.py) as d", "t: d = y")
    text = digest_text(view_of(transcript, goal=2_000), transcript.messages)
    assert "## Findings of the assistant\n- `parse_header` drops the last line of a file.\n" in text
    assert text.count("`parse_header` drops") == 1


@pytest.mark.parametrize(
    ("first", "later"),
    [
        ("Going with `bcrypt` for the passwords.", "We'll use `argon2` instead of `bcrypt` for them."),
        ("We settled on `parse_header` of the server.", "It's not `parse_header` after all, it's the socket."),
        ("Decided to keep `legacy_mode` for old clients.", "I reverted `legacy_mode`: nobody has old clients."),
        (
            "We chose `old_store` in all the tests.",
            "Tests use the new one, `old_store` is gone: rather than `old_store`, SQL.",
        ),
    ],
)
def test_a_decision_that_a_later_sentence_takes_back_by_name_is_marked(first, later):
    assert f"{first}{REVERSED}" in decided(first, later)
    assert f"{first}{REVERSED}" not in decided(later, first)


@pytest.mark.parametrize(
    "later",
    [
        "`argon2` is slow because of its memory, but not broken.",
        "I reverted the change to the tests, and `bcrypt` is next.",
        "It returns bytes instead of text for `bcrypt`.",
    ],
)
def test_a_decision_stands_where_a_later_sentence_takes_something_else_back(later):
    chosen = "Going with `bcrypt` for the passwords."
    assert chosen in decided(chosen, later)


def test_what_is_chosen_while_a_plan_is_made_is_no_decision_nor_is_what_was_found():
    transcript = talk(
        "u: go",
        "a: Going with `argon2` for the passwords. The bug is in `parse_header` of the server. | read(a.py) as c",
        "t: c = x",
        "a: The plan is there. | ExitPlanMode(plan) as d",
        "t: d = approved",
        "a: Going with `bcrypt` for the passwords. | read(a.py) as e",
        "t: e = x",
    )
    assert decisions(transcript, transcript.messages) == ("Going with `bcrypt` for the passwords.",)


@pytest.mark.parametrize(
    "sentence",
    [
        "One more pass over `load.py`, which has two readers.",
        "Small change in `load.py`: the name says tokens but it holds minutes.",
        "Back to the full suite, since `load` has other callers.",
        "Next is `load.py`: it has the same bug.",
        "Now step 4: Update `load.py` to use `save`.",
        "`load.py` mentions `save`, so let me compare it with what it has.",
        "It uses `load` as it is.",
        "These are in `load.py`.",
    ],
)
def test_what_names_the_next_step_or_points_back_is_no_verdict(sentence):
    assert judged(sentence) == ()


def test_what_is_said_in_the_turn_in_work_comes_first_and_verdicts_name_their_turn_where_there_are_several():
    transcript = talk(
        "u: go",
        "a: `load` works in one mode.",
        "u: and the others",
        "a: `save` works in both modes. | read(a.py) as c",
        "t: c = x",
    )
    assert verdicts(transcript, transcript.messages, ()) == (
        "`save` works in both modes. (turn 2)",
        "`load` works in one mode. (turn 1)",
    )


def test_what_was_wrong_in_a_file_is_no_finding_once_the_file_was_changed():
    lines = ["u: go", "a: The path in `load.py` is wrong. | read(load.py) as c", "t: c = x"]
    edited = ["a: x | edit(src/load.py) as d", "t: d = ok"]
    failed = ["a: x | edit(src/load.py) as d", "t! d = text not found"]
    refused = ["a: x | edit(src/load.py) as d", "t: d = String to replace not found in file."]
    for more in (failed, refused, []):
        transcript = talk(*lines, *more)
        assert verdicts(transcript, transcript.messages, ()) == ("The path in `load.py` is wrong.",)
    transcript = talk(*lines, *edited)
    assert verdicts(transcript, transcript.messages, ()) == ()


def test_what_was_wrong_without_a_file_is_no_finding_once_code_was_changed_and_what_is_so_is_one():
    looked = ["u: go", "a: The query returns an old group instead of `latest`. `Row.at` is a date. | read(a.py) as c"]
    for path, found in (("src/query.py", 1), ("docs/query.md", 2)):
        transcript = talk(*looked, "t: c = x", f"a: now | edit({path}) as d", "t: d = ok")
        assert len(verdicts(transcript, transcript.messages, ())) == found


@pytest.mark.parametrize(
    ("sentence", "is_one"),
    [
        ("I'll use the `view` command with a range of lines.", False),
        ("I'll use a python script to edit the file in place.", False),
        ("I'm checking the second cluster next because the plan may have changed it.", False),
        ("THOUGHT: The issue is reproduced by now.", False),
        ("I'll keep the old name, so that callers do not break.", True),
        ("I'll keep the old name for the callers that stand outside.", False),
    ],
)
def test_an_intent_is_a_decision_only_with_its_reason_and_a_fact_only_with_what_it_is_about(sentence, is_one):
    assert bool(decided(sentence)) is is_one


@pytest.mark.parametrize(
    ("sentence", "is_one"),
    [
        ("The menu says: save this decision and go on to the next step.", False),
        ('The note in `colors.md`, "a deliberate limitation, not a gap", is gone from the page.', False),
        ("The old name stays on purpose: two callers outside depend on it.", True),
        ("Changed `load` to read one file instead of two.", False),
        ("Which of `a.py` and `b.py` is used instead of the other?", False),
    ],
)
def test_a_choice_is_known_by_its_reason_and_a_note_on_an_edit_is_none(sentence, is_one):
    transcript = talk("u: go", f"a: {sentence}")
    assert bool(decisions(transcript, transcript.messages)) is is_one


@pytest.mark.parametrize(
    "sentence",
    [
        "The surface today is intentionally small: `deploy`, `list`, `watch`.",
        "`run_hooks` uses `os.environ` instead of `env.names`, and nothing sets it.",
        "The `load` path is by design in one place (`src/load.py:35`).",
        "Done — I added the whole of `specs` with the decision on one host in it.",
        "A broken `load` fails within a minute rather than hanging the job.",
    ],
)
def test_what_is_so_in_the_code_and_a_note_on_finished_work_are_no_decisions(sentence):
    assert decided(sentence) == ()


def test_what_a_plan_says_that_is_marked_as_one_is_no_finding():
    plan = "<proposed_plan>\nThe `limit` option is ignored where `rate` is set.\n</proposed_plan>"
    assert judged(f"`load` reads the file twice.\n\n{plan}") == ("`load` reads the file twice.",)


def test_of_the_causes_that_were_found_in_turn_only_those_of_the_newest_turn_are_findings():
    first = "The root cause is that `wait_for` has a limit that is too short."
    second = "The root cause is that `navigate` removes the folder."
    transcript = talk("u: why does it fail?", f"a: {first}", "u: it fails again", f"a: {second}", "u: mend it")
    assert verdicts(transcript, transcript.messages, ()) == (f"{second} (turn 2)",)
    alone = talk("u: why does it fail?", f"a: {first}", "u: mend it")
    assert verdicts(alone, alone.messages, ()) == (f"{first} (turn 1)",)


def test_a_finding_that_a_later_one_on_the_same_two_names_denies_is_dropped():
    first = "`run` passes the real path to `load` without a copy."
    later = "`run` doesn't read the path that `load` has."
    assert judged(first, later) == (later,)
    assert judged(first, "`run` doesn't read `rest`.") == ("`run` doesn't read `rest`.", first)


def test_the_place_of_a_finding_in_a_file_that_was_changed_later_has_no_line():
    transcript = talk(
        "u: go",
        "a: The `load` call stands in src/a.py:35 and works. | read(src/a.py) as c1",
        "t: c1 = x",
        "a: x | edit(src/a.py) as c2",
        "t: c2 = ok",
    )
    assert verdicts(transcript, transcript.messages, ()) == ("The `load` call stands in src/a.py and works.",)
    unchanged = judged("The `load` call stands in src/a.py:35 and works.")
    assert unchanged == ("The `load` call stands in src/a.py:35 and works.",)


def test_where_an_answer_thinks_aloud_its_short_steps_are_no_verdicts():
    steps = "`load` calls `read`. So `read` gets the path of the cache. `save` locks. `rest` does nothing."
    telling = "The cache of `load` is never cleared when a row is deleted."
    assert judged(f"{steps} {telling}") == (telling,)
    assert judged(f"`load` calls `read`. {telling}") == (telling, "`load` calls `read`.")


@pytest.mark.parametrize("beginning", ["If it fails", "(If this fails", "Wenn es fails", "Si it fails"])
def test_what_is_only_supposed_to_fail_was_not_tried(beginning):
    sentence = f"{beginning} with three actions found, the parser splits the lines."
    transcript = talk("u: go", f"a: {sentence} The call failed with two actions found in one block.", "u: on")
    assert tried(transcript, transcript.messages) == ("The call failed with two actions found in one block. (turn 1)",)


@pytest.mark.parametrize("other", [": #9", " #12", " task #12", " DOM-3 (#9)", " [UI-4]"])
def test_what_waits_for_another_task_of_a_tracker_was_not_tried(other):
    failed = "The push was blocked by CORS in the first run."
    transcript = talk("u: go", f"a: The third task is blocked by{other} at this time. {failed}", "u: on")
    assert tried(transcript, transcript.messages) == (f"{failed} (turn 1)",)


@pytest.mark.parametrize(
    ("sentence", "is_one"),
    [
        ("Keep the template of `pull requests` as Markdown, because GitHub reads no other there.", True),
        ("The root cause is that `load` reads the file before it was written.", False),
        ("Die Ursache ist, dass `load` die Datei liest, bevor sie geschrieben wurde.", False),
        ("The test of `load` fails because the file is read before it was written.", False),
        ("Keep in mind that `load` reads the file before it is written.", False),
    ],
)
def test_a_recommendation_with_its_reason_is_a_decision_and_a_root_cause_is_none(sentence, is_one):
    assert bool(decided(sentence)) == is_one


@pytest.mark.parametrize(
    ("line", "is_one"),
    [
        ("- **Decision:** one host for now, no editor in the browser.", True),
        ("**Entscheidung:** nur der Speicher, keine anderen Dienste im ersten Schritt.", True),
        ("1. **決定**：最初はローカルの保存だけを扱い、他は後にする。", True),
        ("- **Decision:** small", False),
        ("- **Strategy:** find out how the colors get into the chart of the page.", False),
        ("- **Read-only getters:** the state and the model of the session.", False),
    ],
)
def test_what_an_answer_calls_a_decision_in_a_label_is_one(line, is_one):
    transcript = talk("u: plan it", f"a: Here is the plan.\n\n{line}", "u: on")
    assert bool(decisions(transcript, transcript.messages)) is is_one
    if is_one:
        assert "**" not in decisions(transcript, transcript.messages)[0]


def test_what_was_wrong_in_a_component_is_no_finding_once_its_file_was_changed():
    transcript = talk(
        "u: go",
        "a: `ResultTable` still manages the panel itself. | read(b.py) as c",
        "t: c = x",
        "a: now | edit(src/ResultTable.tsx) as d",
        "t: d = ok",
        "a: `ResultTable.row` still has no test. Done with it.",
    )
    found = verdicts(transcript, transcript.messages, ())
    assert found == ("`ResultTable.row` still has no test.",)


@pytest.mark.parametrize(
    "sentence",
    [
        "The proxy will serve its `error.html` page instead of sending the request on.",
        "The query on `readings` returns one of the old groups rather than the latest reading.",
        "Код использует строки `primary` вместо перечисления.",
        "Instead of the way in `load` which joined all rows first, then sorted all of them.",
    ],
)
def test_what_something_does_in_place_of_something_else_is_no_decision(sentence):
    assert decided(sentence) == ()
