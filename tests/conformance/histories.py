"""Seeded histories for the differential tests: the originals and this project are run over the same conversations.

A history is a list of entries of one neutral shape, each of which becomes a message of every system:

- `system`, `user` and `assistant` entries have a text;
- a `call` has a tool, arguments and an id; calls of one `batch` are parallel;
- a `result` has the id of its call and a text.

`openai` and `anthropic` write a history in a provider's format, `neurolink` as that project stores it. Nothing here
depends on more of Python than `random.random`, so a seed gives the same history everywhere.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from refold.testing._seeded_random import SeededRandom

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

SEED = 20261128
PROVIDERS = {  # of NeuroLink's estimate, each with a model of its
    "openai": "gpt-4.1",
    "anthropic": "claude-sonnet-4-20250514",
    "google-ai": "gemini-2.5-pro",
    "vertex": "vertex_ai/gemini-2.5-flash",
    "bedrock": "bedrock/anthropic.claude-3-opus-20240229-v1:0",
    "mistral": "mistral-large-latest",
    "azure": "azure/my-deployment",
}
PARTS = {  # of a request beside its messages, as NeuroLink's budget check takes them
    "systemPrompt": "You move an order service to a new store, step by step.",
    "currentPrompt": "Which of the totals are wrong, and since when?",
    "toolDefinitions": [
        {"name": "query", "description": "Runs a query.", "parameters": {"type": "object", "properties": {}}},
        {"name": "bash", "description": "Runs a command.", "parameters": {"type": "object", "properties": {}}},
    ],
    "fileAttachments": [{"content": "order;total\n" * 90}, {"content": "report;cents\n" * 7}],
}
WINDOW = 1_047_576  # of gpt-4.1, which NeuroLink and its documentation page both have
RATIOS = (0.799, 0.8, 0.801, 1.05)  # of the input budget in use
WINDOWS = [(200_000, 16_384), (200_000, 20_000), (200_000, 64_000), (128_000, 4_096), (1_000_000, 32_000)]
OUTPUTS = (1_000, 160_003, 160_004)  # characters of a tool's output
FILES = {"src/store.py": 8_000, "src/job.py": 4_000, "src/report.py": 30_000, "a.py": 19_999, "b.py": 20_003} | {
    f"{name}.py": 2_000 for name in "cdefg"
}
WOLFFISH_RATIOS = (0.6, 0.749, 0.751, 0.95)  # of the input budget in use, by Wolffish's estimate
EXCESSES = (0.1, 0.3, 0.6)  # of the tokens before, to be saved
SHARES = (0.9, 0.6, 0.3)  # of the tokens before, as the target
SUMMARY = (
    "The user moves the order service to a new store. Done so far: the schema, the importer for invoices, and a check "
    "of the totals. Decided: amounts are whole cents, and ids keep their old form. Still open: the nightly job and its "
    "report. The next step is the job's retry rule."
)
# No word ends in "read" or "cat": NeuroLink finds reads of files by such words, wherever they stand.
WORDS = re.findall(
    r"\w+",
    "order invoice total schema importer store ledger customer nightly job report retry rule column index check "
    "amount cents shipment queue worker batch migration rollback release branch module parser window limit margin "
    "value field record query cursor session token header reply answer plan step note result figure sum",
)
VERBS = re.findall(
    r"\w+", "moves needs keeps changes returns counts drops writes checks joins sorts merges splits renames closes"
)
SCRIPTS = {
    "chinese": "我们把订单服务迁移到新的存储，金额以分为单位，夜间任务还没有完成。",
    "russian": "Мы переносим службу заказов в новое хранилище; суммы считаются в копейках. ",
    "arabic": "ننقل خدمة الطلبات إلى مخزن جديد والمبالغ بالسنتات. ",
    "emoji": "Fertig 🎉 und geprüft ✅, weiter mit 👩‍💻 und 🇩🇪. ",
    "combining": "Cafe\u0301 und nai\u0308ve Zeichen, a\u030a e\u0302 o\u0303. ",
}
TOOLS = ("bash", "grep", "list_dir", "query")


@dataclass(frozen=True)
class Entry:
    """One entry of a history."""

    role: str
    text: str = ""
    tool: str = ""
    arguments: dict[str, str] = field(default_factory=dict)
    call: str = ""
    batch: int = 0


@dataclass(frozen=True)
class History:
    """A named history; `more` is what follows after a first compaction, where there is a chain of two."""

    name: str
    kind: str
    entries: tuple[Entry, ...]
    more: tuple[Entry, ...] = ()

    @property
    def digest(self) -> str:
        """What the recorded decisions were made for."""
        lines = [[e.role, e.text, e.tool, e.arguments, e.call, e.batch] for e in (*self.entries, *self.more)]
        return sha256(json.dumps(lines, ensure_ascii=False, sort_keys=True).encode()).hexdigest()[:16]


class Writer:
    """Writes the entries of one history."""

    def __init__(self, name: str) -> None:
        self.random = SeededRandom(f"{SEED}/{name}")
        self.entries: list[Entry] = []
        self.calls = self.batches = 0

    def text(self, characters: int) -> str:
        """Return sentences of about so many characters."""
        text = ""
        while len(text) < min(characters, 2_000):
            first, second, third = (self.random.pick(WORDS) for _ in range(3))
            text += f"The {first} {self.random.pick(VERBS)} the {second} of the {third}. "
        return (text * (characters // len(text) + 1))[:characters].rstrip()

    def rows(self, characters: int) -> str:
        """Return the output of a tool: rows of one pattern, exactly so many characters."""
        row = f"{self.random.pick(WORDS)} {self.random.pick(WORDS)} {self.random.below(900) + 100} ok\n"
        return (row * (characters // len(row) + 1))[:characters]

    def say(self, role: str, low: int = 60, high: int = 900) -> Writer:
        """Add a message of one role."""
        self.entries.append(Entry(role, self.text(self.random.between(low, high))))
        return self

    def chat(self, count: int, low: int = 60, high: int = 900) -> Writer:
        """Add so many messages, user and assistant in turn, beginning with the user."""
        for number in range(count):
            self.say("user" if number % 2 == 0 else "assistant", low, high)
        return self

    def tools(
        self, *sizes: int, tool: str = "", answered: int | None = None, parallel: bool = False, prefix: str = ""
    ) -> Writer:
        """Add calls with outputs of given sizes, in turn or in parallel; only the first `answered` get theirs."""
        answered = len(sizes) if answered is None else answered
        calls: list[tuple[Entry, Entry]] = []
        for size in sizes:
            self.calls += 1
            self.batches += not parallel or not calls
            id_ = f"call_{self.calls}"
            name = tool or self.random.pick(TOOLS)
            arguments = {"command" if name == "bash" else "pattern": self.text(self.random.between(20, 60))}
            call = Entry("call", "", name, arguments, id_, self.batches)
            calls.append((call, Entry("result", prefix + self.rows(size), name, {}, id_, self.batches)))
        self._place(calls[:answered], calls[answered:], parallel)
        return self

    def read(self, path: str, size: int, *, named: bool = True) -> Writer:
        """Add a read of a file; `named` outputs begin with the call, which is how NeuroLink knows them."""
        self.calls += 1
        self.batches += 1
        id_ = f"call_{self.calls}"
        head = f"read_file {path}\n" if named else ""
        call = Entry("call", "", "read_file", {"path": path}, id_, self.batches)
        self._place([(call, Entry("result", head + self.rows(size), "read_file", {}, id_, self.batches))], [], False)
        return self

    def _place(self, answered: list[tuple[Entry, Entry]], open_: list[tuple[Entry, Entry]], parallel: bool) -> None:
        if parallel:
            self.entries += [call for call, _ in (*answered, *open_)]
            self.entries += [result for _, result in answered]
        else:
            for call, result in answered:
                self.entries += [call, result]
            self.entries += [call for call, _ in open_]


@cache
def histories() -> list[History]:
    """Return all histories, in a fixed order."""
    return [History(name, kind, tuple(first), tuple(more)) for name, kind, first, more in _all()]


Made = tuple[str, str, "Sequence[Entry]", "Sequence[Entry]"]


def _all() -> Iterator[Made]:
    for kind, cases in KINDS.items():
        for label, write in cases.items():
            name = f"{kind}-{label}"
            writer = Writer(name)
            write(writer)
            first, more = writer.entries, []
            if CHAIN in first:
                at = first.index(CHAIN)
                first, more = first[:at], first[at + 1 :]
            yield name, kind, first, more


CHAIN = Entry("chain")  # where the first compaction of a chain happens


def _then(writer: Writer) -> Writer:
    writer.entries.append(CHAIN)
    return writer


def _turn(writer: Writer, *sizes: int, parallel: bool = False, tool: str = "") -> Writer:
    return writer.say("user", 40, 200).tools(*sizes, parallel=parallel, tool=tool).say("assistant", 60, 300)


def _turns(writer: Writer, count: int, size: int, *, parallel: int = 1) -> Writer:
    for _ in range(count):
        _turn(writer, *[size] * parallel, parallel=parallel > 1)
    return writer


def _scripted(writer: Writer, script: str, count: int) -> Writer:
    writer.chat(count)
    phrase = SCRIPTS[script]
    writer.entries = [replace(e, text=phrase * writer.random.between(3, 14)) for e in writer.entries]
    return writer


def _system(writer: Writer, count: int) -> Writer:
    return writer.say("system", 200, 400).chat(count)


def _prose(writer: Writer, *phrases: str) -> Writer:
    for phrase in phrases:
        writer.say("user", 60, 200)
        writer.entries.append(Entry("assistant", f"{writer.text(700)} {phrase} {writer.text(500)}"))
    return writer.say("user", 60, 200)


def _reads(writer: Writer, *reads: tuple[str, int], named: bool = True, filler: int = 0) -> Writer:
    writer.say("user", 60, 200)
    if filler:
        writer.tools(filler, tool="bash").say("assistant", 60, 200).say("user", 60, 200)
    for path, size in reads:
        writer.read(path, size, named=named)
    return writer.say("assistant", 60, 200).say("user", 60, 200)


KINDS: dict[str, dict[str, Callable[[Writer], object]]] = {
    "chat": {
        str(count): (lambda w, count=count: w.chat(count))
        for count in (4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 16, 18, 20, 23, 25, 28, 30)
    },
    "system": {str(count): (lambda w, count=count: _system(w, count)) for count in (5, 9, 14, 21, 30)},
    "tools": {
        "one": lambda w: _turns(w, 2, 3_000).say("user"),
        "three": lambda w: _turns(w, 3, 2_000),
        "six": lambda w: _turns(w, 6, 1_200).say("user"),
        "long-turn": lambda w: w.say("user").tools(*[1_500] * 8).say("assistant").say("user"),
        "mixed": lambda w: _turns(w.chat(6), 2, 4_000).chat(4).say("user"),
        "many": lambda w: _turns(w, 12, 600).say("user"),
    },
    "parallel": {
        "two": lambda w: _turns(w, 3, 1_500, parallel=2).say("user"),
        "three": lambda w: _turns(w, 2, 1_500, parallel=3).chat(3),
        "five": lambda w: _turns(w.chat(4), 1, 2_000, parallel=5).chat(4).say("user"),
        "early": lambda w: _turns(w, 1, 2_000, parallel=4).chat(9),
        "late": lambda w: _turns(w.chat(8), 1, 2_000, parallel=4),
    },
    "missing": {
        "last": lambda w: w.chat(6).say("user").tools(800, answered=0),
        "middle": lambda w: w.chat(2).say("user").tools(800, answered=0).say("user").say("assistant").say("user"),
        "one-of-three": lambda w: w.chat(2).say("user").tools(900, 900, 900, parallel=True, answered=2).chat(3),
        "all-of-two": lambda w: w.say("user").tools(900, 900, parallel=True, answered=0).chat(5),
        "trailing-one": lambda w: w.chat(4).say("user").tools(700, 700, parallel=True, answered=1),
    },
    "trailing": {
        "one": lambda w: w.chat(4).say("user").tools(1_000),
        "two": lambda w: w.chat(2).say("user").tools(1_000, 1_000),
        "parallel": lambda w: w.chat(2).say("user").tools(1_000, 1_000, parallel=True),
        "long": lambda w: w.say("user").tools(*[900] * 7),
    },
    "reads": {
        "same": lambda w: _reads(w, ("src/store.py", 6_000), ("src/store.py", 6_000)),
        "three": lambda w: _reads(w, ("src/store.py", 5_000), ("src/job.py", 3_000), *[("src/store.py", 5_000)] * 2),
        "two-files": lambda w: _reads(w, *[("src/store.py", 4_000), ("src/job.py", 4_000)] * 2),
        "share-26": lambda w: _reads(w, *[("src/store.py", 5_000)] * 2, filler=9_000),
        "unnamed": lambda w: _reads(w, *[("src/store.py", 6_000)] * 2, named=False),
        "prose": lambda w: _prose(w, "We use a thread pool here.", "The thread pool is closed.", "So be it."),
        "tiny": lambda w: _reads(w, *[("src/very/deep/folder/of/the/store.py", 20)] * 2).chat(3),
    },
    "huge": {
        "three": lambda w: w.say("user").tools(120_000, 120_000, 157_000, tool="bash").say("assistant"),
        "ten": lambda w: w.say("user").tools(*[20_000] * 10, tool="bash").say("assistant").say("user"),
        "ten-larger": lambda w: w.say("user").tools(*[24_000] * 10, tool="bash").say("assistant").say("user"),
        "newest": lambda w: w.say("user").tools(9_000, 60_000, 180_000, tool="bash"),
        "edge": lambda w: w.say("user").tools(80_000, 139_128, 4_000, tool="bash").say("assistant").say("user"),
        "skill": lambda w: _turn(_turn(w, 150_000, tool="skill"), 150_000, 90_000, tool="bash").say("user"),
        "small": lambda w: w.say("user").tools(*[3_000] * 6, tool="bash").say("assistant").say("user"),
        "parallel": lambda w: w.say("user").tools(*[70_000] * 5, tool="bash", parallel=True).say("assistant"),
    },
    "files": {
        "two": lambda w: _reads(w, ("src/store.py", 3_000), ("src/job.py", 3_000)).say("assistant"),
        "seven": lambda w: _reads(w, *[(f"{name}.py", 1_500) for name in "cdefgab"]),
        "again": lambda w: _reads(w, *[(f"{name}.py", 1_500) for name in "cdefc"]).say("assistant"),
        "large": lambda w: _reads(w, ("c.py", 900), ("src/report.py", 30_000), ("d.py", 900), ("b.py", 900)),
        "many": lambda w: _reads(w, *[(f"{name}.py", 22_000) for name in "cdefgab"]),
    },
    "four": {
        "messages": lambda w: w.chat(4, 8_000, 12_000),
        "three": lambda w: w.chat(3, 6_000, 12_000),
        "first": lambda w: w.chat(1, 20_000, 20_001).say("assistant").say("user").say("assistant"),
    },
    "unicode": {
        "chinese": lambda w: _scripted(w, "chinese", 8),
        "russian": lambda w: _scripted(w, "russian", 10),
        "arabic": lambda w: _scripted(w, "arabic", 9),
        "emoji": lambda w: _scripted(w, "emoji", 8),
        "combining": lambda w: _scripted(w, "combining", 12),
    },
    "chain": {
        "chat": lambda w: _then(w.chat(12)).chat(12).say("user"),
        "short": lambda w: _then(w.chat(9)).chat(4),
        "tools": lambda w: _turns(_then(_turns(w, 4, 1_500)), 4, 1_500).say("user"),
        "odd": lambda w: _then(w.chat(15)).say("assistant").chat(10),
        "long": lambda w: _then(w.chat(30)).chat(20),
        "unasked": lambda w: _then(w.chat(13)).say("assistant").tools(1_500, 1_500).say("assistant"),
    },
}


def openai(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Write entries as messages of OpenAI's chat format."""
    return [message for message, _ in openai_with_places(entries)]


def openai_with_places(entries: Sequence[Entry]) -> list[tuple[dict[str, Any], list[int]]]:
    """Return messages of OpenAI's chat format, each with the positions of its entries."""
    out: list[tuple[dict[str, Any], list[int]]] = []
    batch = None
    for place, entry in enumerate(entries):
        if entry.role == "call":
            function = {"name": entry.tool, "arguments": json.dumps(entry.arguments, separators=(",", ":"))}
            call = {"id": entry.call, "type": "function", "function": function}
            if batch == entry.batch:
                out[-1][0]["tool_calls"].append(call)
                out[-1][1].append(place)
            else:
                out.append(({"role": "assistant", "content": None, "tool_calls": [call]}, [place]))
            batch = entry.batch
            continue
        batch = None
        if entry.role == "result":
            out.append(({"role": "tool", "tool_call_id": entry.call, "content": entry.text}, [place]))
        else:
            out.append(({"role": entry.role, "content": entry.text}, [place]))
    return out


def with_system(entries: Sequence[Entry]) -> list[Entry]:
    """Return entries that begin with a system message, as they do for Vibe."""
    first = [] if entries[0].role == "system" else [Entry("system", "You move an order service to a new store.")]
    return [*first, *entries]


def files() -> dict[str, str]:
    """Return the files of the workspace as they are now, by path."""
    writer = Writer("files")
    return {path: writer.rows(size) for path, size in FILES.items()}


def walks() -> list[dict[str, Any]]:
    """Return middlewares, each with its number, and the context's tokens before every turn."""
    out: list[dict[str, Any]] = []
    for number, threshold in enumerate((200_000, 200_000, 100_000, 30_000, 200_000, 50_000)):
        random = SeededRandom(f"{SEED}/walk-{number}")
        size, tokens = 0, []
        for _ in range(40):
            size = size // 20 if size >= threshold else size + random.between(0, threshold // 6)
            tokens.append(size)
        tokens[5:5] = [threshold // 2 - 1, threshold // 2, threshold - 1, threshold]
        kinds = [["compact", threshold], ["warn", threshold]]
        if number in (2, 5):
            kinds.insert(number - 2, ["turns", 30 if number == 2 else 20])
        out.append({"middlewares": kinds if number else kinds[:1], "tokens": tokens})
    return out


def calls() -> list[list[list[float]]]:
    """Return calls as prompt, completion and seconds, in sessions of some."""
    random = SeededRandom(f"{SEED}/calls")
    return [
        [[random.below(200_000), random.below(9_000) * random.chance(0.9), random.below(40) / 2] for _ in range(8)]
        for _ in range(5)
    ]


def named_reads(entries: Sequence[Entry]) -> list[Entry]:
    """Return entries in which the outputs of reads, and nothing else, begin with the words that NeuroLink looks for."""
    paths = {
        entry.call: entry.arguments["path"] for entry in entries if entry.role == "call" and "path" in entry.arguments
    }
    out = []
    for entry in entries:
        text = entry.text.replace("thread pool", "pool of threads")
        if entry.role == "result" and entry.call in paths and not text.startswith("read_file "):
            text = f"read_file {paths[entry.call]}\n{text}"
        out.append(replace(entry, text=text))
    return out


def neurolink(entries: Sequence[Entry], start: int = 0) -> list[dict[str, Any]]:
    """Write entries as NeuroLink stores them; the id of a message is its position, from `start` on."""
    roles = {"call": "tool_call", "result": "tool_result"}
    return [
        {
            "id": str(start + place),
            "role": roles.get(entry.role, entry.role),
            "content": entry.text,
            **({"tool": entry.tool} if entry.tool else {}),
            **({"args": entry.arguments} if entry.role == "call" else {}),
        }
        for place, entry in enumerate(entries)
    ]


def wolffish(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Write entries as Wolffish has them: parallel calls in one message, the tool's name with each result."""
    tools = {entry.call: entry.tool for entry in entries if entry.role == "call"}
    out: list[dict[str, Any]] = []
    for message in openai(entries):
        made = {"role": message["role"], "content": message["content"] or ""}
        if calls := message.get("tool_calls"):
            made["toolUses"] = [
                {"id": call["id"], "name": call["function"]["name"], "args": json.loads(call["function"]["arguments"])}
                for call in calls
            ]
        if message["role"] == "tool":
            made["toolName"] = tools.get(message["tool_call_id"], "")
        out.append(made)
    return out


def anthropic(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Write entries as messages of Anthropic's format; results of one batch share a message, system is left out."""
    out: list[dict[str, Any]] = []
    previous = ("", -1)
    for entry in entries:
        key = (entry.role, entry.batch)
        if entry.role == "call":
            block = {"type": "tool_use", "id": entry.call, "name": entry.tool, "input": entry.arguments}
            role = "assistant"
        elif entry.role == "result":
            block = {"type": "tool_result", "tool_use_id": entry.call, "content": entry.text}
            role = "user"
        elif entry.role == "system":
            continue
        else:
            out.append({"role": entry.role, "content": entry.text})
            previous = ("", -1)
            continue
        if previous == key:
            out[-1]["content"].append(block)
        else:
            out.append({"role": role, "content": [block]})
        previous = key
    return out
