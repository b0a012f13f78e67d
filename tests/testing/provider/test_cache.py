import anthropic
import openai
import pytest

from refold import Usage
from refold.models._usage_report import reported
from refold.testing.provider import ScriptedProvider, ScriptedReply

LONG = "Every word of this is counted. " * 300
ALSO = "And some more words that follow. " * 100


def said(*texts):
    roles = ("user", "assistant")
    return [{"role": roles[place % 2], "content": text} for place, text in enumerate(texts)]


@pytest.fixture
def chat():
    with ScriptedProvider() as provider, openai.OpenAI(base_url=provider.openai_url, api_key="k") as client:
        yield lambda messages, **more: client.chat.completions.create(model="gpt-5", messages=messages, **more).usage


@pytest.fixture
def claude():
    with ScriptedProvider() as provider, anthropic.Anthropic(base_url=provider.url, api_key="k") as client:

        def ask(messages, **more):
            usage = client.messages.create(model="claude", max_tokens=9, messages=messages, **more).usage
            return usage.cache_read_input_tokens, usage.cache_creation_input_tokens, usage.input_tokens

        yield ask


def marked(text):
    return [{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]


def test_openai_reports_the_beginning_it_saw_before_inside_the_prompt(chat):
    first = chat(said(LONG))
    second = chat(said(LONG, "Yes.", ALSO))
    assert first.prompt_tokens_details.cached_tokens == 0
    cached = second.prompt_tokens_details.cached_tokens
    assert first.prompt_tokens - 128 - 8 < cached <= first.prompt_tokens < second.prompt_tokens
    assert cached % 128 == 0
    assert reported(second.model_dump()).prompt == second.prompt_tokens


def test_openai_keeps_no_short_beginning_and_none_of_another_system_prompt(chat):
    chat(said("Short."))
    assert chat(said("Short.", "Yes.", "More.")).prompt_tokens_details.cached_tokens == 0
    chat([{"role": "system", "content": "One."}, *said(LONG)])
    other = chat([{"role": "system", "content": "Two."}, *said(LONG)])
    assert other.prompt_tokens_details.cached_tokens == 0


def test_another_tool_spoils_the_whole_beginning(chat):
    tool = {"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}}}
    chat(said(LONG))
    assert chat(said(LONG), tools=[tool]).prompt_tokens_details.cached_tokens == 0
    assert chat(said(LONG), tools=[tool]).prompt_tokens_details.cached_tokens > 1_024


def test_anthropic_caches_up_to_its_marks_and_reports_it_beside_the_input(claude):
    read, written, rest = claude(said(marked(LONG)))
    assert (read, rest < 10) == (0, True)
    assert written > 1_024
    again, more, rest = claude(said(marked(LONG), "Yes.", marked(ALSO)))
    assert again == written
    assert more > 100
    assert rest < 10


def test_anthropic_finds_the_beginning_again_when_the_mark_has_moved(claude):
    _, written, _ = claude(said(marked(LONG)))
    read, more, _ = claude(said([{"type": "text", "text": LONG}], "Yes.", marked(ALSO)))
    assert (read, more > 100) == (written, True)


def test_anthropic_caches_nothing_without_marks_nor_a_short_beginning(claude):
    for _ in range(2):
        assert claude(said(LONG))[:2] == (0, 0)
        assert claude(said(marked("Short.")))[:2] == (0, 0)


def test_anthropic_caches_to_the_end_where_the_request_itself_bears_the_mark(claude):
    mark = {"extra_body": {"cache_control": {"type": "ephemeral"}}}
    _, written, rest = claude(said(LONG), **mark)
    assert written > 1_024
    assert claude(said(LONG, "Yes.", ALSO), **mark)[0] == written
    assert rest < 10


def test_a_marked_system_prompt_is_cached_by_itself(claude):
    _, written, _ = claude(said("One."), system=marked(LONG))
    assert claude(said("Two."), system=marked(LONG))[:2] == (written, 0)
    assert claude(said("Two."), system=marked(ALSO + LONG))[0] == 0


@pytest.mark.parametrize("answer", [ScriptedReply("Hi", usage=Usage(5_000, 70, 2_000))])
def test_the_usage_of_an_answer_is_reported_as_told(answer):
    with ScriptedProvider([answer]) as provider:
        with openai.OpenAI(base_url=provider.openai_url, api_key="k") as client:
            first = client.chat.completions.create(model="m", messages=said("Hi")).usage
            second = client.responses.create(model="m", input=said("Hi")).usage
        with anthropic.Anthropic(base_url=provider.url, api_key="k") as client:
            third = client.messages.create(model="m", max_tokens=9, messages=said("Hi")).usage
    told = [reported(each.model_dump()) for each in (first, second, third)]
    assert [(each.prompt, each.completion, each.cached_read) for each in told] == [(5_000, 70, 2_000)] * 3
