import json

from refold.core.messages import Message, MessageId, Note, Text
from refold.core.transcript import ROOT, canonical, chain, turns
from refold.testing import talk


def test_key_order_does_not_change_an_identity():
    assert canonical({"role": "user", "content": "x"}) == canonical({"content": "x", "role": "user"})


def test_volatile_keys_do_not_change_an_identity_at_any_depth():
    plain = {"role": "user", "content": [{"type": "text", "text": "x"}]}
    marked = {"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}]}
    volatile = frozenset({"cache_control"})
    assert canonical(plain, volatile) == canonical(marked, volatile)
    assert canonical(plain) != canonical(marked)


def test_a_volatile_word_in_a_text_stays_part_of_the_identity():
    volatile = frozenset({"cache_control"})
    assert canonical({"a": '"cache_control"'}, volatile) != canonical({"a": "other"}, volatile)


def test_lone_surrogates_huge_numbers_and_odd_values_have_identities():
    broken = json.loads('{"text": "\\ud83d", "n": 1e400, "big": 123456789012345678901234567890}')
    assert canonical(broken) == canonical(json.loads(json.dumps(broken)))


def test_the_same_message_after_another_parent_has_another_id():
    one = chain(ROOT, b"x")
    assert chain(one, b"x") != one
    assert one == chain(ROOT, b"x")


def test_a_shared_prefix_is_a_shared_chain():
    short = talk("u: a", "a: b")
    grown = talk("u: a", "a: b", "u: c")
    assert [message.id for message in grown.messages[:2]] == [message.id for message in short.messages]


def test_turns_begin_at_messages_of_the_user_and_not_at_ours():
    messages = talk("s: x", "u: a", "a: b", "u: c").messages
    ours = Message(MessageId("made"), "user", (Text("summary"),), Note("summary"))
    assert list(turns((*messages, ours))) == [range(1, 3), range(3, 5)]


def test_a_conversation_without_a_user_has_no_turn():
    assert list(turns(talk("s: x", "a: b").messages)) == []
