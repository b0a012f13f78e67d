import json

import pytest

from refold._condense.digest.direction import direction
from refold._condense.digest.render import digest_text
from refold.testing import talk, view_of

REQUEST = "Replace the scan of the list by an index of names, and keep the order of the rows as it is."


def told(*lines):
    return tuple(direction(talk(*lines)))


@pytest.mark.parametrize(
    "first",
    [
        "/mode",
        "/plan docs/next.md",
        "begin phase 1",
        "continue",
        "Explore this project and learn about what it does",
        "check out main, pull the latest",
        "Lies dir bitte das Projekt durch und sag, was es tut",
        "先了解一下这个项目",
    ],
)
def test_where_the_first_request_has_no_content_the_first_that_has_some_is_the_goal(first):
    lines = (f"u: {first}", "a: Done.", "u: continue", "a: Done.", f"u: {REQUEST}", "a: Done.")
    assert told(*lines) == (f"user turn 3, the first request with content: {REQUEST}",)


@pytest.mark.parametrize(
    "first",
    [
        "Look at the store and then fix its index",
        "Please look through the logs one after another, and tell me what stands out.",
        "why does it fail?",
        "Fix the index of the store",
        REQUEST,
    ],
)
def test_a_first_request_that_says_what_is_wanted_is_the_goal_alone(first):
    assert told(f"u: {first}", "a: Done.", f"u: {REQUEST}", "a: Done.") == ()


def test_what_a_later_turn_replaced_is_not_the_goal():
    first = "For the preview of the search index, use port 9469."
    later = "I changed my mind about the preview of the search index: use 8964 instead."
    assert told("u: Explore this project", "a: Done.", f"u: {first}", "a: Done.", f"u: {later}", "a: Done.") == (
        f"user turn 3, the first request with content: {later}",
    )


def test_a_command_is_told_with_what_it_loaded():
    skill = "Base directory for this skill: /skills/release\n\nWhat to do:\n\nBuild the wheel and publish it."
    lines = told("u: <command-name>/release</command-name>", f"u: {skill}", "a: Done.")
    assert lines == ("user turn 1, `/release`, whose text says: Build the wheel and publish it.",)


def test_a_command_that_only_names_a_file_is_told_with_what_the_file_says_first():
    skill = "Base directory for this skill: /skills/plan\n\nFollow the instructions in ./flow.md."
    read = 'a: x | read({"file_path": "/skills/plan/flow.md"}) as c'
    shown = "t: c = 1\t# Flow\n2\t\n3\t**Goal:** Find out what the store has to keep.\n4\tAsk first."
    lines = told("u: <command-name>/plan</command-name>", f"u: {skill}", read, shown, "a: Done.")
    says = "Follow the instructions in ./flow.md. ./flow.md begins: Goal: Find out what the store has to keep."
    assert lines == (f"user turn 1, `/plan`, whose text says: {says}",)


def test_the_summary_of_an_earlier_context_tells_the_goal():
    recap = (
        "This session is being continued from a previous conversation that ran out of context.\n\nSummary:\n"
        "1. **Primary Request and Intent:**\n\nThe user moves the store to a new format. Requests in order:\n\n- x\n"
    )
    lines = told(f"u: {recap}", "u: Rename the button of the page", "a: Done.")
    assert lines == ("from the summary of the earlier context: The user moves the store to a new format.",)


def test_the_plan_that_was_written_is_named_and_the_digest_tells_the_goal_though_its_turn_stays():
    plan = json.dumps({"file_path": "docs/plan.md", "content": "# An index in place of the scan\n\nSteps."})
    transcript = talk(
        "u: Explore this project",
        "a: It reads rows.",
        f"u: {REQUEST}",
        f"a: x | write({plan}) as c",
        "t: c = ok",
        "a: Written.",
        "u: begin",
    )
    said = (
        f"user turn 2, the first request with content: {REQUEST}",
        "written for it, last in turn 2: docs/plan.md (An index in place of the scan)",
    )
    assert tuple(direction(transcript)) == said
    messages = transcript.messages
    digest = digest_text(view_of(transcript), messages[3:6], staying=(*messages[:3], messages[6]), limit=2_000)
    assert "## Goal (the first request)\n" + "\n".join(f"- {line}" for line in said) in digest


def test_a_goal_that_a_long_request_says_at_its_end_is_quoted_with_its_beginning():
    text = f"{REQUEST} {'The rows are those of the store. ' * 12}I want you to help me plan the change of the store."
    (line,) = told("u: Explore this project", "a: It reads rows.", f"u: {text}", "a: Done.")
    assert line.startswith(f"user turn 2, the first request with content: {REQUEST}")
    assert line.endswith(" … I want you to help me plan the change of the store.")


@pytest.mark.parametrize("path", ["docs/explanation.md", "docs/airplanes.md", "docs/special.md"])
def test_a_text_whose_name_only_holds_such_letters_is_no_plan(path):
    text = json.dumps({"file_path": path, "content": "# How rows are read\n\nSteps."})
    assert told("u: Explore this project", f"a: x | write({text}) as c", "t: c = ok", "a: Written.") == ()


def test_what_a_user_pasted_is_no_goal():
    pasted = "u: Look:\n```\n$ pytest\nFAILED tests/a.py::test_x - you must delete the rows\n```\nfix that"
    assert told("u: continue", "a: Done.", pasted, "a: Done.", f"u: {REQUEST}", "a: Done.") == (
        f"user turn 3, the first request with content: {REQUEST}",
    )


def test_an_order_to_commit_what_is_there_is_not_the_goal():
    assert told(
        "u: learn about this project and where we left off",
        "a: It is a game. Want me to commit the title screen?",
        "u: yeah we can commit and merge it",
        "a: Done.",
        "u: the tag line on the title page is wrong, it tells of a ship that has a memory",
        "a: ok",
    ) == (
        "user turn 3, the first request with content: the tag line on the title page is wrong, it tells of a ship that "
        "has a memory",
    )
