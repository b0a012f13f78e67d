"""Files in work: chooses the lines of the files touched last that the next edits are likely to quote.

Theory of operation. An edit names its place by quoting lines of the file, so an agent that lost those lines has to read
the file again. The lines stand in what was read and edited lately, often far back in the transcript, and hold few
identifiers, so that `selection` does not find them. They are chosen by what is being worked on:

    transcript ── views and edits, replayed by file ──► lines ── score by size ──► those within the room ──► section

1. For each file its views and edits are replayed in order (`FileState`). A view adds a run of lines; an edit replaces
   its old text in every run that holds it, and single lines of the old text elsewhere are dropped; a written file, and
   a change that cannot be read, drop all that was known. So no line that a later edit replaced is left.
2. A line is worth more in a file that was touched, or edited, later; more if an edit wrote it, for the newest text is
   the most likely anchor of the next edit; and more the rarer the words are that it and the lines around it share with
   what the assistant did lately and the user asked for. That is divided by its size.
3. The best lines are taken until the room is filled, those aside that stand in the result anyway, or that say too
   little without their neighbours.
4. They are written file by file in their order, the file touched last at the end, with a mark for each gap, and behind
   a gap the line that opens what they stand in: the function, the class, the heading of a document.

The section is data: the lines of each file are in a fence that is longer than any in them, and no line is taken that
could begin a section, so that a digest can be read back (`digest.previous`). Where only the result of an earlier
compaction is known, its section is a view like any other, older than all that came after it.
"""

from __future__ import annotations

import re
from collections import Counter as Tally
from itertools import accumulate, chain, islice, pairwise
from math import fsum, log
from typing import TYPE_CHECKING

from msgspec import Struct

from refold._condense.call_facts import arguments_of, is_shell
from refold._condense.digest.definitions import is_prose
from refold._condense.digest.endings import rejected_turns
from refold._condense.digest.file_log import file_log
from refold._condense.digest.previous import END, FILES_IN_WORK, GAP, OPENING, block_entries, block_entry, digests_in
from refold._condense.digest.render import SMALL_GOAL, room_of, share_of
from refold._condense.digest.turns import turns_at, turns_in_work
from refold._condense.file_state import TELLING, FileState, Line, LineRun
from refold._condense.file_views import (
    Excerpt,
    FileMoved,
    FileNames,
    Scripts,
    UnreadableChange,
    VisibleLines,
    changed_by_git,
    changes_of,
    command_of,
    excerpts_in,
    is_generated,
    is_scratch,
    took_effect,
    visible_lines,
    without_numbers,
)
from refold._condense.pins import pins_of
from refold._condense.quoted_requests import LAST_REQUEST, REQUESTED
from refold._condense.shell_writes import manifests_changed
from refold._text.sign_runs import SignRuns
from refold._text.text_cache import word_cache
from refold.core._json import strings_within
from refold.core._speakers import is_turn
from refold.core.messages import Message, Text, ToolCall, memoized, texts
from refold.core.transcript import Transcript

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set

    from refold._condense.file_views import Change
    from refold.core.view import View

__all__ = ["FilesInWork", "prepare", "room_for_files", "touched_last"]

# Chosen on recorded sessions, each for its own effect on the share of edit anchors in the block (docs/salience.md).
# (room for the transcript as a share of its size, share of the goal): where there is more room, more of the files is in
# its place. At half of the text 15 % of the goal keep 0.01 more of the lines that are edited later, for 0.01 of ctx.
SHARES = ((0.1, 0.2), (0.25, 0.14), (0.5, 0.06))
READ_ONLY = 0.05  # of the goal, where nothing was edited yet
LEAST_ROOM = 200  # tokens
MOST_FILES = 16
MOST_VIEWS, MOST_EVENTS = 12, 100  # of a file, the newest, and with its changes
MOST_LINES = 20_000  # that are looked at, those of the files touched last first
NEWEST, TURNS = 14, 2  # messages and users' turns whose words say what is being worked on
WINDOW = 6  # lines on either side whose words count for a line
AROUND = 2  # lines on either side of what an edit wrote
TOGETHER = 5  # lines at least that stand alone, and fewer are taken along between two that were written
SHORTEST_BLOCK, LONGEST_BLOCK = 8, 24  # lines, where a file is cut into blocks
NEAR = 0.5  # power of the worth of those words: that there are some tells more than how many
FADE = 0.85  # of a file's worth for each one that was touched later
# Times the worth of a scratch or generated file, of instructions to agents and of what was read for an answer that the
# user rejected, and of a document that was only read.
BY_THE_WAY, DOCUMENT = 0.01, 0.5
READ_BEFORE = 0.5  # times the worth of a file that only a turn has read that has ended
LEAST_WORTH = 0.01  # of that of the best line: what is worth less stays away, also where there is room
DOCUMENTS = (".md", ".mdx", ".rst", ".txt")
INSTRUCTIONS = re.compile(  # files that tell agents how to work
    r"(?:^|[/\\])(?:AGENTS|CLAUDE|GEMINI)\.md$|"
    r"(?:^|[/\\])\.[a-z]+[/\\](?:.*[/\\])?(?:skills|plugins|commands|agents|rules|memories)[/\\]"
)
FADE_OF_EDITS, UNEDITED = 0.95, 8  # of it for each one edited later, and the rank of a file that never was
EDITED = 1.7  # times the worth of a line that an edit wrote
AGE, SOON = 0.35, 5  # power of a line's age in messages that divides its worth, and what is added to the age
CHARS, FRAME = 3.2, 3.0  # characters a token of code, and tokens of a line beside them, where a guess will do
LONGEST = 400  # characters of a line that is worth its place
FEWEST = 4  # lines of a file, with marks for gaps, that are worth its name and its fence
SAYS = 30  # characters of a block that is worth the marks around it
LISTED = 20  # lines of an output that show whether it lists a folder
BEGINNING = 3  # words of a line: one among them that forbids or obliges makes it an order
READER = re.compile(r"\b(?:you|your|agents?|assistants?|model|claude|codex)\b", re.I)
SIGNS = " \t-+*#/>;%!`'\"(["  # that stand before the words of a line in lists, comments and quotations
FAR = 400  # lines above a stretch that are searched for what it stands in
TRIES, FULL = 4, 0.95  # of choosing, until so much of the room is filled
WORDS_KNOWN = 32_768  # lines whose words are remembered
WORD = re.compile(r"[^\W\d_]\w{2,}")
RUNS = SignRuns(r"\w")  # of which words are parts: the same, without what stands before their first letter
NO_LETTERS, SHORTEST = "0123456789_", 2
# Lines that say what those below stand in, where these are further in, and headings of a document.
OPENS = re.compile(
    r"[ \t]*(?:(?:export|default|pub(?:\([a-z]+\))?|public|private|protected|internal|static|abstract|async|final|"
    r"override|virtual)[ \t]+)*(?:def|class|func(?:tion)?|fn|struct|interface|type|trait|enum|impl|module|namespace|"
    r"describe|it|test|resource|CREATE)\b|"
    r"(?:export[ \t]+)?(?:const|let|var)[ \t]+\w+.*[({\[]$|"
    r"[ \t]+(?!(?:if|for|while|switch|catch|return|else|with|try)\b)(?:[\w<>,\[\]?]+[ \t]+)*\w+\([^()]*\)[^=;]*\{$|"
    r"[ \t]*(?:- )?\"?[\w.-]+\"?:(?:[ \t]*[{\[])?$|"
    r"[.#@][\w-][^;]*\{$|\[[\w.\"-]+\]$"
)
TITLE = re.compile(r"#{1,4} \S")
ROLES = re.compile(r"<\|[^|>]{1,40}\|>|</?(?:system|user|assistant|human|developer)>|\[/?(?:INST|SYS)\]", re.I)
HEADINGS = ("## ", OPENING, END, LAST_REQUEST, REQUESTED)  # beginnings of lines that are parts of a digest


class Block(Struct):
    """Lines of a file that stand there together: its rank by recency, their run, their first place and the one behind.

    `worth` is by token. `texts` are those that can be told from lines of other files.
    """

    file: int
    run: int
    first: int
    stop: int
    worth: float
    size: float
    texts: frozenset[str]

    def is_new(self, known: Set[str]) -> bool:
        """Tell whether most of it does not stand elsewhere."""
        return 2 * sum(map(len, self.texts - known)) > sum(map(len, self.texts))


class FilesInWork:
    """The files touched last, with the worth of blocks of their lines; `section` chooses those that have room."""

    def __init__(
        self, files: Mapping[str, FileState], lately: frozenset[str], total: int, in_use: Sequence[float]
    ) -> None:
        self.paths = tuple(files)
        self.edits = [state.last_edit for state in files.values()]  # the last message that changed each, or -1
        in_order = [state.in_order() for state in files.values()]
        self.runs = [[run.written() for run in runs] for runs in in_order]
        self.texts = [[[line.text for line in run.lines] for run in runs] for runs in in_order]
        self.blocks = _blocks(files, lately, total, in_use)
        self.lines = frozenset(chain.from_iterable(block.texts for block in self.blocks))

    def section(self, staying: Iterable[Message], room: int, count: Callable[[str], int]) -> str:
        """Return a section of a digest within a room in tokens, without blocks that stand elsewhere; or nothing."""
        if room < LEAST_ROOM:
            return ""
        standing = frozenset().union(*(self.lines & _lines(message) for message in staying))
        free = [block for block in self.blocks if block.is_new(standing)]
        aim, best = float(room), ""
        chosen: list[Block] = []
        for _ in range(TRIES):
            before, chosen = chosen, _within(free, aim)
            if chosen == before and best:
                break
            text = self._written(chosen)
            size = count(text) if text else 0
            if size <= room:
                best = text
                if size >= FULL * room:
                    break
            aim *= room * (1 + FULL) / 2 / max(size, 1)
        return best

    def _written(self, chosen: Sequence[Block]) -> str:
        entries: list[str] = []
        # those that were only read first, then in the order of their last changes: the newest comes last
        for file in sorted({block.file for block in chosen}, key=lambda file: (self.edits[file], -file)):
            written: list[str] = []
            within = ""  # what the last lines written stand in
            last, end, after = -1, 0, 0
            for block in sorted(
                (each for each in chosen if each.file == file), key=lambda each: (each.run, each.first)
            ):
                texts, lines = self.texts[file][block.run], self.runs[file][block.run]
                after = after if block.run == last else 0
                filled = [at for at in range(block.first, block.stop) if (texts[at] or "").strip()]
                first, stop = filled[0], filled[-1] + 1
                if block.first == after > 0:  # it goes on where another one ends
                    first = end
                elif (first > 0 or written) and written[-1:] != [GAP]:
                    written.append(GAP)
                opening = _opening(texts, first, prose=is_prose(self.paths[file]))
                if opening is not None and (texts[opening] or "") != within:
                    within = texts[opening] or ""
                    if opening >= after:
                        written.append(lines[opening] or "")
                        written += [GAP] if opening < first - 1 else []
                written += [line for line in lines[first:stop] if line is not None]
                last, end, after = block.run, stop, block.stop
            if after < len(self.texts[file][last]):
                written.append(GAP)
            if len(written) >= FEWEST:
                entries.append(block_entry(self.paths[file], written, only_read=self.edits[file] < 0))
        return "\n".join([f"## {FILES_IN_WORK}", *entries]) if entries else ""


def _blocks(files: Mapping[str, FileState], lately: frozenset[str], total: int, in_use: Sequence[float]) -> list[Block]:
    """Return the blocks of files that can be chosen, none that mostly repeats another one, the best first."""
    rarity: Tally[str] = Tally()
    shared: list[tuple[int, int, LineRun, list[frozenset[str]]]] = []
    lines = 0
    for file, state in enumerate(files.values()):
        for number, run in enumerate(state.in_order()):
            if lines + len(run.lines) > MOST_LINES:
                break
            lines += len(run.lines)
            words = [_words_of(line.text) & lately if line.text else frozenset() for line in run.lines]
            for some in words:
                rarity.update(some)
            shared.append((file, number, run, words))
    weight = {word: log(1 + lines / count) for word, count in rarity.items()}
    worths = _worths(files, in_use)
    blocks: list[Block] = []
    for file, number, run, words in shared:
        # `fsum` is exact: the order of a set, which differs from run to run, must not decide between two lines
        sums = [0.0, *accumulate(fsum([weight[word] for word in some]) for some in words)]
        for first, stop in _parts(run):
            worth = size = 0.0
            for place in range(first, stop):
                line = run.lines[place]
                near = sums[min(place + WINDOW + 1, len(words))] - sums[max(place - WINDOW, 0)]
                tokens = _size((run.numbered and line.numbered) or line.text or "")
                size += tokens
                if len((line.text or "").strip()) >= TELLING:
                    worth += (1 + near) ** NEAR * (total - line.at + SOON) ** -AGE * (EDITED if line.edited else 1.0)
            texts = frozenset(
                text for line in run.lines[first:stop] if len(text := (line.text or "").strip()) >= TELLING
            )
            blocks.append(Block(file, number, first, stop, worths[file] * worth / size, size, texts))
    blocks.sort(key=lambda block: (-block.worth, block.file, block.run, block.first))
    chosen: list[Block] = []
    known: dict[int, set[str]] = {}
    for block in blocks:
        if block.worth > LEAST_WORTH * blocks[0].worth and block.is_new(known.setdefault(block.file, set())):
            known[block.file] |= block.texts
            chosen.append(block)
    return chosen


def _parts(run: LineRun) -> Iterator[tuple[int, int]]:
    """Yield from where to where the lines of a run say something together.

    What edits wrote stands with a few lines around it. What is long is cut where a paragraph or a block begins.
    """
    stands = [line.text is not None and _can_stand(line.text) for line in run.lines]
    stop = 0
    while stop < len(stands):
        start = next((at for at in range(stop, len(stands)) if stands[at]), len(stands))
        stop = next((at for at in range(start, len(stands)) if not stands[at]), len(stands))
        written = _written_by_edits(run.lines, start, stop)
        between = pairwise((start, *chain.from_iterable(written), stop))
        pieces = (*written, *((end, first) for number, (end, first) in enumerate(between) if number % 2 == 0))
        for first, end in pieces:
            if (first, end) in written or end - first >= TOGETHER:
                yield from _cut(run.lines, first, end)


def _written_by_edits(lines: Sequence[Line], start: int, stop: int) -> list[tuple[int, int]]:
    """Return from where to where lines were written by edits, with those around them; what is near is one."""
    written: list[tuple[int, int]] = []
    for at in range(start, stop):
        if lines[at].edited:
            first, end = at - AROUND, min(at + AROUND + 1, stop)
            before = written.pop() if written and first - written[-1][1] < TOGETHER else None
            first = before[0] if before else start if first - start < TOGETHER else first
            written.append((first, stop if stop - end < TOGETHER else end))
    return written


def _cut(lines: Sequence[Line], first: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield parts of lines that are not too long, each from a line on that stands as far out as can be."""
    while stop - first > LONGEST_BLOCK:
        places = range(first + SHORTEST_BLOCK, min(first + LONGEST_BLOCK, stop - SHORTEST_BLOCK) + 1)
        texts = {at: lines[at].text or "" for at in places}
        cut = min(
            places,
            key=lambda at: (
                not WORD.search(texts[at]),
                _indent(texts[at]),
                bool((lines[at - 1].text or "").strip()),
                -at,
            ),
        )
        yield first, cut
        first = cut
    if sum(len((line.text or "").strip()) for line in lines[first:stop]) >= SAYS:
        yield first, stop


def _worths(files: Mapping[str, FileState], in_use: Sequence[float]) -> list[float]:
    """Return what lines of each file are worth, by when it was touched and edited last, and what sort of file it is.

    `in_use` is for each what it is worth to have been read last in its turn: in one that goes on 1.0, in others less.
    """
    edits = sorted({state.last_edit for state in files.values()}, reverse=True)
    changed = [is_scratch(path) for path, state in files.items() if state.last_edit >= 0]
    in_scratch = 2 * sum(changed) > len(changed)  # that is where the work is
    worths: list[float] = []
    for rank, (path, state) in enumerate(files.items()):
        worth = FADE**rank * FADE_OF_EDITS ** (edits.index(state.last_edit) if state.last_edit >= 0 else UNEDITED)
        only_read = state.last_edit < 0
        passing = is_scratch(path) and (only_read or not in_scratch)
        if passing or is_generated(path) or (only_read and INSTRUCTIONS.search(path)):
            worth *= BY_THE_WAY * (1.0 if in_use[rank] == 1 else BY_THE_WAY)
        elif only_read:
            worth *= in_use[rank] * (DOCUMENT if path.endswith(DOCUMENTS) else 1.0)
        worths.append(worth)
    return worths


@word_cache(WORDS_KNOWN)
def _can_stand(text: str) -> bool:
    """Tell whether a line is short enough, no order, and can be told from the digest around it."""
    return (
        len(text) <= LONGEST
        and not text.startswith(HEADINGS)
        and not (("<" in text or "[" in text) and ROLES.search(text))
        and not _orders(text)
    )


@word_cache(WORDS_KNOWN)
def _words_of(line: str) -> frozenset[str]:
    return frozenset(WORD.findall(line))


def _size(text: str) -> float:
    return len(text) / CHARS + FRAME


def _within(blocks: Sequence[Block], room: float) -> list[Block]:
    """Return the best blocks that a room in tokens takes, by a guess of their size."""
    chosen: list[Block] = []
    for block in blocks:
        if block.size <= room:
            room -= block.size
            chosen.append(block)
    return chosen


@word_cache(WORDS_KNOWN)
def _orders(line: str) -> bool:
    """Tell whether a line sounds like an order to who reads it: in a message of the user's it could be taken for one.

    "Never commit" and "You must …" do, "returns None unless both are there" does not.
    """
    if not pins_of(line):
        return False
    first = " ".join(line.lstrip(SIGNS).split()[:BEGINNING])
    return not line.isascii() or READER.search(line) is not None or bool(pins_of(first))


def _opening(lines: Sequence[str | None], place: int, *, prose: bool) -> int | None:
    """Return the place of the line that opens what a line stands in, None where none is known."""
    indent = _indent(lines[place] or "")
    for above in range(place - 1, max(place - FAR, 0) - 1, -1):
        line = lines[above]
        if line is None:
            return None
        if len(line) > LONGEST:
            continue
        if TITLE.match(line) if prose else line.strip() and _indent(line) < indent and OPENS.match(line):
            return above if _can_stand(line) else None
    return None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def room_for_files(view: View, *, changed: bool) -> int:
    """Return how many tokens the section may have under the view's goal: none where no file was touched.

    `changed` tells whether a file was changed, in what is known or before.
    """
    work = touched_last(view.transcript)
    room = room_of(view)
    if room < SMALL_GOAL or not work.blocks:
        return 0
    share = share_of(view, SHARES)
    return int(room * (share if changed else min(share, READ_ONLY)))


@memoized
def touched_last(transcript: Transcript) -> FilesInWork:
    """Return the files that a conversation touched last, with what is known of them."""
    touched: dict[str, list[tuple[int, Change | Excerpt]]] = {}
    calls: dict[str, ToolCall] = {}
    names, scripts = FileNames(), Scripts()
    for at, message in enumerate(transcript.messages):
        for path, lines in block_entries(message) if message.role == "user" else ():
            visible = without_numbers(lines) or VisibleLines(lines)
            touched.setdefault(names.of(path), []).append((at, Excerpt(path, visible)))
        calls.update((call.call_id or call.name, call) for call in message.calls)
        for result in message.results:
            call = calls.get(result.call_id or result.name)
            for name in changed_by_git(call, result, touched) if call is not None else ():
                del touched[name]
            if call is not None and took_effect(call, result):
                excerpts = (each for each in excerpts_in(call, result) if not _lists_a_folder(each))
                packages = map(UnreadableChange, manifests_changed(command_of(call)) if is_shell(call) else ())
                for event in (*changes_of(call), *packages, *scripts.ran(call), *excerpts):
                    moved = touched.pop(names.of(event.source), []) if isinstance(event, FileMoved) else None
                    name = names.of(event.path)
                    before = touched.pop(name, [])  # the file touched last comes last
                    if moved == []:  # what the source held is not known, and what the target held is gone
                        event = UnreadableChange(event.path)
                    touched[name] = [*(before if moved is None else moved), (at, event)]
    changed = {names.of(record.path) for record in file_log(transcript) if record.changed}  # by sub-agents, too
    states = (
        (events[-1][1].path, FileState(_newest(events), edited=name in changed))
        for name, events in reversed(touched.items())
    )
    known = ((path, state) for path, state in states if any(run.text for run in state.runs))
    files = dict(islice(known, MOST_FILES))
    lately = _lately(transcript) if files else frozenset()  # a turn of some megabytes holds a million words
    turns, working, rejected = turns_at(transcript), turns_in_work(transcript), rejected_turns(transcript)
    touched_in = [turns[state.at] for state in files.values()]
    in_use = [1.0 if turn in working else BY_THE_WAY if turn in rejected else READ_BEFORE for turn in touched_in]
    return FilesInWork(files, lately, len(transcript), in_use)


def _lists_a_folder(excerpt: Excerpt) -> bool:
    """Tell whether what a call reads is a folder, of which its tool lists the files."""
    inside = f"{excerpt.path.rstrip('/')}/"
    return any(line is not None and line.lstrip().startswith(inside) for line in excerpt.visible.lines[:LISTED])


def _newest(events: Sequence[tuple[int, Change | Excerpt]]) -> Sequence[tuple[int, Change | Excerpt]]:
    """Return the newest events of a file, from the last few views on."""
    events = events[-MOST_EVENTS:]
    views = [number for number, (_, event) in enumerate(events) if isinstance(event, Excerpt)]
    return events[views[-MOST_VIEWS] :] if len(views) > MOST_VIEWS else events


def _lately(transcript: Transcript) -> frozenset[str]:
    """Return the words of what the assistant said and called for lately, and of the users' newest turns."""
    turns = [message for message in transcript.messages if is_turn(message) and not digests_in(message)]
    own = (message for message in transcript.messages[-NEWEST:] if message.role == "assistant")
    every = (text for message in (*turns[-TURNS:], *own) for text in texts(message))
    return frozenset(chain.from_iterable(map(_words_in, every)))


def _words_in(text: str) -> Iterable[str]:
    """Return the words of a text; of ASCII without a regular expression: a turn may have a million of them."""
    if not text.isascii():
        return WORD.findall(text)
    words = (run.lstrip(NO_LETTERS) for run in set(RUNS(text)))
    return [word for word in words if len(word) > SHORTEST]


def prepare(message: Message) -> None:
    """Find what a message shows of files and changes in them; its parts remember it."""
    for call in message.calls:
        changes_of(call)
    _lines(message)


@memoized
def _lines(message: Message) -> frozenset[str]:
    """Return the lines of a message, blanks around them and numbers before them aside."""
    words = [part.text for part in message.parts if isinstance(part, Text)]
    called = [text for call in message.calls for text in strings_within(arguments_of(call) or call.arguments)]
    visible = (line for result in message.results for line in visible_lines(result).lines if line)
    spoken = {line.strip() for text in (*words, *called) for line in text.split("\n")}
    added = (line[1:].strip() for line in spoken if line[:1] == "+")  # lines of a patch
    return frozenset(spoken).union(added, map(str.strip, visible))
