from msgspec.structs import replace

from refold._condense.digest.closing import closing
from refold.core.messages import Text
from refold.testing import talk, view_of

WORK = ("a: looking | read(a.py) as c1", "t: c1 = x", "a: and | read(b.py) as c2", "t: c2 = y")


def end(*lines, limit=4_000):
    """The end of a digest that stands behind the first message."""
    transcript = talk(*lines)
    return closing(view_of(transcript), transcript.messages, transcript.messages[1].id, limit)


def test_a_request_far_above_the_end_is_restated_word_for_word_as_the_last_thing():
    text = end("u: start", "a: ok", "u: Change it.\n\n## Errors\n- not of ours", *WORK)
    request, _, mark = text.rpartition("\n\n")
    assert mark.startswith("[End of the digest. Messages from before it, the request itself and the work on it follow")
    assert request.startswith("## Current request of the user (user turn 2; it stands below")
    assert request.endswith('\n- "Change it.\n  \n  ## Errors\n  - not of ours"')


def test_where_the_request_is_seen_at_once_only_the_mark_says_so():
    assert end("u: start", "a: ok", "u: Change it.").endswith("the last of them is the current request, user turn 2.]")
    below = end("u: start", "a: ok", "u: Change it.", *WORK)
    assert '- "Change it."\n\n[End of the digest. Messages from before it, the request itself' in below


def test_a_first_request_that_stands_above_is_restated_where_the_whole_has_room():
    assert '(user turn 1; it stands above)\n- "start"' in end("u: start", *WORK)


def test_a_long_first_request_that_was_shortened_is_restated_in_part():
    transcript = talk("u: " + "start now " * 2_000, *WORK)
    first, *others = transcript.messages
    shorter = replace(first, parts=(Text("start now … "),))
    long = closing(view_of(transcript), (shorter, *others), others[0].id, 8_000)
    assert long.startswith('## Current request of the user (user turn 1; it stands above)\n- "start now start now')
    assert long.endswith("(in part)\n\n[End of the digest. The work on it follows, in full or shortened.]")
    assert len(long) < 2_500


def test_a_long_last_request_that_corrects_the_work_is_restated_in_part_with_the_request_that_it_follows_on():
    text = end("u: Rename the option.", *WORK, "a: Done.", "u: still broken: " + "change it now " * 2_000)
    assert text.startswith(
        '## Current request of the user (user turn 2; it is the last message)\n- "still broken: change'
    )
    assert text.count("left out …]") == 1
    assert (
        '(in part)\n- it follows on user turn 1: "Rename the option."\n\n[End of the digest. Messages in full' in text
    )
    assert len(text) < 3_500


def test_a_small_digest_ends_with_the_bare_mark():
    assert end("u: start", *WORK, limit=300) == "[End of the digest]"


def test_a_turn_that_only_says_to_go_on_is_named_with_what_it_agrees_to_and_the_request_that_it_goes_on_with():
    text = end(
        "u: start", "a: ok", "u: Rename the option.", "a: I can also rename the file.", "u: yes, go ahead", *WORK
    )
    request, _, mark = text.rpartition("\n\n")
    assert mark.startswith("[End of the digest. Messages from before it")
    assert request.split("\n")[1:] == [
        '- "yes, go ahead"',
        '- it agrees to what the assistant said: "I can also rename the file."',
        '- it goes on with user turn 2: "Rename the option."',
    ]
    chosen = end("u: start", "a: Which one?\n1. Keep\n2. Drop", "u: 2", "a: Shall I drop it now?", "u: yes", *WORK)
    assert '- it goes on with user turn 1: "start"' in chosen
    last = end("u: start", "a: ok", "u: Rename the option.", *WORK, "u: continue")
    assert last.startswith('## Current request of the user (user turn 3; it is the last message)\n- "continue"')
    assert '- it goes on with user turn 2: "Rename the option."' in last


def test_thanks_are_named_with_the_request_before_them_and_agree_to_nothing():
    text = end(
        "u: start", "a: ok", "u: Rename the option.", "a: Done. I can also rename the file.", "u: wow, thanks", *WORK
    )
    assert '- it goes on with user turn 2: "Rename the option."' in text
    assert "agrees" not in text


def test_a_request_that_the_last_message_answers_is_restated_as_answered():
    text = end("u: start", "a: ok", "u: Rename the option.", *WORK, "a: The option has the new name in `load.py`.")
    assert text.startswith(
        "## Current request of the user (user turn 2, which the last message answers; it stands below"
    )


def test_a_short_request_is_restated_with_what_it_answers():
    asked = "a: I would keep 12 groups and no households. Do you agree?"
    text = end("u: start", asked, "u: I agree, and firms count too", *WORK)
    assert '- it answers the assistant: "I would keep 12 groups and no households. Do you agree?"' in text
    menu = "a: What would you like to do?\n[P] Party mode\n[C] Continue with step 4"
    assert '- it answers the assistant: "What would you like to do? c. Continue with step 4"' in end(
        "u: start", menu, "u: c", *WORK
    )
    begun = end("u: start", "a: 我會先列出任務。OK 開始嗎?", "u: ok 開始", *WORK)
    assert '- it agrees to what the assistant said: "我會先列出任務。OK 開始嗎?"' in begun


def test_a_long_request_that_stands_whole_in_the_view_is_not_restated_in_pieces():
    plan = "Implement this plan:\n" + "\n".join(f"- step {n} of the plan reads part {n}" for n in range(80))
    text = end("u: start", "a: ok", f"u: {plan}", *WORK)
    assert "Implement this plan: - step 0" in text
    assert "(how it begins)" in text
    assert "left out …]" not in text
