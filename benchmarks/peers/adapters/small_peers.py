"""Small packages with one purpose: cutctx, cliffcompaction, tessera, chatcram, context-clipper."""

from __future__ import annotations

from typing import Any

from adapters.base import SUMMARY, SUMMARY_TOKENS, Messages, Peer, assistant


class CutCtx(Peer):
    name, family, models = "cutctx default_chain", "small", True
    note = "estimates by its CharRatioEstimator; the first user message pinned"

    def load(self, messages: Messages) -> Any:
        import cutctx

        self.known = {f"t{place}": message for place, message in enumerate(messages)}
        estimate = cutctx.CharRatioEstimator().estimate_tokens
        first = next((place for place, message in enumerate(messages) if message["role"] == "user"), None)
        open_, found = None, []
        for place, message in enumerate(messages):
            if message.get("tool_calls"):
                open_ = message["tool_calls"][0]["id"]
            elif message["role"] != "tool":
                open_ = None
            text, role = _whole(message), cutctx.Role(message["role"])
            pinned = place == first
            made = cutctx.TranscriptTurn(f"t{place}", role, text, estimate(text), tool_call_id=open_, pinned=pinned)
            found.append(made)
        return found

    def compact(self, native: Any, budget: int) -> Any:
        import cutctx

        transcript = cutctx.Transcript(tuple(native))
        plan = cutctx.default_chain(prompt_id="p1").decide(transcript, cutctx.CompactionBudget(budget))
        summaries = {asked.group_id: SUMMARY for asked in plan.summarization_requests}
        return cutctx.CompactionExecutor().apply(transcript, plan, summaries=summaries).transcript.turns

    def dump(self, native: Any) -> Messages:
        found: Messages = []
        for turn in native:
            known = self.known.get(turn.turn_id)
            if known is None:
                found.append(assistant(turn.content, []))
            elif turn.content == _whole(known):
                found.append(known)
            else:
                found.append(known | {"content": turn.content})
        return found


class Cliff(Peer):
    name, family = "cliffcompaction", "small"
    note = "the engine of its proxy; mechanical summary; keep_recent=3"

    def compact(self, native: Any, budget: int) -> Any:
        from cliffcompaction.config import Config
        from cliffcompaction.dialects import detect
        from cliffcompaction.engine import Engine

        engine = Engine(Config(threshold_tokens=budget))
        made = engine.prepare({"model": "gpt-4o", "messages": native}, detect("/v1/chat/completions"))
        return made.outgoing_body()["messages"]


class Tessera(Peer):
    name, family = "tessera compact", "small"

    def compact(self, native: Any, budget: int) -> Any:
        import tessera

        return tessera.compact(native, max_tokens=budget, adapter="openai").transcript


class Chatcram(Peer):
    name, family, models = "chatcram", "small", True

    def compact(self, native: Any, budget: int) -> Any:
        import chatcram

        keep = max(1, int(budget * 0.95) - SUMMARY_TOKENS)
        return chatcram.Compactor(budget=budget, summarize=lambda _: SUMMARY, keep_recent=keep).compact(native).messages


class Clipper(Peer):
    name, family = "context-clipper", "small"
    note = "system and first user message sticky, as its README asks; no summarizer"

    def load(self, messages: Messages) -> Any:
        first = next((message for message in messages if message["role"] == "user"), None)
        for message in messages:
            if message is first or message["role"] == "system":
                message["sticky"] = True
        return messages

    def compact(self, native: Any, budget: int) -> Any:
        import context_clipper

        return context_clipper.pack(native, max_tokens=budget, summarizer_cb=None)

    def dump(self, native: Any) -> Messages:
        own = ("sticky", "priority", "metadata")
        return [{key: value for key, value in message.items() if key not in own} for message in native]


def _whole(message: dict[str, Any]) -> str:
    calls = message.get("tool_calls") or ()
    return (message.get("content") or "") + "".join(c["function"]["name"] + c["function"]["arguments"] for c in calls)


PEERS = [CutCtx, Cliff, Tessera, Chatcram, Clipper]
