from refold._condense.digest.previous import (
    CURRENT,
    END,
    FILES_IN_WORK,
    OPENING,
    block_entry,
    digests_in,
    entries_in,
    entry,
    is_digest,
    own_text,
    quotations,
    tokens_before,
)
from refold._condense.digest.render import digest_text, limit_of
from refold._condense.pins import CONSTRAINTS, lost, pins
from refold._condense.placeholders import is_pointer
from refold.core.messages import Message, MessageId, Note, Text
from refold.core.transcript import Transcript
from refold.stages.fit import Fit
from refold.testing import talk, view_of

TOLD = f"""{OPENING}

## Constraints and requests (word for word)
- "Never touch the vault.
  ## Files read
  - not/a/file.py" (turn 2)

## Errors
- bash `make` → exit code 2 (unresolved)
- bash `tox` → exit code 1 (unresolved)

## Files changed
- old.py

## Files read
- a.py
- b.py

## Identifiers, and where they were last seen
- bash `echo x: y`: load_items, store.path
- elsewhere: 8080"""


def digest(text=TOLD, note=True):
    return Message(MessageId("sent"), "user", (Text(text, at=("content",)),), Note("digest") if note else None)


def session():
    said = talk(
        "u: Mend it.", "a: building | bash({\"command\": \"tox\"}) as c1", "t: c1 = fine\nexit code 0",
        "a: looking | edit(a.py) as c2", "t: c2 = done", "u: Only use tabs.", "a: yes",
    )  # fmt: skip
    return Transcript((said.messages[0], digest(), *said.messages[1:]))


def test_each_entry_comes_back_under_its_title_with_its_lines():
    found = entries_in([digest()])
    quote = '"Never touch the vault.\n## Files read\n- not/a/file.py" (turn 2)'
    assert found.lines(CONSTRAINTS) == (quote,)
    assert found.lines("Files read") == ("a.py", "b.py")
    assert found.turns == {2}
    assert quotations([quote]) == ((2, "Never touch the vault.\n## Files read\n- not/a/file.py"),)
    assert entry(quote) in TOLD


def test_a_digest_is_known_by_its_note_or_where_it_was_joined_to_a_turn():
    joined = Message(MessageId("both"), "user", (Text("Mend it.", at=(0,)), Text(TOLD, at=(1,))))
    assert is_digest(digest())
    assert not is_digest(joined)
    assert [part.at for part in digests_in(joined)] == [(1,)]
    assert own_text(joined) == "Mend it."
    assert not digests_in(Message(MessageId("a"), "assistant", (Text(TOLD),)))


def test_its_quotations_are_pins_and_its_other_words_are_none():
    transcript = session()
    assert next((pin.text, pin.turn) for pin in pins(transcript)) == ("Never touch the vault.", 2)
    assert {pin.text for pin in pins(transcript)} == {"Never touch the vault.", "Only use tabs."}


def test_the_next_digest_tells_what_the_last_one_told_each_once():
    transcript = session()
    text = digest_text(view_of(transcript, window=20_000), [m for m in transcript.messages[1:-2] if not is_digest(m)])
    found = entries_in([digest(text)])
    assert found.lines(CONSTRAINTS)[0].startswith('"Never touch the vault.')
    assert found.lines("Files changed") == ("old.py", "a.py (turn 1)")
    assert found.lines("Files read") == ("b.py",)
    assert found.lines("Open errors") == ("bash `make` → exit code 2",)
    assert found.lines("Tried and failed") == ()  # what passed later teaches nothing
    assert "load_items" in text
    assert text.count(OPENING) == 1


def test_a_fit_puts_one_digest_in_the_place_of_the_one_that_was_sent():
    transcript = session()
    view = view_of(transcript, window=10**6, goal=view_of(transcript).tokens - 60)
    after = view.after(Fit().edits(view))
    assert sum(is_digest(message) for message in after.messages) == 1
    assert MessageId("sent") not in after.index
    assert lost(after) == ()


def test_a_pointer_that_was_sent_back_is_no_output_to_clear_again():
    sent = talk("u: go", "a: x | read(a.py) as c", "t: c = [output cleared] read a.py, 3 lines: def load").messages[-1]
    assert is_pointer(sent, sent.results[0])
    longer = talk("u: go", "a: x | read(a.py) as c", "t: c = [output cleared] read a.py\nand\nmore").messages[-1]
    assert not is_pointer(longer, longer.results[0])


def test_an_error_that_comes_again_is_told_as_it_is_now():
    said = talk("u: go", 'a: x | bash({"command": "make"}) as c', "t! c = exit code 3", "a: hm", "u: on")
    transcript = Transcript((said.messages[0], digest(), *said.messages[1:]))
    text = digest_text(view_of(transcript, window=20_000), said.messages[1:3])
    errors = entries_in([digest(text)]).lines("Open errors")
    (make,) = [line for line in errors if "`make`" in line]
    assert "exit code 3" in make
    assert "bash `tox` → exit code 1" in errors


def test_a_digest_says_how_much_text_it_stands_for_and_the_next_one_counts_that_in():
    said = talk("u: go", *(f"a: part {n} {'x' * 500}" for n in range(90)), "u: on")
    view = view_of(said, window=10**6, goal=8_000)
    text = digest_text(view, said.messages[1:-1], staying=(said.messages[0], said.messages[-1]))
    sent = Transcript((said.messages[0], digest(text), said.messages[-1]))
    stood = tokens_before(sent)
    assert 0.98 * sum(map(view.size, said.messages[1:-1])) < stood <= sum(map(view.size, said.messages[1:-1]))
    later = view_of(sent, window=10**6, goal=8_000)
    assert abs(limit_of(later) - limit_of(view)) <= 0.01 * limit_of(view)
    assert tokens_before(Transcript((digest(),))) == 0


def test_an_answer_with_its_question_is_read_back_as_the_users_words_alone():
    line = 'answer "Only the first." to: "Shall I never delete \'both\'?" (user turn 4)'
    assert quotations([line]) == ((4, "Only the first."),)
    text = f"{OPENING}\n\n## {CONSTRAINTS}\n{entry(line)}\n\n## {CURRENT} (x)\n- y\n\n{END}. x]"
    found = entries_in([digest(text)])
    assert found.lines(CONSTRAINTS) == (line,)
    assert set(found.sections) == {CONSTRAINTS}
    assert [pin.text for pin in pins(Transcript((digest(text),)))] == ["Only the first."]


def test_names_in_the_lines_of_files_that_a_digest_holds_are_listed_in_the_next():
    block = block_entry("src/prices.py", ["total = gross_total(order)"])
    said = talk("u: Mend it.", "a: looking | edit(a.py) as c2", "t: c2 = done", "u: Go on.")
    told = f"{OPENING}\n\n## {FILES_IN_WORK}\n{block}\n\n{END}]"
    joined = Message(MessageId("both"), "user", (Text("Mend it.", at=(0,)), Text(told, at=(1,))))
    transcript = Transcript((joined, *said.messages[1:]))
    text = digest_text(view_of(transcript, window=20_000), transcript.messages[1:-1])
    assert "gross_total" in "".join(entries_in([digest(text)]).lines("Identifiers, and where they were last seen"))
