"""Extracts what the assistant concluded: decisions, tries that failed, and verdicts on what it looked at.

All are sentences of its answers, word for word. An agent says much on the way that is no conclusion: what it does next,
what may be, what it is asked, what it supposes while it looks for a fault. So decisions and verdicts are read off what
ends a turn, and of the turns that no answer has ended off all that was said (`_holding`). A decision has a choice in it
("going with", "instead of"); a verdict names an item (an identifier, or words in code quotes), says in an indicative
verb what holds of it, and neither announces nor doubts. What was going on in an earlier turn ("is running now") holds
no more.

What was said lately in the turns that no answer has ended comes first, then what ends a turn. All name their turn where
there are several.

A decision does not stand for ever. What was wrong in a file is marked once the file was changed (`CHANGED`). A later
sentence that takes an item back by name ("not `a.py` after all", "reverted
the change to `load`", "`bar` instead of `foo`") marks what was decided about this item before (`REVERSED`). What is
chosen while a plan is made is no decision yet (`planning`): the plan that follows is.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from refold._condense.call_facts import is_shell, plain_name
from refold._condense.call_outline import one_line
from refold._condense.digest.announcements import SENTENCE, announces, points_back
from refold._condense.digest.definitions import is_prose
from refold._condense.digest.identifier_kinds import kind_of
from refold._condense.digest.targets import target_of
from refold._condense.digest.turns import turn_ends, turns_at, turns_in_work
from refold._condense.file_views import is_scratch
from refold._condense.last_changes import is_changed_after, is_file_of_changed_after, last_change
from refold._salience.atoms import KNOWN, names_of
from refold._salience.lazy_table import LazyTable
from refold._text.sign_runs import SignRuns
from refold.core._speakers import is_turn
from refold.core.messages import Message, MessageId, memoized, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from refold.core.messages import ToolCall
    from refold.core.transcript import Transcript

__all__ = [
    "BECAUSE",
    "CHANGED",
    "FENCED",
    "LEADS",
    "PLAN",
    "PLAN_ENDS",
    "REVERSED",
    "SUPPOSED",
    "decisions",
    "plain",
    "plan_of",
    "prepare",
    "prose",
    "tried",
    "verdicts",
]

MOST = 150  # lines of one sort that are looked for
LEAST, LONGEST = 32, 400  # characters of a sentence that gives a decision or a reason
OPENING_QUOTES = ('"', "“", "„", "«", "「")  # with these begins what somebody else says, or a text that is drafted
REMEDY = 90  # characters of a sentence behind one that tells of a failure
SHORTEST = 16  # characters of a verdict
LATELY = 8  # verdicts of the turns in work that come before those of answers that end a turn
QUOTED = re.compile(r"^ {0,3}>.*$", re.M)  # lines of a text that an answer quotes or drafts
PLAN = re.compile(r"<(\w*plan)>\s*(.*?)\s*(?:</\1>|\Z)", re.S)  # one that is put before the user in tags
FENCED = re.compile(r"^ *```.*?(?:^ *```|\Z)", re.S | re.M)
TRIED = re.compile(
    r"\b(?:(?:did|does|(?<!\byou )do|is|was)(?:n't|n’t| not) (?:work|help|fix|solve)\w*|"
    r"fail(?:s|ed) (?:because|with|due to)|"
    r"still (?:fails?|failing|broken|wrong|the same)|I (?:reverted|rolled back|undid)|"
    r"reverting (?:it|that|this|my|the)|rolling back|gave up|dead end|wrong (?:approach|track|assumption)|"
    r"(?:had|has|with) no effect|unfortunately(?!,? I (?:do|ca|am|have)(?:n['’]t|n?not| not)\b)|that broke|broke the|"
    # by what is no other task of a tracker
    r"blocked (?:by|on)(?!\W{0,3}:|(?: task| issue| ticket)?(?:\W{0,3}#\d| [(\[]?(?-i:[A-Z][A-Z0-9]*)-\d))|"
    r"(?:is|are|was|has) expired|"
    r"returned (?:an? |the )?(?:\w+['’]?s? )?(?:[45]0\d\b|error\b|[\"“'`]*not found)|"
    r"funktioniert nicht|geht nicht|ne (?:fonctionne|marche) pas|no funciona)\b|失敗|失败|不工作",
    re.I,
)
# A choice with its reason, where no word says that it is one.
REASONED = re.compile(
    r"\b(?:on purpose|deliberate(?:ly)?|intentional|absichtlich|bewusst|exprès|volontairement|"
    r"a propósito|de propósito|apposta|намеренно|специально)\b|わざと|あえて|故意|特意|일부러",
    re.I,
)
AS_IT_IS = re.compile(
    r"\b(?:today|currently|at present)\b|\w\.\w{1,5}:\d+", re.I
)  # what is so in the code, whoever chose it
# What blames something for a fault: of several that were blamed in turn only the last may have been it.
CAUSE = re.compile(
    r"\broot cause\b|\bthe (?:actual |real |underlying )?(?:cause|culprit) (?:is|was)\b|"
    r"\b(?:is|was|were|are) caused by\b|\bursache (?:ist|war)\b|\bla cause (?:est|était)\b|"
    r"\bla causa (?:es|era)\b|\ba causa (?:é|era)\b|原因是|原因は|原因就|원인은",
    re.I,
)
# What is recommended or meant, and why.
RECOMMENDED = re.compile(
    r"^(?:(?:and|so|then|instead)[, ]+)*(?:(?:I|we)(?:['’]ll| will) )?(?:build|keep|use|put|leave|make|store|treat|"
    r"pick|choose|prefer|stay|split|start|skip|not)\b[^.;\n]{4,}\b(?:because|so that)\b",
    re.I,
)
# What an answer says under a label in bold type that calls it a decision.
LABELED = re.compile(
    r"^[ \t]*(?:(?:[-*•]|\d{1,2}[.)])[ \t]*)?(?:\*\*|__)((?:[\w/&' -]{0,30}\b)?"
    r"(?:decisions?|rationale|entscheidung|décision|decisión|decisão|решение)|[^\s*:：]{0,8}(?:決定|决定|결정))"
    r"[:：]?(?:\*\*|__)[:：]?[ \t]*(?!-)(\S.*)$",
    re.M | re.I,
)
FEWEST_LABELED = 5  # words behind such a label, or signs of a script without blanks
# One of these stands in what the patterns above find: searched first, since most answers hold none of them.
DECIDING = (
    "because", "so that", "weil", "deshalb", "parce que", "porque", "因为", "ため",
    "decided", "chose", "going with", "settled on", "entschieden", "décidé", "decidido", "決", "决定",
    "on purpose", "deliberate", "intentional", "by design", "absichtlich", "bewusst", "exprès", "volontairement",
    "propósito", "apposta", "намеренно", "специально", "わざと", "あえて", "故意", "特意", "일부러",
)  # fmt: skip
TRYING = (
    "n't ", "n’t ", " not ", "fail", "still ", "i reverted", "rolled back", "i undid", "reverting ", "rolling back",
    "gave up", "dead end", "wrong ", "no effect", "blocked ", "expired", "returned ",
    "unfortunately", "that broke", "broke the", "funktioniert nicht",
    "geht nicht", " pas", "no funciona", "失敗", "失败", "不工作",
)  # fmt: skip
# What is only supposed is no finding.
SUPPOSED = re.compile(r"\b(?:might|maybe|I bet|probably|perhaps|could be|may be|would explain|possibly|if)\b", re.I)
DOUBTED = re.compile(
    r"\b(?:seems?|appears?|suggests?|likely|should|would|could|may|think|guess|wonder|"
    r"scheint|vermutlich|vielleicht|wahrscheinlich|sollte|könnte|semble|peut-être|devrait|"
    r"parece|quizás?|debería|tal vez|(?:sounds?|looks?) (?:like|as))\b|"
    r"かもしれ|はず|らしい|と思|ければ|可能|也许|似乎|应该|大概",
    re.I,
)
# What a run showed: the next one shows it anew, and what it was about stands in the command.
ALL_PASS = re.compile(
    r"\b(?:tests?|checks?|suites?)(?: all| now)? pass(?:es|ed)?\b|\b\d+ passed\b|\bpass(?:es|ed)? all\b", re.I
)
# How a sentence begins that goes with the one before it, as where the assistant thinks while it works.
GOES_WITH = re.compile(
    r"(?:and|but|then|however|also|ah+|oh|wait|hm+|ok(?:ay)?|good|great|perfect|yes|yeah|no|now|maybe|actually|well|if|"
    r"same)\b",
    re.I,
)
FOLLOWS = re.compile(  # how one begins that only goes with what was thought before it, where much is thought
    r"\W*(?:so|or|since|hence|thus|therefore|because|und|aber|dann|weil|denn|et|mais|donc|car|y|pero|así que|porque|"
    r"mas|então|ma|quindi|perché|и|но|значит|потому)\b|所以|因此|但是|因为|だから|しかし|なので|그래서|하지만",
    re.I,
)
SEEMS = re.compile(r"(?:it (?:seems|appears|looks)|what (?:this|that|it)) ?\b", re.I)  # or a limit
DESCRIBES = re.compile(  # what anybody sees at once
    r"\b(?:quite|very|fairly|rather) (?:large|long|complex|big)\b|"
    r"\b(?:contains?|includes?|has) (?:several|various|many|multiple|a number of|a lot of)\b|"
    r"\bis (?:crucial|important|essential|responsible)\b|"
    r"\bis (?:indeed |already )?(?:present|defined|located|found|declared)\b|"
    r"^the (?:task|issue|problem|goal|request)(?: described| reported)? (?:is|involves|requires|asks|says|describes)\b",
    re.I,
)
# Sentences that speak of the conversation, or offer and ask: no decision stands in them.
TALK = re.compile(
    r"^(?:give me|tell me|let me know|should i|shall i|do you|would you|could you|want me|"
    r"if you(?:['’]d| would) (?:like|prefer)|"
    r"using (?:the )?`?[\w-]+`? (?:skill (?:here )?)?because|i(?:['’]m| am) using)\b|[?？]$",
    re.I,
)
LABEL = re.compile(r"\(|[\w ]{3,24}: ")  # what stands beside the text or behind a label, as a cause: no try
ENDS = (".", "!", "。", "！", ".)", ".`")  # an entry of a list is often no sentence
HOLDS = re.compile(  # what holds of an item
    r"`\s(?:\w+ )?[a-z]{2,}s\b|"  # "`load` (also) drops"
    r"\b(?:is|are|was|were|has|have|had|does|do|did|can|cannot|(?:is|are|was|were|has|have|had|does|do|did|ca|wo)n['’]t|"
    r"fail(?:s|ed)?|pass(?:es|ed)?|works?|worked|br(?:eaks|oke)|return(?:s|ed)|expects?|uses?|calls?|ignores?|needs?|"
    r"requires?|supports?|lacks?|contains?|exists?|stays?|remains?|means?|causes?|depends?|loads?|writes?|reads?|"
    r"renders?|accepts?|rejects?|hardcodes?|overwrites?|resolves?|throws?|raises?|matches|holds?|leaks?|skips?|"
    r"ist|sind|war|waren|hat|haben|kann|läuft|fehlt|schlägt|est|sont|était|n'est|n'a|peut|échoue|marche|"
    r"es|son|está|están|era|tiene|puede|falla|funciona)\b|です|ます|した|ている|ない|だ。|である|是|没有|不|已|通过|失败",
    re.I,
)
HOLDING = LazyTable(lambda word: HOLDS.search(word) is not None, KNOWN)  # of a word alone
WORDS = SignRuns(r"\w")
ITEM = re.compile(r"`([^`\n]{2,80})`")
CHOSEN = re.compile(  # what was decided for
    r"\b(?:decided (?!by\b)|chose|chosen|going with|settled on|entschieden|décidé|decidido)\b|"
    r"(?:に|と)(?:決め|決定し)(?:た|ました|て)|决定(?:了|采用|使用|用)",
    re.I,
)
# What takes the item right behind it back: the first where it was chosen, the second whatever was said of it.
REPLACED = re.compile(
    r"\b(?:instead of|rather than|no longer (?:use[sd]?|using|need(?:s|ed)?)|(?:away|back) from|statt|anstelle von|"
    r"au lieu de|plutôt que|en (?:lugar|vez) de|ya no)\b|不再|而不是",
    re.I,
)
TAKEN_BACK = re.compile(
    r"\b(?:revert(?:ed|ing|s)?|undo(?:ing)?|undid|roll(?:ed|ing)? back|back(?:ed|ing)? out|abandon(?:ed|ing)?|"
    r"gave up on|wrong about|(?:not|n['’]t)(?=.*\bafter all\b)|doch nicht|verworfen|zurückgenommen|abandonné|annulé|"
    r"revertido|descartado)\b|撤销|回滚|放弃",
    re.I,
)
# What says that something was not the fault after all, whatever that is.
ACQUITTED = re.compile(
    r"\b(?:it (?:was(?:n['’]t| not))|(?:the )?(?:real |actual |root )?(?:problem|issue|cause|culprit|bug|fault) "
    r"(?:was|is)(?:n['’]t| not)(?: in| with| the| a| caused by)*) ",
    re.I,
)
TAKING_BACK = (
    "it wasn", "it was not", "problem ", "issue ", "cause ", "culprit ", "bug ", "fault ",
    "instead of", "rather than", "no longer", "away from", "back from", "revert", "undo", "undid", "rolled back",
    "roll back", "rolling back", "back out", "backed out", "backing out", "abandon", "gave up on", "wrong about",
    "after all", "statt", "anstelle", "doch nicht", "verworfen", "zurückgenommen", "au lieu", "plutôt", "annulé",
    "abandonné", "en lugar", "en vez", "ya no", "revertido", "descartado", "不再", "撤销", "回滚", "放弃", "而不是",
)  # fmt: skip
BORDER = re.compile(
    r"[,;:.—]\s| (?:and|but|for|with|und|aber|für|mit|et|mais|pour|avec|y|pero|para|con) "
)  # then another
NEAR = 40  # characters in which the item follows
SPECIFIC = re.compile(r"[_./]|^[a-z]+[A-Z]|^[a-z][\w-]{4,}$")  # no name of a product, no short word in quotes
BETWEEN_QUOTES = re.compile(r"[\"“”][^\"“”]*[\"“”]")
BECAUSE = re.compile(r"\b(?:because|so that|deshalb|weil|parce que|porque)\b|ため|因为", re.I)
NO_CHOICE = ("?", "？", " | ")  # a question, or the row of a table
EDITED = re.compile(  # how a note begins on what was changed, which "files changed" tells
    r"(?:done\W+)?(?:I(?:['’]ve| have)? |also |now )*(?:patched|applied|fixed|changed|updated|added|replaced|"
    r"removed|renamed|moved|switched|converted|refactored|simplified|extracted|rewrote|made|set|empty)\b",
    re.I,
)
REPORTS = re.compile(r"(?:done|perfect|great|finished|all (?:done|set))\b", re.I)  # how a note on finished work begins
MEANS = re.compile(  # of the next step
    r"\b(?:commands?|tools?|scripts?|skills?|heredoc|sed|grep|regex|workflows?|guidance|workers?|sub-?agents?)\b", re.I
)
LEADS = re.compile(r"^(?:THOUGHT|Thought|Reasoning|Analysis)\s*: *")  # in front of what some agents say before a call
FEWEST = 8  # words of a choice that names no item and can be understood still
# Verdicts of one answer from which it thinks aloud; then one of fewer words is a step of that ("`get` calls `load`.").
MANY, TELLING = 4, 6
SUPPOSING = re.compile(r"\(?(?:(?:and|but|so) )?(?:if|wenn|falls|si|se|если)\b|如果|もし", re.I)  # a beginning
# What was going on when it was said, or was to come: in an earlier turn that has come to an end.
PASSING = re.compile(
    r"\b(?:(?:is|are|am|['’]s|['’]re) (?:now |still |currently |just |already )?[a-z]{2,}ing|currently|right now|still|"
    r"about to|for now|so far|not yet|ready to|in progress|gerade|noch|derzeit|encore|"
    r"actuellement|todavía|aún|ainda|ancora)\b|"
    r"まだ|現在|目前|正在|还在|지금|아직",
    re.I,
)
# A finding of this sort on a file is out of date once the file was changed.
DEFECT = re.compile(
    r"\b(?:needs?|missing|(?:has|have|had) no|wrong|fail(?:s|ed|ing)?|broken?|breaks|unused|incorrect|outdated|stale|"
    r"lacks?|still|unfinished|inconsistent|awkward|unclear|confusing|worth \w+ing|"
    r"(?:not|never) (?:yet )?\w+ed|(?:instead|rather) (?:of|than)|"
    r"(?:does|is|do|are|has|have)n['’]t|hardcode[sd]?|bug|buggy|issue|problem|error)\b",
    re.I,
)
OF_A_FILE = re.compile(r"[\w-]\.[A-Za-z]\w{0,7}$")
LONG_NAME = 6  # signs of a name that its file may have, too
COMPOUND = re.compile(r"(?=\w+$)\w*(?:[a-z][A-Z]|_)")
PLACE = re.compile(r"([\w./-]+\.\w{1,5}):\d+(?:[-–]\d+)?(?![\w.])")
DENIES = re.compile(r"\b(?:not|no longer|instead|never)\b|n['’]t\b", re.I)
SAME = 2  # items that two sentences share which are about the same
DOCUMENT = re.compile(r"\b(?:README|CHANGELOG|CONTRIBUTING)\b(?!\.)")
REVERSED, CHANGED = " (taken back later)", " (before the file was changed again)"
MARKED = re.compile(r"(?: \((?:turn \d+|taken back later|before the file was changed again)\))+$")
# Tools that begin and end the making of a plan, by plain name without "_".
PLAN_BEGINS, PLAN_ENDS = frozenset({"enterplanmode", "planenter"}), frozenset({"exitplanmode", "planexit"})


class _Conclusion(NamedTuple):
    """A sentence of an answer with the items that it names; `strong` where it decides and gives no reason only."""

    strong: bool
    line: str
    items: frozenset[str]


def prepare(message: Message) -> None:
    """Find the conclusions of an answer; the message remembers them."""
    for of_answer in (_decided, _tried, _verdicts, _taking_back):
        of_answer(message)


def plain(line: str) -> str:
    """Return a sentence without the marks behind it."""
    return MARKED.sub("", line)


def decisions(transcript: Transcript, messages: Sequence[Message]) -> tuple[str, ...]:
    """Return sentences of the assistant that choose, newest first, then those that only weigh two ways.

    Of `messages` of a transcript. What a later sentence takes back is marked, and so is the turn of each.
    """
    plans = _planning(transcript)
    chosen: dict[str, str] = {}
    weighed: dict[str, str] = {}
    holding = _holding(transcript)
    for message in reversed(messages):
        if message.id in holding and message.id not in plans:
            for conclusion in _decided(message):
                mark = REVERSED if _is_reversed(transcript, message, conclusion) else ""
                marked = f"{conclusion.line}{mark or _outdated(transcript, message, conclusion)}"
                (chosen if conclusion.strong else weighed).setdefault(
                    conclusion.line, marked + _of_turn(transcript, message)
                )
        if len(chosen) >= MOST:
            break
    return tuple((weighed | chosen)[line] for line in chosen | weighed)[:MOST]


@memoized
def _holding(transcript: Transcript) -> frozenset[MessageId]:
    """Return the answers whose conclusions hold: those that end a turn, and all of the turns that none has ended."""
    turns, in_work = turns_at(transcript), turns_in_work(transcript)
    current = (
        message.id
        for message, turn in zip(transcript.messages, turns, strict=True)
        if turn in in_work and message.role == "assistant"
    )
    return turn_ends(transcript).union(current)


def tried(
    transcript: Transcript, messages: Sequence[Message], is_over: Callable[[Message, str], bool] = lambda *_: False
) -> tuple[str, ...]:
    """Return sentences of the assistant that say that something did not work, newest first, with their turns.

    Not those of which `is_over` says, by their message, that it works by now.
    """
    results: dict[str, str] = {}
    holding = _holding(transcript)
    for message in reversed(messages):
        for line in _tried(message) if message.id in holding else ():
            if is_over(message, line):
                continue
            results.setdefault(line, line + _of_turn(transcript, message))
        if len(results) >= MOST:
            break
    return tuple(results.values())


def verdicts(transcript: Transcript, messages: Sequence[Message], standing: Sequence[str]) -> tuple[str, ...]:
    """Return sentences of the assistant that say what holds of an item: the newest of the turns in work, then of ends.

    Those of answers that end a turn come before older ones of the turns in work, of each sort the newest first. Not
    those in `standing`, which stand elsewhere, nor what a later sentence says of the same items or takes back.
    """
    ending: dict[str, str] = {}
    on_the_way: dict[str, str] = {}
    judged: set[frozenset[str]] = set()
    denied: list[frozenset[str]] = []  # items of which a later sentence says what does not hold
    ends = turn_ends(transcript)
    checked = max((at for at, each in enumerate(transcript.messages) if any(map(_is_check, each.calls))), default=-1)
    edited = last_change(transcript, lambda path: not (is_prose(path) or is_scratch(path)))
    others = set(map(plain, standing))
    blamed = 0  # the newest turn in which something is blamed
    holding, turns, in_work = _holding(transcript), turns_at(transcript), turns_in_work(transcript)
    for message in reversed(messages):
        if message.id in holding:
            results = ending if message.id in ends else on_the_way
            is_past = turns[transcript.index[message.id]] not in in_work
            for verdict in _verdicts(message):
                if CAUSE.search(verdict.line):
                    blamed = blamed or turns[transcript.index[message.id]]
                if not (
                    any(verdict.line in other for other in others)
                    or (CAUSE.search(verdict.line) and turns[transcript.index[message.id]] < blamed)
                    or GOES_WITH.match(verdict.line)
                    or (message.id not in ends and _is_step(message, verdict.line))
                    or ((is_past or not CAUSE.search(verdict.line)) and _is_over(transcript, message, verdict, edited))
                    or verdict.items in judged
                    or any(len(items & verdict.items) >= SAME for items in denied)
                    or (is_past and PASSING.search(verdict.line))
                    or (transcript.index[message.id] < checked and ALL_PASS.search(verdict.line))
                    or _is_reversed(transcript, message, verdict)
                ):
                    judged.add(verdict.items)
                    if DENIES.search(verdict.line):
                        denied.append(verdict.items)
                    line = _without_old_places(transcript, message, verdict.line)
                    results[verdict.line] = f"{line}{_of_turn(transcript, message)}"
        if len(ending) + len(on_the_way) >= MOST:
            break
    way = tuple(on_the_way.values())
    return (*way[:LATELY], *ending.values(), *way[LATELY:])


def _is_over(transcript: Transcript, message: Message, verdict: _Conclusion, edited: int) -> bool:
    """Tell whether a sentence says what was wrong in a file that was changed since, or in code that it does not name.

    Of the latter nothing tells whether it still is wrong.
    """
    if _outdated(transcript, message, verdict):
        return True
    vague = DEFECT.search(verdict.line) is not None and not any(map(OF_A_FILE.search, verdict.items))
    return vague and transcript.index[message.id] <= edited  # what a message says stands before its calls


def _is_check(call: ToolCall) -> bool:
    return is_shell(call) and target_of(call).checks


def _is_step(message: Message, sentence: str) -> bool:
    """Tell whether a sentence is a step of what an answer thinks aloud, and says little alone."""
    short = sentence.isascii() and len(sentence.split()) < TELLING
    return len(_verdicts(message)) >= MANY and (short or FOLLOWS.match(sentence) is not None)


def _of_turn(transcript: Transcript, message: Message) -> str:
    """Return the mark with the turn of what was said, nothing where there is only one turn."""
    turns = turns_at(transcript)
    turn = turns[transcript.index[message.id]] if turns and turns[-1] > 1 else 0
    return f" (turn {turn})" if turn else ""


def _without_old_places(transcript: Transcript, message: Message, line: str) -> str:
    """Return a sentence without the line numbers in files that were changed after it."""
    return PLACE.sub(lambda place: place[1] if is_changed_after(transcript, message.id, place[1]) else place[0], line)


def _outdated(transcript: Transcript, message: Message, conclusion: _Conclusion) -> str:
    """Return the mark of a sentence on what is wrong in a file that was changed after it."""
    if not DEFECT.search(conclusion.line):
        return ""
    items = {*conclusion.items, *(f"{name}.md" for name in DOCUMENT.findall(conclusion.line))}
    named = (item for item in items if len(item) >= LONG_NAME and COMPOUND.match(item))
    changed = any(is_changed_after(transcript, message.id, item) for item in items) or any(
        is_file_of_changed_after(transcript, message.id, item) for item in named
    )
    return CHANGED if changed else ""


@memoized
def prose(message: Message) -> str:
    """Return the words of an answer without code in fences, as some agents write their actions, and without a plan.

    A plan that is marked as one is no finding; it stands where it was accepted.
    """
    text = text_of(message)
    text = PLAN.sub("\n", text) if "<proposed_plan>" in text else text
    return FENCED.sub("\n", text) if "```" in text else text


@memoized
def _decided(message: Message) -> tuple[_Conclusion, ...]:
    """Return what an answer says under labels of a plan, and its sentences that choose one way, the last first."""
    labeled = [*_labeled(message)]
    known = {each.line for each in labeled}
    return (*labeled, *(each for each in _choices(message) if each.line not in known))


def _labeled(message: Message) -> Iterator[_Conclusion]:
    """Yield what an answer says under labels of a plan, the last first."""
    text = prose(message)
    for label, words in reversed(LABELED.findall(text) if "**" in text or "__" in text else ()):
        line = f"{label.strip()}: {words.replace('**', '').strip()}"
        enough = len(words.split()) >= FEWEST_LABELED if words.isascii() else len(words) >= FEWEST_LABELED
        if enough and len(line) <= LONGEST and not line.endswith((*NO_CHOICE[:2], ":", "：")):
            yield _Conclusion(strong=True, line=one_line(line, LONGEST), items=_items(words))


def _choices(message: Message) -> tuple[_Conclusion, ...]:
    """Return the sentences of an answer that choose one way over another, the last first."""
    return tuple(
        _Conclusion(chosen, one_line(sentence, LONGEST), items)
        for sentence in reversed(_sentences(message, DECIDING))
        if (
            (chosen := any(pattern.search(sentence) for pattern in (CHOSEN, RECOMMENDED)))
            or (REASONED.search(sentence) and not _is_quoted(sentence))
        )
        and not (TALK.search(sentence) or SUPPOSED.search(sentence) or points_back(sentence))
        and not any(sign in sentence for sign in NO_CHOICE)
        and _decides(sentence, items := _items(sentence), chosen=chosen)
    )


def _is_quoted(sentence: str) -> bool:
    """Tell whether a sentence calls something deliberate in a quotation only."""
    return REASONED.search(BETWEEN_QUOTES.sub(" ", sentence)) is None


def _decides(sentence: str, items: frozenset[str], *, chosen: bool) -> bool:
    """Tell whether a sentence says more than the next step, and can be understood alone."""
    if not BECAUSE.search(sentence) and (REPORTS.match(sentence) or (not chosen and AS_IT_IS.search(sentence))):
        return False
    if chosen:
        return bool(items) or not sentence.isascii() or len(sentence.split()) >= FEWEST
    named = bool(items) or REASONED.search(sentence) is not None
    return named and not (announces(sentence) or MEANS.search(sentence))


@memoized
def _tried(message: Message) -> tuple[str, ...]:
    text = prose(message)
    return tuple(
        one_line(_with_next(text, sentence), LONGEST)
        for sentence in reversed(_sentences(message, TRYING))
        if TRIED.search(sentence)
        and sentence.rstrip('`"”)').endswith(ENDS)
        and not LABEL.match(sentence)
        and not (TALK.search(sentence) or MEANS.search(sentence))
        and not (SEEMS.match(sentence) or SUPPOSING.match(sentence) or sentence.startswith(OPENING_QUOTES))
    )


def _with_next(text: str, sentence: str) -> str:
    """Return a sentence with the one behind it in its line, if that is short: what was done about it."""
    place = text.find(sentence)
    rest = text[place + len(sentence) :].partition("\n")[0] if place >= 0 else ""
    following = next((each.strip(" *:：") for each in SENTENCE.split(rest) if len(each.strip(" *")) > 1), "")
    follows = 0 < len(following) <= REMEDY and not TALK.search(following)
    return f"{sentence}{' ' if sentence[-1].isascii() else ''}{following}" if follows else sentence


@memoized
def _verdicts(message: Message) -> tuple[_Conclusion, ...]:
    """Return the sentences of an answer that say what holds of an item, the last first."""
    text = prose(message)
    if "**" not in text and not _holds(text):  # most say nothing of the kind, and need not be divided
        return ()
    return tuple(
        _Conclusion(strong=True, line=one_line(sentence, LONGEST), items=items)
        for sentence in reversed(_whole_sentences(text, SHORTEST))
        if sentence.endswith(ENDS)
        and _holds(sentence)
        and not (announces(sentence) or points_back(sentence) or TALK.search(sentence))
        and not (SUPPOSED.search(sentence) or DOUBTED.search(sentence) or DESCRIBES.search(sentence))
        and not (EDITED.match(sentence) and (sentence.startswith("I") or "`" not in sentence))
        and (items := _items(sentence))
    )


def _holds(sentence: str) -> bool:
    """Tell whether a text says what holds of an item: in plain English one word alone does, which is looked up."""
    if not sentence.isascii() or "`" in sentence or "'" in sentence:
        return HOLDS.search(sentence) is not None
    return any(map(HOLDING.__getitem__, WORDS(sentence)))


@memoized
def _taking_back(message: Message) -> tuple[str, ...]:
    """Return the sentences of an answer that may take something back."""
    sentences = _sentences(message, TAKING_BACK) if message.role == "assistant" else ()
    return tuple(sentence for sentence in sentences if not TALK.search(sentence))


@memoized
def _all_taking_back(transcript: Transcript) -> tuple[tuple[int, str], ...]:
    return tuple(
        (position, sentence)
        for position, message in enumerate(transcript.messages)
        for sentence in _taking_back(message)
    )


def _is_reversed(transcript: Transcript, message: Message, conclusion: _Conclusion) -> bool:
    """Tell whether a later sentence takes back, by name, what a sentence is about."""
    if not conclusion.items:
        return False
    place = transcript.index[message.id]
    choice = CHOSEN.search(conclusion.line)
    chosen = {item for item in conclusion.items if choice and _follows(conclusion.line, choice.end(), item)}
    return any(
        _follows(sentence, match.end(), item)
        for position, sentence in _all_taking_back(transcript)
        if position > place
        for pattern, items in ((REPLACED, chosen), (TAKEN_BACK, conclusion.items), (ACQUITTED, conclusion.items))
        for item in items
        if (pattern is ACQUITTED or SPECIFIC.search(item)) and item in sentence
        for match in pattern.finditer(sentence)
    )


def _follows(sentence: str, end: int, item: str) -> bool:
    """Tell whether an item stands right behind a place in a sentence."""
    at = sentence.find(item, end)
    return 0 <= at - end <= NEAR and not BORDER.search(sentence, end, at)


@memoized
def _planning(transcript: Transcript) -> frozenset[MessageId]:
    """Return the messages in which a plan is made: from the tool or the turn that began it to the tool that ends it."""
    plans: list[MessageId] = []
    since: list[MessageId] = []
    begun = False
    for message in transcript.messages:
        names = {plain_name(call.name).replace("_", "") for call in message.calls}
        begins = bool(names & PLAN_BEGINS)
        if begins or (is_turn(message) and not begun):
            since, begun = [], begins
        since.append(message.id)
        if names & PLAN_ENDS:
            plans += since
            since, begun = [], False
    return frozenset((*plans, *since) if begun else plans)


@memoized
def plan_of(message: Message) -> str:
    """Return the plan that stands in tags in an answer, nothing where there is none."""
    text = text_of(message)
    plan = PLAN.search(text) if "plan>" in text else None
    return plan[2] if plan else ""


def _sentences(message: Message, words: tuple[str, ...]) -> list[str]:
    """Return the sentences of an answer that are whole and of a length to be quoted; none if it holds no such word."""
    text = prose(message)
    text = QUOTED.sub("", text) if ">" in text else text
    return _whole_sentences(text, LEAST) if any(map(text.lower().__contains__, words)) else []


def _whole_sentences(text: str, least: int) -> list[str]:
    return [
        sentence if sentence.count("**") % 2 == 0 else sentence.replace("**", "")
        for each in SENTENCE.split(text)
        if least < len(sentence := LEADS.sub("", each.strip(" -*#>|"))) <= LONGEST
        and not sentence.endswith((":", "："))
    ]


def _items(sentence: str) -> frozenset[str]:
    """Return what a sentence names: words in code quotes, and identifiers."""
    quoted = ITEM.findall(sentence)
    plain = ITEM.sub(" ", sentence) if quoted else sentence
    return frozenset(quoted).union(name for name in names_of(plain) if kind_of(name) not in ("number", "words"))
