import asyncio

import pytest

import refold
from refold._condense.transcript_text import serialize
from refold.config import Settings
from refold.core.messages import (
    Message,
    MessageId,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from refold.core.needs import Lengths, Provided, Refused, SummaryNeed
from refold.handlers import Handlers
from refold.recovery._run import recovering
from refold.summaries._secrets import REMOVED

KEY = "sk-ant-" + "api03-AbCd1234EfGh5678IjKl9012MnOp3456"
FILLER = "The nightly build compiles every package and runs all tests. "


def talk():
    call = {"id": "c1", "type": "function", "function": {"name": "run", "arguments": f'{{"header": "x-key {KEY}"}}'}}
    return [
        {"role": "system", "content": f"Use {KEY}."},
        {"role": "user", "content": f"The key is {KEY}, mind it. {FILLER * 20}"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": f"OPENAI_API_KEY={KEY}\n{FILLER * 30}"},
        {"role": "assistant", "content": FILLER * 20, "metadata": {"token": KEY}},
        {"role": "user", "content": "Go on."},
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "And now?"},
    ]


class Asked:
    def __init__(self, text="The person gave a key and asked to go on."):
        self.text = text
        self.needs = []

    def __call__(self, need):
        self.needs.append(need)
        return self.text


def compacted(summarize, policy="opal", **options):
    return refold.compact(talk(), policy=policy, budget=900, force=True, summarize=summarize, **options)


@pytest.mark.parametrize("policy", ["opal", "neurolink", "claude-code", "vibe"])
def test_secrets_reach_no_summarizer_in_any_field_and_stay_in_the_conversation(policy):
    asked = Asked()
    result = compacted(asked, policy, instructions=f"Heed {KEY}.")
    assert asked.needs
    for need in asked.needs:
        assert KEY not in repr(need)
        assert REMOVED in need.text
        assert f"Heed {REMOVED}." in need.instructions
    assert result.originals == talk()


def test_an_earlier_summary_is_cleaned_too():
    first = compacted(Asked(f"They have the key {KEY}."), redact=False)
    asked = Asked()
    longer = [*talk(), {"role": "assistant", "content": FILLER * 60}, {"role": "user", "content": "Go on."}]
    refold.compact(longer, policy="opal", budget=900, force=True, summarize=asked, plans=first.plans)
    assert asked.needs[0].previous == f"They have the key {REMOVED}."


def test_secrets_are_sent_where_that_is_asked_for():
    for options in ({"redact": False, "summarize": (asked := Asked())},):
        refold.compact(talk(), policy="opal", budget=900, force=True, **options)
        assert KEY in asked.needs[0].text
    asked = Asked()
    refold.compact(talk(), policy="opal", budget=900, force=True, handlers=Handlers(summarize=asked, redact=False))
    assert KEY in asked.needs[0].text
    assert asyncio.run(refold.aplan(talk(), policy="opal", budget=900, force=True, summarize=asked)).edits
    assert KEY not in repr(asked.needs[-1])
    recovering(lambda sent: {"ok": 1}, talk(), policy="opal", window=1_000, cause="overflow", summarize=asked,
               redact=False)  # fmt: skip
    assert KEY in asked.needs[-1].text
    assert Settings.load({"redact_secrets": False}, environ={}).redact_secrets is False
    assert Settings.load({}, environ={}).redact_secrets is True


def test_messages_without_secrets_or_thinking_reach_a_summarizer_as_they_are():
    plain = Message(MessageId("a"), "user", (Text("Hello."),), None, {"role": "user", "content": "Hello."})
    asked = Asked("Greetings were exchanged.")
    Handlers(summarize=asked).answer(SummaryNeed((plain,), serialize((plain,))))
    assert asked.needs[0].messages[0] is plain


def test_a_message_with_thinking_or_a_secret_comes_without_the_providers_object():
    thinks = Message(MessageId("a"), "assistant", (Reasoning("hm"), Text("Yes.")), None, {"role": "assistant"})
    hides = Message(MessageId("b"), "assistant", (Opaque("odd"),), None, {"role": "assistant", "odd": [{"x": KEY}]})
    asked = Asked("They agreed.")
    Handlers(summarize=asked).answer(SummaryNeed((thinks, hides), serialize((thinks, hides))))
    assert [message.native for message in asked.needs[0].messages] == [None, None]
    assert asked.needs[0].messages[0].parts == (Text("Yes."),)


def test_a_secret_that_a_shortened_part_shows_half_of_is_removed_whole():
    long = Message(
        MessageId("a"), "tool",
        (ToolResult("c", (Text(f"{'a ' * 45}{KEY}{' b' * 300}"),)),),
    )  # fmt: skip
    lengths = Lengths(result=140)
    need = SummaryNeed((long,), serialize((long,), lengths), lengths=lengths)
    assert KEY[:12] in need.text
    assert KEY not in need.text
    asked = Asked("Letters were printed.")
    Handlers(summarize=asked).answer(need)
    assert KEY[:12] not in asked.needs[0].text


CALL = Message(MessageId("c"), "assistant", (ToolCall("c1", "read_file", '{"path": "a.py"}'),))
USER = Message(MessageId("u"), "user", (Text(f"Please read a.py. {FILLER * 20}"),))
INSTRUCTIONS = """Write a summary of the conversation that another assistant can go on from.
Name the person's request, what was done, what was found, and which files were changed or read.
Do not answer questions in the conversation, and do not call tools; only the summary is wanted."""
NEED = SummaryNeed((USER, CALL), serialize((USER, CALL)), instructions=INSTRUCTIONS)

NO_SUMMARIES = [
    ('{"name": "read_file", "arguments": {"path": "a.py"}}', "a tool call"),
    ('```json\n{"tool": "read_file", "parameters": {"path": "a.py"}}\n```', "a tool call"),
    ('[{"type": "tool_use", "id": "t", "name": "read_file", "input": {}}]', "a tool call"),
    ('{"tool_calls": [{"id": "x", "function": {"name": "read_file"}}]}', "a tool call"),
    ('I look first.\n<tool_call>\n{"name": "read_file"}\n</tool_call>', "a tool call"),
    ("<function=read_file>\n<parameter=path>a.py</parameter>\n</function>", "a tool call"),
    ('<invoke name="read_file"><parameter name="path">a.py</parameter></invoke>', "a tool call"),
    ("<minimax:tool_call>\nread_file\n</minimax:tool_call>", "a tool call"),
    ('[TOOL_CALLS][{"name": "read_file"}]', "a tool call"),
    ("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function", "a tool call"),
    ("<|tool_calls_section_begin|><|tool_call_begin|>functions.read_file:0", "a tool call"),
    ('<|python_tag|>read_file.call(path="a.py")', "a tool call"),
    ('{"tool": "read_file", "path": "a.py"}', "a tool call"),
    ('```tool_code\nprint(default_api.list_files(path="."))\n```', "a tool call"),
    ("<|channel|>commentary to=functions.read_file", "a tool call"),
    ('[read_file(path="a.py")]', "a tool call"),
    ("<read_file>\n<path>a.py</path>\n</read_file>", "a tool call"),
    ("Thought: I need the file.\nAction: read_file\nAction Input: a.py", "a tool call"),
    (INSTRUCTIONS, "repeats the instructions"),
    (f"Sure.\n{INSTRUCTIONS}\nThe file was read.", "repeats the instructions"),
    (NEED.text, "repeats the record"),
    (NEED.text[len("<conversation>\n") :][:300], "repeats the record"),
    ("I'm sorry, but I can't help with that.", "a refusal"),
    ("I cannot summarize this conversation.", "a refusal"),
    ("What would you like me to do next?", "a question back"),
    ("Could you share the file with me?", "a question back"),
    ("I'd be happy to help! Which file should I read?", "a question back"),
    ("Soll ich die Datei lesen?", "a question back"),
]


@pytest.mark.parametrize(("text", "reason"), NO_SUMMARIES)
def test_what_is_certainly_no_summary_is_refused_whoever_wrote_it(text, reason):
    async def later(need):
        return text

    given = Handlers(summarize=lambda need: text).answer(NEED)
    assert isinstance(given, Refused)
    assert given.kind == "rejected"
    assert reason in given.reason
    assert asyncio.run(Handlers(summarize=later).answer_async(NEED)) == given


@pytest.mark.parametrize(
    "text",
    [
        "Work in progress.",
        "short",
        "TASK: go on",
        "[A summary will stand here.]",
        "The person asks: what does a.py do? It was read with read_file(path).",
        '{"goal": "read a.py", "type": "summary", "done": ["read"]}',
        "User: wants a.py read. Assistant: read it.",
        "I can't reach the server from here, so the tests were run without it.",
        "1. Goals: say it",
        "Calls of read_file were made; the tool answered.",
        "Could the cache be at fault? The person thinks so, and wants it measured before anything is changed.",
    ],
)
def test_a_short_and_plain_summary_of_a_users_own_function_counts(text):
    assert Handlers(summarize=lambda need: text).answer(NEED) == Provided(text=text)


def test_the_reason_stands_in_the_plan_and_the_policy_goes_on_without():
    result = compacted(Asked("What would you like me to do next?"))
    refused = [step.refused for step in result.plan.steps if step.refused]
    assert refused
    assert "it is a question back" in refused[0]
    assert "What would you like me to do next?" not in str(result.messages)


def test_each_part_of_a_record_that_is_too_large_is_checked():
    class Small:
        def __init__(self):
            self.calls = 0

        def __call__(self, need):
            self.calls += 1
            if len(need.text) > 3_000:
                raise RuntimeError("This model's maximum context length is 900 tokens.")
            return "<tool_call>read</tool_call>" if self.calls > 2 else "The first part."

    messages = tuple(Message(MessageId(str(n)), "user", (Text(FILLER * 30),)) for n in range(3))
    given = Handlers(summarize=Small()).answer(SummaryNeed(messages, serialize(messages)))
    assert given == Refused("the summary was rejected: it is a tool call", "rejected")


def _folded(answer):
    turns = [
        message
        for n in range(12)
        for message in (
            {"role": "user", "content": f"Part {n}. " + "words of no weight " * 100},
            {"role": "assistant", "content": f"Noted part {n}."},
        )
    ]
    return str(refold.compact(turns, policy="opal", budget=2_000, force=True, summarize=lambda _: answer).messages)


@pytest.mark.parametrize(
    "answer",
    [
        "<think>Let me see what they want",
        "<think>Let me see what they want</think>",
        '[Assistant tool call]: shell({"command": "ls"})',
        '<｜DSML｜function_calls><｜DSML｜invoke name="shell"></｜DSML｜invoke>',
        "抱歉，我无法协助处理该请求。",
        "Sure! I'm ready to help. Please share the conversation.",
    ],
)
def test_thinking_alone_a_call_in_words_and_a_refusal_are_no_summaries(answer):
    assert answer[:30] not in _folded(answer)


def test_thinking_in_front_of_a_summary_does_not_come_into_the_conversation():
    text = _folded("<think>They want a parser.</think>\n\nGOAL: port the parser. DONE: twelve parts were noted.")
    assert "They want" not in text
    assert "GOAL: port the parser." in text
