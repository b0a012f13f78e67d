import json
import random
import re
from itertools import pairwise

import pytest
from msgspec.structs import replace

import refold
from refold._condense.call_outline import PARTS
from refold._counting import counter_for
from refold.core.messages import ToolResult, text_of
from refold.core.token_units import ReportedTokens
from refold.core.transcript import Transcript
from refold.stages.fit import Fit
from refold.testing import talk, view_of

PLACES = (
    "north",
    "south",
    "east",
    "west",
    "harbor",
    "valley",
    "island",
    "desert",
    "forest",
    "mountains",
    "coast",
    "lakes",
)
FILLING = "\n".join(f"this is a line of plain words {'again and ' * 6}again" for _ in range(12))


def session(parts=30, needed=4):
    """Steps that read one part each; the assistant keeps using a name that only one old output explains."""
    lines = ["u: Mend the rates. Never touch the vault."]
    for part in range(parts):
        explained = "rate_table maps zone_code to base_price\n" if part == needed else ""
        lines += [
            f"a: step {part} of rate_table and zone_code | search(part{part}) as c{part}",
            f"t: c{part} = {FILLING}\n{explained}{FILLING}",
        ]
    return talk(*lines)


def fitted(transcript, goal, keep_until=None):
    view = view_of(transcript, window=10**7, goal=goal)
    return view.after(Fit(keep_until=keep_until).edits(view))


def outputs(view):
    return [part.text for message in view.messages for part in message.parts if isinstance(part, ToolResult)]


def test_lines_that_are_needed_come_back_whole_with_markers_for_what_is_left_out():
    view = fitted(session(), 14_000)
    partly = [text for text in outputs(view) if text.startswith(PARTS)]
    told = [text for text in outputs(view) if "rate_table maps zone_code to base_price" in text.split("\n")]
    assert told
    assert partly
    for text in partly:
        lines = text.split("\n")
        shown = [line for line in lines[1:] if line != "[…]"]
        assert all(line in FILLING or line.startswith("rate_table") for line in shown)
        assert f"{len(shown)} of" in lines[0]


def test_the_goal_is_met_and_used():
    for goal in (14_000, 12_000, 11_000, 10_000, 8_000, 6_000, 5_000, 4_000):
        assert 0.9 * goal <= fitted(session(), goal).tokens <= goal


def test_the_same_view_is_selected_the_same_way():
    assert fitted(session(), 14_000).messages == fitted(session(), 14_000).messages


def test_selected_output_is_selected_anew_from_the_original():
    once = fitted(session(), 14_000)
    view = view_of(session(), window=10**7, goal=8_000)
    view = replace(view, start=once.messages, measured=ReportedTokens(once.estimated))
    twice = view.after(Fit().edits(view))
    assert twice.tokens <= 8_000
    assert not any(text.count(PARTS) > 1 for text in outputs(twice))


def test_what_a_user_typed_stays_whole_where_all_of_it_has_room_however_many_short_turns_there_are():
    vision = " ".join(f"Players of the {each} start with their own bank and trade with it." for each in PLACES)
    lines = ["u: Go.", "a: yes", f"u: First the map, then the rest.\n{vision}\nFirst write a list of tasks."]
    for part in range(24):
        lines += [f"a: step {part} | read(src/part{part}.py) as c{part}", f"t: c{part} = {FILLING}", f"a: part {part}"]
        lines += [f"u: fine, part {part + 1}"]
    said = [text_of(message) for message in fitted(talk(*lines), 8_000).messages if message.role == "user"]
    assert any(vision in text for text in said)


def test_lines_of_files_in_the_digest_stand_in_no_message_that_came_back():
    source = "\n".join(f"total_{number} = price_of(order, {number}) * rate_{number}" for number in range(60))
    patch = "*** Begin Patch\n*** Add File: prices.py\n" + "\n".join(f"+{line}" for line in source.split("\n"))
    lines = ["u: Write the totals.", f"a: now | apply_patch({patch}\n*** End Patch) as c0", "t: c0 = Done!"]
    for part in range(9):
        lines += [f"a: step {part} | search(part{part}) as d{part}", f"t: d{part} = {FILLING}"]
    view = fitted(talk(*lines, "a: Done so far.", "u: go on with total_7"), 4_000)
    shown = [text_of(message) + "".join(call.arguments for call in message.calls) for message in view.messages]
    digest = next(text for text in shown if "[Digest of earlier" in text)
    block = [line for line in digest.split("\n") if line.startswith("total_")]
    others = "\n".join(text for text in shown if text is not digest)
    assert not [line for line in block if f"+{line}\n" in others]


def test_a_long_turn_of_a_user_keeps_its_beginning_and_its_limits():
    pasted = "\n".join(f"pasted line {number} with some words of a log" for number in range(300))
    lines = ["u: Go.", "a: yes", f"u: Look at this log.\n{pasted}\nNever restart the server.\n{pasted}"]
    for part in range(20):
        lines += [f"a: step {part} | read(src/part{part}.py) as c{part}", f"t: c{part} = {FILLING}"]
    transcript = talk(*lines, "u: and now?")
    view = fitted(transcript, 8_000)
    said = "\n".join(text_of(message) for message in view.messages if message.role == "user")
    assert "Look at this log." in said
    assert "Never restart the server." in said


def test_a_floor_of_predicted_coverage_goes_deeper_than_the_goal_and_no_deeper_than_it_says():
    goal = 30_000
    whole, most, some = (fitted(session(), goal, floor).tokens for floor in (None, 0.95, 0.6))
    assert some < most <= whole <= goal
    assert fitted(session(), goal, 1.0).tokens <= goal


def test_output_that_is_large_for_the_room_comes_back_by_lines_though_it_is_the_newest():
    lines = ["u: mend rate_table", "a: look for rate_table | search(rate_table) as c1"]
    large = "\n".join([FILLING, "rate_table is made in build_rates", *[FILLING] * 40])
    view = fitted(talk(*lines, f"t: c1 = {large}"), 3_000)
    assert view.tokens <= 3_000
    (text,) = outputs(view)
    assert text.startswith(PARTS)
    assert "rate_table is made in build_rates" in text.split("\n")


def test_an_output_that_no_answer_has_followed_keeps_its_first_lines_though_they_name_nothing():
    read = ["a: that is done", "u: read the notes", "a: reading | read(notes.md) as last"]
    plain = [f"line {number} of plain notes, {'again and ' * 6}again" for number in range(400)]
    history = [*session().messages, *talk(*read, "t: last = " + "\n".join(plain)).messages]
    shown = outputs(fitted(Transcript(tuple(history)), 8_000))[-1].split("\n")
    assert shown[0].startswith(PARTS)
    assert shown[1:6] == plain[:5]


def test_of_a_page_that_was_seen_again_and_again_the_newest_look_is_kept_beside_pages_that_were_seen_once():
    def page(name, look):
        things = ", ".join(f"a {name} thing of sort {chr(97 + number) * 4}" for number in range(12))
        return f"You are on the page of {name}. You have been here {look} times. On it you see {things}."

    once, often = ["oakhill", "elmhill", "ashhill", "oakwood"], ["elmwood", "ashwood"]
    looks = [*((name, 1) for name in once), *((name, number) for number in range(1, 13) for name in often)]
    lines = ["u: Look at all pages."]
    for name, look in looks:
        lines += [f"a: on | look({name}) as c{look}{name}", f"t: c{look}{name} = {page(name, look)}"]
    shown = outputs(fitted(talk(*lines, "a: I have seen all of them.", "u: Good. Go on."), 4_500))
    assert {page(name, 1) for name in once} | {page(name, 12) for name in often} <= {*shown}


def test_of_short_pages_the_newest_are_kept_whole_and_not_only_what_they_say_in_part():
    def milk(name):
        return f"some {name} milk, some {name} oil, some {name} salt, some {name} tea and a raw {name} egg on it"

    def page(name):
        ways = f"To the north you see the page of {name}ton. To the south you see the page of {name}burg."
        return (
            f"You are on the page of {name}. You see a shelf that has {milk(name)}. {ways} Beside it is a {name} table."
        )

    names = ["oakhill", "elmhill", "ashhill", "oakwood", "elmwood", "ashwood"]
    lines = ["u: Look at all pages."]
    for name in names:
        lines += [f"a: on | look(page) as c1{name}", f"t: c1{name} = {page(name)}"]
        lines += [f"a: on | look(shelf) as c2{name}", f"t: c2{name} = a shelf that has {milk(name)}"]
    transcript = talk(*lines, "a: I have seen all of them.", "u: Good. Go on.")
    view = view_of(transcript, window=10**7, goal=500, counter=counter_for("gpt-4o"))
    shown = outputs(view.after(Fit().edits(view)))
    assert [text for text in shown if text.startswith("You are on")] == [page(name) for name in names[3:]]


def test_parallel_outputs_that_are_together_too_large_come_back_by_lines():
    lines = [
        "u: Read all parts.",
        "a: the rate_table first | search(first) as c0",
        f"t: c0 = {FILLING}",
        "a: rate_table",
    ]
    lines += [f"u: {FILLING}", f"a: now the parts | {' | '.join(f'read(part{n}) as p{n}' for n in range(8))}"]
    lines += [f"t: p{number} = {FILLING}\nrate_table of zone {number}\n{FILLING}" for number in range(8)]
    view = fitted(talk(*lines), 4_000)
    assert view.tokens > 3_800
    assert any(text.startswith(PARTS) for text in outputs(view))


def test_lines_come_back_where_names_left_no_room_for_them_at_first():
    transcript = session()
    system = talk(f"s: {'You are a careful agent, and you keep all rules. ' * 60}").messages
    view = view_of(replace(transcript, messages=(*system, *transcript.messages)), window=10**7, goal=6_500)
    view = view.after(Fit().edits(view))
    assert 6_000 < view.tokens <= 6_500
    assert any(text.startswith(PARTS) for text in outputs(view))


def read_and(*later, by="read(src/rates.py)"):
    """The first line of what is left of a long read of `src/rates.py`, with what was done after it."""
    explained = f"{FILLING}\n" * 8 + "rate_table maps zone_code to base_price\n" + f"{FILLING}\n" * 8
    lines = ["u: Mend the rates.", f"a: x | {by} as r", f"t: r = {explained}"]
    for part in range(30):
        call = f"search(part{part}) as c{part}"
        lines += [f"a: step {part} of rate_table and zone_code | {call}", f"t: c{part} = {FILLING}"]
    return next(
        text.split("\n")[0]
        for text in outputs(fitted(talk(*lines, *later), 14_000))
        if "rate_table maps zone_code to base_price" in text
    )


def test_parts_of_a_read_say_that_the_file_was_changed_after_it():
    edit = "a: x | edit(rates.py) as e"
    assert read_and().startswith(f"{PARTS} read src/rates.py")
    assert "the file was changed after this" not in read_and()
    assert read_and(edit, "t: e = ok").endswith("lines; the file was changed after this")
    assert "the file was changed after this" not in read_and(edit, "t! e = no such text")


@pytest.mark.parametrize(
    ("command", "mark"),
    [
        ("head -n 400 src/rates.py; pwd", "; the file was changed after this"),
        ("cd src && cat rates.py && git status", "; the file was changed after this"),
        ("git log -3; cat notes.md; cat src/rates.py", "; changed after this: src/rates.py"),
        ("git log -3; cat notes.md", ""),
    ],
)
def test_parts_of_what_a_command_shows_of_files_say_which_were_changed_after_it(command, mark):
    showing = f"bash({json.dumps({'command': command})})"
    assert read_and("a: x | edit(rates.py) as e", "t: e = ok", by=showing).endswith(f" lines{mark}")


def test_the_answer_before_the_newest_request_outlives_what_tools_showed():
    answer = "I would keep it plain and shared, and leave the rest of it to whoever sets it up later on. " * 6
    table = "\n".join(f"rate_table.zone_{n} base_price_{n}: {n}00 region_{n}.tariff_{n}" for n in range(60))
    lines = ["u: What of the rates?"]
    for n in range(30):
        call = f"a: base_price_{n} region_{n}.tariff_{n} rate_table.zone_{n} | search(base_price_{n}) as r{n}"
        found = f"src/prices_{n}.py: base_price_{n + 100} region_{n + 100}.tariff_{n + 100}"
        lines += [call, f"t: r{n} = {found}\n{FILLING}"]
    lines += ["a: look | search(rates) as c", f"t: c = {table}", f"a: {answer}", "u: Why base_price_50?"]
    for goal in (2_500, 2_000, 1_500):
        assert answer.strip() in [text_of(message).strip() for message in fitted(talk(*lines), goal).messages]


def test_short_answers_stand_behind_their_questions_however_long_the_messages_are_that_ask():
    lines = ["u: Mend the rates."]
    for part in range(12):
        names = "\n".join(f"rate_table_{part}_{n} maps zone_code_{n} to base_price_{n}" for n in range(60))
        long = "\n".join(f"step {part} has part {n} of the plain words that nobody needs" for n in range(80))
        lines += [f"a: step {part} of zone_code | search(part{part}) as c{part}", f"t: c{part} = {names}"]
        lines += [f"a: {long}\nShall I go to part {part} of the plan in version {part}?", "u: yes"]
    lines += ["a: rate_table_1_2 and rate_table_5_5 | read(a.py) as z", f"t: z = {FILLING}"]
    said = [text_of(message) for message in fitted(talk(*lines), 12_000).messages]
    asked = [before for before, answer in pairwise(said) if answer == "yes"]
    assert len(asked) == 12
    assert sum("Shall I go to part" in before for before in asked) >= 5


def test_an_output_that_was_cut_sent_back_and_cut_again_says_how_much_of_the_first_it_is():
    chance = random.Random(3)
    view = [{"role": "user", "content": "Mend it: alpha_2_7 and gamma_3_9 are wrong."}]
    for n in range(6):
        words = [f"{chance.choice(['alpha', 'beta', 'gamma'])}_{n}_{i} = compute({i})" for i in range(200)]
        function = {"name": "bash", "arguments": json.dumps({"command": f"python show.py {n}"})}
        call = {"id": f"c{n}", "type": "function", "function": function}
        view.append({"role": "assistant", "content": f"Step {n}: look at alpha_{n}_7.", "tool_calls": [call]})
        view.append({"role": "tool", "tool_call_id": f"c{n}", "content": "\n".join(words)})
    again = 0
    for goal in (14_000, 12_000, 10_000, 8_000, 6_000, 5_000, 4_000):
        before = {each.get("tool_call_id"): each["content"] for each in view}
        view = refold.compact(view, format="openai-chat", window=200_000, goal=goal, force=True).messages
        for each in view:
            heading, _, rest = each["content"].partition("\n")
            if heading.startswith(PARTS) and each["role"] == "tool":
                again += (
                    before.get(each["tool_call_id"], "").startswith(PARTS)
                    and before[each["tool_call_id"]] != each["content"]
                )
                shown = sum(line != "[…]" and not line.startswith(PARTS) for line in rest.splitlines())
                assert re.search(r"([\d,]+) of 200 lines", heading)[1] == str(shown)
    assert again


def test_lines_of_a_document_come_back_with_their_headings_and_the_head_of_their_table():
    rows = "\n".join(f"|part_{n}|owner of part {n}|a few words that say what part {n} is for|" for n in range(40))
    plain = "\n".join(f"Plain words of the guide, line {n}, that nothing asks for again." for n in range(40))
    guide = (
        f"# The guide\n\n{plain}\n\n## Owners\n\n{plain}\n\n|name|owner|text|\n|---|---|---|\n{rows}\n\n## End\n{plain}"
    )
    lines = ["u: Mend the rates.", "a: look | read(docs/guide.md) as g1", f"t: g1 = {guide}"]
    for part in range(20):
        lines += [f"a: step {part} for part_31 | search(part_31) as c{part}", f"t: c{part} = {FILLING}\n{FILLING}"]
    view = fitted(talk(*lines, "a: Done so far.", "u: who is the owner of part_31?"), 4_000)
    (shown,) = [text for text in outputs(view) if "owner of part 31" in text]
    kept = shown.split("\n")
    assert len(kept) < 60
    assert kept.index("# The guide") < kept.index("## Owners") < kept.index("|name|owner|text|")


def test_comments_of_a_program_are_no_headings():
    program = "\n".join(f"# part {n}\nvalue_{n} = owner_of(part_{n})\nother_{n} = 1" for n in range(120))
    lines = ["u: Mend the rates.", "a: look | read(src/rates.py) as g1", f"t: g1 = {program}"]
    for part in range(20):
        lines += [f"a: step {part} for part_31 | search(part_31) as c{part}", f"t: c{part} = {FILLING}\n{FILLING}"]
    view = fitted(talk(*lines, "a: Done so far.", "u: what is owner_of(part_31)?"), 6_000)
    shown = [text for text in outputs(view) if "owner_of(part_31)" in text]
    assert not any("# part 0\n" in text and "value_0 =" not in text for text in shown)


def test_what_a_harness_reminds_of_in_an_output_does_not_come_back_with_its_lines():
    reminder = "<system-reminder>\nConsider whether what you read is malware.\n</system-reminder>"
    lines = ["u: Mend the rates. Never touch the vault."]
    for part in range(30):
        lines += [
            f"a: step {part} of rate_table and zone_code | search(part{part}) as c{part}",
            f"t: c{part} = rate_table of part {part} maps zone_code\n{reminder}\n{FILLING}",
        ]
    partly = [text for text in outputs(fitted(talk(*lines), 14_000)) if text.startswith(PARTS)]
    assert any("maps zone_code" in text for text in partly)
    assert not any("malware" in text or "system-reminder" in text for text in partly)


def shown_of_program(program, name):
    """What stays of a program that was read, after much else and a question for a name in it."""
    lines = ["u: Mend the rates.", "a: look | read(src/rates.py) as g1", f"t: g1 = {program}"]
    for part in range(20):
        lines += [f"a: step {part} for {name} | search({name}) as c{part}", f"t: c{part} = {FILLING}\n{FILLING}"]
    view = fitted(talk(*lines, "a: Done so far.", "u: Thanks. Write the notes now."), 6_000)
    (shown,) = [text for text in outputs(view) if text.startswith(f"{PARTS} read")]
    return shown


def program_with(*lines):
    filling = [f"other_value = {'a_plain_value + ' * 12}{number}" for number in range(60)]
    return "\n".join([*filling, *lines, *filling])


def test_a_condition_that_stays_of_a_program_stays_with_what_is_done_then():
    condition = f"if rate_guard and {'not closed and ' * 14}open:"
    shown = shown_of_program(program_with(condition, "    return 403"), "rate_guard")
    assert f"{condition}\n    return 403\n" in shown


def test_a_comment_that_stays_of_a_program_stays_with_the_code_it_is_about():
    comment = f"# rate_guard: {'refused where closed, ' * 10}as ever"
    shown = shown_of_program(program_with(comment, "if closed:", "    return 403"), "rate_guard")
    assert f"{comment}\nif closed:\n    return 403\n" in shown


def test_imports_alone_are_no_part_of_a_program_that_stays():
    imports = [f"import rate_guard.part_{number}" for number in range(30)]
    program = "\n".join([*imports, "", program_with("value = rate_guard(1)")])
    shown = shown_of_program(program, "rate_guard")
    assert "value = rate_guard(1)" in shown
    assert "import rate_guard.part_10" not in shown


def test_a_failure_that_went_well_later_never_stays_without_the_call_that_went_well():
    push = "bash(" + json.dumps({"command": "git push origin main"}) + ")"
    lines = [
        "u: Mend the rates.",
        f"a: send | {push} as p1",
        "t! p1 = fatal: cannot lock ref refs/heads/main by lock_file",
        f"a: again | {push} as p2",
        "t: p2 = branch main sent to origin",
    ]
    for part in range(60):
        lines += [f"a: step {part} of lock_file | search(part{part}) as c{part}", f"t: c{part} = {FILLING}"]
    for goal in range(1_500, 9_500, 500):
        shown = "\n".join(outputs(fitted(talk(*lines, "u: go on"), goal)))
        assert "cannot lock ref" not in shown or "sent to origin" in shown
