"""The guard: accepts or rejects a summary that a model wrote, without asking a model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from refold import _prompts as prompts
from refold._condense.call_facts import files_of
from refold._condense.pins import Pin, pins
from refold._condense.transcript_text import FENCE, serialize
from refold._text.identifiers import invented_identifiers, named_in
from refold.core.needs import Refused, SummaryNeed
from refold.core.transcript import Transcript
from refold.summaries._no_summary import certain_faults

if TYPE_CHECKING:
    from refold.core.messages import Message

__all__ = ["Verdict", "headings", "judge", "judge_answer", "with_missing_facts"]

Files: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]  # read and modified, as `files_of` gives them

LEAST, LEAST_SHARE = 400, 0.003  # characters, and share of the record: a shorter summary holds too little
SMALL = 4  # of a short record, the summary may be its fourth part
MOST_PER_TOKEN = 8  # characters: more than any tokenizer makes of prose on average
INVENTED_SHARE = 0.05  # of the identifiers that a summary names
MAX_NAMED = 5  # identifiers, pins or files that a reason names
ERROR_LENGTH = 300  # characters: an error text is short, a summary of work on errors is not
CONSTRAINTS = "Constraints, word for word:"
CHANGED = "Files changed:"
LISTED_BEHIND = "are added behind your text"  # what a prompt says whose stage writes the lists of files itself

ANSWERS = re.compile(
    r"(?:i['’]?d be (?:happy|glad)|i['’]?m (?:happy|glad|ready) to|i notice|i see (?:that )?you|sure[,!.]|"
    r"of course[,!.]|certainly[,!.]|absolutely[,!.]|great (?:question|idea)|how can i|what would you|could you|"
    r"can you (?:please )?(?:share|provide|clarify|tell)|please (?:provide|share|clarify|let me know)|"
    r"it (?:looks|seems) like you|thank(?:s| you)\b|let me\b|let['’]s\b|i['’]ll\b|i will\b|now i\b|"
    r"as an ai|hello[,!.]|hi[,!. ]|gerne[,!. ]|natürlich[,!.]|ich werde\b|lassen sie|"
    r"bien sûr|je vais\b|claro[,!. ]|por supuesto|voy a\b)",
    re.I,
)
ASKS_BACK = re.compile(
    r"(?:would you like|shall i|should i|do you want|let me know|how would you like|what would you like|möchten sie|"
    r"möchtest du|soll ich|voulez-vous|quieres que|¿quieres|¿debo)[^\n?!.]*[?!.]?\s*$",
    re.I,
)
IS_SUMMARY = re.compile(r"summar|zusammenfassung|résumé|resum|riassunto|要約|总结|摘要|요약", re.I)
REFUSALS = re.compile(
    r"(?:i['’]?m sorry|sorry[,.]|i apologi[sz]e|i (?:can['’]?t|cannot|can not|won['’]?t|am unable to|am not able to)\b|"
    r"i['’]?m (?:unable|not able) to\b|unable to (?:summarize|comply|help)|es tut mir leid|"
    r"ich kann (?:das |dir |ihnen )?nicht|je suis désolé|je ne peux pas|lo siento|no puedo)",
    re.I,
)
ECHOES = re.compile(
    rf"\[(?:user|assistant|tool|system|call \S+|result \S+)\]|(?:human|user|assistant):\s|</?{FENCE}>", re.I
)
MARKUP_ERRORS = re.compile(r"\s*(?:<!doctype html|<html\b|\{\s*\"(?:error|detail|message)\"\s*:)", re.I)
ERRORS = re.compile(
    r"rate.?limit|too many requests|overloaded|internal server error|service unavailable|bad gateway|gateway timeout|"
    r"quota exceeded|insufficient_quota|invalid api key|model .{0,60}not found|context length|"
    r"connection (?:error|refused|reset)|timed? ?out|\berror code\b|\b(?:http )?5\d\d\b error",
    re.I,
)
OPEN_END = re.compile(
    r"(?:[,:;(\[{]|\b(?:and|or|the|of|to|with|which|because|und|oder|der|die|das|mit|weil|et|ou|les|des|avec|los|con|que))$"
)
LINE_HEADING = re.compile(r"^(?:#{2} +(.+?)|\d+\. +([A-Z][^:\n]*?)|([A-Z]{4,})) *(?::.*)?$", re.M)
INLINE_HEADING = re.compile(r"(?:(?<!#)## |\b\d\. )([A-Z][A-Za-z' &-]+?)(?=[,.:]| with #| and #)")
MARKS = re.compile(r"^[\s#>*_\d.)(-]+|[\s*_:#]+$")
BLOCK = re.compile(r"<(read|modified)-files>\s*\n(.*?)\n\s*</\1-files>", re.S)


class Verdict(Struct, frozen=True):
    """Whether a summary is accepted, and every reason why it is not."""

    ok: bool
    reasons: tuple[str, ...] = ()


def judge(
    summary: str,
    need: SummaryNeed,
    messages: Sequence[Message] | None = None,
    *,
    pins: Sequence[Pin] = (),
    files: Files | None = None,
    max_tokens: int | None = None,
) -> Verdict:
    """Accept a summary or say why not: it is empty, too short, cut off, no summary, incomplete or invented.

    `need` is the request it answers; `messages` what it replaces, those of the need by default. `pins` must stand in
    it word for word. Of `files`, those modified must be named, and a list of files in it must name no others. Who asks
    with `need.judged` looks at each sentence: what one of them invents costs that sentence, and not the whole.
    """
    text = summary.strip()
    if not text:
        return Verdict(False, ("it is empty",))
    source = _source(need, messages)
    missing = [title for title in headings(need) if title.casefold() not in _headings_in(text)]
    reasons = [
        *_no_summary(text, need, complete=bool(headings(need)) and not missing),
        *_of_size(text, source, need, max_tokens),
        *([f"sections are missing: {_some(missing)}"] if missing else []),
        *(() if need.judged else _invented(text, source)),
        *_left_out(text, pins, files),
    ]
    return Verdict(not reasons, tuple(dict.fromkeys(reasons)))


def judge_answer(summary: str, need: SummaryNeed, *, repair: bool = True) -> str | Refused:
    """Return a summary that is accepted, else a refusal of the kind "rejected" with the reasons.

    With `repair`, what is missing and known (constraints, changed files) is added before it is judged. Nothing is added
    where `need.judged`: what is asked so stands beside those.
    """
    if need.judged:
        alone = judge(summary, need)
        return summary.strip() if alone.ok else _rejected(alone)
    files = None if LISTED_BEHIND in need.instructions else files_of(need.messages)
    verdict = judge(summary, need) if repair else judge(summary, need, pins=_pins(need), files=files)
    text = with_missing_facts(summary, need) if repair else summary.strip()
    if verdict.ok and len(text) >= len(_source(need, None)):
        verdict = Verdict(False, ("with the constraints it leaves out it is larger than what it replaces",))
    return text if verdict.ok else _rejected(verdict)


def _rejected(verdict: Verdict) -> Refused:
    return Refused(f"the summary was rejected: {'; '.join(verdict.reasons)}", "rejected")


def with_missing_facts(summary: str, need: SummaryNeed) -> str:
    """Return a summary with the constraints and changed files that it leaves out written behind it, word for word.

    What stood behind an earlier summary, or behind those of parts that are merged, is carried on. The same summary
    where nothing is missing.
    """
    text = summary.strip()
    blocks = [text]
    lost = [pin for pin in _known(need, CONSTRAINTS, (pin.text for pin in _pins(need))) if pin not in text]
    if lost:
        blocks.append("\n".join([CONSTRAINTS, *(f"- {pin}" for pin in lost)]))
    if LISTED_BEHIND not in need.instructions:
        changed = _known(need, CHANGED, files_of(need.messages)[1])
        unnamed = [path for path in changed if not named_in(path, text)]
        if unnamed:
            blocks.append("\n".join([CHANGED, *(f"- {path}" for path in unnamed)]))
    return "\n\n".join(blocks)


def headings(need: SummaryNeed) -> tuple[str, ...]:
    """Return the headings that a need's prompt demands, in order; none where it demands none."""
    text = prompts.text(need.prompt) if need.prompt in prompts.names() else need.instructions
    names = [MARKS.sub("", re.sub(r"\(.*?\)", "", next(filter(None, groups)))) for groups in LINE_HEADING.findall(text)]
    if len(names) < 3:
        names = INLINE_HEADING.findall(" ".join(text.split()))
    return tuple(dict.fromkeys(names)) if len(names) >= 3 else ()


def _source(need: SummaryNeed, messages: Sequence[Message] | None) -> str:
    record = need.text if messages is None else serialize(messages)
    return "\n".join(filter(None, (record, need.previous)))


def _headings_in(text: str) -> set[str]:
    """Return the beginnings of lines up to a colon, without marks: where a heading may stand."""
    beginnings: set[str] = set()
    for line in text.splitlines():
        bare = MARKS.sub("", line).casefold()
        beginnings |= {bare, MARKS.sub("", re.sub(r"\(.*?\)", "", bare.partition(":")[0]))}
    return beginnings


def _no_summary(text: str, need: SummaryNeed, *, complete: bool) -> list[str]:
    """Return why a text is something else than a summary. One with all its sections may open and end as it likes."""
    first = next((line for line in text.splitlines() if MARKS.sub("", line)), "").strip(" #*_>")
    faults = list(certain_faults(text, need))
    if MARKUP_ERRORS.match(text) or (len(text) < ERROR_LENGTH and not complete and ERRORS.search(text)):
        faults.append("it is an error text")
    if ECHOES.match(text):
        faults.append("it repeats the record instead of summarizing it")
    if complete:
        return faults
    if REFUSALS.match(first):
        faults.append("it is a refusal")
    elif (ANSWERS.match(first) and not IS_SUMMARY.search(first)) or ASKS_BACK.search(text):
        faults.append("it is an answer or a continuation instead of a summary")
    return faults


def _of_size(text: str, source: str, need: SummaryNeed, max_tokens: int | None) -> list[str]:
    most = max_tokens or need.max_tokens
    least = min(max(LEAST, int(len(source) * LEAST_SHARE)), len(source) // SMALL)
    least = min(least, 2 * most) if most else least
    findings: list[str] = []
    if len(text) < least:
        findings.append(f"it is too short: {len(text):,} characters of at least {least:,}")
    if len(text) >= len(source):
        findings.append(f"it is larger than what it replaces: {len(text):,} characters for {len(source):,}")
    elif most and len(text) > most * MOST_PER_TOKEN:
        findings.append(f"it is larger than the {most:,} tokens it may have")
    if text.count("```") % 2 or OPEN_END.search(text):
        findings.append("it is cut off")
    return findings


def _invented(text: str, source: str) -> list[str]:
    findings = invented_identifiers(text, source)
    if not findings.certain and len(findings.likely) <= INVENTED_SHARE * findings.total:
        return []
    words = [*findings.certain, *findings.likely]
    return [f"{len(words)} of {findings.total} identifiers occur nowhere in the record: {_some(words)}"]


def _left_out(text: str, pins: Sequence[Pin], files: Files | None) -> list[str]:
    reasons: list[str] = []
    lost = [f'"{pin.text[:80]}"' for pin in pins if pin.text not in text]
    if lost:
        reasons.append(f"constraints are missing: {_some(lost)}")
    if files is None:
        return reasons
    unnamed = [path for path in files[1] if not named_in(path, text)]
    if unnamed:
        reasons.append(f"changed files are missing: {_some(unnamed)}")
    known = {"read": {*files[0], *files[1]}, "modified": set(files[1])}
    wrong = [
        path
        for kind, block in BLOCK.findall(text)
        for line in block.splitlines()
        if (path := line.strip(" -*`")) and path not in known[kind]
    ]
    if wrong:
        reasons.append(f"files are listed that were not: {_some(wrong)}")
    return reasons


def _pins(need: SummaryNeed) -> tuple[Pin, ...]:
    return tuple(pin for pin in pins(Transcript(need.messages)) if pin.role == "user")


def _known(need: SummaryNeed, heading: str, now: Iterable[str]) -> dict[str, None]:
    """Return what must stand behind a summary: what stood behind earlier ones, and what its messages say now.

    A request without messages is one to merge summaries of parts: what stood behind those is in its text.
    """
    earlier = "\n".join(filter(None, (need.previous, "" if need.messages else need.text)))
    return dict.fromkeys([*_carried(earlier, heading), *now])


def _carried(text: str, heading: str) -> Iterator[str]:
    """Yield the lines that were written under a heading behind a summary."""
    for block in text.split(heading)[1:]:
        for line in block.lstrip("\n").splitlines():
            if not line.startswith("- "):
                break
            yield line[2:]


def _some(words: Sequence[str]) -> str:
    more = f" and {len(words) - MAX_NAMED} more" if len(words) > MAX_NAMED else ""
    return ", ".join(words[:MAX_NAMED]) + more
