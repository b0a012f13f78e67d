import asyncio
import json
import stat

import pytest

import refold
from refold.clients._factory import async_client, client
from refold.core.events import CompactionApplied, CompactionStarted
from refold.core.view import Cause
from refold.errors import CannotFit, ContextOverflow, UsageError
from refold.recovery._learned_windows import LearnedWindows
from refold.recovery._run import arecovering, recovering
from refold.testing.provider import Fault, ScriptedProvider, ScriptedReply

TOLD = "This model's maximum context length is {limit} tokens. However, your messages resulted in {size} tokens."


def talk(turns, words=60):
    return [
        message
        for turn in range(turns)
        for message in (
            {"role": "user", "content": f"Part {turn}: " + "word " * words},
            {"role": "assistant", "content": f"Noted {turn}. " + "more " * words},
        )
    ] + [{"role": "user", "content": "And now?"}]


class Refusal(Exception):
    def __init__(self, message, status=400):
        super().__init__(message)
        self.status_code = status


class Model:
    """Refuses what is above its window by our own exact count, in words that tell the window or not."""

    def __init__(self, window, words=TOLD, **reply):
        self.window, self.words, self.reply = window, words, reply
        self.sizes = []

    def __call__(self, messages):
        size = refold.count(messages)
        self.sizes.append(size)
        if size > self.window:
            raise Refusal(self.words.format(limit=self.window, size=size))
        return self.reply or {"choices": [{"finish_reason": "stop"}], "usage": {"prompt_tokens": size}}


def test_a_call_that_succeeds_is_made_once_with_the_very_messages():
    messages, model = talk(3), Model(10_000)
    made = recovering(model, messages, model="gpt-4o")
    assert len(model.sizes) == 1
    assert all(sent is message for sent, message in zip(made.messages, messages, strict=True))
    assert (made.plans, made.passes, made.cause, made.window) == ((), 0, None, 128_000)


@pytest.mark.parametrize("policy", refold.policies.names())
def test_a_refused_request_is_compacted_and_sent_once_more(policy):
    messages, model = talk(60), Model(5_000)
    before = json.dumps(messages)
    made = recovering(model, messages, policy=policy, model="gpt-4o")
    assert len(model.sizes) == 2
    assert (made.passes, made.plans[-1].cause, made.window) == (1, Cause.OVERFLOW, 5_000)
    assert json.dumps(messages) == before
    assert refold.rewind(messages, made.plans, to=0) == messages
    assert refold.violations(made.messages) == ()


@pytest.mark.parametrize("words", ["prompt is too long", "input is too long for requested model"])
def test_a_refusal_that_tells_no_window_makes_the_request_smaller_all_the_same(words):
    messages, model = talk(100), Model(3_000, words)
    made = recovering(model, messages, model="gpt-4o")
    assert model.sizes == sorted(model.sizes, reverse=True)
    assert 1 <= made.passes <= 2


def test_a_provider_that_counts_more_than_we_do_is_believed():
    sizes = []

    def call(messages):
        sizes.append(refold.count(messages) * 3)
        if sizes[-1] > 12_000:
            raise Refusal(TOLD.format(limit=12_000, size=sizes[-1]))
        return {"usage": {"prompt_tokens": sizes[-1]}}

    made = recovering(call, talk(80), model="gpt-4o")
    assert (len(sizes), made.window, made.cause) == (2, 12_000, None)


def test_plans_in_force_are_sent_and_extended():
    messages = talk(60)
    first = refold.compact(messages, window=8_000, force=True)
    model = Model(first.sizes.after - 1_000)
    made = recovering(model, messages, plans=[first.plan], model="gpt-4o")
    assert made.plans[0] == first.plan
    assert len(made.plans) == 2
    assert model.sizes[0] == refold.count(first.messages)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (Refusal("invalid api key", 401), Refusal),
        (Refusal("no such field", 400), Refusal),
        (Refusal("rate limit reached", 429), Refusal),
        (Refusal("oops", 500), Refusal),
        (ValueError("mine"), ValueError),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
    ids=repr,
)
def test_an_error_that_no_smaller_request_mends_is_raised_at_once(error, kind):  # N12
    tries = []

    def call(messages):
        tries.append(1)
        raise error

    with pytest.raises(kind) as caught:
        recovering(call, talk(30), model="gpt-4o")
    assert caught.value is error
    assert len(tries) == 1


def test_another_error_at_the_retry_is_raised_as_it_is():
    errors = [Refusal(TOLD.format(limit=3_000, size=9_000)), Refusal("oops", 500)]
    with pytest.raises(Refusal, match="oops"):
        recovering(lambda messages: (_ for _ in ()).throw(errors.pop(0)), talk(60), model="gpt-4o")


def test_passes_are_bounded_and_the_error_names_what_cannot_shrink():
    model = Model(0, "prompt is too long")
    with pytest.raises(ContextOverflow, match=r"still refused after 2 compactions.*newest turn [\d,]+") as caught:
        recovering(model, talk(100), model="gpt-4o", system="Be brief. " * 50)
    assert len(model.sizes) == 3
    assert "system" in str(caught.value)
    assert isinstance(caught.value.__cause__, Refusal)


def test_passes_of_the_same_turn_count():
    with pytest.raises(ContextOverflow):
        recovering(Model(3_000), talk(60), model="gpt-4o", passes=2)
    made = recovering(Model(3_000), talk(60), model="gpt-4o", passes=1)
    assert made.passes == 2


def test_the_same_messages_are_never_compacted_twice_when_nothing_new_is_known():
    messages = talk(60)
    made = recovering(Model(5_000), messages, model="gpt-4o")
    stubborn = Model(0, TOLD.replace("{limit}", "5000").replace("{size}", "5001"))
    with pytest.raises(ContextOverflow):
        recovering(stubborn, messages, model="gpt-4o", window=500, plans=made.plans)
    assert len(stubborn.sizes) == 1
    more = [*messages, {"role": "assistant", "content": "x"}, {"role": "user", "content": "word " * 4_500}]
    assert recovering(Model(5_000), more, model="gpt-4o", window=5_000, plans=made.plans).passes == 1


def test_what_cannot_fit_at_all_says_what_is_left():
    with pytest.raises(CannotFit, match="user messages"):
        recovering(
            Model(500),
            [{"role": "user", "content": "Never " + "word " * 3 + ". Never ".join(f"do {n}" for n in range(800))}],
            model="gpt-4o",
        )


def test_a_system_prompt_above_the_window_is_named():
    with pytest.raises(ContextOverflow, match="system prompt and tools alone"):
        recovering(Model(0, TOLD.replace("{limit}", "1000")), talk(5), model="gpt-4o", system="word " * 5_000)


def test_without_a_conversation_the_overflow_reaches_the_caller():  # O14
    error = Refusal(TOLD.format(limit=5_000, size=9_000))
    with pytest.raises(ContextOverflow, match="no conversation here") as caught:
        recovering(lambda messages: (_ for _ in ()).throw(error), [], model="gpt-4o", format="openai-chat")
    assert caught.value.__cause__ is error


def test_more_input_than_the_window_makes_the_next_turn_compact_first():  # O13
    messages = talk(60)
    full = recovering(Model(10**6, choices=[], usage={"prompt_tokens": 9_000}), messages, model="gpt-4o", window=8_000)
    assert full.cause is Cause.SILENT_OVERFLOW
    model = Model(10**6)
    made = recovering(model, messages, model="gpt-4o", window=8_000, cause=full.cause)
    assert made.plans[0].cause is Cause.SILENT_OVERFLOW
    assert model.sizes[0] < refold.count(messages)
    assert made.cause is None


def test_an_answer_that_ended_for_a_full_window_marks_the_next_turn_too():
    made = recovering(Model(10**6, stop_reason="model_context_window_exceeded"), talk(3), model="gpt-4o")
    assert made.cause is Cause.SILENT_OVERFLOW
    made = recovering(Model(10**6, stop_reason="end_turn"), talk(3), model="gpt-4o")
    assert made.cause is None


def test_an_overflow_inside_a_reply_of_status_200_is_recovered_from():
    replies = [{"error": {"message": TOLD.format(limit=5_000, size=9_000)}}, {"choices": []}]
    made = recovering(lambda messages: replies.pop(0), talk(60), model="gpt-4o")
    assert (made.reply, made.passes, made.window) == ({"choices": []}, 1, 5_000)


def test_an_answer_that_may_be_too_long_is_asked_for_with_fewer_tokens():
    asked = []

    def call(messages, max_tokens=32_000):
        asked.append(max_tokens)
        if max_tokens > 8_192:
            raise Refusal(
                "max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens for the model"
            )
        return {}

    made = recovering(call, talk(3), model="gpt-4o", max_output=32_000)
    assert (asked, made.plans) == ([32_000, 8_192], ())


def test_an_answer_for_which_the_window_has_no_room_is_asked_for_with_fewer_tokens():
    asked = []

    def call(messages, **named):
        asked.append(named.get("max_tokens"))
        if asked == [None]:
            raise Refusal(
                "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens`"
            )
        return {}

    made = recovering(call, talk(3), model="claude-sonnet-4-5", max_output=21_333)
    assert asked == [None, 200_000 - 188_240 - 16]
    assert made.plans == ()


def test_the_room_for_an_answer_is_told_by_the_refusal_where_the_caller_named_no_number():
    asked = []

    def call(messages, max_tokens=None):
        asked.append(max_tokens)
        if max_tokens is None:
            raise Refusal("input length and `max_tokens` exceed context limit: 1965 + 16384 > 16000, decrease them")
        return {}

    made = recovering(call, talk(3), model="m")
    assert (asked, made.plans) == ([None, 16_000 - 1_965 - 16], ())


def test_a_call_that_takes_no_number_of_tokens_gets_the_refusal_of_one():
    error = Refusal("max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens for the model")
    with pytest.raises(Refusal):
        recovering(lambda messages: (_ for _ in ()).throw(error), talk(3), model="gpt-4o")


PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "iVBORw0KGgo" * 500}}


def test_pictures_leave_a_request_that_is_too_large_in_bytes():
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "Look"}, PICTURE]},
        {"role": "assistant", "content": "I see."},
        {"role": "user", "content": [{"type": "text", "text": "And this?"}, PICTURE]},
    ]

    def call(sent):
        if json.dumps(sent).count("base64") > 1:
            raise Refusal("request entity too large", 413)
        return {}

    made = recovering(call, messages, model="gpt-4o")
    assert "A picture was left out" in json.dumps(made.messages[0])
    assert made.messages[2] is messages[2]
    assert made.passes == 0
    assert refold.violations(made.messages) == ()
    with pytest.raises((ContextOverflow, CannotFit)):
        recovering(
            lambda sent: (_ for _ in ()).throw(Refusal("request entity too large", 413)), messages[:1], model="gpt-4o"
        )


def test_a_summarizer_that_fails_is_done_without():
    def fail(need):
        raise ConnectionError("down")

    made = recovering(Model(5_000), talk(60), policy="vibe", model="gpt-4o", summarize=fail)
    assert made.passes == 1


def test_observers_are_told_of_the_compaction():
    told = []
    recovering(Model(5_000), talk(60), model="gpt-4o", observers=[told.append])
    assert [type(event) for event in told] == [CompactionStarted, CompactionApplied]
    assert told[0].cause is Cause.OVERFLOW


def test_a_coroutine_is_recovered_in_the_same_way():
    model = Model(5_000)

    async def call(messages):
        return model(messages)

    async def summarize(need):
        return "The person counts parts. " * 20

    made = asyncio.run(arecovering(call, talk(60), policy="opal", model="gpt-4o", summarize=summarize))
    assert (len(model.sizes), made.passes, made.plans[-1].cause) == (2, 1, Cause.OVERFLOW)
    assert "counts parts" in str(made.messages)
    same = recovering(
        Model(5_000), talk(60), policy="opal", model="gpt-4o", summarize=lambda need: "The person counts parts. " * 20
    )
    assert same.messages == made.messages

    async def broken(messages):
        raise Refusal("no", 401)

    with pytest.raises(Refusal):
        asyncio.run(arecovering(broken, talk(3), model="gpt-4o"))


@pytest.mark.parametrize("wire", ["openai-chat", "anthropic"])
def test_the_real_sdks_recover_from_a_provider_that_refuses(wire):
    with ScriptedProvider(["Hello"], window=6_000) as provider:
        url = provider.url if wire == "anthropic" else provider.openai_url
        ours = client("m", url, wire=wire)
        windows = LearnedWindows()
        made = recovering(
            lambda messages: ours.complete(messages, max_tokens=1_000),
            talk(60), format=wire, model="m", max_output=1_000, windows=windows, endpoint=url,
        )  # fmt: skip
        ours.close()
    assert made.reply.text == "Hello"
    assert [received.status for received in provider.received] == [400, 200]
    assert windows.get("m", url) == made.window == 6_000


@pytest.mark.parametrize("wire", ["openai-chat", "anthropic"])
def test_a_call_that_failed_for_a_moment_is_made_again_where_waits_are_given(wire):
    waits = []
    faults = {1: Fault("rate_limit", retry_after=20), 3: Fault("server_error")}
    with ScriptedProvider(["Hello"], window=6_000, faults=faults) as provider:
        ours = client("m", provider.url if wire == "anthropic" else provider.openai_url, wire=wire)
        made = recovering(
            lambda messages: ours.complete(messages, max_tokens=1_000),
            talk(60), format=wire, model="m", max_output=1_000, waits=(1, 2), sleep=waits.append,
        )  # fmt: skip
        ours.close()
    assert (made.reply.text, made.passes) == ("Hello", 1)
    assert [received.status for received in provider.received][1:2] == [400]  # the second, for its size
    assert waits == [20, 1]


def test_without_waits_a_rate_limit_is_raised_at_once():
    with ScriptedProvider(["Hello"], faults=[Fault("rate_limit", retry_after=1)]) as provider:
        ours = client("m", provider.openai_url)
        with pytest.raises(Exception, match="Rate limit"):
            recovering(ours.complete, talk(3), model="m", sleep=pytest.fail)
        ours.close()
    assert len(provider.received) == 1


def test_an_asynchronous_call_is_made_again_in_the_same_way():
    waits = []

    async def sleep(seconds):
        waits.append(seconds)

    async def ask(url):
        ours = async_client("m", url)
        made = await arecovering(
            ours.complete,
            talk(60),
            model="m",
            waits=(1, 2),
            sleep=sleep,
        )
        await ours.close()
        return made

    with ScriptedProvider(["Hello"], window=6_000, faults={1: Fault("rate_limit", retry_after=20)}) as provider:
        made = asyncio.run(ask(provider.openai_url))
    assert (made.reply.text, made.passes, waits) == ("Hello", 1, [20])


def test_silent_truncation_by_a_real_server_makes_the_next_turn_compact_first():
    with ScriptedProvider([ScriptedReply("Hello", usage=refold.Usage(9_000))]) as provider:
        ours = client("m", provider.openai_url)
        made = recovering(ours.complete, talk(60), model="m", window=8_000)
        ours.close()
    assert made.cause is Cause.SILENT_OVERFLOW


def test_a_learned_window_is_used_by_the_next_call():
    windows = LearnedWindows()
    recovering(Model(5_000), talk(60), model="gpt-4o", windows=windows, endpoint="https://a/v1")
    assert windows.get("gpt-4o", "https://a/v1") == 5_000
    assert windows.get("gpt-4o", "https://b/v1") is None
    made = recovering(Model(5_000), talk(3), model="gpt-4o", windows=windows, endpoint="https://a/v1")
    assert made.window == 5_000
    assert windows.window("gpt-4o", "https://a/v1", 4_000) == 4_000
    assert windows.window("gpt-4o", "https://b/v1", None) is None


def test_a_rate_limit_teaches_no_window():
    windows = LearnedWindows()
    words = "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 31000."
    with pytest.raises((Refusal, ContextOverflow)):
        recovering(
            lambda messages: (_ for _ in ()).throw(Refusal(words, 429)), talk(3), model="gpt-4o", windows=windows
        )
    assert windows.get("gpt-4o") is None


def test_the_limit_of_a_minute_is_never_the_window_whatever_the_status():
    words = (
        "Request too large for model `m` on tokens per minute (TPM): Limit 3000, Requested {size}, please reduce it."
    )
    windows = LearnedWindows()

    def call(messages):
        size = refold.count(messages)
        if size > 3_000:
            raise Refusal(words.format(size=size), 413)
        return {}

    made = recovering(call, talk(60), model="gpt-4o", windows=windows)
    assert (made.passes, made.window, windows.get("gpt-4o")) == (1, 128_000, None)


def test_a_likely_overflow_is_believed_only_of_a_request_that_fills_half_the_window():
    calls = []

    def call(messages):
        calls.append(messages)
        raise Refusal("too many tokens in the request")

    with pytest.raises(Refusal, match="too many tokens"):
        recovering(call, talk(3), model="gpt-4o")
    assert len(calls) == 1
    windows = LearnedWindows()
    with pytest.raises(Refusal, match="too many tokens"):
        recovering(call, talk(60), model="gpt-4o", window=10_000, windows=windows)
    assert len(calls) == 3, "one compaction; what is below half of the window then is no overflow"
    assert windows.get("gpt-4o") is None


def test_learned_windows_are_kept_in_a_file_of_the_owners(tmp_path):
    path = tmp_path / "deep" / "windows.json"
    windows = LearnedWindows(path)
    windows.learn("GPT-4o", "https://user:secret@host:8080/v1/?key=secret", 9_000)
    windows.learn("m", "", 100)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "secret" not in path.read_text()
    other = LearnedWindows(path)
    other.learn("b", "", 5_000)
    windows.learn("c", "", 6_000)
    again = LearnedWindows(path)
    assert again.get("gpt-4o", "https://host:8080/v1") == 9_000
    assert (again.get("b"), again.get("c"), again.get("m")) == (5_000, 6_000, None)


@pytest.mark.parametrize("body", ["{", "[]", '{"windows": 3}', '{"windows": [], "version": 2}'])
def test_a_file_that_holds_none_is_named_and_left_as_it_is(tmp_path, body):
    path = tmp_path / "windows.json"
    path.write_text(body)
    with pytest.raises(UsageError, match=r"windows\.json"):
        LearnedWindows(path)
    assert path.read_text() == body


def test_a_file_that_cannot_be_written_leaves_them_in_memory(tmp_path):
    (tmp_path / "file").write_text("")
    windows = LearnedWindows(tmp_path / "file" / "windows.json")
    windows.learn("m", "", 5_000)
    assert windows.get("m") == 5_000


def test_a_cause_there_is_none_of_is_named():
    with pytest.raises(UsageError, match='no cause is called "hunger"'):
        recovering(Model(5_000), talk(3), model="gpt-4o", cause="hunger")


def called(number, **more):
    return {"type": "tool_use", "id": f"t{number}", "name": "read", "input": {"path": "a.py"}, **more}


def thinking_talk():
    """An agent's conversation with Claude: thinking before each call."""
    messages = [{"role": "user", "content": "Read all files."}]
    for number in range(3):
        thought = {"type": "thinking", "thinking": "Next.", "signature": f"sig{number:060}"}
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": "words"}
        messages += [{"role": "assistant", "content": [thought, called(number)]}, {"role": "user", "content": [result]}]
    return messages


def sealed_talk():
    """The same with OpenAI's Responses."""
    items = [{"role": "user", "content": "Read all files."}]
    for number in range(3):
        items += [
            {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": "gAAA" + "x" * 40},
            {"type": "function_call", "call_id": f"c{number}", "name": "read", "arguments": "{}"},
            {"type": "function_call_output", "call_id": f"c{number}", "output": "words"},
        ]
    return items


OPENED = []  # clients to be closed when the test is over


@pytest.fixture(autouse=True)
def _closed_clients():
    yield
    while OPENED:
        OPENED.pop().close()


def claude_call(url):
    import anthropic

    OPENED.append(sdk := anthropic.Anthropic(base_url=url, api_key="k", max_retries=0))
    return lambda messages: sdk.messages.create(model="claude-opus-4-6", max_tokens=99, messages=messages)


def responses_call(url):
    import openai

    OPENED.append(sdk := openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0))
    return lambda messages: sdk.responses.create(model="gpt-5", input=messages, store=False)


REASONED = [("anthropic", thinking_talk, claude_call), ("openai-responses", sealed_talk, responses_call)]


@pytest.mark.parametrize(("format", "said", "calling"), REASONED, ids=["anthropic", "responses"])
def test_reasoning_that_the_provider_refuses_leaves_once_and_stays_away(format, said, calling):
    messages = said()
    with ScriptedProvider(["Done."], faults=["reasoning_invalid"]) as provider:
        made = recovering(calling(provider.url), messages, format=format, model="m")
        again = recovering(calling(provider.url), messages, format=format, model="m", plans=made.plans)
    assert [received.status for received in provider.received] == [400, 200, 200]
    assert [("sig" in str(each.body) or "gAAA" in str(each.body)) for each in provider.received] == [True, False, False]
    assert again.messages == made.messages
    assert (made.passes, [plan.policy for plan in made.plans]) == (0, ["drop-reasoning"])
    assert refold.rewind(messages, made.plans, to=0) == messages


@pytest.mark.parametrize(("format", "said", "calling"), REASONED, ids=["anthropic", "responses"])
def test_reasoning_that_is_refused_again_is_the_refusal_with_a_note(format, said, calling):
    faults = ["reasoning_invalid", "reasoning_invalid"]
    with (
        ScriptedProvider(["Done."], faults=faults) as provider,
        pytest.raises(Exception, match="400") as e,
    ):
        recovering(calling(provider.url), said(), format=format, model="m")
    assert len(provider.received) == 2
    assert refold.classify_error(e.value).kind == "reasoning_invalid"
    assert "still refuses it" in e.value.__notes__[0]


@pytest.mark.parametrize(("format", "said", "calling"), REASONED, ids=["anthropic", "responses"])
def test_reasoning_that_is_missing_is_told_at_once(format, said, calling):
    with (
        ScriptedProvider(["Done."], faults=["reasoning_missing"]) as provider,
        pytest.raises(Exception, match="400") as e,
    ):
        recovering(calling(provider.url), said(), format=format, model="m")
    assert len(provider.received) == 1
    assert refold.classify_error(e.value).kind == "reasoning_missing"


def test_a_refusal_of_reasoning_without_any_is_the_refusal_with_a_note():
    with (
        ScriptedProvider(["Done."], faults=["reasoning_invalid"]) as provider,
        pytest.raises(Exception, match="400") as e,
    ):
        recovering(claude_call(provider.url), talk(1), format="anthropic", model="m")
    assert len(provider.received) == 1
    assert "no reasoning" in e.value.__notes__[0]


def gemini_talk():
    """Two turns with Gemini, the second with an open tool loop."""
    contents = []
    for turn in range(2):
        call = {"function_call": {"name": "read", "args": {}}, "thought_signature": b"signed" * 4}
        answer = {"function_response": {"name": "read", "response": {"output": "words"}}}
        contents += [
            {"role": "user", "parts": [{"text": f"Part {turn}?"}]},
            {"role": "model", "parts": [call]},
            {"role": "user", "parts": [answer]},
            {"role": "model", "parts": [{"text": "Done."}]},
        ]
    return contents[:-1]


@pytest.mark.parametrize(("faults", "signed"), [(1, 2), (2, 1)])
def test_gemini_is_asked_once_more_and_then_without_the_signatures_of_older_turns(faults, signed):
    from google import genai

    with ScriptedProvider(["Done."], faults=["reasoning_invalid"] * faults) as provider:
        OPENED.append(sdk := genai.Client(api_key="k", http_options={"base_url": provider.url}))
        made = recovering(
            lambda contents: sdk.models.generate_content(model="gemini-3-pro", contents=contents),
            gemini_talk(), format="gemini", model="gemini-3-pro",
        )  # fmt: skip
    assert [received.status for received in provider.received] == [400] * faults + [200]
    assert str(provider.received[-1].body).count("ignature") == signed
    assert len(made.plans) == faults - 1


def test_a_coroutine_is_cured_of_refused_reasoning_in_the_same_way():
    import anthropic

    async def ask(url):
        async with anthropic.AsyncAnthropic(base_url=url, api_key="k", max_retries=0) as sdk:
            return await arecovering(
                lambda messages: sdk.messages.create(model="claude-opus-4-6", max_tokens=99, messages=messages),
                thinking_talk(), format="anthropic", model="m",
            )  # fmt: skip

    with ScriptedProvider(["Done."], faults=["reasoning_invalid"]) as provider:
        made = asyncio.run(ask(provider.url))
    assert [received.status for received in provider.received] == [400, 200]
    assert "sig" not in str(made.messages)


def test_a_refusal_of_reasoning_inside_a_reply_of_status_200_is_cured():
    replies = [
        {"error": {"code": "invalid_encrypted_content", "message": "The encrypted content could not be verified."}}
    ]
    made = recovering(lambda messages: replies.pop() if replies else {}, sealed_talk(), format="openai-responses")
    assert "rs_" not in str(made.messages)


def test_an_overflow_after_a_cure_is_still_compacted():
    model = Model(2_000)
    refused = []

    def call(messages):
        if not refused:
            refused.append(1)
            raise Refusal("messages.1.content.0: Invalid `signature` in `thinking` block")
        return model(messages)

    messages = [*thinking_talk(), {"role": "assistant", "content": "Read."}, *talk(60)]
    made = recovering(call, messages, model="gpt-4o", format="anthropic")
    assert (len(made.plans), made.passes) == (2, 1)
    assert "signature" not in str(made.messages)
