from refold._condense.digest.conclusions import decisions, tried
from refold._condense.digest.findings import no_work
from refold._condense.digest.render import digest_text
from refold._condense.digest.state import state
from refold.testing import talk, view_of


def told(*lines):
    return state(view_of(talk(*lines)))


def test_the_last_intent_is_told_where_work_was_going_on():
    lines = told("u: go", "a: I found the bug. Now I'll change load_items. | read(a.py) as c1", "t: c1 = x")
    assert lines == ("the assistant's last words (turn 1): Now I'll change load_items.",)


def test_the_end_of_a_turn_is_told_as_such_and_a_limit_of_the_provider_is_no_state():
    lines = told("u: go", "a: I read it. | read(a.py) as c", "t: c = x", "a: All is mended.")
    assert lines == ("the assistant's last words (turn 1, which they end): All is mended.",)
    acting_by_words = told("u: go", "a: I look.\n```bash\nls; let me = all.it\n```")
    assert acting_by_words == ("the assistant's last words (turn 1): I look.",)
    lines = told("u: go", "a: Next I run it. | read(a.py) as c", "t: c = x", "a: You've hit your monthly spend limit")
    assert lines == ("the assistant's last words (turn 1): Next I run it.",)


def test_the_last_check_is_told_with_its_end():
    lines = told("u: go", 'a: Now I test. | bash({"command": "go test ./..."}) as c1', "t: c1 = ok  pkg/store 0.1s")
    assert lines[1] == "last check (turn 1): bash `go test ./...` → passed"


def test_junk_is_nothing_that_was_done_and_a_try_that_failed_is_told():
    assert no_work("API Error: 529 overloaded")
    assert not no_work("Error handling is in place now.")
    transcript = talk(
        "u: go",
        "a: You've hit your session limit · resets 7:20pm",
        "u: on",
        "a: The cache did not help, so it is still broken.",
        "u: and",
    )
    assert tried(transcript.messages) == ("The cache did not help, so it is still broken.",)
    text = digest_text(view_of(transcript, window=20_000), transcript.messages[:-1])
    assert "session limit" not in text


def test_a_decision_is_told_and_what_only_speaks_of_skills_or_is_supposed_is_none():
    transcript = talk(
        "u: go",
        "a: I’m using the store skill because this is about the store. Maybe the cause is the cache. "
        "The cause is the lock, so I'll keep the cache.\n```sh\necho instead of that, we use this\n```",
    )
    assert decisions(transcript, transcript.messages) == ("The cause is the lock, so I'll keep the cache.",)


def test_a_list_of_tasks_from_before_the_current_request_is_told_with_its_turn():
    lines = ("u: go", 'a: x | TodoWrite({"todos": [{"content": "mend it", "status": "pending"}]}) as c1', "t: c1 = ok")
    assert "to do: mend it" in told(*lines)
    assert "to do: mend it (list of turn 1)" in told(*lines, "a: Half done.", "u: Now write the notes.")
