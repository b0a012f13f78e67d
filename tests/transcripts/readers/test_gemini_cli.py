import json

from refold.transcripts import read

HEADER = {"sessionId": "s", "projectHash": "h"}
RESPONSE = {"functionResponse": {"id": "f1", "name": "ls", "response": {"output": "a"}}}
ITEMS = [
    {"type": "user", "content": "go"},
    {
        "type": "gemini",
        "content": "looking",
        "thoughts": [{"subject": "s", "description": "d"}],
        "model": "g",
        "tokens": {"input": 100, "output": 5, "cached": 40, "thoughts": 3, "tool": 0, "total": 108},
        "toolCalls": [
            {"id": "f1", "name": "ls", "args": {"p": 1}, "status": "success", "result": [RESPONSE]},
            {"id": "f2", "name": "ls", "args": {}, "status": "cancelled"},
        ],
    },
    {"type": "info", "content": "x"},
    {"type": "gemini", "content": "", "tokens": {"input": 0, "output": 0}},
]
EXPECTED = [
    {"role": "user", "parts": [{"text": "go"}]},
    {
        "role": "model",
        "parts": [
            {"text": "looking"},
            {"functionCall": {"id": "f1", "name": "ls", "args": {"p": 1}}},
            {"functionCall": {"id": "f2", "name": "ls", "args": {}}},
        ],
    },
    {"role": "user", "parts": [RESPONSE]},
]


def test_calls_and_results_become_contents_of_both_sides():
    (item,) = read(json.dumps({**HEADER, "messages": ITEMS}).encode())
    assert (item.kind, item.format, item.model) == ("gemini-cli", "gemini", "g")
    assert item.messages == EXPECTED
    assert [(u.covers, u.prompt, u.completion, u.cache_read) for u in item.usage] == [(1, 100, 8, 40)]
    assert item.notes == (
        "1 × thought for the screen, which is not sent again",
        "1 × call without a result (cancelled), kept open",
        "1 × item of type info",
        "1 × answer without content",
    )


def test_a_session_a_line_an_item_is_the_same():
    (item,) = read("\n".join(map(json.dumps, [HEADER, *ITEMS])).encode())
    assert item.messages == EXPECTED


def test_lists_of_parts_go_through():
    user = {"type": "user", "content": [{"text": "a"}, "b", {"inlineData": {"mimeType": "image/png", "data": "QQ=="}}]}
    call = {"id": "f", "name": "n", "args": None, "result": "plain"}
    (item,) = read(
        json.dumps({**HEADER, "messages": [user, {"type": "gemini", "content": [], "toolCalls": [call]}]}).encode()
    )
    assert item.messages[0]["parts"] == [user["content"][0], {"text": "b"}, user["content"][2]]
    assert item.messages[2]["parts"][0]["functionResponse"]["response"] == {"output": "plain"}


def test_an_item_that_was_written_again_stands_as_it_was_last_written():
    tokens = {"input": 100, "output": 5, "cached": 40}
    first = {"id": "b", "type": "gemini", "content": "looking", "tokens": tokens}
    call = {"id": "f1", "name": "ls", "args": {}, "status": "success", "result": [RESPONSE]}
    later = {**first, "toolCalls": [call]}
    user = {"id": "a", "type": "user", "content": "go"}
    results = {"id": "c", "type": "user", "content": [RESPONSE]}
    lines = [HEADER, {"$set": {"messages": [user]}}, first, {"$set": {"lastUpdated": "t"}}, later, results]
    (item,) = read("\n".join(map(json.dumps, lines)).encode())
    assert item.messages == [
        {"role": "user", "parts": [{"text": "go"}]},
        {"role": "model", "parts": [{"text": "looking"}, {"functionCall": {"id": "f1", "name": "ls", "args": {}}}]},
        {"role": "user", "parts": [RESPONSE]},
    ]
    assert [(report.covers, report.prompt) for report in item.usage] == [(1, 100)]
    assert item.notes == (
        "1 × change of the session's own fields (line 4)",
        "1 × item that was written again later (line 3)",
        "1 × item of type header (line 1)",
        "1 × result that stands with its call too (line 6)",
    )


def test_what_was_taken_back_or_replaced_is_left_out():
    items = [{"id": name, "type": "user", "content": name} for name in "abc"]
    texts = lambda lines: [  # noqa: E731
        message["parts"][0]["text"]
        for message in read("\n".join(map(json.dumps, [HEADER, *lines])).encode())[0].messages
    ]
    assert texts([*items, {"$rewindTo": "b"}]) == ["a"]
    assert texts([*items, {"$rewindTo": "unknown"}, items[0]]) == ["a"]
    assert texts([*items[:2], {"$set": {"messages": [items[2]]}}, items[0]]) == ["c", "a"]
