from refold._condense.digest.previous import quotations
from refold._condense.digest.quotes import quotes
from refold._condense.pins import pins
from refold.core.messages import Message, MessageId, Note, Text
from refold.core.transcript import Transcript
from refold.testing import talk, view_of

LINES = (
    "u: Mend the shop. Only use tabs.", "a: It is mended.",
    "u: Rename the port, but only in the tests.", "a: It is renamed.",
    "u: Never push. The demo server listens on port 8080 only.", "a: I will not.",
    "u: The demo server uses port 9090 instead of 8080.", "a: Done.", "u: Write the notes.",
)  # fmt: skip


def constraints(*lines, limit=4_000):
    transcript = talk(*lines)
    view = view_of(transcript, window=10**6)
    return quotes(view, transcript.messages[:-1], transcript.messages[-1:], limit).pinned


def test_constraints_that_stand_come_first_then_those_of_finished_requests_each_with_its_turn():
    assert constraints(*LINES) == (
        '"Mend the shop. Only use tabs." (user turn 1)',
        '"Never push. The demo server listens on port 8080 only." (user turn 3, partly replaced in user turn 4)',
        '"The demo server uses port 9090 instead of 8080." (user turn 4)',
        '"Rename the port, but only in the tests." (user turn 2, of an earlier request)',
    )


def test_a_request_that_was_not_finished_or_that_nothing_followed_is_no_earlier_one():
    open_ = constraints(
        "u: Start.", "a: ok", "u: Rename it, but only here.", "a: x | read(a.py) as c1", "t: c1 = x", "u: on"
    )
    assert open_ == ('"Rename it, but only here." (user turn 2)',)
    going_on = constraints("u: Start.", "a: ok", "u: Rename it, but only here.", "a: Half done.", "u: continue")
    assert going_on == ('"Rename it, but only here." (user turn 2)',)


def test_sentence_by_sentence_the_marks_stay_also_where_a_digest_is_sent_back():
    pinned = constraints(*LINES, limit=10)
    assert '"Rename the port, but only in the tests." (user turn 2, of an earlier request)' in pinned
    text = "[Digest of earlier messages: background, not a new request]\n\n## Standing constraints (word for word)\n"
    text += "\n".join(f"- {line}" for line in pinned)
    sent = Transcript((Message(MessageId("d"), "user", (Text(text),), Note("digest")),))
    assert "Rename the port, but only in the tests." in {pin.text for pin in pins(sent)}
    assert len(quotations(pinned)) == len(pinned)
    again = quotes(view_of(sent, window=10**6), (), (), 10).pinned
    assert '"Rename the port, but only in the tests." (user turn 2, of an earlier request)' in again
