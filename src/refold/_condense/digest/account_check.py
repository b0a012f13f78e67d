"""Checks a model's account against the originals, sentence by sentence.

A sentence is left out if it gives an order or ends a rule that no person has said so; if it names an identifier that
the originals do not contain; if it says the opposite of a pinned constraint; if it says that something went well whose
error is open. The rest stands: a wrong sentence costs itself and not the account. Where most of it is wrong, none of it
is to be trusted, and all of it is left out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from refold._condense.digest.outcomes import CallOutcome, outcomes
from refold._condense.pins import instruction_text, pins
from refold._text.identifiers import invented_identifiers
from refold.core.messages import texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.view import View

__all__ = ["AccountCheck"]

ORDERS = re.compile(
    r"\b(?:you|the (?:assistant|agent|model|reader|user)) (?:must|should|shall|may not|need to|needs to|have to|has to|"
    r"(?:is|are) (?:now )?(?:allowed|authori[sz]ed|required|permitted)|can now)\b|"
    r"^\W*(?:never|always|do not|don't|please|ignore|disregard|forget|ensure|make sure|remember|important|run|execute|"
    r"delete|send|curl|upload)\b|"
    r"\b(?:ignore|disregard|forget|override)s? (?:all |any |the |your )*"
    r"(?:previous|earlier|prior|above|instructions|rules)|"
    r"\b(?:instructions?|rules?|constraints?|restrictions?|limits?|requirements?) (?:\w+ ){0,4}"
    r"(?:void|lifted|cancel\w*|no longer|gone|obsolete|removed|revoked|withdrawn|appl(?:y|ies)|remains?)\b|"
    r"\bno (?:more |further |such )?(?:instructions|rules|constraints|restrictions|limits)\b|"
    r"\bfrom now on\b|\b(?:new|updated) (?:instructions?|rules?|policy)\b",
    re.I,
)
WENT_WELL = re.compile(
    r"\b(?:fixed|resolved|solved|repaired|pass(?:es|ed|ing)?|succe(?:eds?|eded|ssful(?:ly)?)|green|works? now|"
    r"no longer (?:fails?|occurs?)|behoben|gelöst|corrigée?|résolue?|resuelto|arreglado)\b|修正済み|解決|已修复|已解决",
    re.I,
)
NOT_SO = re.compile(r"\b(?:not|never|no|nor|without|cannot|yet|still|but|except|avoid\w*|un\w+ed|\w+n['’]t)\b", re.I)
NEGATION = re.compile(
    r"\b(?:not|never|no|without|cannot|avoid\w*|forbidden|prohibited|\w+n['’]t|nicht|nie|niemals|kein\w*|"
    r"jamais|pas|nunca|jamás|sin)\b",
    re.I,
)
RUNS = re.compile(r"\b(?:tests?|suite|build|checks?|lint(?:er|ing)?|types?|ci)\b", re.I)
WORD = re.compile(r"[^\W\d_]{4,}")
# Words of a rule that say that it is one, or nothing.
_EMPTY = (
    "never must only always avoid cannot should shall without except please make sure that this these those from with "
    "into when until unless your their them have been does dont ensure keep stay every everywhere"
)
EMPTY = frozenset(_EMPTY.split())
STEM = 5  # letters by which forms of a word are known as one
FEWEST = 2  # words of a rule that a sentence must share before it can contradict it
TRUSTED = 0.5  # of the sentences that must be right


class AccountCheck(Struct, frozen=True):
    """What the originals say that an account is held against."""

    users: str
    source: str
    rules: tuple[tuple[frozenset[str], bool], ...]
    errors: tuple[CallOutcome, ...]

    @classmethod
    def of(cls, view: View, earlier: str) -> AccountCheck:
        """Return what the originals of a view say, together with an earlier account."""
        messages = view.transcript.messages
        source = "\n".join([*(text for message in messages for text in texts(message)), earlier])
        rules = (
            (_stems(pin.text), NEGATION.search(pin.text) is not None)
            for pin in pins(view.transcript)
            if pin.role == "user"
        )
        open_errors = tuple(end for end in outcomes(view, messages) if end.open and not end.target.looks)
        return cls(
            instruction_text(messages), source, tuple(rule for rule in rules if len(rule[0]) >= FEWEST), open_errors
        )

    def right(self, sentences: Sequence[str]) -> frozenset[str]:
        """Return the sentences that nothing speaks against; none where most are wrong."""
        invented = invented_identifiers(" ".join(sentences), self.source)
        wrong_names = (*invented.certain, *invented.likely)
        right = frozenset(
            sentence
            for sentence in sentences
            if (sentence in self.users or not ORDERS.search(sentence))
            and not any(name in sentence for name in wrong_names)
            and not self._contradicts(sentence)
            and not self._claims(sentence)
        )
        return right if len(right) >= TRUSTED * len(sentences) else frozenset()

    def _contradicts(self, sentence: str) -> bool:
        """Tell whether a sentence tells of doing what a rule forbids, or of not doing what it demands."""
        if sentence in self.users:
            return False
        stems, negated = _stems(sentence), NEGATION.search(sentence) is not None
        return any(rule <= stems and forbids != negated for rule, forbids in self.rules)

    def _claims(self, sentence: str) -> bool:
        """Tell whether a sentence says that something went well whose error is open."""
        if not WENT_WELL.search(sentence) or NOT_SO.search(sentence):
            return False
        return any(_speaks_of(sentence, error) for error in self.errors)


def _speaks_of(sentence: str, error: CallOutcome) -> bool:
    """Tell whether a sentence names what failed: a file, the command, or, of a check, checks as such."""
    names = {one.rsplit("/", 1)[-1] for one in error.target.objects} | {error.target.task.split(" ")[0]}
    named = any(re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", sentence) for name in names if len(name) > 2)
    return named or (error.target.checks and RUNS.search(sentence) is not None)


def _stems(text: str) -> frozenset[str]:
    return frozenset(word[:STEM] for word in map(str.lower, WORD.findall(text)) if word not in EMPTY)
