import time

import pytest

import refold
from refold import _prompts as prompts
from refold._condense.pins import Pin
from refold._condense.transcript_text import serialize
from refold._text.identifiers import invented_identifiers, named_in
from refold.core.messages import Message, MessageId, Text, ToolCall
from refold.core.needs import Refused, SummaryNeed
from refold.summaries._guard import headings, judge, judge_answer, with_missing_facts
from refold.summaries.summarizers import guarded

RULE = "Never touch the vendor folder."
TALK = (
    f"""Please mend the login of the shop. {RULE}
The handler is in src/shop/login.py and the tests are in tests/test_login.py.
Commit 4f2a9c1d introduced the fault; 1,204 users reported it on port 8443.
The class shop.auth.SessionStore keeps the tokens, and shop.auth.Cookie writes them.
"""
    + "The log of the server says nothing of use here, line after line.\n" * 40
)


def said(role, text, *parts, id="m"):
    return Message(MessageId(id), role, (*([Text(text)] if text else []), *parts))


def need(text=TALK, *, prompt="", previous=None, messages=None, max_tokens=None, instructions=None):
    messages = (said("user", text),) if messages is None else tuple(messages)
    asked = prompts.text(prompt) if prompt and instructions is None else instructions or ""
    return SummaryNeed(messages, serialize(messages), prompt, asked, previous, max_tokens)


GOOD = (
    "The person asked for a repair of the login of the shop. Its handler is in src/shop/login.py, tests are in "
    "tests/test_login.py. Commit 4f2a9c1d brought the fault, which 1,204 users met on port 8443. The tokens are kept "
    "by shop.auth.SessionStore. The log of the server was read and said nothing of use. Never touch the vendor folder. "
    "Nothing is changed so far; the next step is to read the handler and to write a test that fails. "
    "The person waits for the name of the line at fault."
)


def reasons(summary, asked=None, **options):
    return " | ".join(judge(summary, asked or need(), **options).reasons)


def test_a_faithful_summary_is_accepted():
    assert judge(GOOD, need()).ok
    assert judge(GOOD, need(), pins=[Pin(RULE, 1, MessageId("m"), "user")]).ok


@pytest.mark.parametrize(
    ("summary", "reason"),
    [
        ("  \n", "empty"),
        ("The login was mended.", "too short"),
        (GOOD + " After that the handler and", "cut off"),
        (GOOD + "\n```python\nx = 1", "cut off"),
        ("<tool_call>read_file</tool_call> " + GOOD, "tool call"),
        ('{"name": "read_file", "arguments": {"path": "src/shop/login.py"}} ' + GOOD, "tool call"),
        ("I'd be happy to help with the login! " + GOOD, "answer or a continuation"),
        ("Let me look at the handler first. " + GOOD, "answer or a continuation"),
        (GOOD + " Would you like me to go on?", "answer or a continuation"),
        ("I'm sorry, but I can't help with that. " + GOOD, "refusal"),
        ("Es tut mir leid, das geht nicht. " + GOOD, "refusal"),
        ("[assistant]\n" + GOOD, "repeats the record"),
        ("Error: rate limit exceeded, try again in 20 s", "error text"),
        ("The model is overloaded.", "error text"),
        ("<!DOCTYPE html><html><body>502</body></html>" + GOOD, "error text"),
        ('{"error": {"message": "no"}}', "error text"),
        (GOOD.replace("src/shop/login.py", "src/shop/logout.py"), "src/shop/logout.py"),
        (GOOD.replace("4f2a9c1d", "4f2a9c1e"), "4f2a9c1e"),
        (GOOD.replace("8443", "8444"), "8444"),
        (GOOD.replace("shop.auth.SessionStore", "shop.auth.TokenStore"), "shop.auth.TokenStore"),
        (TALK + TALK, "larger than what it replaces"),
    ],
)
def test_what_is_no_faithful_summary_is_rejected_with_the_reason(summary, reason):
    assert reason in reasons(summary)


@pytest.mark.parametrize(
    "summary",
    [
        "Here is the summary you asked for. " + GOOD,
        "Sure, here is a summary of the conversation: " + GOOD,
        "Letting the handler run was tried. " + GOOD,
        "Sorry is said by nobody. " + GOOD,
        GOOD + " The server answers with rate limit exceeded and is overloaded at times.",
        GOOD.replace("1,204", "1204"),
        GOOD.replace("src/shop/login.py", "login.py"),
        GOOD.replace("the handler and to write", "and/or to write N/A (e.g. a read/write test)"),
        GOOD + "\n```python\nx = 1\n```",
        GOOD + " Whether the person would like more tests is open.",
        GOOD.replace("handler is in", "function call of the handler is in"),
    ],
)
def test_what_only_looks_like_one_of_these_is_accepted(summary):
    assert reasons(summary) == ""


def test_a_tool_call_in_the_words_of_the_record_may_be_named():
    record = TALK + "The parser must read <tool_call> tags.\n"
    told = GOOD + " The parser must read <tool_call> tags."
    assert reasons(told, need(record)) == ""
    assert "tool call" in reasons(told)


def test_one_number_among_many_names_may_be_a_sum_and_a_hash_may_not():
    files = [f"src/part{number}/module{number}.py" for number in range(30)]
    record = TALK + "\n".join(files)
    told = GOOD + " Read: " + ", ".join(files)
    assert reasons(told + ", 777 lines.", need(record)) == ""
    assert "777" in reasons(told + ", 777 and 888 and 999 lines.", need(record))
    assert "abc1234" in reasons(told + " at abc1234.", need(record))


def test_a_path_that_is_put_together_from_a_folder_and_a_file_of_it_is_not_invented():
    source = "cd /home/me/shop\ncat src/login.py\nls lib"
    assert invented_identifiers("/home/me/shop/src/login.py was read", source).likely == ()
    assert invented_identifiers("login.py was read", source).likely == ()
    assert invented_identifiers("/home/me/shop/src/logout.py was read", source).likely == (
        "/home/me/shop/src/logout.py",
    )
    assert invented_identifiers("/home/you/src/login.py was read", source).likely == ("/home/you/src/login.py",)


def test_a_path_of_the_prose_is_none():
    assert invented_identifiers("and/or, N/A, I/O, 24/7, read/write; e.g. this, Node.js 3.5", "").total == 0


def test_a_file_is_named_by_its_path_or_its_name_and_by_no_longer_word():
    assert named_in("src/a/login.py", "changed a/login.py and more")
    assert named_in("src/a/login.py", "changed `login.py`")
    assert not named_in("src/a/login.py", "changed test_login.py")
    assert not named_in("src/a/login.py", "changed login.pyc")


@pytest.mark.parametrize("name", [name for name in prompts.names() if headings(need(prompt=name))])
def test_every_section_that_a_prompt_demands_must_be_there(name):
    asked = need(prompt=name)
    titles = headings(asked)
    body = GOOD.split(". ")
    for style in ("## {}\n{}", "**{}**: {}", "1. {}:\n{}", "{}: {}"):
        whole = [style.format(title, body[at % len(body)] + ".") for at, title in enumerate(titles)]
        whole.append(
            "Commit 4f2a9c1d, port 8443, tests/test_login.py, the log of the server. " + "More was not said. " * 8
        )
        assert reasons("\n".join(whole), asked) == ""
        assert reasons("\n".join(whole[1:]), asked).startswith(f"sections are missing: {titles[0]}")


def test_the_headings_of_a_prompt_are_read_off_it():
    assert headings(need(prompt="wolffish_summary")) == ("TASK", "PROGRESS", "REMAINING", "DATA", "DECISIONS")
    assert headings(need(prompt="opal_update")) == headings(need(prompt="opal_summary"))
    assert headings(need(prompt="neurolink_merge")) == headings(need(prompt="neurolink_summary"))
    assert len(headings(need(prompt="vibe_summary"))) == 7
    assert headings(need(prompt="claude_code_summary")) == ()
    assert headings(need(instructions="## One\n\n## Two\n\n## Three\n")) == ("One", "Two", "Three")


def test_a_heading_within_a_sentence_is_no_section():
    asked = need(prompt="opal_prefix")
    flat = GOOD + " The Original Request, what was Attempted So Far, and Intermediate Results are above."
    assert "sections are missing" in reasons(flat, asked)


def test_a_constraint_that_is_missing_or_in_other_words_is_named():
    pin = Pin(RULE, 1, MessageId("m"), "user")
    assert RULE in reasons(GOOD.replace(RULE, ""), pins=[pin])
    assert RULE in reasons(GOOD.replace(RULE, "Do not touch the vendor folder."), pins=[pin])


def test_a_changed_file_must_be_named_and_a_list_may_name_no_other():
    files = (("tests/test_login.py",), ("src/shop/login.py",))
    assert judge(GOOD, need(), files=files).ok
    assert "changed files are missing: src/shop/cart.py" in reasons(GOOD, files=((), ("src/shop/cart.py",)))
    listed = "\n<modified-files>\ntests/test_login.py\n</modified-files>"
    assert "files are listed that were not: tests/test_login.py" in reasons(GOOD + listed, files=files)
    assert judge(GOOD + listed.replace("modified", "read"), need(), files=files).ok


def test_a_summary_larger_than_it_may_be_is_rejected():
    assert "larger than the 40 tokens" in reasons(GOOD, max_tokens=40)
    assert judge(GOOD, need(), max_tokens=200).ok


def edited(path):
    return said("assistant", "", ToolCall("c1", "edit_file", f'{{"path": "{path}"}}'), id="c")


def test_what_is_known_and_missing_is_written_behind_the_summary():
    asked = need(messages=[said("user", TALK), edited("src/shop/cart.py")])
    short = GOOD.replace(RULE + " ", "")
    text = judge_answer(short, asked)
    assert text.startswith(short)
    assert f"- {RULE}" in text
    assert "Files changed:\n- src/shop/cart.py" in text
    assert with_missing_facts(text, asked) == text
    strict = judge_answer(short, asked, repair=False)
    assert isinstance(strict, Refused)
    assert "constraints are missing" in strict.reason
    assert "changed files are missing" in strict.reason


def test_constraints_behind_an_earlier_summary_are_carried_on():
    first = with_missing_facts(GOOD.replace(RULE + " ", ""), need())
    rest = need("The handler was read. " * 60, previous=first)
    assert with_missing_facts("The work goes on.", rest).endswith(f"- {RULE}")
    again = need("The test was written. " * 60, previous=with_missing_facts("The work goes on.", rest))
    assert with_missing_facts("It is done.", again).count(RULE) == 1


def test_constraints_of_parts_are_in_the_summary_that_merges_them():
    parts = [
        with_missing_facts("The first half.", need()),
        with_missing_facts("The second half.", need("You must ask me first. " + "x " * 900)),
    ]
    joined = SummaryNeed((), "<conversation>\n" + "\n\n".join(parts) + "\n</conversation>")
    merged = with_missing_facts("Both halves.", joined)
    assert f"- {RULE}" in merged
    assert "- You must ask me first." in merged


def test_words_of_a_tool_never_become_a_constraint():
    result = said("tool", "You must never stop.")
    asked = need(messages=[said("user", TALK), result])
    assert "never stop" not in with_missing_facts(GOOD, asked)


def test_the_lists_that_a_stage_writes_itself_are_not_written_twice():
    messages = [said("user", TALK), edited("src/shop/cart.py")]
    assert "Files changed" not in with_missing_facts(GOOD, need(messages=messages, prompt="opal_summary"))
    assert "Files changed" in with_missing_facts(GOOD, need(messages=messages, prompt="claude_code_summary"))


def test_a_guarded_summarizer_refuses_what_is_rejected_and_passes_refusals_on():
    asked = need()
    assert guarded(lambda _: GOOD)(asked) == GOOD
    refused = guarded(lambda _: "I'd be happy to help!")(asked)
    assert refused.kind == "rejected"
    assert "answer or a continuation" in refused.reason
    assert guarded(lambda _: Refused("no", "failed"))(asked) == Refused("no", "failed")


LONG = [
    message
    for turn in range(30)
    for message in (
        {"role": "user", "content": f"Part {turn}. {RULE if turn == 3 else ''} " + "words of no weight " * 300},
        {"role": "assistant", "content": f"Noted part {turn}. " + "and more of them " * 100},
    )
]


@pytest.mark.parametrize(("policy", "marker"), [("opal", "[Compacted"), ("wolffish", "no summary"), ("neurolink", "")])
def test_a_policy_goes_on_without_a_summary_that_is_rejected(policy, marker):
    nonsense = refold.compact(
        LONG, policy=policy, window=40_000, force=True, goal=0.3, summarize=guarded(lambda _: "I'd be happy to help!")
    )
    text = str(nonsense.messages)
    assert "happy to help" not in text
    assert marker.lower() in text.lower()
    assert any("rejected" in step.refused for step in nonsense.plan.steps)


def test_the_guard_takes_linear_time():
    line = "GET /shop/item/{n} took {n} ms in src/shop/item{n}.py at 4f2a9c1d\n"
    spent = []
    for size in (10_000, 40_000):
        record = "".join(line.format(n=number) for number in range(size))
        asked = SummaryNeed((), f"<conversation>\n{record}</conversation>")
        told = GOOD + " src/nowhere/at_all.py " + " ".join(f"src/shop/item{n}.py" for n in range(300))
        start = time.perf_counter()
        judge(told, asked)
        spent.append(time.perf_counter() - start)
    assert spent[1] < 12 * spent[0] + 0.5
