"""Gemini: every chunk is a response of its own, whose parts go on from those before."""

from __future__ import annotations

from typing import Any

from refold.core._json import Json, listing, mapping
from refold.formats._streaming._growing import GrowingText, growing, index_of, settled

__all__ = ["GeminiAccumulator"]

PER_CHUNK = frozenset({"candidates", "usageMetadata", "error"})
GROWING = {
    "citationMetadata": ("citations", "citationSources"),
    "logprobsResult": ("chosenCandidates", "topCandidates"),
}


class GeminiAccumulator:
    """Adds up the chunks of `streamGenerateContent`.

    Text goes on in one part, thoughts in another. A part with a signature stays by itself, also where its text is
    empty: the signature is for that place.
    """

    def __init__(self) -> None:
        self.error: Json | None = None
        self._response: Json = {}
        self._candidates: dict[int, Json] = {}
        self._usage: Json = {}

    def add(self, event: Json) -> str:
        """Take one chunk and return the text for the user that it adds to the first candidate."""
        if event.get("error"):
            self.error = mapping(event["error"]) or {"message": event["error"]}
        self._response |= {key: value for key, value in event.items() if key not in PER_CHUNK and value is not None}
        usage = mapping(event.get("usageMetadata"))
        self._usage |= {key: value for key, value in usage.items() if value is not None}
        text = ""
        for candidate in map(mapping, listing(event.get("candidates"))):
            number = index_of(candidate) or 0
            content = mapping(candidate.get("content"))
            new: Json = {"content": {"role": "model", "parts": []}}
            self._extend(self._candidates.setdefault(number, new), candidate, content)
            for part in map(mapping, listing(content.get("parts")) if number == 0 else ()):
                text += part["text"] if isinstance(part.get("text"), str) and not part.get("thought") else ""
        return text

    @property
    def usage(self) -> Json:
        """The usage that was reported so far; what a later chunk reports replaces what an earlier one did."""
        return self._usage

    @property
    def stop(self) -> str | None:
        """The reason why the first candidate ended, None where it did not."""
        reason = self._candidates.get(0, {}).get("finishReason")
        return reason if isinstance(reason, str) else None

    @property
    def complete(self) -> bool:
        """Whether every candidate ended, or the prompt was blocked."""
        blocked = mapping(self._response.get("promptFeedback")).get("blockReason")
        ends = [candidate.get("finishReason") for candidate in self._candidates.values()]
        return bool(blocked) or (bool(ends) and all(ends))

    def body(self) -> Json:
        """Return the response as far as it came."""
        candidates = [candidate for _, candidate in sorted(self._candidates.items())]
        usage = {"usageMetadata": self._usage} if self._usage else {}
        body: Json = settled({**self._response, "candidates": candidates, **usage})
        return body

    def _extend(self, candidate: Json, piece: Json, content: Json) -> None:
        candidate["content"] |= {key: value for key, value in content.items() if key != "parts" and value is not None}
        for part in listing(content.get("parts")):
            _append(candidate["content"]["parts"], part)
        for key, value in piece.items():
            if key == "content" or value is None:
                continue
            if key in GROWING and isinstance(value, dict) and isinstance(candidate.get(key), dict):
                before = candidate[key]
                lists = {name: [*listing(before.get(name)), *listing(value.get(name))] for name in GROWING[key]}
                value = {**before, **value, **{name: rows for name, rows in lists.items() if rows}}
            candidate[key] = value


def _append(parts: list[Any], part: Any) -> None:
    if not _is_text(part):
        parts.append(growing(part))
    elif parts and _is_text(parts[-1]) and bool(parts[-1].get("thought")) == bool(part.get("thought")):
        parts[-1]["text"].pieces.append(part["text"])
    elif part["text"]:
        parts.append(growing(part))


def _is_text(part: object) -> bool:
    """Tell whether a part is text and nothing else, so that it may go on in the next one."""
    match part:
        case {"text": str() | GrowingText(), **rest}:
            return rest.keys() <= {"thought"}
        case _:
            return False
