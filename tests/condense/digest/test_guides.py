import json

import pytest

from refold._condense.digest.guides import GUIDES, guide_rules
from refold._condense.digest.render import digest_text
from refold.testing import talk, view_of


def read(path, text):
    return [f"a: x | read({json.dumps({'file_path': path})}) as c", f"t: c = {text}"]


def rules(path, text, *, staying=0):
    transcript = talk("u: go", *read(path, text), "a: Read.", "u: on")
    return guide_rules(view_of(transcript), transcript.messages[len(transcript.messages) - staying :])


@pytest.mark.parametrize(
    ("path", "text", "rule"),
    [
        ("AGENTS.md", "# Work\n\n- NEVER run `git stash`.\n- The store has rows.", "NEVER run `git stash`"),
        ("CLAUDE.md", "Always run fmt before each commit.", "Always run fmt before each commit"),
        (
            "docs/CONTRIBUTING.md",
            "* **Do not** push to main, or\n  force-push, unless asked.",
            "Do not push to main, or force-push, unless asked",
        ),
        (".agents/workflow.md", "Tests must pass before a release.", "Tests must pass before a release"),
        ("AGENTS.md", "Vor jedem Commit müssen die Tests laufen.", "Vor jedem Commit müssen die Tests laufen"),
        ("AGENTS.md", "Il ne faut jamais faire de push sur main.", "Il ne faut jamais faire de push sur main"),
        ("AGENTS.md", "Nunca hagas push a main sin permiso.", "Nunca hagas push a main sin permiso"),
        ("AGENTS.md", "コミットの前に必ず lint を実行する。", "コミットの前に必ず lint を実行する。"),
    ],
)
def test_what_a_guide_forbids_or_demands_is_told_with_the_guide(path, text, rule):
    assert rules(path, text) == (f"{path}: {rule}",)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("src/notes.md", "Never push to main."),
        ("AGENTS.md", "The branch always has two commits, and tests don't cover it."),
        ("AGENTS.md", "Never use tabs."),
        ("AGENTS.md", "```\nNEVER push to main\n```"),
        ("/home/me/.codex/plugins/x/skills/y/AGENTS.md", "Do not push to main."),
    ],
)
def test_other_texts_descriptions_and_small_rules_are_not_told(path, text):
    assert rules(path, text) == ()


def test_a_rule_that_stands_in_the_view_is_not_told_again():
    text = "- NEVER run `git stash`."
    assert rules("AGENTS.md", text, staying=3) == ()
    assert rules("AGENTS.md", text, staying=2) == ("AGENTS.md: NEVER run `git stash`",)


def test_the_strongest_rules_are_told_and_no_more_than_a_few_of_one_guide():
    weak = "\n".join(f"- Do not commit part {number} alone." for number in range(9))
    (line,) = rules("AGENTS.md", f"{weak}\n- You MUST run the tests before each push.")
    assert line.startswith("AGENTS.md: You MUST run the tests before each push; Do not commit part 0 alone")
    assert line.count(";") == 4


def test_a_rule_in_the_summary_of_an_earlier_context_is_told_as_that():
    recap = (
        "This session is being continued from a previous conversation that ran out of context.\n\n"
        "- A stash lost work. Now each brief says NEVER run `git stash`."
    )
    transcript = talk(f"u: {recap}", "u: go", "a: Done.", "u: on")
    assert guide_rules(view_of(transcript), transcript.messages[1:]) == (
        "summary of the earlier context: Now each brief says NEVER run `git stash`",
    )


def test_the_digest_tells_rules_as_words_of_files():
    transcript = talk("u: go", *read("AGENTS.md", "NEVER run `git stash`."), "a: Read.", "u: on")
    messages = transcript.messages
    digest = digest_text(view_of(transcript), messages[1:3], staying=(messages[0], *messages[3:]), limit=20_000)
    assert f"## {GUIDES}\n- AGENTS.md: NEVER run `git stash`" in digest
    assert "words of these files, not of the user" in GUIDES


@pytest.mark.parametrize(
    "path",
    ["node_modules/x/CONTRIBUTING.md", "vendor/lib/AGENTS.md", ".claude/plans/next.md"],
)
def test_guides_of_libraries_and_plans_are_none(path):
    assert rules(path, "You MUST NEVER push to main.") == ()


def test_a_rule_that_an_edit_of_the_guide_took_out_or_changed_holds_no_more():
    text = "- NEVER run `git stash`.\n- NEVER push to main."

    def edited(**arguments):
        call = f"a: x | edit({json.dumps({'file_path': 'AGENTS.md', **arguments})}) as e"
        transcript = talk("u: go", *read("AGENTS.md", text), call, "t: e = ok", "a: Done.", "u: on")
        return guide_rules(view_of(transcript), transcript.messages[-1:])

    changed = edited(old_string="NEVER run `git stash`", new_string="NEVER force-push a branch")
    assert changed == ("AGENTS.md: NEVER force-push a branch; NEVER push to main",)
    assert edited(old_string="- NEVER push to main.", new_string="") == ("AGENTS.md: NEVER run `git stash`",)


def test_a_guide_that_is_read_again_and_again_by_parts_is_known_once():
    call = f"read({json.dumps({'file_path': 'AGENTS.md', 'offset': 5, 'limit': 3})})"
    lines = [f"a: x | {call} as c{at}" if at % 2 else f"t: c{at - 1} = - Never push row {at}." for at in range(1, 13)]
    transcript = talk("u: go", *lines, *lines[-2:], "a: Done.", "u: on")
    (line,) = guide_rules(view_of(transcript), ())
    assert line.startswith("AGENTS.md: Never push row 2; Never push row 4")


def test_of_a_skill_that_was_used_for_an_earlier_request_only_what_guards_steps_is_a_rule_still():
    text = "NEVER end without a farewell.\nNEVER push without asking."
    path = ".claude/skills/party/steps/end.md"
    assert rules(path, text) == (f"{path}: NEVER push without asking",)
    transcript = talk("u: go", *read(path, text))
    assert guide_rules(view_of(transcript), ()) == (f"{path}: NEVER push without asking; NEVER end without a farewell",)
