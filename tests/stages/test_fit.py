import json

from msgspec.structs import replace

import refold
from refold._condense.pins import lost
from refold._rules.pairing import GroupPairing
from refold._rules.reasoning import SealedReasoning
from refold.core.counting import CharCounter
from refold.core.messages import (
    Image,
    Message,
    MessageId,
    Note,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    text_of,
)
from refold.core.token_units import ReportedTokens
from refold.core.transcript import Transcript
from refold.stages.fit import Fit, unshrinkable
from refold.testing import talk, view_of

LEFT_OUT = "Left out in between"
BODY = "\n".join(f"value_{n} = compute({n})" for n in range(60))


class DearerCount(CharCounter, frozen=True):
    """Takes a digest that counts what left for a text of another kind, all of which costs more."""

    def message(self, message):
        size = super().message(message)
        return size + size // 4 if LEFT_OUT in text_of(message) else size


def work(batches, body=BODY, first="u: Mend it. Never touch the vault."):
    lines = [first]
    for n in range(batches):
        lines += [f"a: step {n} | read(src/part{n}.py) as c{n}", f"t: c{n} = {n} {body}"]
    return talk(*lines)


def own_work(batches):
    """Batches whose outputs have no line in common."""
    lines = ["u: Mend it. Never touch the vault."]
    for n in range(batches):
        lines += [f"a: step {n} | read(src/part{n}.py) as c{n}", f"t: c{n} = {n} {BODY.replace('value', f'own{n}')}"]
    return talk(*lines)


def fitted(transcript, goal, **more):
    view = view_of(transcript, window=10**7, goal=goal, **more)
    return view.after(Fit().edits(view))


def outputs(view):
    return [part.text for message in view.messages for part in message.parts if isinstance(part, ToolResult)]


def digests(view):
    return [text_of(message) for message in view.messages if message.note is not None]


def test_a_view_under_its_goal_is_left_alone():
    view = view_of(work(3), window=10**6)
    assert Fit().edits(view) == ()


def test_old_output_becomes_a_pointer_first_and_the_newest_stays_verbatim():
    view = fitted(own_work(20), 20_000)
    found = outputs(view)
    assert found[1] == "[output cleared] read src/part1.py, 60 lines: 1 own1_0 = compute(0)"
    assert found[-1] == f"19 {BODY.replace('value', 'own19')}"
    assert len(found) == 20
    assert 0.9 * 20_000 <= view.tokens <= 20_000


def test_the_room_that_is_left_takes_part_of_the_newest_cleared_output_as_whole_lines():
    view = fitted(own_work(20), 20_100)
    partly = [text for text in outputs(view) if "[…]" in text]
    assert partly
    whole = {line for n in range(20) for line in f"{n} {BODY.replace('value', f'own{n}')}".split("\n")}
    assert all(line in whole for text in partly for line in text.split("\n")[1:] if line != "[…]")


def test_the_digest_is_one_message_of_the_user_right_after_the_first_turn():
    view = fitted(work(20), 9_000)
    assert [message.role for message in view.messages[:2]] == ["user", "user"]
    assert view.messages[1].note is not None
    assert view.messages[1].note.kind == "digest"
    assert view.messages[1].note.read[0] == "src/part0.py"


def test_a_second_compaction_replaces_the_digest_and_tells_of_the_originals():
    transcript = work(20)
    once = fitted(transcript, 9_000)
    view = view_of(transcript, window=10**7, goal=5_000)
    view = replace(view, start=once.messages, measured=ReportedTokens(once.estimated))
    twice = view.after(Fit().edits(view))
    assert len(digests(twice)) == 1
    assert "src/part0.py" in digests(twice)[0]
    assert twice.tokens <= 5_000


def test_whole_batches_leave_when_pointers_are_not_enough_and_the_newest_stays():
    view = fitted(work(60), 6_000)
    texts = [text_of(message) for message in view.messages if message.role == "assistant"]
    assert len(texts) < 60
    assert texts[-3:] == ["step 57", "step 58", "step 59"]
    assert not GroupPairing().broken(view.messages)


def test_errors_are_cleared_after_all_other_output():
    transcript = talk(
        "u: go", "a: x | read(a.py) as c1", f"t! c1 = error {BODY}", "a: y | read(b.py) as c2", f"t: c2 = {BODY}",
        "a: z | read(c.py) as c3", f"t: c3 = {BODY}",
    )  # fmt: skip
    first, second, _ = outputs(fitted(transcript, 3_600))
    assert first == f"error {BODY}"
    assert second != BODY


def test_an_output_bigger_than_the_goal_is_cut_to_whole_lines_with_its_errors():
    log = "\n".join(["log line of plain words"] * 3_000 + ["ValueError: it broke"] + ["more of the log"] * 3_000)
    view = fitted(talk("u: Run it.", 'a: run | bash({"command": "make"}) as c', f"t: c = {log}"), 3_000)
    (text,) = outputs(view)
    assert "ValueError: it broke" in text
    assert "of 6,001 lines\n" in text
    assert "\n[…]\n" in text
    assert 0.9 * 3_000 <= view.tokens <= 3_000


def test_an_output_that_is_cut_twice_in_one_plan_tells_of_all_its_lines():
    rows = "\n".join(
        f"{n} 汉字输出的一行内容各不相同第{n}号记录在此" for n in range(50)
    )  # many tokens for its characters
    steps = [line for n in range(8) for line in (f"a: 步 {n} | read(p{n}.py) as b{n}", f"t: b{n} = {n} ok")]
    transcript = talk("u: 修好它。", *steps, "a: all | search(a) as c1", f"t: c1 = {rows}")
    for goal in (350, 400, 450):
        cut = outputs(fitted(transcript, goal))[-1]
        shown = [line for line in cut.split("\n") if line in rows]
        assert f"[… {50 - len(shown)} of 50 lines left out …]" in cut


def test_a_users_message_bigger_than_the_goal_is_cut_last_and_keeps_its_pins():
    words = "\n".join(["some pasted line"] * 3_000 + ["Never delete the index."] + ["another pasted line"] * 3_000)
    view = fitted(talk("u: hello", "a: hi", f"u: Do this.\n{words}\nPlease finish it."), 2_000)
    last = text_of(view.messages[-1])
    assert "Do this." in last
    assert "Please finish it." in last
    assert "Never delete the index." in last
    assert "lines left out" in last
    assert 0.9 * 2_000 <= view.tokens <= 2_000


def test_the_newest_request_stays_whole_in_a_third_of_the_goal_and_output_and_digest_give_way():
    request = "Now do these.\n" + "\n".join(f"Then the next of them, in the same way as the {n}th." for n in range(40))
    steps = [line for n in range(40) for line in (f"a: step {n} | read(src/{n}.py) as c{n}", f"t: c{n} = {n} {BODY}")]
    conversation = talk("u: Mend it.", *steps, "a: Mended.", f"u: {request}", *steps[:24])
    for goal in (9_000, 20_000):
        view = fitted(conversation, goal)
        assert request in [text_of(message) for message in view.messages]
        assert view.tokens <= goal


def test_the_newest_request_is_not_cut_where_that_does_not_meet_the_goal_either():
    request = "Rename the first field of the form. Then say which tests cover it, and which of them are slow."
    rules = f"system: {BODY * 20}"
    view = fitted(talk(rules, "u: Mend it.", "a: Mended.", f"u: {request}"), 500)
    assert text_of(view.messages[-1]) == request


def test_users_turns_move_into_the_digest_when_they_have_more_than_their_share():
    lines = []
    for n in range(100):
        lines += [f"u: Question {n} about item_{n}? Always say metric {n}.", f"a: answer {n}"]
    view = fitted(talk(*lines), 3_000)
    assert 0.9 * 3_000 <= view.tokens <= 3_000
    assert lost(view) == ()
    (digest,) = digests(view)
    assert 'Always say metric 1." (user turn 2)' in digest
    assert "Question 99" in text_of(view.messages[-2] if view.messages[-1].role == "assistant" else view.messages[-1])


def test_long_arguments_of_old_calls_are_cut_inside_their_json():
    big = json.dumps({"path": "a.py", "content": "x = 1\n" * 6_500})
    transcript = talk("u: go", "a: write | write(X) as c1", "t: c1 = ok", "a: done", "u: next")
    call = replace(transcript.messages[1].parts[1], arguments=big)
    changed = replace(transcript.messages[1], parts=(transcript.messages[1].parts[0], call))
    transcript = Transcript((transcript.messages[0], changed, *transcript.messages[2:]))
    view = fitted(transcript, 2_000)
    (found,) = [part for message in view.messages for part in message.parts if isinstance(part, ToolCall)]
    assert json.loads(found.arguments)["path"] == "a.py"
    assert 0.8 * 2_000 <= view.tokens <= 2_000


def thinking(n, sealed=True):
    parts = (
        Reasoning("thought " * 40, sealed, at=("content", 0)),
        Text(f"step {n}", at=("content", 1)),
        ToolCall(f"c{n}", "read", json.dumps({"path": f"f{n}.py"}), at=("content", 2)),
    )
    return Message(MessageId(f"think{n}"), "assistant", parts)


def answer(n):
    return Message(MessageId(f"result{n}"), "tool", (ToolResult(f"c{n}", (Text(BODY, at=(0, "content")),), at=(0,)),))


def said(role, text):
    return Message(MessageId(f"{role}:{text}"), role, (Text(text, at=("content",)),))


def test_sealed_reasoning_of_earlier_turns_goes_whole_and_that_of_the_newest_loop_stays():
    messages = (said("user", "go"), thinking(0), answer(0), said("user", "more"), thinking(1), answer(1))
    view = fitted(Transcript(messages), 1_900, rules=(GroupPairing(), SealedReasoning()))
    kept = [message.id for message in view.messages for part in message.parts if isinstance(part, Reasoning)]
    assert kept == ["think1"]
    assert view.tokens <= 1_900


def test_a_long_tool_loop_behind_one_signed_thought_shrinks_and_keeps_the_thought():
    loop = [thinking(0), answer(0)]
    for n in range(1, 80):
        loop += [replace(thinking(n), parts=thinking(n).parts[1:]), answer(n)]
    view = fitted(Transcript((said("user", "go"), *loop)), 4_000, rules=(GroupPairing(), SealedReasoning()))
    ids = [message.id for message in view.messages]
    assert "think0" in ids
    assert "think79" in ids
    assert "think5" not in ids
    assert view.tokens <= 4_000
    assert not GroupPairing().broken(view.messages)


def test_batches_whose_results_share_a_message_with_words_of_the_user_leave_too():
    messages = [said("user", "go")]
    for n in range(60):
        words = Text(f"Reminder {n}: never touch file {n}.", at=(1,))
        messages += [replace(thinking(n), parts=thinking(n).parts[1:])]
        messages += [replace(answer(n), role="user", parts=(*answer(n).parts, words))]
    view = fitted(Transcript(tuple(messages)), 6_000, rules=(GroupPairing(together=True),))
    assert 0.9 * 6_000 <= view.tokens <= 6_000
    assert lost(view) == ()
    assert not GroupPairing(together=True).broken(view.messages)


def test_pictures_that_were_seen_become_markers():
    picture = Message(MessageId("picture"), "user", (Text("see", at=(0,)), Image("image/png", 9, 800, 600, at=(1,))))
    messages = (said("user", "go"), picture, said("assistant", "seen"), said("user", "and now?"))
    view = fitted(Transcript(messages), 600)
    assert "[image seen earlier, left out: image/png 800x600]" in [text_of(message)[4:] for message in view.messages]


def test_many_parallel_calls_keep_their_pairs():
    calls = " | ".join(f"read(f{n}.py) as c{n}" for n in range(50))
    transcript = talk("u: go", f"a: all | {calls}", *(f"t: c{n} = {BODY}" for n in range(50)))
    for goal in (40_000, 15_000, 7_000):
        view = fitted(transcript, goal)
        assert 0.9 * goal <= view.tokens <= goal
        assert len(outputs(view)) == 50


def test_what_cannot_shrink_is_named_by_cause():
    transcript = talk("s: " + "You help. " * 50, "u: Never push. Go on.")
    view = view_of(transcript, goal=10, system=100, tools=200)
    sizes = unshrinkable(view.after(Fit().edits(view)))
    assert sizes == {"system": 600, "tools": 200, "pins": 11, "newest turn": 18}


def test_a_goal_that_cannot_be_met_gives_the_smallest_view():
    view = fitted(work(20), 10)
    assert view.tokens > 10
    assert len(view.messages) <= 4
    assert lost(view) == ()


def test_an_empty_conversation_gives_no_edits():
    view = view_of(Transcript(), goal=1)
    assert Fit().edits(view) == ()


def shots(count, body=""):
    lines = ["u: Test the login page."]
    for n in range(count):
        lines += [f"a: shot {n} | screenshot() as s{n}", f"t: s{n} = {body}[image]"]
    return talk(*lines, "a: The page works.", "u: Go on.")


def pictures(view):
    return [inner for message in view.messages for part in message.parts if isinstance(part, ToolResult)
            for inner in part.content if isinstance(inner, Image)]  # fmt: skip


def test_pictures_that_were_answered_go_first_and_never_come_back_before_text():
    transcript = shots(6, BODY)
    whole = view_of(transcript).tokens
    view = fitted(transcript, whole - 1_500)
    assert len(pictures(view)) == 1
    assert all(text.startswith(BODY) for text in outputs(view))
    assert len(pictures(fitted(transcript, whole - 6_500))) <= 1
    assert len(pictures(fitted(transcript, whole))) == 6


def test_a_picture_that_was_seen_has_its_marker_wherever_lines_of_its_output_stand():
    page = "\n".join(f"row {n} of the page has value_{n}" for n in range(80))
    steps = (f"a: shot {n} value_7 | screenshot() as s{n}\nt: s{n} = {n} {page}[image]" for n in range(8))
    lines = [line for step in steps for line in step.split("\n", 1)]
    transcript = talk("u: Test the login page.", *lines, "a: The page works.", "u: Go on.")
    for goal in (5_000, 12_000):
        seen = [text for text in outputs(fitted(transcript, goal))[:-1] if "\nrow 1 " in text]
        assert seen
        assert all("[image seen earlier, left out: " in text for text in seen)


def test_the_digest_stands_where_it_parts_no_call_from_its_result():
    orphan = talk("u: go", "a: look | read(a.py) as c0", f"t: c0 = {BODY}", *[
        line for n in range(1, 20) for line in (f"a: step {n} | read(src/{n}.py) as c{n}", f"t: c{n} = {BODY}")
    ])  # fmt: skip
    messages = [orphan.messages[0], *orphan.messages[2:]]  # a result without its call comes first
    transcript = Transcript(tuple(messages))
    view = view_of(transcript, window=10**7, goal=6_000, rules=(GroupPairing(),))
    call = view.insert("assistant", [ToolCall("c0", "read", "{}")], Note("synthetic"), before=messages[1].id)
    view = view.after((call,))
    after = view.after(Fit().edits(view))
    assert digests(after)
    assert not GroupPairing().broken(after.messages)


def test_a_window_is_met_whatever_loads_the_tools_of_later_calls():
    def called(id, name, *content):
        use = {"type": "tool_use", "id": id, "name": name, "input": {}}
        result = {"type": "tool_result", "tool_use_id": id, "content": [*content]}
        return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]

    log = {"type": "text", "text": "log line of a build step that took a while\n" * 60}
    found = {"type": "tool_reference", "tool_name": "crm"}
    work = [message for n in range(8) for message in called(f"t{n}", "sh", log)]
    search = called("s1", "search", found)
    messages = [{"role": "user", "content": "Go."}, *work, *search, *called("s2", "crm", log), *called("s3", "sh", log)]
    for window in range(500, 1700, 40):
        assert refold.count(refold.compact(messages, budget=window, force=True).messages) <= window


def test_a_count_of_what_left_that_makes_the_digest_dearer_than_its_room_is_not_told():
    digest = digests(fitted(own_work(100), 13_240))[-1]
    assert LEFT_OUT in digest
    view = fitted(own_work(100), 13_240, counter=DearerCount(1))
    assert view.tokens <= 13_240
    assert LEFT_OUT not in digests(view)[-1]
