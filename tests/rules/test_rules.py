from msgspec.structs import replace

from refold._rules.arguments import JsonArguments
from refold._rules.content import Filled
from refold._rules.ids import UniqueIds
from refold._rules.opening import Opening
from refold._rules.order import Order
from refold._rules.pairing import ResultsFirst, ServerPairing
from refold._rules.reasoning import ReasoningBeforeItem, SealedReasoning
from refold.core.messages import (
    Message,
    MessageId,
    Note,
    Patch,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from refold.testing import talk


def native(transcript):
    """As if read from a provider's list."""
    return [replace(message, native={"role": message.role}) for message in transcript.messages]


def at(rule, messages):
    return [violation.at[0] for violation in rule.broken(messages)]


def test_two_untouched_messages_of_one_speaker_in_a_row_are_found_where_speakers_alternate():
    messages = native(talk("u: one", "u: two", "a: three", "t: c = x", "u: four"))
    assert at(Order(alternate=True), messages) == [1, 4]
    assert at(Order(), messages) == []


def test_a_neighbor_of_ours_is_joined_and_breaks_no_order():
    messages = native(talk("u: one", "u: two"))
    ours = replace(messages[1], native=None, note=Note("marker"))
    assert at(Order(alternate=True), [messages[0], ours]) == []


def test_a_system_message_in_the_list_is_found_where_there_may_be_none():
    messages = native(talk("u: one", "s: be brief"))
    assert at(Order(system_in_list=False), messages) == [1]
    assert at(Order(), messages) == []


def test_a_system_message_may_stand_anywhere_but_first_where_its_words_belong_beside_the_list():
    rule = Order(alternate=True, system_first=False)
    assert at(rule, native(talk("u: one", "s: be brief", "u: two"))) == []
    assert at(rule, native(talk("s: be brief", "u: one"))) == [0]


def test_all_system_messages_before_the_first_speaker_stand_first_for_a_plan_may_join_them():
    rule = Order(system_first=False)
    messages = native(talk("s: be brief", "s: be exact", "u: one"))
    assert at(rule, messages) == [0, 1]
    ours = replace(messages[0], native=None, note=Note("synthetic"))  # written as the user's
    assert at(rule, [ours, *messages[1:]]) == []


def test_the_first_speaker_after_system_messages_is_the_user():
    assert at(Opening(), talk("s: rules", "a: hello", "u: hi").messages) == [1]
    assert at(Opening(), talk("s: rules", "u: hi").messages) == []
    assert at(Opening(user_first=False), talk("a: hello").messages) == []


def test_an_assistant_may_rest_last_but_none_of_ours():
    messages = talk("u: hi", "a: hello").messages
    assert at(Opening(), messages) == []
    ours = replace(messages[1], note=Note("acknowledgement"))
    assert at(Opening(), [messages[0], ours]) == [1]
    assert at(Opening(assistant_last=True), [messages[0], ours]) == []


def thinking(place, *parts, role="assistant"):
    return Message(MessageId(f"m{place}"), role, parts, native={"role": role})


SEALED = Reasoning("hm", sealed=True, at=("content", 0))


def test_signed_reasoning_may_stand_behind_words():
    for rule in (SealedReasoning(), SealedReasoning(first=False)):
        assert at(rule, [thinking(0, SEALED, Text("a"))]) == []
        assert at(rule, [thinking(0, Text("a"), SEALED)]) == []


def test_a_patch_at_inside_or_around_signed_reasoning_is_found():
    message = thinking(0, SEALED, Text("a", at=("content", 1)))
    assert at(SealedReasoning(), [replace(message, patches=(Patch(("content", 1), Text("b")),))]) == []
    for path in [("content", 0), ("content", 0, "thinking"), ("content",)]:
        assert at(SealedReasoning(), [replace(message, patches=(Patch(path, Text("b")),))]) == [0]


def test_a_tool_loop_that_reasoning_opened_is_cut_only_before_an_answer_with_reasoning():
    call = ToolCall("c", "read")
    result = ToolResult("c")
    loop = [
        thinking(0, Text("go"), role="user"),
        thinking(1, SEALED, call),
        thinking(2, result, role="tool"),
        thinking(3, call),
        thinking(4, result, role="tool"),
        thinking(5, SEALED, call),
        thinking(6, result, role="tool"),
    ]
    assert set(range(8)) - SealedReasoning().cuts(loop) == {3}


def test_a_reasoning_item_is_not_cut_from_the_item_after_it():
    item = thinking(1, Reasoning(sealed=True))
    messages = [thinking(0, Text("go"), role="user"), item, thinking(2, Text("done"))]
    rule = ReasoningBeforeItem()
    assert rule.cuts(messages) == {0, 1, 3}
    assert at(rule, messages) == []
    assert at(rule, messages[:2]) == [1]
    assert at(rule, [item, messages[0]]) == [0]


def test_messages_without_content_and_blank_words_are_found():
    empty = thinking(0, role="user")
    blank = thinking(1, Text(" \n"), ToolCall("c", "read"))
    assert at(Filled(), [empty, blank]) == [0, 1]
    assert at(Filled(blank_with_calls=True), [blank]) == []
    assert at(Filled(), [thinking(0, SEALED)]) == []
    assert at(Filled(reasoning_alone=False), [thinking(0, SEALED)]) == [0]
    assert at(Filled(), [thinking(0, ToolResult("c"), role="tool")]) == []


def test_equal_and_missing_ids_in_one_message_are_found():
    twice = thinking(0, ToolCall("c", "read"), ToolCall("c", "read"), ToolCall("d", "read"))
    none = thinking(1, ToolCall("", "read"), ToolCall("", "read"))
    assert at(UniqueIds(), [twice, none]) == [0, 1]
    assert at(UniqueIds(optional=True), [twice, none]) == [0]


def test_arguments_that_are_no_json_object_are_found():
    def call(arguments, kind="function"):
        return thinking(0, ToolCall("c", "read", arguments, kind))

    for good in ("", "{}", '{"a": [1]}'):
        assert at(JsonArguments(), [call(good)]) == []
    for bad in ('{"a": "cut', "[1]", "text", '{"a": 1} {'):
        assert at(JsonArguments(), [call(bad)]) == [0]
    assert at(JsonArguments(), [call("*** Begin Patch", "custom")]) == []


def server(*parts, role="assistant", place=0):
    return thinking(place, *parts, role=role)


ASKED = ToolCall("s1", "web_search", server=True)
ANSWERED = ToolResult("s1", server=True)


def test_a_call_that_the_provider_answers_has_its_result_beside_it():
    rule = ServerPairing()
    user = server(Text("and?"), role="user", place=1)
    assert at(rule, [server(ASKED, ANSWERED), user]) == []
    assert at(rule, [server(ASKED), user]) == [0]
    assert at(rule, [server(ANSWERED), user]) == [0]
    assert at(rule, [server(ASKED)]) == []  # a paused turn


def test_a_server_call_may_wait_while_calls_of_ours_are_answered():
    rule = ServerPairing()
    messages = [
        server(ASKED, ToolCall("c", "read")),
        server(ToolResult("c"), role="tool", place=1),
        server(ANSWERED, Text("done"), place=2),
    ]
    assert at(rule, messages) == []
    assert rule.cuts(messages) == {0, 3}


def test_results_come_first_in_their_message_where_that_is_asked():
    rule = ResultsFirst()
    call = thinking(0, ToolCall("c", "read"))
    assert at(rule, [call, thinking(1, ToolResult("c"), Text("so?"), role="user")]) == []
    assert at(rule, [call, thinking(1, Text("so?"), ToolResult("c"), role="user")]) == [1]
