import json

import pytest

from refold._condense.digest.render import digest_text
from refold._condense.digest.task_lists import task_list
from refold.testing import talk, view_of


def call(name, id, **arguments):
    return f"a: x | {name}({json.dumps(arguments)}) as {id}"


def item(words, status, **more):
    return {"content": words, "status": status, **more}


def listed(*lines):
    found = task_list(talk("u: go", *lines).messages)
    return found and (found.done, found.remaining)


OLD = call("TodoWrite", "c1", todos=[item("read it", "completed"), item("mend it", "pending")])


def test_the_newest_call_tells_the_state_and_one_that_failed_tells_nothing():
    new = call("TodoWrite", "c2", todos=[item("read it", "completed"), item("mend it", "completed")])
    assert listed(OLD, "t: c1 = ok", new, "t: c2 = ok") == (("read it", "mend it"), ())
    assert listed(OLD, "t: c1 = ok", new, "t! c2 = not valid") == (("read it",), ("mend it",))


def test_an_empty_list_has_no_old_tasks_and_a_call_of_another_tool_with_an_empty_list_is_none():
    assert listed(OLD, call("TodoWrite", "c2", todos=[])) == ((), ())
    assert listed(OLD, call("search", "c2", items=[])) == (("read it",), ("mend it",))


def test_an_update_of_some_tasks_is_joined_with_the_list_before_it():
    first = call("todo_write", "c1", todos=[item("read it", "pending", id="1"), item("mend it", "pending", id="2")])
    more = call(
        "todo_write", "c2", merge=True, todos=[{"id": "1", "status": "completed"}, item("test", "in_progress", id="3")]
    )
    assert listed(first, more) == (("read it",), ("mend it", "test (in_progress)"))


@pytest.mark.parametrize(
    "arguments",
    [
        {"name": "update_plan", "plan": [{"step": "read it", "status": "completed"}, {"step": "mend it", "status": "in_progress"}]},
        {"name": "manage_todo_list", "todoList": [{"id": 1, "title": "read it", "status": "completed"},
                                                  {"id": 2, "title": "mend it", "status": "in-progress"}]},
        {"name": "update_todo_list", "todos": "[x] read it\n[-] mend it"},
        {"name": "TodoWrite", "todos": "1. [completed] read it\n2. [in_progress] mend it"},
        {"name": "task_tracker", "task_list": [{"title": "read it", "status": "done"}, {"title": "mend it", "status": "in_progress"}]},
    ],
)  # fmt: skip
def test_lists_of_many_agents_are_read(arguments):
    assert listed(call(arguments.pop("name"), "c1", **arguments)) == (("read it",), ("mend it (in_progress)",))


def test_a_list_of_boxes_without_a_tick_is_no_list_of_tasks():
    assert listed("a: What I check in each review:\n- [ ] Is the order of the waves kept?\n- [ ] No new column") is None


def test_boxes_in_words_count_only_where_no_tool_keeps_a_list():
    boxes = "a: Done so far:\n- [x] read it\n- [ ] mend it"
    assert listed(boxes) == (("read it",), ("mend it",))
    assert listed(OLD, "a: Before you merge:\n- [ ] ask Ann") == (("read it",), ("mend it",))
    assert listed("a: hello") is None


def test_tasks_that_tools_keep_one_by_one_are_a_list():
    created = 'a: x | TaskCreate({"subject": "read it"}) as c1 | TaskCreate({"subject": "mend it"}) as c2'
    first = call("TaskUpdate", "c3", taskId="1", status="completed")
    assert listed(created, first, call("TaskUpdate", "c4", taskId="2", status="in_progress")) == (
        ("read it",), ("mend it (in_progress)",),
    )  # fmt: skip
    assert listed(created, first, call("TaskUpdate", "c4", taskId="2", status="deleted")) == (("read it",), ())
    numbered = (call("TaskCreate", "c2", subject="mend it"), "t: c2 = Task #2 created successfully: mend it")
    assert listed(*numbered, call("TaskUpdate", "c3", taskId="2", status="completed")) == (("mend it",), ())


def test_a_finished_list_leaves_nothing_to_do_of_an_earlier_digest():
    transcript = talk("u: go", OLD, "t: c1 = ok", "a: Half done.", "u: on")
    first = digest_text(view_of(transcript, window=20_000), transcript.messages[:-1])
    assert "- to do: mend it" in first
    again = talk(f"u: {first}", call("TodoWrite", "c2", todos=[item("mend it", "completed")]), "t: c2 = ok", "u: on")
    assert "to do: mend it" not in digest_text(view_of(again, window=20_000), again.messages[1:-1])


def test_what_a_tool_answers_that_was_asked_for_its_list_is_the_list():
    create = ('a: x | TaskCreate({"subject": "Read it"}) as c1', "t: c1 = Task #1 created successfully: Read it")
    listed = ("a: x | TaskList({}) as c2", "t: c2 = #2 [in_progress] Write it (worker)\n#1 [completed] Read it")
    found = task_list(talk("u: go", *create, *listed).messages)
    assert (found.done, found.remaining) == (("Read it",), ("Write it (worker) (in_progress)",))
    done = ('a: x | TaskUpdate({"taskId": "2", "status": "completed"}) as c3', "t: c3 = ok")
    assert task_list(talk("u: go", *create, *listed, *done).messages).remaining == ()
    of_pi = ('a: x | todo({"action": "list"}) as c4', "t: c4 = [x] #1: Read it\n[ ] #2: Write it")
    found = task_list(talk("u: go", *of_pi).messages)
    assert (found.done, found.remaining) == (("Read it",), ("Write it",))
    assert task_list(talk("u: go", "a: x | todo({}) as c4", "t: c4 = [x] one\nand more").messages) is None
