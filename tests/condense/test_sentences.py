import random

import refold
from refold._condense.pins import pins_of

FILLER = (
    "I looked at this again this morning and it seems fine to me so far.",
    "Let us go on with the next part when you have a moment.",
    "There is still some work to do on the pages that we talked about.",
    "The team had a meeting about it and everyone was rather happy.",
    "Here is some more background on why people asked for this change.",
)
TOLD = (
    "My sister's flat is in Lisbon near the river.",
    "The staging database listens on port 5544.",
    "Our contact at the bank is Henrike Vollmer.",
    "The blue binder holds the signed contracts.",
    "The old printer jams when the paper is thick.",
)


def dialogue(who, turns=60):
    dice = random.Random(3)
    said = dict(zip(sorted(dice.sample(range(2, turns - 20), len(TOLD))), TOLD, strict=True))
    messages = []
    for turn in range(turns):
        for role in ("user", "assistant"):
            words = [dice.choice(FILLER) for _ in range(6)]
            if role == who and turn in said:
                words.insert(3, said[turn])
            messages.append({"role": role, "content": " ".join(words)})
    return messages


def compacted(messages, share=0.3, **options):
    budget = int(refold.count(messages, format="openai-chat") * share)
    return refold.compact(messages, format="openai-chat", budget=budget, force=True, **options)


def said(result):
    return "\n".join(message["content"] for message in result.messages)


def test_what_a_user_said_once_stays_where_phrases_that_come_again_and_again_do_not():
    for share in (0.5, 0.3, 0.2):
        assert all(sentence in said(compacted(dialogue("user"), share)) for sentence in TOLD)


def test_what_the_assistant_said_once_stays_too():
    assert sum(sentence in said(compacted(dialogue("assistant"))) for sentence in TOLD) >= len(TOLD) - 1


def test_sentences_that_set_a_limit_stay_however_common_their_words_are():
    messages = dialogue("user")
    rule = "Never go on with the next part when there is still some work to do."
    messages[20]["content"] += f" {rule}"
    assert pins_of(rule)
    assert rule in said(compacted(messages, 0.2))


def test_the_gaps_are_marked_and_what_stays_stands_as_it_was_said():
    result = compacted(dialogue("user"))
    cut = [message for message in result.messages if "[…]" in message["content"]]
    assert cut
    for message in cut:
        for piece in message["content"].split("[…]"):
            assert any(piece.strip() in original["content"] for original in result.originals)


def test_words_that_are_said_again_letter_by_letter_leave_before_those_said_once():
    again = [f"{sentence} {sentence}" for sentence in FILLER]
    once = [f"Item {number} was moved from shelf {number * 7} to shelf {number * 9}." for number in range(30)]
    messages = []
    for number in range(90):
        words = once[number // 3] if number % 3 == 0 else again[number % len(again)]
        messages += [{"role": "user", "content": words}, {"role": "assistant", "content": again[(number + 1) % 5]}]
    kept = said(compacted(messages, 0.3))
    assert all(sentence in kept for sentence in once)
    assert all(sentence in kept for sentence in again)
