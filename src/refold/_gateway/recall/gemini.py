"""Gemini: every event is a whole response with parts; calls arrive complete."""

from __future__ import annotations

from refold._gateway.recall.response_merger import (
    BREAK,
    GIVEN_UP,
    RecallCall,
    RecallRound,
    ResponseMerger,
    added,
)
from refold._gateway.recall.tool import NAME
from refold.core._json import Json, listing, mapping, objects

__all__ = ["GeminiMerger"]

SIGNED = ("thoughtSignature", "thought_signature")  # of calls made at once the first one bears it, and must keep it


class GeminiMerger(ResponseMerger):
    """Joins answers of `generateContent` and `streamGenerateContent`."""

    usage_key = "usageMetadata"
    line = "\r\n"

    def __init__(self) -> None:
        super().__init__()
        self._id: Json = {}
        self._has_content = self._worded = self._broken = self._left_out = False
        self._seal: Json | None = {}  # of a recall that is left out; None once a call of the client's was shown

    def starts_recall(self, data: Json) -> bool:
        return any(_ours(part) for part in _parts(data))

    def is_preamble(self, data: Json) -> bool:
        return False

    def merge_event(self, data: Json, *, closing: bool) -> list[Json]:
        if not data.get("candidates"):
            return [data] if closing or "usageMetadata" not in data else []
        self._id = self._id or ({"responseId": data["responseId"]} if "responseId" in data else {})
        parts, self._seal = _without_recalls(_parts(data), self._seal)
        self._left_out = self._left_out or len(parts) < len(_parts(data))
        parts = self._apart(parts)
        candidate = dict(data["candidates"][0])
        if not closing:
            candidate.pop("finishReason", None)
        elif candidate.get("finishReason") and self._left_out and not self._has_content and not parts:
            parts = [{"text": GIVEN_UP}]
        self._has_content = self._has_content or bool(parts)
        if not parts and _parts(data) and not candidate.get("finishReason"):
            return []
        if not parts and not closing:
            return []
        if parts or _parts(data):
            candidate["content"] = {**(candidate.get("content") or {"role": "model"}), "parts": parts or [{"text": ""}]}
        merged = {**data, **self._id, "candidates": [candidate]}
        if isinstance(data.get("usageMetadata"), dict) and self.round:
            merged["usageMetadata"] = added(self.spent, data["usageMetadata"])
        return [merged]

    def _apart(self, parts: list[Json]) -> list[Json]:
        """Put a break before the first words of a round where words went before."""
        if not any(_worded(part) for part in parts):
            return parts
        broken, self._broken = self._broken, False
        self._worded = True
        if not broken:
            return parts
        return _broken(parts)

    def follows(self, recall_round: RecallRound) -> None:
        super().follows(recall_round)
        self._broken = self._worded
        self._seal = {}

    def read_round(self, body: Json) -> RecallRound:
        parts = _parts(body)
        ours = [place for place, part in enumerate(parts) if _ours(part)]
        others = tuple(
            RecallCall(call.get("id", ""), call.get("args"), call.get("name", ""))
            for part in parts
            if isinstance(call := part.get("functionCall"), dict) and not _ours(part)
        )
        recalls = tuple(
            RecallCall(parts[at]["functionCall"].get("id", ""), parts[at]["functionCall"].get("args")) for at in ours
        )
        candidate = (body.get("candidates") or [{}])[0]
        cut = candidate.get("finishReason") not in ("STOP", None)
        turn = {"role": "model", "parts": parts}
        return RecallRound([turn], recalls, others, cut, frozenset(ours), body.get("usageMetadata") or {})

    def joined(self, bodies: list[Json]) -> Json:
        parts: list[Json] = []
        worded = False
        for body in bodies:
            visible, _ = _without_recalls(_parts(body), {})
            parts += _broken(visible) if worded else visible
            worded = worded or any(map(_worded, visible))
        usage: Json = {}
        for body in bodies:
            usage = added(usage, body.get("usageMetadata") or {})
        last = bodies[-1]
        candidate = dict((last.get("candidates") or [{}])[0])
        candidate["content"] = {"role": "model", "parts": parts or [{"text": GIVEN_UP}]}
        return {**last, "candidates": [candidate, *(last.get("candidates") or [])[1:]], "usageMetadata": usage}

    def results(self, recall_round: RecallRound, texts: list[str]) -> list[Json]:
        parts = []
        for call, text in zip(recall_round.recalls, texts, strict=True):
            id = {"id": call.id} if call.id else {}
            parts.append({"functionResponse": {**id, "name": NAME, "response": {"output": text}}})
        return [{"role": "user", "parts": parts}]


def _parts(data: Json) -> list[Json]:
    candidate = next(iter(listing(data.get("candidates"))), None)
    return objects(mapping(mapping(candidate).get("content")).get("parts"))


def _ours(part: Json) -> bool:
    return bool(mapping(part.get("functionCall")).get("name") == NAME)


def _without_recalls(parts: list[Json], seal: Json | None) -> tuple[list[Json], Json | None]:
    """Return what is the client's, with the signature of a recall before its first call on that call; and what is left.

    `seal` is what recalls before these parts bore, None where a call of the client's came before.
    """
    visible: list[Json] = []
    for part in parts:
        if seal is not None and "functionCall" in part:
            signed = {key: part[key] for key in SIGNED if part.get(key)}
            if _ours(part):
                seal = seal or signed
            else:
                part, seal = part if signed else {**part, **seal}, None
        if not _ours(part):
            visible.append(part)
    return visible, seal


def _worded(part: Json) -> bool:
    return bool(part.get("text")) and not part.get("thought")


def _broken(parts: list[Json]) -> list[Json]:
    """Put a break before the first words; a part of its own would be blank, which Gemini refuses."""
    at = next((place for place, part in enumerate(parts) if _worded(part)), -1)
    return [{**part, "text": BREAK + part["text"]} if place == at else part for place, part in enumerate(parts)]
