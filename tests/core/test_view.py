from refold.core.edits import Hide, Rewrite
from refold.core.messages import Note, Text
from refold.core.token_units import ReportedTokens
from refold.testing import talk, view_of

TALK = talk(
    "s: rules", "u: read it", "a: ok | read(a.py) as c1 | read(b.py) as c2", "t: c1 = aaaa", "t: c2 = bb", "a: done"
)


def test_tokens_are_what_was_measured_less_what_was_saved():
    view = view_of(TALK)
    measured = view.measured
    after = view.after((Hide((TALK.messages[3].id,)),))
    assert after.tokens == measured.count - 4


def test_a_calibrated_measure_and_an_estimated_saving_stay_on_one_scale():
    from msgspec.structs import replace

    view = replace(view_of(TALK), measured=ReportedTokens(1_000))
    assert view.after((Hide((TALK.messages[3].id,)),)).tokens == 996


def test_the_size_of_an_edited_message_is_counted_anew():
    view = view_of(TALK)
    message = TALK.messages[3]
    shorter = view.after((Rewrite(message.id, message.parts[0].content[0].at, Text("a")),))
    assert shorter.tokens == view.tokens - 3
    assert view.size(message) == 4


def test_a_result_finds_its_call_by_id():
    view = view_of(TALK)
    message = TALK.messages[4]
    assert view.call_of(message, message.parts[0]).arguments == '{"path": "b.py"}'


def test_a_reused_id_means_the_newest_call_before_the_result():
    view = view_of(talk("u: go", "a: x | read(a) as c", "t: c = 1", "a: y | read(b) as c", "t: c = 2"))
    first, second = view.messages[2], view.messages[4]
    assert view.call_of(first, first.parts[0]).arguments == '{"path": "a"}'
    assert view.call_of(second, second.parts[0]).arguments == '{"path": "b"}'


def test_an_original_is_found_whatever_was_done_to_it():
    view = view_of(TALK)
    message = TALK.messages[1]
    assert view.after((Hide((message.id,)),)).original(message.id) is message


def test_messages_of_ours_have_ids_that_follow_from_place_and_content():
    view = view_of(TALK)
    make = lambda text, salt=0: view.insert("user", text, Note("marker"), salt=salt).message.id  # noqa: E731
    assert make("x") == make("x")
    assert len({make("x"), make("y"), make("x", 1)}) == 3


def test_a_lone_surrogate_in_a_message_of_ours_is_carried():
    assert view_of(TALK).insert("user", "\ud83d", Note("marker")).message.parts[0].text == "\ud83d"
