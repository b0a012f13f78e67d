"""What Gemini alone has: signatures, references to files of a response, calls that the server answers."""

import refold
from refold import formats
from refold.core.edits import Rewrite, fold
from refold.core.messages import Image, Reasoning, Text, ToolCall, ToolResult
from refold.core.transcript import ROOT

GEMINI = formats.find("gemini")
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAIAAAASFvFNAAAADElEQVR4nGNgIAkAAAAmAAEzwzTfAAAAAElFTkSuQmCC"


def picture(name):
    return {"inlineData": {"displayName": name, "mimeType": "image/png", "data": PNG}}


def response(answer, *names):
    held = {"id": "a", "name": "shot", "response": answer, "parts": [picture(name) for name in names]}
    return {"role": "user", "parts": [{"functionResponse": held}]}


def written(native, at, to):
    (edited,) = fold([GEMINI.read(native, ROOT)], [[Rewrite(ROOT, at, to)]])
    return GEMINI.write(edited)["parts"][0]["functionResponse"]


def first(number=0):
    return ("parts", 0, "functionResponse", "parts", number)


def test_an_empty_text_with_a_signature_is_healthy_and_comes_back_as_it_is():
    messages = [
        {"role": "user", "parts": [{"text": "Why?"}]},
        {"role": "model", "parts": [{"text": "Because."}, {"text": "", "thoughtSignature": "U0lH"}]},
        {"role": "user", "parts": [{"text": "Go on."}]},
    ]
    assert refold.violations(messages) == ()
    assert refold.repair(messages).messages == messages
    assert GEMINI.read(messages[1], ROOT).parts[1] == Reasoning("", True, 4, ("parts", 1))


def test_an_empty_text_without_signature_is_blank_and_line_breaks_alone_are_words():
    messages = [
        {"role": "user", "parts": [{"text": "Write."}]},
        {"role": "model", "parts": [{"text": "One."}, {"text": "\n\n"}, {"text": "Two."}, {"text": ""}]},
        {"role": "user", "parts": [{"text": "Go on."}]},
    ]
    assert [violation.message for violation in refold.violations(messages)] == ["the assistant message has blank words"]
    repaired = refold.repair(messages).messages[1]["parts"]
    assert repaired == [{"text": "One."}, {"text": "\n\n"}, {"text": "Two."}]


def test_words_in_place_of_a_picture_stand_where_the_response_referred_to_it():
    native = response({"shots": [{"$ref": "1.png"}, {"$ref": "2.png"}]}, "1.png", "2.png")
    held = written(native, first(), Text("[a picture was here]"))
    assert held["response"] == {"shots": ["[a picture was here]", {"$ref": "2.png"}]}
    assert held["parts"] == [picture("2.png")]


def test_a_reference_goes_with_a_picture_that_goes_without_words():
    held = written(response({"shot": {"$ref": "1.png"}, "ok": True}, "1.png"), first(), None)
    assert held == {"id": "a", "name": "shot", "response": {"shot": "[left out]", "ok": True}}


def test_words_in_place_of_a_picture_that_nothing_refers_to_join_the_output():
    assert written(response({"output": "Done."}, ""), first(), Text("[left out: a picture]"))["response"] == {
        "output": "Done.\n[left out: a picture]"
    }
    assert written(response({"url": "https://a", "ok": True}, ""), first(), Text("[gone]"))["response"] == {
        "url": "https://a",
        "ok": True,
        "left_out": "[gone]",
    }
    assert written(response({}, ""), first(), Text("[gone]"))["response"] == {"output": "[gone]"}


def test_no_reference_is_left_where_a_result_is_replaced_as_a_whole():
    native = response({"shot": {"$ref": "1.png"}}, "1.png", "2.png")
    message = GEMINI.read(native, ROOT)
    (result,) = message.results
    (edited,) = fold([message], [[Rewrite(ROOT, result.at, ToolResult("a", (Text("[output a]"),), "shot"))]])
    held = GEMINI.write(edited)["parts"][0]["functionResponse"]
    assert held == {"id": "a", "name": "shot", "response": {"output": "[output a]"}}


def test_a_reference_inside_a_tools_own_json_is_left_alone():
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "shot": {"$ref": "1.png"}}
    held = written(response(schema, "1.png"), first(), Text("[gone]"))
    assert held["response"] == {**schema, "shot": "[gone]"}


def test_an_untouched_message_keeps_its_references_as_the_same_object():
    native = response({"shot": {"$ref": "1.png"}}, "1.png")
    assert GEMINI.write(GEMINI.read(native, ROOT)) is native


def test_calls_that_the_server_answers_are_read_as_such():
    native = {
        "role": "model",
        "parts": [
            {"toolCall": {"id": "s1", "toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["x"]}}},
            {"toolResponse": {"id": "s1", "toolType": "GOOGLE_SEARCH_WEB", "response": {"output": "found"}}},
            {"executableCode": {"id": "c1", "language": "PYTHON", "code": "1"}},
            {"codeExecutionResult": {"id": "c1", "outcome": "OUTCOME_OK", "output": "1"}},
        ],
    }
    call, found, code, output = GEMINI.read(native, ROOT).parts
    assert isinstance(call, ToolCall)
    assert (call.call_id, call.name, call.server, call.arguments) == (
        "s1", "google_search_web", True, '{"queries":["x"]}',
    )  # fmt: skip
    assert isinstance(found, ToolResult)
    assert (found.call_id, found.text, found.server) == ("s1", "found", True)
    assert (code.call_id, output.call_id, output.text) == ("c1", "c1", "1")


def test_the_resolution_of_a_picture_is_its_detail():
    part = {"inlineData": {"mimeType": "image/png", "data": PNG}, "mediaResolution": {"level": "MEDIA_RESOLUTION_LOW"}}
    (image,) = GEMINI.read({"role": "user", "parts": [part]}, ROOT).parts
    assert isinstance(image, Image)
    assert (image.width, image.height, image.detail) == (3, 2, "low")


def turn(number, seal):
    call = {"functionCall": {"id": f"c{number}", "name": "write", "args": {"text": f"{number} words " * 600}}}
    result = {"id": f"c{number}", "name": "write", "response": {"output": "written"}}
    return [
        {"role": "user", "parts": [{"text": f"Write {number}."}]},
        {"role": "model", "parts": [{**call, "thoughtSignature": seal}]},
        {"role": "user", "parts": [{"functionResponse": result}]},
    ]


def test_a_call_keeps_its_signature_in_the_current_turn_and_loses_it_with_a_change_in_an_older_one():
    messages = [*turn(1, "b25l"), {"role": "model", "parts": [{"text": "Written."}]}, *turn(2, "dHdv")]
    result = refold.compact(messages, model="gemini-3-pro-preview", budget=2_600, force=True)
    calls = [part for content in result.messages for part in content["parts"] if "functionCall" in part]
    assert calls[-1] is messages[5]["parts"][0]
    assert all("thoughtSignature" not in part for part in calls[:-1])
    assert len(calls) == 1 or len(str(calls[0])) < 2_000


def test_words_behind_responses_begin_a_turn_of_their_own_after_a_compaction_too():
    messages = [*turn(1, "b25l"), {"role": "user", "parts": [{"text": "And now?"}]}]
    (edited,) = (m for m in formats.read(GEMINI, messages).messages if m.results)
    (result,) = edited.results
    edit = Rewrite(edited.id, result.at, ToolResult("c1", (Text("[short]"),), "write"))
    out = formats.assemble(GEMINI, fold(formats.read(GEMINI, messages).messages, [[edit]]))
    assert [content["role"] for content in out] == ["user", "model", "user", "user"]
    assert out[3] is messages[3]
