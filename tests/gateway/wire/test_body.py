import json

import pytest

from refold._gateway.wire import body as bodies
from refold._gateway.wire.body import check_values, continued, native, opened, repeats, spliced
from refold.errors import BadValue

BODY = b'{"model": "m",\n "messages" : [ {"role":"user","content":"1.10 \\/ x"} , {"n":1e3} ] , "stream": true}'


def test_messages_are_the_clients_own_bytes():
    found = opened(BODY, "messages")
    assert list(map(bytes, found.raws)) == [b'{"role":"user","content":"1.10 \\/ x"}', b'{"n":1e3}']
    assert bytes(found.raw("model")) == b'"m"'
    assert found.get("missing", "stream") is True


def test_splicing_leaves_everything_around_the_messages_as_it_is():
    found = opened(BODY, "messages")
    assert spliced(found, b'{"x":1}') == b'{"model": "m",\n "messages" : [{"x":1}] , "stream": true}'


TAILS = [
    b' , {"z":0}] , "stream": false}', b"]}", b',{"a":1},{"b":2}\n]\n}', b' , {"z":0}] , "stream": true}',
    b'], "x":[1] , "stream": true}', b',{"a":1}], "x":[1] , "stream": true}',
]  # fmt: skip


@pytest.mark.parametrize("tail", TAILS)
def test_a_longer_body_is_opened_by_what_is_known_of_the_shorter_one(tail):
    known = opened(BODY, "messages")
    longer = BODY[: known.end] + tail
    assert known.raws
    found, fresh = continued(known, longer), opened(longer, "messages")
    assert list(map(bytes, found.raws)) == list(map(bytes, fresh.raws))
    assert (found.start, found.end, found.stop) == (fresh.start, fresh.end, fresh.stop)
    assert spliced(found, b"") == spliced(fresh, b"")


def test_a_body_that_differs_anywhere_before_is_not_continued():
    known = opened(BODY, "messages")
    assert repeats(known, BODY)
    assert not repeats(known, BODY.replace(b'"m"', b'"n"'))
    assert continued(known, BODY[: known.end] + b"7]}") is None
    assert continued(known, BODY[: known.end] + b'],"model":"twice"}') is None


@pytest.mark.parametrize("tail", [b",]}", b', ] , "stream": true}', b' ,\n], "stream": false}', b",,1]}"])
def test_a_list_that_ends_in_a_comma_is_not_continued_because_it_is_no_json(tail):
    known = opened(BODY, "messages")
    count, longer = len(known.raws), BODY[: known.end] + tail
    assert continued(known, longer) is None
    assert len(known.raws) == count
    with pytest.raises(ValueError):
        opened(longer, "messages")


@pytest.mark.parametrize(
    "body", [b'{"messages":[1],"messages":[2]}', b'{"messages":"text"}', b'{"other":[]}', b'{"messages":7}']
)
def test_a_body_without_one_list_of_messages_has_none(body):
    assert opened(body, "messages") is None


@pytest.mark.parametrize("body", [b"", b"{", b'{"messages":[}', b"\xff\xfe", b"[1,2]x"])
def test_what_is_no_json_is_a_value_error(body):
    with pytest.raises(ValueError):
        opened(body, "messages")


def test_half_a_surrogate_pair_is_read_and_its_bytes_stay():
    body = '{"a": NaN, "messages": [ {"content": "\\ud83d é"} , {"n": 1} ], "z": 2}'.encode()
    found = opened(body, "messages")
    assert list(map(bytes, found.raws)) == ['{"content": "\\ud83d é"}'.encode(), b'{"n": 1}']
    assert native(found.raws[0]) == {"content": "\ud83d é"}
    assert spliced(found, b"!") == b'{"a": NaN, "messages": [!], "z": 2}'


def test_keys_with_escapes_are_found_by_what_they_say():
    found = opened(b'{"mess\\u0061ges":[{"a":1}]}', "messages")
    assert list(map(bytes, found.raws)) == [b'{"a":1}']


def test_brackets_and_braces_in_strings_are_text():
    body = json.dumps({"x": '"messages":[', "messages": [{"content": '}],"'}], "y": {"messages": [9]}}).encode()
    assert [native(raw) for raw in opened(body, "messages").raws] == [{"content": '}],"'}]


@pytest.mark.parametrize("more", [b',"":[1],"x":2}', b',"messages":[{"b":2}]}', b',"input":[{"b":2}]}'])
def test_keys_after_the_messages_that_look_like_them_lead_nobody_astray(more):
    known = opened(b'{"messages":[{"a":1}],"model":"m"}', "messages")
    body = b'{"messages":[{"a":1},{"c":3}]' + more
    found = continued(known, body) or opened(body, "messages")
    if found is not None:
        assert spliced(found, b"0") == b'{"messages":[0]' + more
    assert (found is None) == (b'"messages":[{"b"' in more)


@pytest.mark.parametrize("unit", [b"0", b"{}", b'""', b'{"role":"user","content":"a,b"}', b'"\\\\"', b'"\\","'])
def test_a_body_of_more_values_than_are_made_in_a_moment_is_not_read(unit, monkeypatch):
    monkeypatch.setattr(bodies, "MOST_VALUES", 1_000)
    monkeypatch.setattr(bodies, "WINDOW", 64)  # so that strings and escapes are cut in all places
    values = 1_000 // (unit.count(b":") or 1)
    few, many = (b'{"messages":[' + b",".join([unit] * count) + b"]}" for count in (values - 1, values + 2))
    check_values(few)
    assert len(opened(few, "messages").raws) == values - 1
    with pytest.raises(BadValue, match="1,000 values"):
        opened(many, "messages")
    known = opened(b'{"messages":[1]}', "messages")
    with pytest.raises(BadValue):
        continued(known, many.replace(b"[", b"[1,", 1))
    assert len(known.raws) == 1, "nothing of it was taken in"


@pytest.mark.parametrize("signs", [(b"[", b"]"), (b'{"a":', b"}")])
def test_lists_within_lists_are_values_though_no_comma_stands_between_them(signs, monkeypatch):
    monkeypatch.setattr(bodies, "MOST_VALUES", 1_000)
    monkeypatch.setattr(bodies, "WINDOW", 64)
    few, many = (b'{"messages":[%b0%b]}' % (signs[0] * depth, signs[1] * depth) for depth in (900, 3_000))
    check_values(few)
    with pytest.raises(BadValue, match="1,000 values"):
        check_values(many)


@pytest.mark.parametrize(
    "text", ["[{" * 5_000, "1,2,3\n" * 5_000, 'a,"b",\\' * 5_000, "\\" * 5_000 + ",," * 5_000, '","' * 9_000]
)
def test_commas_of_a_text_are_no_values(text, monkeypatch):
    monkeypatch.setattr(bodies, "MOST_VALUES", 1_000)
    monkeypatch.setattr(bodies, "WINDOW", 61)
    raw = json.dumps({"messages": [{"role": "user", "content": text}]}).encode()
    assert native(opened(raw, "messages").raws[0])["content"] == text


def test_a_message_that_is_too_long_to_be_read_while_others_wait_is_not_read(monkeypatch):
    monkeypatch.setattr(bodies, "LONGEST_MESSAGE", 1_000)
    known = opened(b'{"messages":[{}]}', "messages")
    long = b'{"content":"%b"}' % (b"x" * 1_000)
    with pytest.raises(BadValue, match="1,000 bytes"):
        opened(b'{"messages":[{},%b]}' % long, "messages")
    with pytest.raises(BadValue, match="1,000 bytes"):
        continued(known, b'{"messages":[{},%b]}' % long)
    assert len(known.raws) == 1
    monkeypatch.setattr(bodies, "LONGEST_SLOW", 1_000)
    with pytest.raises(BadValue, match="surrogate"):
        opened(b'{"messages":[{}],"x":"\\ud800%b"}' % (b"x" * 1_000), "messages")
