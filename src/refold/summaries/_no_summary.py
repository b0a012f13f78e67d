"""Recognizes texts that are certainly no summary: empty, a tool call, an echo, a question, a refusal."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from refold._condense.transcript_text import FENCE, PREVIOUS
from refold.core.messages import ToolCall

if TYPE_CHECKING:
    from refold.core.needs import SummaryNeed

__all__ = ["certain_faults", "without_thinking"]

SHORT = 400  # characters of an answer that says one thing only: a refusal or a question
ECHO = 200  # characters: what repeats so much of the record and nothing else is no summary of it
LINE = 60  # characters of a line of the instructions that no summary has by chance

# How models write calls where a client does not read them: tags (Hermes and Qwen, Claude, GLM, MiniMax, Kimi, Llama,
# Mistral, DeepSeek, gpt-oss), in words, and ReAct's lines.
TAGS = re.compile(
    r"<\|?/?(?:[a-z]+:)?(?:tool_calls?|function_calls?|tool_use|tool_code|invoke|parameter(?= name=)|function(?==))"
    r"(?:_(?:section_)?(?:begin|end))?\b[^>\n]*>|<\|(?:python_tag|action_start|channel)\|>|\[TOOL_CALLS\]|"
    r"<｜tool▁[^｜]*｜>|</?｜DSML｜\w+|\[(?:[Aa]ssistant )?[Tt]ool [Cc]all\]:?\s*\w+\(|"
    r"\bto=functions\.\w+|\bfunctions\.\w+:\d+\b|\bdefault_api\.\w+\("
)
REACT = re.compile(r"^Action:[ \t]*\S+[ \t]*\n+Action Input:", re.M)
JSON = re.compile(r"(?:```(?:json|tool_code|tool_call)?\s*)?[\[{]")
FIELDS = re.compile(
    r'"(?:name|tool|tool_name|function|recipient_name|action)"\s*:\s*(?:"[\w.:/-]+"|\{)[^{}]{0,200}?'
    r'"(?:arguments|parameters|input|args|action_input|tool_input)"\s*:|'
    r'"(?:tool_calls|function_call|functionCall|toolUse|tool_use)"\s*:\s*[\[{]|'
    r'"type"\s*:\s*"(?:tool_use|tool_call|function_call|function)"'
)
NAMED = re.compile(r'"(?:name|tool|tool_name|function|action)"\s*:\s*"([\w.:/-]+)"')
CODE = re.compile(
    r"(?:```\w*\s*)?\[?(?:print\()?(?:functions\.|default_api\.)?([A-Za-z_][\w.-]*)\(.*\)\]?\s*(?:```)?", re.S
)
ELEMENT = re.compile(r"<([A-Za-z_][\w-]*)>.*</\1>", re.S)
HEADINGS = re.compile(rf"\[(?:user|assistant|tool|system|call \S+|result \S+)\]|</?(?:{FENCE}|{PREVIOUS})>", re.I)

REFUSES = re.compile(
    r"(?:i['’]?m (?:very |really )?sorry|(?:i am|we['’]re) sorry|sorry[,.!]|i apologi[sz]e|es tut mir leid|"
    r"je suis désolé|lo siento|(?:i|we) (?:can['’]?t|cannot|can not|won['’]?t|am unable to|am not able to|must decline)"
    r"[^.]{0,40}(?:help|assist|comply|summari[sz]e|provide|process|fulfil|continue|do that|discuss|share)|"
    r"i['’]?m (?:unable|not able) to|unable to (?:summarize|comply|help)|ich kann (?:das|dir|ihnen|dabei) nicht|"
    r"je ne peux pas|no puedo ayudar|(?:很|非常)?抱歉|对不起|我(?:无法|不能)|申し訳|죄송)",
    re.I,
)
ASKS = re.compile(
    r"(?:could|can|would|will) you\b|(?:please )?(?:provide|share|clarify|paste|send|tell me|let me know)\b|"
    r"(?:what|which|how|where|who|when|why)\b|(?:do|did|should|shall|may|can|could) (?:you|i|we)\b|"
    r"i['’]?d be (?:happy|glad)|i['’]?m (?:happy|glad|ready) to|(?:it )?(?:looks|seems) like you|"
    r"hello\b|hi\b|hey\b|sure[,!.]|of course[,!.]|certainly[,!.]|möchte|soll ich|könn(?:en|t)|was (?:soll|möcht)|"
    r"voulez|pou(?:vez|rriez)|quieres|¿",
    re.I,
)
ASKS_AT_END = re.compile(
    r"(?:would you like|shall i|should i|do you want|could you|can you|please (?:provide|share|clarify)|let me know|"
    r"how can i (?:help|assist)|what would you like|möchten sie|möchtest du|soll ich|voulez-vous|¿quieres|¿debo)"
    r"[^\n?!.]*[?!.]?\s*$",
    re.I,
)
# Thinking that a model writes into its answer; cut off, it has no end.
THINKING = re.compile(r"\s*<(think|thinking|thought)>.*?(?:</\1>\s*|\Z)", re.S | re.I)
SENTENCE = re.compile(r"[.!?。！？](?:\s+|$)")


def without_thinking(text: str) -> str:
    """Return an answer without the thinking that a model wrote in front of it between tags."""
    opened = THINKING.match(text)
    return text[opened.end() :] if opened else text


def certain_faults(text: str, need: SummaryNeed) -> tuple[str, ...]:
    """Return why a text is certainly no summary; empty where it may be one, however short or plain it is."""
    text = text.strip()
    if not text:
        return ("it is empty",)
    faults: list[str] = []
    if _is_call(text, need):
        faults.append("it is a tool call")
    if _repeats_instructions(text, need):
        faults.append("it repeats the instructions instead of following them")
    if _repeats_record(text, need):
        faults.append("it repeats the record instead of summarizing it")
    if len(text) < SHORT:
        if REFUSES.match(text.lstrip(" #*_>\"'")):
            faults.append("it is a refusal")
        elif _asks_back(text):
            faults.append("it is a question back")
    return tuple(faults)


def _is_call(text: str, need: SummaryNeed) -> bool:
    known = f"{need.text}\n{need.previous or ''}"
    if TAGS.match(text) or any(tag[0] not in known for tag in TAGS.finditer(text)):
        return True  # one that the record has may be quoted, but not in the first place
    if REACT.search(text) or (JSON.match(text) and FIELDS.search(text)):
        return True
    tools = {part.name for message in need.messages for part in message.parts if isinstance(part, ToolCall)}
    named = CODE.fullmatch(text) or ELEMENT.match(text)
    of_json = NAMED.findall(text) if JSON.match(text) else []
    return (named is not None and named[1] in tools) or any(name in tools for name in of_json)


def _repeats_instructions(text: str, need: SummaryNeed) -> bool:
    plain, demanded = _flat(text), _flat(need.instructions)
    if len(plain) >= LINE and plain in demanded:
        return True
    lines = {line for line in map(_flat, need.instructions.splitlines()) if len(line) >= LINE}
    return sum(line in plain for line in lines) >= 2


def _repeats_record(text: str, need: SummaryNeed) -> bool:
    """Tell whether a text is a piece of the record: from a heading of ours on, or the larger part of it all."""
    plain, record = _flat(text), _flat(need.text)
    if HEADINGS.match(text):
        return text.startswith("<") or plain[: min(len(plain), ECHO)] in record
    merging = not need.messages  # the text is made of summaries of parts, which one that unites them may repeat
    return not merging and len(plain) >= max(ECHO, len(record) // 2) and plain in record


def _asks_back(text: str) -> bool:
    asks = text.rstrip(" *_\"'”»)").endswith(("?", "？"))
    opens = ASKS.match(text.lstrip(" #*_>\"'")) is not None
    if asks and opens:
        return True
    return opens and len(SENTENCE.findall(text)) <= 3 and ASKS_AT_END.search(text) is not None


def _flat(text: str) -> str:
    return " ".join(text.split())
