"""Who speaks in a user's turn: the words that a person typed, and the texts that a harness put beside them.

Theory of operation. Providers know two sides only, so an agent's harness speaks in the user's turns: notifications of
background tasks and sub-agents, reminders, caveats, output of commands that ran locally, instruction files,
descriptions of the environment. Such text is output: it asks for nothing. A text is divided into spans of the harness
and the rest, which is the user's:

    text ── whole forms (a known beginning, or a known sentence) ──► one span
         ├─ what stands before the request, up to its heading    ──► a span; the rest is the user's
         └─ elements at the beginning of a line, up to their closing tag:
              known names                              ──► spans of the harness
              general names, names that sound like one ──► spans, where no word stands outside of elements
              wrappers of a request (`<userRequest>`)  ──► their content is the user's, every element outside is not
              work that an agent's lead gives it        ──► the user's
              slash commands (`<command-name>`)        ──► name and arguments are the user's, unless it is a local one;
                                                           the text behind it in the message is what it stands for

In doubt a text is the user's: other tags, elements without an end, elements inside a line or a code block. What a
message says is found once and remembered by the message.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from refold.core._json import mapping
from refold.core.messages import File, Image, Message, Path, Text, memoized

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "STANDING",
    "HarnessSpan",
    "HarnessText",
    "Utterance",
    "is_commentary",
    "is_recap",
    "is_turn",
    "speech",
    "typed_in",
    "words_of_user",
]

# What a span is: a notification or a reminder; the output of a command or a tool; a file of standing instructions; the
# text that a slash command stands for; the summary of an earlier context, which opens a conversation.
SpanKind: TypeAlias = Literal["notice", "output", "instructions", "command", "recap"]
STANDING: frozenset[SpanKind] = frozenset({"instructions", "command"})  # they hold until they are given again


def _names(names: str) -> frozenset[str]:
    return frozenset(names.split())


# Names of elements, by the agent that writes them: in its sources, or seen in its sessions.
NOTICES = (
    _names(
        "system-reminder task-notification local-command-caveat command-message command-contents "
        "user-prompt-submit-hook session-start-hook new-diagnostics ide_opened_file ide_selection ide_diagnostics "
        "cross-session-message teammate-message"  # Claude Code
    )
    | _names(  # Codex: fragments that it writes in the user's role (codex-rs/core/src/context)
        "environment_context turn_aborted subagent_notification collaboration_mode personality_spec model_switch "
        "recommended_plugins goal_context internal_model_context hook_prompt"
    )
    | _names("environment_details workspace_diagnostics")  # Cline, Roo Code, Kilo Code
    | _names(  # Cursor, GitHub Copilot
        "system_reminder system_notification open_and_recently_viewed_files agent_transcripts reminderinstructions "
        "editorcontext current_datetime"
    )
    | _names("session_context hook_context untrusted_context")  # Gemini CLI, Qwen Code
)
# The same, of names that a person may choose too: where no word stands outside of elements.
GENERAL = _names(
    "token_budget context_window additional_context image_context additional_data additional_metadata "
    "attached_files attachments user_info git_status project_layout environment_info workspace_info "
    "environment_information runtime_information repository_info extra_info state_snapshot"
)
OUTPUTS = _names("local-command-stdout local-command-stderr bash-input bash-stdout bash-stderr") | _names(
    "user_shell_command shell_command_output"  # Codex, Qwen Code; before them Claude Code
)
RECAP = "state_snapshot"  # Gemini CLI, Qwen Code
INSTRUCTIONS = _names(
    "user_instructions instructions_file project_instructions repository_instructions custom_instructions "
    "agent_instructions user_rules always_applied_workspace_rules skills_instructions apps_instructions "
    "plugins_instructions "
    "skill-context"  # Copilot CLI
)
SIGNED = {"skill": "<name>", "reminder": "<sql_tables>"}  # of Codex and Copilot CLI, by how their body begins
WRAPPERS = _names("userrequest user_query")  # Copilot, Cursor: what stands outside of them is the harness's
BARE_WRAPPERS = _names("user_input user_message user_request")  # Cline and its kin, Windsurf
ATTACHED = _names("file_content folder_content")  # Cline and its kin: behind words that name the path
COMMAND, ARGUMENTS = "command-name", "command-args"  # Claude Code: what was typed after a slash
# Commands of Claude Code that the client answers alone.
LOCAL = _names(
    "add-dir agents bashes bug clear compact config context cost doctor exit export fast help hooks ide login logout "
    "mcp memory model output-style permissions plugin privacy-settings quit release-notes rename resume rewind sandbox "
    "status statusline tasks terminal-setup theme todos upgrade usage vim"
)
# Words in the names of unknown elements that no person writes around their own text.
SIGNS = _names("reminder reminders notification notifications caveat stdout stderr hook harness subagent")
COMPOUND = re.compile(r"[a-z]+(?:[-_][a-z]+)+")

ELEMENT = re.compile(r"^[ \t]*<([A-Za-z][\w-]*)((?: [^<>\n]*)?)>", re.M)
FOLLOWING = re.compile(r"[ \t]*<([A-Za-z][\w-]*)((?: [^<>\n]*)?)>")
CLOSING = re.compile(r"</([A-Za-z][\w-]*)>")
FENCE = re.compile(r"^[ \t]*(?:```|~~~)", re.M)
TRANSCRIPT = re.compile(  # behind a task's notification
    r"\n*(?:Full transcript available at: |Read the output file to retrieve the result: )[^\n]*\n?"
)
LEAD = 'teammate_id="team-lead"'  # Claude Code: who gives an agent of a team its work
CONTEXT = re.compile(r"\s*# (?:Files mentioned by the user|Context from my IDE setup):\n")  # Codex, before the request
REQUEST = "## My request for Codex:\n"
# Gemini CLI: between these texts of a message are files that the user named.
FILES, END_OF_FILES = "--- Content from referenced files ---", "--- End of content ---"
MEMORY = re.compile(r"# claudeMd\b|\((?:project instructions|user's private global instructions)")
LONGEST = 300  # characters of a first line that says what a text is

_TASK_ENDED = r"task (?:completed|failed|cancelled|stopped|paused|timed out): \*\*[^*\n]+\*\*[^\n]*(?:\n|\Z)"
# Texts that are a harness's as a whole, by how they begin; the first line says what they are.
WHOLE: tuple[tuple[re.Pattern[str], SpanKind], ...] = (
    # Claude Code
    (
        re.compile(r"Caveat: The messages below (?:are )?were generated by the user while running local commands\."),
        "notice",
    ),
    (re.compile(r"\[Request interrupted by user(?: for tool use)?\]\s*\Z"), "notice"),
    (re.compile(r"Base directory for this skill: [^\n]+"), "command"),
    (re.compile(r"This session is being continued from a previous conversation that ran out of context"), "recap"),
    (re.compile(r"Called the \w+ tool with the following input: "), "notice"),
    (re.compile(r"Result of calling the \w+ tool: "), "output"),
    (re.compile(r"The user opened the file [^\n]+ in the IDE\."), "notice"),
    (re.compile(r"Stop hook feedback:\n"), "notice"),
    (re.compile(r"\[Image: source: [^\]\n]+\]\s*\Z"), "notice"),
    # Codex
    (re.compile(r"# AGENTS\.md instructions(?: for [^\n]+)?\n\s*<INSTRUCTIONS>\n?"), "instructions"),
    (re.compile(r"</?image(?: name=[^>\n]*)?>\s*\Z"), "notice"),
    (re.compile(r"Another language model started to solve this problem and produced a summary\b"), "recap"),
    # Droid, pi, opencode, Gemini CLI
    (re.compile(r"The conversation history before this point was compacted into the following summary:"), "recap"),
    (re.compile(r"The following is a summary of a branch that this conversation came back from:"), "recap"),
    (re.compile(r"Contents of [^\n]+ \(lines \d+-\d+ of \d+\):\n"), "output"),
    (re.compile(r"Ran `[^\n]*`\n(?:```|\(no output\)|\[)"), "output"),
    (re.compile(r"<path>[^<\n]+</path>\n<type>(?:file|directory)</type>\n"), "output"),
    (re.compile(r"<file>\n\d{5}\| "), "output"),
    (re.compile(r"Summarize the task tool output above and continue with your task\.\s*\Z"), "notice"),
    (re.compile(r"The following tool was executed by the user\s*\Z"), "notice"),
    (re.compile(r"Continue if you have next steps, or stop and ask for clarification\b[^\n]*\s*\Z"), "notice"),
    (re.compile(r"This is the Gemini CLI\. We are setting up the context for our chat\."), "notice"),
    (re.compile(r"System: Please continue\.\s*\Z"), "notice"),
    # pi: an extension that runs sub-agents
    (re.compile(r"Subagent needs (?:a supervisor decision\.|attention: [^\n]+)\nRun: "), "notice"),
    (re.compile(rf"Background {_TASK_ENDED}"), "notice"),
    (re.compile(rf"Detached foreground {_TASK_ENDED}"), "notice"),
    # OpenHands, mini-swe-agent, SWE-agent, WebVoyager: results in plain words
    (re.compile(r"EXECUTION RESULT of \[[^\]\n]+\]:"), "output"),
    (re.compile(r"Parameter '\w+' is expected to be one of \[[^\]\n]*\]\.?\s*\Z"), "output"),
    (re.compile(r"<returncode>-?\d+</returncode>\s*(?:<(?:output|warning|exception)|\[|\Z)"), "output"),
    (re.compile(r"Please always provide EXACTLY ONE action in triple backticks"), "notice"),
    (
        re.compile(r"No tool calls found in the response\. Every response MUST include at least one tool call\."),
        "notice",
    ),
    (re.compile(r"Tool call error:\n\n<error>\n"), "notice"),
    (re.compile(r"The last command <command>"), "output"),
    (re.compile(r"OBSERVATION:\n"), "output"),
    (re.compile(r"Your command ran successfully and did not produce any output\.\s*\Z"), "output"),
    (re.compile(r"Observation: (?=(?s:.*)<response clipped><NOTE>Observations should not exceed)"), "output"),
    (re.compile(r"Observation: (?:please analyze the attached screenshot|A screenshot and some texts\.)"), "output"),
)
BY_FIRST: dict[str, list[tuple[re.Pattern[str], SpanKind]]] = {}  # each begins with one sign, which most texts do not
for _form in WHOLE:
    BY_FIRST.setdefault(_form[0].pattern.removeprefix("\\")[0], []).append(_form)
# SWE-agent ends each observation with the state of its shell; so it does the task, which it introduces.
SHELL = "bash-$"
PROMPT = re.compile(r"\n?\(Open file: [^\n]*\)\n\(Current directory: [^\n]*\)\nbash-\$\s*\Z")
ARGUMENTS_LINE = re.compile(r"\n\nARGUMENTS: [^\n]*\s*\Z")  # Claude Code ends a command's text with what was typed
TASK = "We're currently solving the following"


class HarnessSpan(Struct, frozen=True):
    """Text of a harness from `start` to before `stop`; `opening` and `closing` are what stands around its body."""

    start: int
    stop: int
    kind: SpanKind
    opening: str = ""
    closing: str = ""

    def body(self, text: str) -> str:
        """Return what stands between opening and closing."""
        return text[self.start + len(self.opening) : self.stop - len(self.closing)]


class HarnessText(Struct, frozen=True):
    """A text of a user's message in which a harness speaks; `typed` is what is left as the user's."""

    text: Text
    spans: tuple[HarnessSpan, ...]
    typed: str


class Utterance(Struct, frozen=True, dict=True):
    """What a message says: the user's words, and its texts in which a harness speaks, by path."""

    typed: str
    harness: tuple[HarnessText, ...] = ()

    @cached_property
    def texts(self) -> dict[Path, HarnessText]:
        """The texts in which a harness speaks, by path."""
        return {one.text.at: one for one in self.harness}

    @property
    def kinds(self) -> frozenset[SpanKind]:
        """What the harness's spans are."""
        return frozenset(span.kind for one in self.harness for span in one.spans)


@memoized
def speech(message: Message) -> Utterance:
    """Return who says what in a message; all that others than users say is theirs, and nothing of ours is a user's."""
    texts = [part for part in message.parts if isinstance(part, Text) and not part.ours]
    if message.role != "user" or message.note is not None:
        return Utterance("\n".join(part.text for part in texts))
    harness: list[HarnessText] = []
    typed: list[str] = []
    commanded = attached = False  # by the text before
    for part in texts:
        attached = attached or part.text.strip() == FILES
        spoken = HarnessText(part, (HarnessSpan(0, len(part.text), "output"),), "") if attached else _divided(part)
        attached = attached and part.text.strip() != END_OF_FILES
        if commanded and "\n" in part.text and f"<{COMMAND}>" not in part.text and (spoken is None or spoken.typed):
            spoken = HarnessText(part, (_command(part.text),), "")
        commanded = spoken is not None and bool(spoken.typed) and f"<{COMMAND}>" in part.text
        if spoken is not None:
            harness.append(spoken)
            if spoken.typed:
                typed.append(spoken.typed)
        else:
            typed.append(part.text)
    return Utterance("\n".join(typed), tuple(harness))


def words_of_user(message: Message) -> str:
    """Return what a user typed in a message, without what a harness put beside it."""
    return speech(message).typed


def typed_in(text: str) -> str:
    """Return what a user typed in a text of a user's turn."""
    divided = _divided(Text(text))
    return text if divided is None else divided.typed


@memoized
def is_turn(message: Message) -> bool:
    """Tell whether a message is a user's turn: one in which only a harness speaks is none."""
    if message.role != "user" or message.note is not None:
        return False
    utterance = speech(message)
    if not utterance.harness or utterance.typed.strip():
        return True
    attached = any(isinstance(part, Image | File) for part in message.parts)
    return attached and utterance.kinds != {"output"}


def is_commentary(message: Message) -> bool:
    """Tell whether the provider marks what the assistant says as said on the way, before it has answered."""
    return mapping(message.native).get("phase") == "commentary"  # items of the Responses API


@memoized
def is_recap(message: Message) -> bool:
    """Tell whether a message is the summary of an earlier context, which a harness puts where the work began."""
    return message.role == "user" and "recap" in speech(message).kinds


def _divided(part: Text) -> HarnessText | None:
    """Return a text with the spans in which a harness speaks; None where it does not."""
    text = part.text
    if (whole := _whole(text)) is not None:
        return HarnessText(part, (whole,), "") if whole.stop >= len(text.rstrip()) else _with_rest(part, whole)
    if "</" not in text or not any(_matters(name.lower()) for name in set(CLOSING.findall(text))):
        return None
    elements = list(_elements(text))
    if not elements:
        return None
    wrapped = any(name in WRAPPERS for name, _ in elements)
    local = any(name == COMMAND and span.body(text).strip().lstrip("/") in LOCAL for name, span in elements)
    alone = not _outside(text, [span for _, span in elements]).strip()
    spans: list[HarnessSpan] = []
    typed: list[str] = []
    at = 0
    for name, span in elements:
        typed.append(text[at : span.start])
        at = span.stop
        if (
            name in WRAPPERS
            or name in BARE_WRAPPERS
            or (name in (COMMAND, ARGUMENTS) and not local)
            or (name == "teammate-message" and _gives_work(span, text))
        ):
            typed.append(span.body(text))
        elif (
            wrapped
            or name in (COMMAND, ARGUMENTS)
            or _is_known(name)
            or (name in SIGNED and span.body(text).lstrip().startswith(SIGNED[name]))
            or (alone and _may_be(name))
        ):
            spans.append(span)
        else:
            typed.append(text[span.start : span.stop])
    typed.append(text[at:])
    if not spans and not any(_holds_words(name) or name == "teammate-message" for name, _ in elements):
        return None
    return HarnessText(part, tuple(spans), "\n".join(piece for one in typed if (piece := one.strip())))


def _with_rest(part: Text, first: HarnessSpan) -> HarnessText:
    """Return a text that begins with a span of a known form, and goes on behind it."""
    rest = _divided(Text(part.text[first.stop :]))
    if rest is None:
        return HarnessText(part, (first,), part.text[first.stop :].strip())
    moved = [
        HarnessSpan(span.start + first.stop, span.stop + first.stop, span.kind, span.opening, span.closing)
        for span in rest.spans
    ]
    return HarnessText(part, (first, *moved), rest.typed)


def _whole(text: str) -> HarnessSpan | None:
    """Return the span at the beginning of a text that has a known form; it is the whole text but for few forms."""
    if REQUEST in text and (context := CONTEXT.match(text)):
        return HarnessSpan(0, text.index(REQUEST) + len(REQUEST), "notice", context[0], REQUEST)
    for pattern, kind in BY_FIRST.get(text[:1], ()):
        if match := pattern.match(text):
            if kind == "instructions":
                end = text.find("</INSTRUCTIONS>", match.end())
                stop = end + len("</INSTRUCTIONS>") if end >= 0 else len(text)
                return HarnessSpan(0, stop, kind, match[0], text[end:stop] if end >= 0 else "")
            line = text.find("\n") + 1
            opening = text[:line] if match.end() <= line <= LONGEST else match[0]
            return HarnessSpan(0, len(text), kind, opening)
    if "\n\nARGUMENTS: " in text and (typed := ARGUMENTS_LINE.search(text, text.rfind("\n\n"))):
        return _command(text, typed[0])
    if not text.rstrip().endswith(SHELL) or text.startswith(TASK):
        return None
    if end_ := PROMPT.search(text, max(len(text) - 2 * LONGEST, 0)):
        return HarnessSpan(0, len(text), "output", "", end_[0])
    return None


def _command(text: str, closing: str = "") -> HarnessSpan:
    """Return the span of a text that a slash command stands for; its first line says what it is."""
    line = text.find("\n") + 1
    opening = text[: line if 0 < line <= min(LONGEST, len(text) - len(closing)) else 0]
    return HarnessSpan(0, len(text), "command", opening, closing)


def _elements(text: str) -> Iterator[tuple[str, HarnessSpan]]:
    """Yield the outermost elements that begin a line, or follow another one, with their names in small letters."""
    endless: set[str] = set()
    at = fenced = fences = 0
    match = ELEMENT.search(text)
    while match is not None:
        name, at, ended = match[1], match.end(), False
        if name not in endless:
            fences += len(FENCE.findall(text, fenced, match.start()))
            fenced = match.start()
            end = text.find(f"</{name}>", at)
            if end < 0:
                endless.add(name)
            elif not fences % 2:
                span = _span(text, match, end)
                yield name.lower(), span
                at, ended = span.stop, True
        match = (FOLLOWING.match(text, at) if ended else None) or ELEMENT.search(text, at)


def _span(text: str, match: re.Match[str], end: int) -> HarnessSpan:
    """Return the span of an element whose closing tag is at `end`."""
    name, at = match[1].lower(), match.end()
    stop = end + len(name) + len("</>")
    if name == "task-notification" and (tail := TRANSCRIPT.match(text, stop)):
        stop = tail.end()
    first = at + (text[at] == "\n")
    last = end - (end > first and text[end - 1] == "\n")
    return HarnessSpan(match.start(), stop, _kind(name, text[at:end]), text[match.start() : first], text[last:stop])


def _kind(name: str, body: str) -> SpanKind:
    if name in OUTPUTS:
        return "output"
    if name in INSTRUCTIONS or (name == "system-reminder" and MEMORY.search(body)):
        return "instructions"
    return "recap" if name == RECAP else "notice"


def _matters(name: str) -> bool:
    """Tell whether an element of this name changes who says what; most texts with elements have none."""
    return _holds_words(name) or name in SIGNED or _is_known(name) or _may_be(name)


def _holds_words(name: str) -> bool:
    """Tell whether the body of an element of this name is what a user typed."""
    return name in WRAPPERS or name in BARE_WRAPPERS or name in (COMMAND, ARGUMENTS)


def _gives_work(span: HarnessSpan, text: str) -> bool:
    """Tell whether a message of a teammate is a task in words; those of a harness are objects of JSON."""
    return LEAD in span.opening and not span.body(text).lstrip().startswith("{")


def _is_known(name: str) -> bool:
    return name in NOTICES or name in OUTPUTS or name in INSTRUCTIONS or name in ATTACHED


def _may_be(name: str) -> bool:
    """Tell whether a harness wrote an element of this name, where a person wrote nothing around it."""
    if name in GENERAL:
        return True
    return COMPOUND.fullmatch(name) is not None and not SIGNS.isdisjoint(re.split("[-_]", name))


def _outside(text: str, spans: list[HarnessSpan]) -> str:
    at = 0
    pieces: list[str] = []
    for span in spans:
        pieces.append(text[at : span.start])
        at = span.stop
    return "".join([*pieces, text[at:]])
