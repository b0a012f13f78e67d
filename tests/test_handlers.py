import asyncio

from refold.core.needs import (
    ArchiveNeed,
    CountNeed,
    FileNeed,
    Provided,
    Refused,
    SummaryNeed,
)
from refold.handlers import Handlers
from refold.testing import talk

NEED = SummaryNeed(talk("u: hello").messages, "text")


def test_every_default_refuses_and_says_that_nobody_was_given():
    for need in (NEED, FileNeed("a.py", 10), ArchiveNeed(()), CountNeed(())):
        answer = Handlers().answer(need)
        assert isinstance(answer, Refused)
        assert answer.absent


def test_a_function_is_given_the_request_and_its_answer_is_taken():
    seen = []
    outside = Handlers(summarize=lambda need: seen.append(need) or "short")
    assert outside.answer(NEED) == Provided(text="short")
    assert seen == [NEED]


def test_an_exception_is_a_refusal_with_its_words():
    def failing(need):
        raise RuntimeError("no quota")

    answer = Handlers(summarize=failing).answer(NEED)
    assert answer == Refused("RuntimeError: no quota")
    assert not answer.absent


def test_an_empty_summary_is_a_refusal():
    for empty in ("", "  \n", None):
        assert Handlers(summarize=lambda need, empty=empty: empty).answer(NEED) == Refused(
            "the answer was empty", "empty"
        )


def test_an_answer_of_another_type_is_a_refusal():
    assert isinstance(Handlers(summarize=lambda need: 7).answer(NEED), Refused)


def test_an_empty_file_is_an_answer():
    assert Handlers(read_file=lambda need: "").answer(FileNeed("a.py", 10)) == Provided(text="")


def test_a_place_and_a_count_are_answers_of_their_own():
    outside = Handlers(archive=lambda need: "kept.jsonl", count=lambda need: 12)
    assert outside.answer(ArchiveNeed(())) == Provided(place="kept.jsonl")
    assert outside.answer(CountNeed(())) == Provided(count=12)


async def later(need):
    await asyncio.sleep(0)
    return "waited for"


async def failing_later(need):
    raise RuntimeError("no quota")


def test_a_coroutine_is_waited_for_from_synchronous_code():
    assert Handlers(summarize=later).answer(NEED) == Provided(text="waited for")
    assert Handlers(summarize=failing_later).answer(NEED) == Refused("RuntimeError: no quota")


def test_a_coroutine_is_waited_for_beside_a_running_event_loop():
    async def caller():
        return Handlers(summarize=later).answer(NEED)

    assert asyncio.run(caller()) == Provided(text="waited for")


def test_an_event_loop_awaits_functions_of_both_kinds():
    async def caller():
        return [
            await Handlers(summarize=function).answer_async(NEED)
            for function in (later, failing_later, lambda need: "plain")
        ]

    assert asyncio.run(caller()) == [
        Provided(text="waited for"),
        Refused("RuntimeError: no quota"),
        Provided(text="plain"),
    ]
