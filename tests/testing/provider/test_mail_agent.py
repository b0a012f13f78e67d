import json

import openai
import pytest

import refold
from refold import policies
from refold.testing.provider import MailAgent, Mailbox, ScriptedProvider

MODEL = "gpt-4.1"


def work(box, policy, provider, window, rounds=30):
    """Drive the task with a loop that compacts before each call; return the last words and how often it compacted."""
    messages = [{"role": "system", "content": box.system}, {"role": "user", "content": box.task}]
    compactions = 0
    with openai.OpenAI(base_url=provider.openai_url, api_key="k", max_retries=0) as client:

        def summarize(need):
            asked = [{"role": "system", "content": need.instructions}, {"role": "user", "content": need.text}]
            return client.chat.completions.create(model=MODEL, messages=asked).choices[0].message.content

        for _ in range(rounds):
            made = refold.compact(messages, policy=policy, window=window, max_output=window // 20, tools=box.tools,
                                  summarize=summarize, model=MODEL)  # fmt: skip
            compactions += not made.plan.empty
            messages = made.messages
            answer = client.chat.completions.create(model=MODEL, messages=messages, tools=box.tools)
            said = answer.choices[0].message
            messages.append(said.model_dump(exclude_none=True))
            if not said.tool_calls:
                return said.content, compactions
            messages += [
                {
                    "role": "tool",
                    "tool_call_id": call.id,
                    "content": box.call(call.function.name, call.function.arguments),
                }
                for call in said.tool_calls
            ]
    raise AssertionError("the agent came to no end")


def test_the_mail_task_is_done_in_three_batches_without_compaction():
    box = Mailbox(lines=20)
    with ScriptedProvider(behave=MailAgent()) as provider:
        words, compactions = work(box, "wolffish", provider, 10_000_000)
    assert (len(box.ids), box.unread, compactions) == (41, (), 0)
    assert words == "Briefing: 41 of 41 messages are read."
    assert box.read == list(box.ids)
    assert [sum(bool(message.results) for message in each.messages) for each in provider.received] == [0, 1, 16, 31, 42]


@pytest.mark.parametrize("policy", policies.names())
def test_the_mail_task_is_finished_under_every_policy(policy):
    box = Mailbox(lines=60)
    with ScriptedProvider(behave=MailAgent(), window=60_000) as provider:
        _, compactions = work(box, policy, provider, 50_000)
    assert compactions
    assert box.unread == ()
    assert {each.status for each in provider.received} == {200}


def test_what_a_compaction_forgets_shows_as_mail_read_again_or_never():
    box = Mailbox(lines=5)
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "mail_read", "arguments": json.dumps({"id": box.ids[0]})},
    }
    listed = {"role": "user", "content": box.mail_search()}
    read = [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c1", "content": "text"}]
    with (
        ScriptedProvider(behave=MailAgent()) as provider,
        openai.OpenAI(base_url=provider.openai_url, api_key="k") as client,
    ):

        def first(messages):
            answer = client.chat.completions.create(model=MODEL, messages=messages, tools=box.tools)
            calls = answer.choices[0].message.tool_calls
            return calls and (calls[0].function.name, json.loads(calls[0].function.arguments).get("id"))

        assert first([listed, *read]) == ("mail_read", box.ids[1])
        assert first([listed]) == ("mail_read", box.ids[0])
        assert first([{"role": "user", "content": f"Read: {box.ids[0]}"}]) is None
        assert first([{"role": "user", "content": "Read my mail."}]) == ("mail_search", None)


def test_an_email_is_some_thirty_three_thousand_tokens_by_the_estimate_of_the_task():
    box = Mailbox()
    sizes = [len(box.mail_read(id)) / 1.5 for id in box.ids]
    assert 30_000 < sum(sizes) / 41 < 36_000


@pytest.mark.parametrize("window", [9_000, 12_000])
def test_an_agent_whose_calls_leave_reads_no_mail_twice(window):
    box = Mailbox(lines=20)
    with ScriptedProvider(behave=MailAgent()) as provider:
        _, compactions = work(box, "refold", provider, window)
    assert compactions
    assert sorted(box.read) == sorted(box.ids)
