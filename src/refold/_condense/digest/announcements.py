"""Tells sentences that an agent says on the way from those that hold after it: what is done next is told by the call.

Between two calls most agents announce the next one ("Now the tests", "One more pass over `load.py`", "Small change in
`a.py`: …"). Once the step is done such a sentence says nothing. A sentence that begins with a word for something named
before it ("It uses …", "These are in …") says nothing either where it stands alone.
"""

from __future__ import annotations

import re

from refold._condense.call_outline import one_line
from refold._condense.pins import NO_END

__all__ = ["HEADING", "SENTENCE", "announces", "points_back", "whole_sentences"]

SENTENCE = re.compile(rf"(?<=[.!?]){NO_END}\s+|(?<=[。！？])|\n+")
# Sentences that say what is done next, also as an imperative or a bare participle ("Checking …").
ANNOUNCED = re.compile(
    r"^to \w.*?\b(?:I|we)\b|"
    r"^(?:(?:ok(?:ay)?|good|great|perfect|right|wait|but|however|and|so|also|now|next|first|then|finally|to \w+)\b"
    r"[^\w`]*)*"
    r"(?:let(?:['’]s| me| us)|i(?:['’]ll| will|['’]m| am| can now| wonder|(?: also| still)? (?:need|want|should|"
    r"have to|must))|"
    r"we(?:['’]ll| will| need| should| can| must| have to)|need to|time to|while (?:i|we)\b|"
    r"(?:add|adjust|apply|call|change|check|clean|commit|compare|convert|copy|create|delete|do|edit|ensure|extract|find|"
    r"fix|get|go|handle|implement|inspect|install|keep|look|make|map|measure|move|open|pass|put|read|rebuild|refactor|"
    r"remove|rename|replace|rerun|restore|reuse|run|search|see|set|show|start|store|switch|take|try|update|use|verify|"
    r"wait|wire|write)\b|"
    r"(?!nothing|everything|something|anything|missing|existing|string)[a-z]+ing\b|"
    r"ich (?:werde|prüfe|schaue|lese|ändere|muss)|(?:jetzt|nun|als nächstes|zuerst)\b|lass(?:t)? (?:mich|uns)|"
    r"je vais|(?:maintenant|ensuite|d'abord)\b|voy a|vamos a|(?:ahora|primero|luego)\b|"
    r"让我|我将|我来|我会|接下来|现在|首先|次に|まず|では)",
    re.I,
)
# The same without a verb: a noun for the step ("One more pass over …", "Back to …", "Next is …", "Now step 4: …").
NAMED = re.compile(
    r"^(?:(?:ok(?:ay)?|good|great|perfect|right|and|so|also|now|next|first|then|finally)\b[^\w`]*)*"
    r"(?:(?:(?:an?|one|the|just|now)\s+)?(?:(?:small|quick|minor|tiny|last|final|more|another|further|similar|same|next|"
    r"big|other)\s+)+(?:changes?|pass|look|check|fix|edit|tweak|clean-?up|update|adjustment|correction|step|run|try|"
    r"place|round|task|thing)\b|(?:one|another)\s+more\b|back (?:to|on)\b|on to\b|off to\b|over to\b|"
    r"(?:the )?tests? again\b|a test first\b|up next\b)|"
    r"^(?:so |and )?(?:the )?next (?:up |step |task |one )?is\b|"
    r"^(?:now|next|then)[,:]? "
    r"(?!(?:\S+ ){0,6}?(?:is|are|was|were|has|have|does|do|can|passes|fails|works|returns|holds)\b)",
    re.I,
)
NUMBERED = re.compile(r"^(?:step|phase|task|part|item) \d{1,2}[a-z]?[.:] +", re.I)  # in front of what is done next
HEADING = re.compile(r"^ *#{1,6} .*$", re.M)
# Also in the middle: "…, so I'm changing it", "…, so let me compare it".
NEXT = re.compile(r"\b(?:I(?:['’]m| am|['’]ll| will|['’]d)|let(?:['’]s| me| us)|(?:is|are|comes?) next)\b")
POINTS_BACK = re.compile(
    r"^(?:(?:so|but|and|also|now|ok(?:ay)?|good|great|perfect|right|yes|no|wait|actually|however)\b[,.:!]? )*"
    r"(?:(?:it|they|here|these|those)\b|(?:this|that)(?:['’]s| (?:is|are|was|were|has|have|does|do|did|can|means?|"
    r"works?|fails?|uses?|needs?|makes?|gives?|shows?|all|both|approach|way|method|function|class|component|change|"
    r"design|pattern|version|one|two|three|ones|test|check|fix|error|line|value|name|part|setup|step)\b))",
    re.I,
)


CLAUSE = re.compile(r"[,;:](?= )|(?= (?:[–—-]|→|\() ?)|(?<=[，；：、])")  # where a sentence that is too long is cut


def whole_sentences(text: str, limit: int) -> str:
    """Return as many sentences of a text as have room, as one line; of one that is too long its first clauses."""
    line = one_line(text, 2 * limit)
    if len(line) <= limit:
        return line
    ends = [match.start() for match in SENTENCE.finditer(line, limit // 3, limit + 1) if match.start() <= limit]
    if ends:
        return line[: ends[-1]]
    clauses = [match.start() for match in CLAUSE.finditer(line, limit // 3, limit)]
    closed = [end for end in clauses if line.count("`", 0, end) % 2 == 0]
    return f"{line[: closed[-1]]} …" if closed else one_line(line, limit)


def announces(sentence: str) -> bool:
    """Tell whether a sentence says what is done next."""
    sentence = NUMBERED.sub("", sentence)
    return any((ANNOUNCED.match(sentence), NAMED.match(sentence), NEXT.search(sentence)))


def points_back(sentence: str) -> bool:
    """Tell whether the subject of a sentence is a word for what was named before it."""
    return POINTS_BACK.match(sentence) is not None
