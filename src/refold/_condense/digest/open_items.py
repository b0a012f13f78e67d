"""Finds what the assistant itself lists as open in one of its last answers: "Remaining", "Next steps", "Open points".

An answer that ends a turn often says what is left, in a list under a heading or behind a label. Such a list is the best
account of what comes next where no tool keeps a list of tasks, also when a short turn ("commit it") came after it.
What an answer says is missing, or marks with a cross, is how it found something, and no task that was taken on.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from refold._condense.call_facts import is_shell, writes
from refold._condense.call_outline import one_line
from refold._condense.digest.outcomes import answered, failed
from refold._condense.digest.targets import targets_of
from refold._condense.digest.turns import turn_ends, turns_at
from refold._salience.atoms import names_of
from refold.core.messages import memoized, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from refold.core.messages import Message
    from refold.core.view import View

__all__ = ["LISTED_OPEN", "base_name", "files_named", "open_items", "prepare"]

LISTED_OPEN = "open, as listed "  # how the line begins
ANSWERS = 3  # that ended a turn, the newest, and what was said since, in which a list is looked for
LOOKED_AT = 6_000  # characters at the end of an answer
ITEMS, ITEM, TITLE = 8, 150, 60  # of a list, and characters of each and of its heading
WORDS = (
    r"(?:remaining|next(?: (?:steps?|up|tasks?|phases?))?|"
    r"not (?:yet )?(?:done|covered|verified|tested|included|implemented)|"
    r"(?:still )?(?:open|to do|left)(?: (?:items|questions|points|issues|tasks|work|to do))?|to-?dos?|"
    r"follow[- ]?ups?|pending|outstanding|deferred|known (?:gaps|issues|limitations)|"
    r"offen(?:e punkte)?|nächste schritte|noch zu tun|prochaines étapes|reste à faire|pendientes?|próximos pasos|"
    r"próximos passos|pendências|prossimi passi|оста(?:лось|ющиеся задачи|вшиеся задачи)|следующие шаги)(?![\w-])|"
    r"残り|次のステップ|下一步|剩余|待办|남은|다음 단계"
)
BEFORE = (
    r"(?:(?:what(?:['’]s| is)|what|is|still|the|my|recommended|suggested|possible|optional|"
    r"immediate)\b,? )*"
)
NOUN = r"(?: (?:work|items?|steps?|tasks?|points?|issues?|questions?|gaps?))?"
BEHIND = r"(?: (?:\(|\d|(?:for|when|in|on|of|after|before|if|from|and)\b)[^\n.!?]{0,50}?)?"
HEADING = re.compile(
    rf"^[ \t]*(?:#{{1,6}} |[-*] )?(?:\*\*|__)?({BEFORE}(?:{WORDS}){NOUN}{BEHIND}):?(?:\*\*|__)?:?[ \t]*\n+"
    r"((?:[ \t]*(?:[-*•]|\d{1,2}[.)]) +\S.*\n*(?:[ \t]{2,}\S.*\n*)*)+)",
    re.M | re.I,
)
LABEL = re.compile(rf"^[ \t]*(?:[-*] )?(?:\*\*|__)?({BEFORE}(?:{WORDS}){NOUN}):(?:\*\*|__)? +(\S[^\n]*)$", re.M | re.I)
NOTHING = re.compile(
    r"\W*(?:nothing|none|n/a|nichts|keine?|rien|aucune?|nada|ning[uú]n[oa]?|nenhuma?|niente|нет|なし|无|無|없음)"
    r"(?: (?:left|open|else|known|so far|for now|at the moment))?\W*",
    re.I,
)
DIAGNOSED = re.compile(r"[❌✗✘✖×]")
IS_DONE = re.compile(r"\b(?:is|are|was|were|has been|have been) already\b", re.I)
TO_COMMIT = re.compile(r"\b(?:commit|(?:be|get) committed)\b", re.I)
OF_A_FILE = re.compile(r"\.[A-Za-z]\w{0,7}$")
BULLET = re.compile(r"^([ \t]*)(?:[-*•]|\d{1,2}[.)]) +(?:\[ \] +)?(?!\[[xX]\])(\S.*)$", re.M)


def open_items(view: View) -> Iterator[str]:
    """Yield the newest list of what is open in the last answers, as one line with its heading and its turn.

    Items that name a file that was changed since are done or in work, and so is a commit where one was made since.
    """
    messages = view.transcript.messages
    ends, turns = turn_ends(view.transcript), turns_at(view.transcript)
    changed: set[str] = set()
    committed = False
    passed = 0
    for place in range(len(messages) - 1, -1, -1):
        passed += messages[place].id in ends
        if passed > ANSWERS:
            return
        title, items = _listed(messages[place]) if messages[place].role == "assistant" else ("", ())
        if title:
            still = [
                each
                for each in items
                if changed.isdisjoint(files_named(each))
                and not (DIAGNOSED.match(each) or IS_DONE.search(each) or (committed and TO_COMMIT.search(each)))
            ]
            if still:
                more = f"; and {len(still) - ITEMS} more" if len(still) > ITEMS else ""
                lines = (one_line(each.replace("**", "").rstrip(".;,"), ITEM) for each in still[:ITEMS])
                yield f'{LISTED_OPEN}under "{title}" in turn {turns[place]}: {"; ".join(lines)}{more}'
            return
        for call, result in answered(view, [messages[place]]):
            if not failed(call, result):
                changed |= {base_name(path) for path in writes(call)}
                is_commit = is_shell(call) and any(each.task == "git commit" for each in targets_of(call))
                committed = committed or is_commit


def prepare(message: Message) -> None:
    """Find the list of what is open in an answer; the message remembers it."""
    if message.role == "assistant":
        _listed(message)


def base_name(path: str) -> str:
    """Return the name of a file without its folders, of any system."""
    return path.replace("\\", "/").rpartition("/")[2]


def files_named(words: str) -> set[str]:
    """Return the names of the files that words name."""
    return {base_name(name) for name in names_of(words) if OF_A_FILE.search(name)}


@memoized
def _listed(message: Message) -> tuple[str, tuple[str, ...]]:
    """Return the last list of an answer that says what is open: its heading and its items, none where nothing is."""
    text = text_of(message)[-LOOKED_AT:] + "\n"
    lists = [(match.start(), match[1], tuple(_items(match[2]))) for match in HEADING.finditer(text)]
    lists += [(match.start(), match[1], (match[2],)) for match in LABEL.finditer(text)]
    _, title, items = max(lists, default=(0, "", ()))
    return one_line(title.strip(" *:"), TITLE), tuple(each for each in items if not NOTHING.fullmatch(each))


def _items(listed: str) -> Iterator[str]:
    """Yield the items of a list, not those that are indented below another."""
    bullets = BULLET.findall(listed)
    yield from (words for indent, words in bullets if len(indent) <= len(bullets[0][0]))
