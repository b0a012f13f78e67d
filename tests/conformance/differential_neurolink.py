"""Compares the policy `neurolink` with NeuroLink's own modules, decision by decision."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING, Any

import refold
from refold import formats
from refold.core.edits import Insert, fold
from refold.models._provider_factors import provider_factor
from tests.conformance import histories
from tests.conformance.differential import Decision, original, recorded_histories

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from refold.core.plan import Plan
    from tests.conformance.histories import Entry, History

STAGES = ("prune", "deduplicate", "summarize", "truncate")
WINDOW = 2_000_000  # nothing is over the input budget: the target alone decides
REFERENCE = re.compile(r"\[File .* - refer to latest read below\]", re.S)
MARKS = {"[Tool result cleared]": "C", "[Tool result unavailable - conversation was compacted]": "r"}

ARGUMENTS = "the arguments of calls are counted"
CHARACTERS = "characters are counted, not UTF-16 units"
FRAMES = "a system prompt and a prompt apart from the messages have no frame"
SYSTEM = "a system message at the head stays, and is not one of the messages"
PARALLEL = "parallel calls are one message"
PAIR = "the first pair stands behind the summary"
GROUPS = "a call and its result stay together, and a call that awaits its result stays"
REQUEST = "the last request of the user stays"
READS = "reads are known by tool and arguments, not by words"
GAIN = "a stage that saves nothing is left out"
BY_ID = "calls and results are paired by id, not by neighborhood"
PENDING = "calls at the very end are left open"
FURTHER = "further steps go on to the target"
ONCE = "the summarizer gets an earlier summary once"
DIFFERENCES = {
    ARGUMENTS: "A write of 39,000 characters counts 28 tokens in the original, about 9,750 to the provider.",
    CHARACTERS: "The original counts an emoji as the two units that its language stores it in.",
    FRAMES: "The original adds the four tokens of a message to each.",
    SYSTEM: "The original summarizes the system prompt, or takes it for half of the first exchange.",
    PARALLEL: "They are one message of the conversation; the original stores each call as a message of its own.",
    PAIR: "After a summary the original's first pair is the summary and whatever follows it.",
    GROUPS: "The original cuts between them and repairs with invented halves afterwards.",
    REQUEST: "The original may summarize or remove what the user last asked for.",
    READS: 'The original takes "thread pool" for a file and misses a read whose output does not repeat the call.',
    GAIN: "The original replaces a short range by a longer summary.",
    BY_ID: "The original invents results for parallel calls that have theirs.",
    PENDING: "They still await their results; the original invents some.",
    FURTHER: "The original leaves a list that is still above its target, such as four enormous messages, as it is.",
    ONCE: "The original sends it as the earlier summary and again as the first message.",
}


def decisions() -> Iterator[Decision]:
    """Yield every decision of both."""
    for history, recorded in recorded_histories("neurolink"):
        yield from decided(history, recorded)


def decided(history: History, recorded: dict[str, Any]) -> Iterator[Decision]:
    """Yield the decisions over one history."""
    messages = histories.openai(history.entries)
    tokens = refold.check(messages, policy="neurolink", window=WINDOW).tokens
    yield Decision(
        "estimate", history.name, tokens, recorded["tokens"], _sizes(history.entries, tokens, recorded["tokens"])
    )
    for available, _, theirs, fits in recorded["due"]:
        check = refold.check(
            messages, policy="neurolink", window=histories.WINDOW, max_output=histories.WINDOW - available
        )
        assert check.limit == available
        why = (ARGUMENTS,) if tokens > recorded["tokens"] else (CHARACTERS,) if tokens < recorded["tokens"] else ()
        ours = [check.due, check.tokens <= check.limit]
        yield Decision("due, fits", f"{history.name} in {available:,}", ours, [theirs, fits], why)
    if history.kind in ("chat", "tools", "unicode"):
        yield from _by_provider(history, messages, recorded)
        yield _request(history, messages, recorded)
    yield _repaired(history, messages, recorded)
    yield from _compacted(history, recorded)


def _sizes(entries: Sequence[Entry], ours: int, theirs: int, factor: float = 1.0) -> tuple[str, ...]:
    """Return the differences that make one estimate the other, to the token."""
    expected, names = theirs, []
    if calls := [entry for entry in entries if entry.role == "call"]:
        parallel = len(calls) - len({entry.batch for entry in calls})
        names += [ARGUMENTS, PARALLEL] if parallel else [ARGUMENTS]
        expected += sum(_estimate(len(entry.tool) + len(_json(entry)), factor) for entry in calls) - 4 * parallel
    if extra := sum(_estimate(_units(entry.text), factor) - _estimate(len(entry.text), factor) for entry in entries):
        names += [CHARACTERS]
        expected -= extra
    return tuple(names) if expected == ours else ()


def _by_provider(history: History, messages: list[Any], recorded: dict[str, Any]) -> Iterator[Decision]:
    """Compare the estimate for each provider, which a model tells here."""
    for provider, theirs in recorded["estimates"].items():
        model = histories.PROVIDERS[provider]
        ours = refold.check(messages, policy="neurolink", model=model, format="openai-chat").tokens
        why = _sizes(history.entries, ours, theirs, provider_factor(provider))
        yield Decision("estimate by provider", f"{history.name} for {provider}", ours, theirs, why)


def _request(history: History, messages: list[Any], recorded: dict[str, Any]) -> Decision:
    """Compare the parts of a request that has more than messages."""
    parts = histories.PARTS
    found = refold.check(
        messages,
        policy="neurolink",
        model="gpt-4.1",
        format="openai-chat",
        system=parts["systemPrompt"],
        prompt=parts["currentPrompt"],
        tools=parts["toolDefinitions"],
        files=parts["fileAttachments"],
    ).breakdown
    ours = [found.system, found.prompt, found.tools, found.files, found.total - found.messages]
    system, history_, prompt, tools, files, total = recorded["parts"]
    theirs = [system, prompt, tools, files, total - history_]
    framed = [ours[0] + 4, ours[1] + 4, *ours[2:4], ours[4] + 8] == theirs
    return Decision("parts beside the messages", history.name, ours, theirs, (FRAMES,) if framed else ())


@cache
def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


def _json(entry: Entry) -> str:
    return str(histories.openai([entry])[0]["tool_calls"][0]["function"]["arguments"])


def _estimate(characters: int, factor: float = 1.0) -> int:
    return math.ceil(math.ceil(characters / 4) * factor * 1.15)


def _repaired(history: History, messages: list[Any], recorded: dict[str, Any]) -> Decision:
    """Compare the repair alone: nothing is over the target, so a forced run does nothing else."""
    entries = history.entries
    result = refold.compact(messages, policy="neurolink", window=WINDOW, force=True)
    index = {id(message): places for message, places in histories_places(messages, entries)}
    ours: list[str] = []
    for message in result.messages:
        if id(message) in index:
            ours += [f"K{place}" for place in index[id(message)]]
        else:
            ours.append("r" if message["role"] == "tool" and message["content"] in MARKS else "X")
    theirs = recorded["repair"][2].split()
    answered = {entry.call for entry in entries if entry.role == "result"}
    open_ = [place for place, entry in enumerate(entries) if entry.role == "call" and entry.call not in answered]
    names = ()
    if ours != theirs and [mark for mark in ours if mark != "r"] == [mark for mark in theirs if mark != "r"]:
        last = next((at for at in range(len(entries) - 1, -1, -1) if entries[at].role not in ("call", "result")), -1)
        waiting = [place for place in open_ if place > last]
        expected = len(open_) - len(waiting)
        if ours.count("r") == expected:
            parallel = any(
                entries[at].batch == entries[at + 1].batch
                for at in range(len(entries) - 1)
                if entries[at].role == entries[at + 1].role == "call"
            )
            names = (*((PENDING,) if waiting else ()), *((BY_ID,) if parallel else ()))
    return Decision("repair", history.name, ours, theirs, names)


def histories_places(messages: list[Any], entries: Sequence[Entry]) -> list[tuple[Any, list[int]]]:
    """Return messages with the positions of their entries."""
    return [(m, places) for m, (_, places) in zip(messages, histories.openai_with_places(entries), strict=True)]


@dataclass(frozen=True)
class Run:
    """One compaction of both: the entries, what the list consisted of before, the messages, and what was recorded."""

    where: str
    entries: Sequence[Entry]
    start: Sequence[str]
    messages: list[Any]
    recorded: dict[str, Any]
    references: tuple[str, str] = ("", "")


def _compacted(history: History, recorded: dict[str, Any]) -> Iterator[Decision]:
    """Yield the decisions of every run over a history; a second compaction is compared where the first was the same."""
    messages = histories.openai(history.entries)
    more = histories.openai(history.more)
    entries = (*history.entries, *history.more)
    start = [f"K{place}" for place in range(len(history.entries))]
    meter = refold.Meter(policy="neurolink", window=WINDOW)
    tokens = meter.check(messages).tokens
    for of in recorded["runs"]:
        where = f"{history.name} to {of['share']:.0%} {'with' if of['summary'] else 'without'} a summary"
        asked: list[tuple[int, bool]] = []

        def summarize(request: Any, asked: list[tuple[int, bool]] = asked) -> str:
            asked.append((len(request.messages), bool(request.previous)))
            return histories.SUMMARY

        options = {"policy": "neurolink", "window": WINDOW, "force": True, "redact": False}
        options |= {"summarize": summarize} if of["summary"] else {}
        goal = int(tokens * of["share"])
        run = Run(where, history.entries, start, messages, of, (recorded["references"], recorded["named"]))
        plan = refold.plan(messages, goal=goal, meter=meter, **options)
        if of["share"] == histories.SHARES[-1] and not of["summary"]:
            yield from _alone(history, plan, messages, recorded)
        yield from _run(run, plan, asked)
        if not more or _view(run, plan, [step.label for step in plan.steps]) != of["view"].split():
            continue
        asked.clear()
        longer = [*refold.apply(plan, messages).messages, *more]
        size = refold.check(longer, policy="neurolink", window=WINDOW).tokens
        second = [mark if mark[1:] else mark.lower() for mark in of["view"].split()]
        second += [f"K{place}" for place in range(len(start), len(entries))]
        run = Run(f"{where}, and again", entries, second, longer, of["second"])
        yield Decision(
            "estimate",
            run.where,
            size,
            run.recorded["before"],
            _sizes(_left(run, second), size, run.recorded["before"]),
        )
        yield from _run(run, refold.plan(longer, goal=int(size * of["share"]), **options), asked)


def _alone(history: History, plan: Plan, messages: list[Any], recorded: dict[str, Any]) -> Iterator[Decision]:
    """Yield what the first two stages do, which is the same for every target that they run for."""
    run = Run("", history.entries, [f"K{place}" for place in range(len(history.entries))], messages, recorded)
    for kind, label, mark in (("cleared results", "prune", "C"), ("references", "deduplicate", "D")):
        if any(step.label == label for step in plan.steps):
            ours = [one for one in _view(run, plan, [label]) if one[0] == mark]
            theirs = recorded["cleared" if mark == "C" else "references"].split()
            names = (READS,) if mark == "D" and ours == recorded["named"].split() else ()
            yield Decision(kind, history.name, ours, theirs, names)


def _run(run: Run, plan: Plan, asked: list[tuple[int, bool]]) -> Iterator[Decision]:
    steps = [step for step in plan.steps if step.label in STAGES]
    stages = [step.label for step in steps if step.stop > step.start]
    view, theirs = _view(run, plan, STAGES), run.recorded["view"].split()
    model = Model(run, theirs, frozenset()).after(run.recorded["stages"])
    assert model == theirs, f"the model of the original is wrong: {run.where}"
    names = _names(run, plan, view)
    yield Decision("stages", run.where, stages, run.recorded["stages"], names)
    yield Decision("survivors and markers", run.where, view, theirs, names)
    repaired = [step for step in plan.steps if step.label == "repair"]
    made = sum(isinstance(edit, Insert) for step in repaired for edit in plan.edits[step.start : step.stop])
    further = any(label not in (*STAGES, "repair", "repair messages") for label in plan.stages_used)
    why = _repairs(run, theirs, view, made) or ((FURTHER,) if further else ())
    yield Decision("repairs after", run.where, made, sum(run.recorded["repair"]), why)
    after = steps[-1].after if steps else plan.sizes.before
    sizes = _sizes(_left(run, view), after, run.recorded["after"]) if view == theirs else ()
    whole = _sizes(_left(run, run.start), plan.sizes.before, run.recorded["before"])
    met = [plan.sizes.after <= plan.sizes.goal, run.recorded["after"] <= run.recorded["target"]]
    yield Decision("target met", run.where, *met, (FURTHER,) if further and met[0] else names or whole)
    if view == theirs:
        yield Decision("tokens after", run.where, after, run.recorded["after"], sizes)
        if "summarize" in stages:
            (count, previous), (theirs_count, theirs_previous) = asked[0], run.recorded["summarized"][0]
            ones = [ONCE] if previous and theirs_count == count + 1 else []
            calls = [entry for entry in _left(run, run.start[:theirs_count]) if entry.role == "call"]
            parallel = len(calls) - len({entry.batch for entry in calls})
            ones += [PARALLEL] if parallel and theirs_count == count + parallel + len(ones) else []
            yield Decision(
                "the summarizer's input", run.where, [count, previous], [theirs_count, theirs_previous], tuple(ones)
            )


def _repairs(run: Run, theirs: list[str], view: list[str], ours: int) -> tuple[str, ...]:
    """Return why the original repairs its view otherwise than this project, whose calls without result are exact."""
    left = _left(run, theirs)
    batches = {entry.batch for entry in left} - {0}
    whole = [entry for entry in run.entries if entry.batch in batches]
    calls = [entry for entry in left if entry.role == "call"]
    open_ = {entry.call for entry in calls} - {entry.call for entry in run.entries if entry.role == "result"}
    asked = max((place for place, entry in enumerate(run.entries) if entry.role == "user"), default=-1)
    waiting = [entry for entry in run.entries[asked + 1 :] if entry.call in open_ and entry.role == "call"]
    answered = {entry.call for entry in run.entries if entry.role == "result"}
    own = [entry for entry in _left(run, view) if entry.role == "call" and entry.call not in answered]
    if ours != len([entry for entry in own if entry not in waiting]):
        return ()
    return (
        *((GROUPS,) if len(whole) > sum(entry.batch in batches for entry in left) else ()),
        *((BY_ID,) if len(calls) > len({entry.batch for entry in calls}) else ()),
        *((PENDING,) if waiting else ()),
    )


def _left(run: Run, view: Sequence[str]) -> list[Entry]:
    """Return the entries whose call or text stands in a view."""
    return [run.entries[int(mark[1:])] for mark in view if mark[0] in "KCD"]


def _view(run: Run, plan: Plan, labels: Sequence[str]) -> list[str]:
    """Return what stands where after the steps of these labels."""
    transcript = formats.read(formats.find("openai-chat"), run.messages)
    marks = iter(run.start)
    at = {message.id: [next(marks) for _ in range(max(len(message.calls), 1))] for message in transcript.messages}
    edits = [edit for step in plan.steps if step.label in labels for edit in plan.edits[step.start : step.stop]]
    view: list[str] = []
    for message in fold(transcript.messages, [edits]):
        if message.id not in at:
            assert message.note is not None
            view.append({"summary": "S", "marker": "M"}.get(message.note.kind, "X"))
        elif message.patches:
            text = message.results[0].text if message.results else ""
            view.append(f"{'D' if REFERENCE.fullmatch(text) else MARKS.get(text, 'X')}{at[message.id][0][1:]}")
        else:
            view += at[message.id]
    return view


def _names(run: Run, plan: Plan, view: list[str]) -> tuple[str, ...]:
    """Return the smallest set of differences under which the original's rule gives this view."""
    steps = {step.label: step for step in plan.steps if step.label in STAGES}
    ours, theirs = [label for label, step in steps.items() if step.stop > step.start], run.recorded["stages"]
    if (ours, view) == (theirs, run.recorded["view"].split()):
        return ()
    read = "deduplicate"
    names = [READS] if run.references[0] != run.references[1] and (read in theirs) != (read in ours) else []
    refused = "summarize" in theirs and "summarize" in steps and "summarize" not in ours
    if refused and _longer(run, view):
        names.append(GAIN)
    # What the original did and this project did not: its step ran and found nothing to do, or was not over the target.
    met = all(label not in steps for label in theirs if label not in ours)
    for size in range(len(FLAGS) + 1):
        for flags in combinations(FLAGS, size):
            model = Model(run, view, frozenset(flags))
            if model.after(theirs) == view or ((names or (met and flags)) and model.again().after(ours) == view):
                return (*names, *flags)
    return ()


def _longer(run: Run, view: list[str]) -> bool:
    """Whether the original's summary, with calls and results kept together, would be no shorter than what it replaces."""
    before = Model(run, view, frozenset((GROUPS, REQUEST)))
    left = {mark for unit in before.units for mark in unit} - set(before.again().after(["summarize"]))
    texts = [run.entries[int(mark[1:])] for mark in left if mark[0] == "K"]
    size = sum(_estimate(len(one.text) or len(one.tool) + len(_json(one))) + 4 for one in texts)
    size += (4 + _estimate(len("[Tool result cleared]"))) * (len(left) - len(texts))
    return size <= 4 + _estimate(len(f"Previous conversation summary:\n\n{histories.SUMMARY}"))


FLAGS = (SYSTEM, PARALLEL, PAIR, GROUPS, REQUEST)


@cache
def formulas() -> dict[str, list[int]]:
    """How many messages of a list of each length a summary leaves, and how many the window removes, as recorded."""
    recorded: dict[str, list[int]] = original("neurolink")["formulas"]
    return recorded


class Model:
    """The original's last two stages as rules over positions, with deliberate differences switched on by name.

    Without any it has to give what the original gave, which is asserted for every run; how many messages stay or go is
    never computed here but taken from what the original was seen to do with a list of that length.
    """

    def __init__(self, run: Run, view: Sequence[str], flags: frozenset[str]) -> None:
        self.run, self.entries, self.view, self.flags = run, run.entries, view, flags
        marks = {mark[1:]: mark for mark in view if mark[0] in "CD"}
        self.units: list[list[str]] = []
        for mark in run.start:
            mark = marks.get(mark[1:], mark)
            last = self.units[-1][-1] if self.units else ""
            if PARALLEL in flags and self._call(mark) and self._call(mark) == self._call(last):
                self.units[-1].append(mark)
            else:
                self.units.append([mark])

    def again(self) -> Model:
        """Return the model before any stage."""
        return Model(self.run, self.view, self.flags)

    def after(self, stages: Sequence[str]) -> list[str]:
        """Return the view after the stages."""
        if "summarize" in stages:
            self._summarize()
        if "truncate" in stages:
            self._truncate()
        return [mark for unit in self.units for mark in unit]

    def _summarize(self) -> None:
        start = self._leading()
        count = len(self.units) - start
        if count <= 4:
            return
        stop = len(self.units) - formulas()["kept"][count]
        if GROUPS in self.flags:
            legal = [at for at in range(start + 1, len(self.units)) if self._legal(at)]
            stop = next((at for at in reversed(legal) if at <= stop), 0) or next(iter(legal), 0)
            stop = min(stop, self._settled())
        if stop > start:
            self._replace(start, stop, "S")

    def _truncate(self) -> None:
        lead = self._leading()
        if len(self.units) - lead <= 4:
            return
        start = lead + (PAIR in self.flags and self.units[lead] == ["S"]) + 2
        if GROUPS in self.flags:
            start = next((at for at in range(start, len(self.units)) if self._legal(at)), 0)
        if not start or not (count := formulas()["removed"][len(self.units) - start + 2]):
            return
        stop = start + count
        if GROUPS in self.flags:
            end = min(self._settled(), len(self.units) - 1)
            legal = [at for at in range(start + 1, end + 1) if self._legal(at)]
            below = [at for at in legal if at <= stop]
            even = [at for at in below if (at - start) % 2 == 0]
            if not legal:
                return
            stop = (even or below or legal[:1])[-1]
        self._replace(start, stop, "M")

    def _replace(self, start: int, stop: int, mark: str) -> None:
        asked = [unit for unit in self.units if self._role(unit) == "user"]
        stays = [unit for unit in self.units[start:stop] if REQUEST in self.flags and asked and unit is asked[-1]]
        if stop - start > len(stays):
            self.units[start:stop] = [[mark], *stays]

    def _call(self, mark: str) -> int:
        """Return the batch of a call, 0 for anything else."""
        entry = self.entries[int(mark[1:])] if mark[1:] else None
        return entry.batch if entry is not None and entry.role == "call" else 0

    def _role(self, unit: list[str]) -> str:
        return self.entries[int(unit[0][1:])].role if unit[0][1:] else ""

    def _leading(self) -> int:
        roles = [self._role(unit) for unit in self.units]
        return next(at for at, role in enumerate(roles) if role != "system") if SYSTEM in self.flags else 0

    def _batches(self, units: Sequence[list[str]]) -> set[int]:
        return {self.entries[int(mark[1:])].batch for unit in units for mark in unit if mark[1:]} - {0}

    def _legal(self, at: int) -> bool:
        return not self._batches(self.units[:at]) & self._batches(self.units[at:])

    def _settled(self) -> int:
        """Return the unit from which on a call awaits its result: behind the words of a user none does."""
        answered = {entry.call for entry in self.entries if entry.role == "result"}
        asked = max((place for place, entry in enumerate(self.entries) if entry.role == "user"), default=-1)
        for at, unit in enumerate(self.units):
            for place in (int(mark[1:]) for mark in unit if mark[1:]):
                entry = self.entries[place]
                if place > asked and entry.role == "call" and entry.call not in answered:
                    return at
        return len(self.units)
