import copy
import json
from pathlib import Path

import pytest

from refold import formats
from refold.core.edits import Rewrite, fold
from refold.core.messages import Opaque, Text, ToolResult

RECORDED = sorted(Path(__file__).parent.glob("recorded/*/*.json"))
every_request = pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parent.name}/{path.stem}")


def opened(path):
    body = json.loads(path.read_text())
    format = formats.find(path.parent.name)
    request = formats.open_body(format, body)
    return format, body, request, formats.read(format, request.messages)


def test_there_is_a_recorded_request_of_every_format():
    assert {path.parent.name for path in RECORDED} == set(formats.names())


@every_request
def test_a_request_breaks_no_rule_and_its_format_is_told(path):
    format, _, request, transcript = opened(path)
    assert formats.broken(format, transcript.messages) == ()
    if path.stem != "prompt-alone":
        assert formats.detect(request.messages) is format


@every_request
def test_a_request_closed_with_its_own_messages_is_the_same_object(path):
    format, body, request, transcript = opened(path)
    assert formats.close_body(format, request, formats.assemble(format, transcript.messages)) is body


@every_request
def test_shortening_every_result_leaves_all_else_as_it_was(path):
    format, body, request, transcript = opened(path)
    before = copy.deepcopy(body)
    spots = [
        (message, inner)
        for message in transcript.messages
        for result in message.results
        for inner in result.content
        if isinstance(inner, Text)
    ]
    view = fold(transcript.messages, [[Rewrite(message.id, inner.at, Text("[short]")) for message, inner in spots]])
    closed = formats.close_body(format, request, formats.assemble(format, view))
    assert body == before
    assert json.dumps(closed).count("[short]") == len(spots)
    again = formats.read(format, formats.open_body(format, closed).messages)
    for old, new in zip(transcript.messages, again.messages, strict=True):
        assert [part for part in old.parts if not isinstance(part, ToolResult)] == [
            part for part in new.parts if not isinstance(part, ToolResult)
        ]
        assert [(part.call_id, part.is_error) for part in old.results] == [
            (part.call_id, part.is_error) for part in new.results
        ]
        assert new.native.keys() == old.native.keys()


@every_request
def test_what_is_unknown_is_carried_and_counted(path):
    _, _, _, transcript = opened(path)
    for message in transcript.messages:
        assert all(part.size > 0 for part in message.parts if isinstance(part, Opaque))
