"""Finds rules in guides that the agent has read (AGENTS.md, CONTRIBUTING.md, skills): what is forbidden or demanded.

They are words of files and not of a user, so they stand apart with the name of their file, and only the strongest are
told: what forbids or demands something of the steps that agents take, such as commits, pushes and tests. Rules in the
summary of an earlier context count as those of a guide.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from refold._condense.digest.announcements import whole_sentences
from refold._condense.digest.outcomes import answered, failed
from refold._condense.digest.turns import turns_at, turns_in_work
from refold._condense.file_views import EditedInPlace, FileWritten, TextReplaced, changes_of, excerpts_in
from refold._condense.shell_commands import plain_path
from refold._text.text_cache import text_cache
from refold.core._speakers import is_recap
from refold.core.messages import Message, texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold._condense.file_views import Change
    from refold.core.view import View

__all__ = ["GUIDES", "guide_rules", "rules_in"]

GUIDES = "Rules of guides that were read (words of these files, not of the user)"  # the section of a digest
MOST, OF_ONE = 8, 5  # rules that are told, and of one guide
LENGTH, READ = 180, 40_000  # characters of a rule, and of a guide
STRONG = 3  # what a rule in capitals counts more
LEAST, FIRM = 4, 6  # what a rule must count to be told: of a project's own guide, and of another
GUIDE = re.compile(
    r"(?:^|/)(?:AGENTS|CLAUDE|GEMINI|QWEN|CONVENTIONS|CONTRIBUTING|RULES|copilot-instructions)[\w.-]*"
    r"\.(?:md|mdx|rst|txt)$|"
    r"(?:^|/)\.(?:cursor|windsurf|cline)rules$|(?:^|/)\.(?:agents|claude|cursor|clinerules|windsurf|roo)/(?!plans/|todos/|projects/).+\.mdc?$",
    re.I,
)
CAPITALS = re.compile(r"\b(?:NEVER|ALWAYS|MUST|DO NOT|DON['’]T|REQUIRED|FORBIDDEN|MANDATORY|CRITICAL)\b")
RULE = re.compile(  # an order: "always" and "never" that only describe something are none
    r"(?:^|[.;:,—–(]\s*| - |\b(?:and|or|but|so|then|please|you|agents?|we|to|should|shall|must) )"
    r"(?:never|always|do(?: not|n['’]t))\b|"
    r"\b(?:must(?: not|n['’]t)?|forbidden|prohibited|mandatory|unless (?:the user|asked|told)|says? never|"
    r"nie(?:mals)?|immer|muss|müssen|darf nicht|jamais|toujours|doi(?:t|vent)|nunca|siempre|debes?|sempre|deve[mi]?)\b|"
    r"никогда|всегда|必ず|禁止|しないで|してはいけ|必须|不要|不得|始终|절대|반드시|항상",
    re.I,
)
STEPS = re.compile(  # what agents do that is hard to undo, or that is checked
    r"\b(?:commit\w*|push\w*|pull requests?|PRs?|branch\w*|stash\w*|rebas\w*|force|worktrees?|merg\w*|tests?|lint\w*|"
    r"format\w*|fmt|type-?check\w*|secrets?|tokens?|credentials?|\.env|delet\w*|destructive|generated|migrations?|"
    r"approv\w*|deploy\w*|release\w*|publish\w*|rm -rf|--no-verify|main|master)\b",
    re.I,
)
# Of no project itself: installed for the user, and of who work on a library that is used.
INSTALLED = re.compile(r"/plugins/|^(?:~|/home/[^/]+|/Users/[^/]+|/root|[A-Za-z]:/Users/[^/]+)/\.", re.I)
OF_OTHERS = re.compile(r"(?:^|/)(?:node_modules|site-packages|vendor|third_party)/")
OF_SKILL = re.compile(r".*?/skills/[^/]+/")
OF_SUMMARY = "summary of the earlier context"
BEGINS = re.compile(r"\s*(?:[-*+•>|#]|\(?\d{1,2}[.)]\s|```|~~~)")  # a line that is not the rest of another
ITEM = re.compile(r"^[\s>]*(?:[-*+•]|\(?\d{1,2}[.)]|#{1,6}|\|)?\s*(?:\[[ x]\]\s*)?")
SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-ZÄÖÜÉ`*])|(?<=[。！])")
LEAST_WORDS = 4


def guide_rules(view: View, staying: Sequence[Message]) -> tuple[str, ...]:
    """Return the strongest rules of guides, one line a guide, without those that stand in the view."""
    guides, in_use = _guides(view)
    if not guides:
        return ()
    there = "\n".join(text.replace("**", "") for message in staying for text in texts(message))
    ranked = sorted(
        (
            (-strength, -number, place, path, rule)
            for number, (path, text) in enumerate(guides.items())
            for place, (rule, strength) in enumerate(rules_in(text))
            if rule not in there
            and strength >= (FIRM if path == OF_SUMMARY or INSTALLED.search(path) else LEAST)
            and (_skill(path) in in_use or STEPS.search(rule))
        )
    )
    lines: dict[str, list[str]] = {}
    taken: set[str] = set()
    for *_, path, rule in ranked:
        if len(taken) < MOST and len(lines.get(path, ())) < OF_ONE and rule not in taken:
            taken.add(rule)
            lines.setdefault(path, []).append(whole_sentences(rule, LENGTH).rstrip(" .;"))
    return tuple(f"{path}: {'; '.join(rules)}" for path, rules in lines.items())


def _skill(path: str) -> str:
    """Return the folder of the skill that a guide belongs to, nothing for any other guide."""
    match = OF_SKILL.match(path)
    return match[0] if match else ""


def _guides(view: View) -> tuple[dict[str, str], set[str]]:
    """Return what the guides say that were read, by path, as far as later edits have left it, and skills in use.

    A skill is in use where a file of it was read for the current request: of others only what holds for steps that are
    hard to undo is a rule still.
    """
    guides: dict[str, str] = {}
    in_use = {""}
    in_work = turns_in_work(view.transcript)
    for message, turn in zip(view.transcript.messages, turns_at(view.transcript), strict=True):
        if is_recap(message):
            guides[OF_SUMMARY] = "\n".join(texts(message))[:READ]
        for call, result in reversed([*answered(view, [message])]):
            if failed(call, result):
                continue
            for excerpt in excerpts_in(call, result):
                path = plain_path(excerpt.path)
                if turn in in_work:
                    in_use.add(_skill(path))
                if GUIDE.search(path) and not OF_OTHERS.search(path):
                    visible = "\n".join(line for line in excerpt.visible.lines if line is not None)[:READ]
                    known = "" if excerpt.whole else guides.get(path, "")
                    guides[path] = known if visible in known else f"{known}\n{visible}"[-READ:]
            for change in changes_of(call) if guides else ():
                if (path := plain_path(change.path)) in guides:
                    guides[path] = _changed(guides[path], change)
    return guides, in_use


def _changed(text: str, change: Change) -> str:
    """Return what is known of a guide behind a change of it."""
    match change:
        case FileWritten():
            return change.text[:READ]
        case TextReplaced():
            return text.replace(change.old, change.new, -1 if change.every else 1)[:READ]
        case EditedInPlace():
            return "\n".join(line for line in text.split("\n") if not change.touches(line))
        case _:
            return ""


@text_cache
def rules_in(text: str) -> tuple[tuple[str, int], ...]:
    """Return the rules of a guide in order, each with its strength; none of what stands in fences."""
    rules: dict[str, int] = {}
    for line in _whole_lines(text):
        for sentence in SENTENCE.split(ITEM.sub("", line, count=1).replace("**", "").strip(" |*_")):
            rule = sentence.strip(" *_")
            heading = rule.endswith((":", "：")) or (len(rule.split()) < LEAST_WORDS and rule.isascii())
            if heading or RULE.search(rule) is None:
                continue
            strength = STRONG * (CAPITALS.search(rule) is not None) + 2 + 2 * (STEPS.search(rule) is not None)
            if strength >= LEAST:
                rules[rule] = max(strength, rules.get(rule, 0))
    return tuple(rules.items())


def _whole_lines(text: str) -> list[str]:
    """Return the lines of a text outside of fences, those that were wrapped as one."""
    lines: list[str] = []
    fenced, follows = False, False
    for line in text.split("\n"):
        if line.lstrip().startswith(("```", "~~~")):
            fenced, follows = not fenced, False
        elif not fenced:
            if follows and line.strip() and not BEGINS.match(line):
                lines[-1] = f"{lines[-1].rstrip()} {line.strip()}"
            else:
                lines.append(line)
            follows = bool(line.strip()) and not line.startswith("#")
    return lines
