"""LangChain's middleware and trim_messages, and LangMem."""

from __future__ import annotations

import uuid
from typing import Any

from adapters.base import SUMMARY, SUMMARY_TOKENS, Messages, Peer, apart


class _LangChain(Peer):
    family = "langchain"

    def __init__(self) -> None:
        from langchain_core.language_models.fake_chat_models import FakeListChatModel
        from langchain_core.messages import convert_to_messages, convert_to_openai_messages
        from langchain_core.messages.utils import count_tokens_approximately

        self.read, self.write, self.count = convert_to_messages, convert_to_openai_messages, count_tokens_approximately
        self.model = FakeListChatModel(responses=[SUMMARY])

    def load(self, messages: Messages) -> Any:
        return self.read(messages)

    def dump(self, native: Any) -> Messages:
        found: Messages = self.write(native)
        for message in found:
            if message["role"] == "assistant" and not message.get("content"):
                message["content"] = None
        return found


class Summarization(_LangChain):
    name, models = "langchain SummarizationMiddleware", True
    note = "trigger and keep in tokens; the system prompt stays outside, as in create_agent"

    def load(self, messages: Messages) -> Any:
        self.system, rest = apart(messages)
        return self.read(rest)

    def compact(self, native: Any, budget: int) -> Any:
        from langchain.agents.middleware import SummarizationMiddleware

        keep = max(500, budget - SUMMARY_TOKENS - self.count(self.read(self.system)))
        made = SummarizationMiddleware(model=self.model, trigger=("tokens", budget), keep=("tokens", keep))
        update = made.before_model({"messages": native}, None)
        return native if update is None else update["messages"][1:]  # the first one says that all others went

    def dump(self, native: Any) -> Messages:
        return self.system + super().dump(native)


class ContextEditing(_LangChain):
    name = "langchain ContextEditingMiddleware"
    note = "ClearToolUsesEdit, keep=3, clear_at_least=what is too much"

    def compact(self, native: Any, budget: int) -> Any:
        from langchain.agents.middleware import ClearToolUsesEdit, ContextEditingMiddleware
        from langchain.agents.middleware.types import ModelRequest

        excess = max(1, self.count(native) - budget)
        middleware = ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=budget, keep=3, clear_at_least=excess)])
        seen: list[Any] = []
        request = ModelRequest(model=self.model, messages=native, state={"messages": native}, runtime=None)
        middleware.wrap_model_call(request, lambda asked: seen.extend(asked.messages))
        return seen


class Trim(_LangChain):
    name = "langchain trim_messages"
    note = "strategy=last, include_system, start_on=human, as documented"
    start: Any = "human"

    def compact(self, native: Any, budget: int) -> Any:
        from langchain_core.messages import trim_messages

        return trim_messages(
            native,
            max_tokens=budget,
            strategy="last",
            token_counter=self.count,
            include_system=True,
            start_on=self.start,
        )


class TrimAnywhere(Trim):
    name = "langchain trim_messages (start_on=ai)"
    note = "start_on=(human, ai): may begin with the assistant"
    start = ("human", "ai")


class LangMem(_LangChain):
    name, models = "langmem summarize_messages", True

    def load(self, messages: Messages) -> Any:
        found = self.read(messages)
        for message in found:
            message.id = message.id or str(uuid.uuid4())
        return found

    def compact(self, native: Any, budget: int) -> Any:
        from langmem.short_term import summarize_messages

        return summarize_messages(
            native,
            running_summary=None,
            model=self.model,
            max_tokens=budget,
            max_summary_tokens=SUMMARY_TOKENS,
        ).messages


PEERS = [Summarization, ContextEditing, Trim, TrimAnywhere, LangMem]
