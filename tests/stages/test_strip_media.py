from refold.core.messages import (
    File,
    Image,
    Message,
    MessageId,
    Text,
    ToolCall,
    ToolResult,
)
from refold.core.transcript import Transcript
from refold.stages.strip_media import StripMedia
from refold.testing import view_of

CALL = Message(MessageId("b"), "assistant", (ToolCall("c1", "look", "{}"),))


def seen(messages):
    return view_of(Transcript(tuple(messages)))


def pictured(id, role="user", *parts):
    return Message(MessageId(id), role, (*parts, Image("image/png", 900, at=("content", 1))))


def words(edits):
    return [(edit.message, edit.to.text) for edit in edits]


def test_pictures_and_files_become_markers_wherever_they_stand():
    film = File("video", "video/mp4", 9_000, "tour.mp4", at=("content", 2))
    result = ToolResult("c1", (Text("seen"), Image("image/png", 900, at=("content", 0, "x", 1))))
    view = seen([
        pictured("a", "user", Text("Look"), film), CALL, Message(MessageId("c"), "tool", (result,)),
        Message(MessageId("d"), "assistant", (Text("I see"),)), pictured("e"),
    ])  # fmt: skip
    assert words(StripMedia().edits(view)) == [
        ("a", "[A video named tour.mp4 was left out: the request was too large]"),
        ("a", "[A picture was left out: the request was too large]"),
        ("c", "[A picture was left out: the request was too large]"),
    ]


def test_what_the_model_has_not_seen_leaves_only_where_there_is_nothing_else():
    view = seen([Message(MessageId("d"), "assistant", (Text("Hello"),)), pictured("e", "user", Text("Look"))])
    assert [message for message, _ in words(StripMedia().edits(view))] == ["e"]


def test_without_media_nothing_changes():
    assert StripMedia().edits(seen([Message(MessageId("a"), "user", (Text("Hello"),))])) == ()
