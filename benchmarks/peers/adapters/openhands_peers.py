"""OpenHands' summarizing condenser over its own events; the SDK's other condensers do nothing or chain some."""

from __future__ import annotations

from typing import Any

from adapters.base import (
    SUMMARY,
    Messages,
    Peer,
    assistant,
    called,
    calling,
    tool,
)


class Condenser(Peer):
    name, family, models = "openhands LLMSummarizingCondenser", "openhands", True
    note = "max_tokens=goal (it then cuts to half of that, so it is asked for more), keep_first=2"

    def __init__(self) -> None:
        from openhands.sdk import LLM, event, llm
        from openhands.sdk.context.condenser import LLMSummarizingCondenser
        from openhands.sdk.context.view import View
        from openhands.sdk.testing import TestLLM
        from openhands.sdk.tool.schema import Action, Observation

        class Did(Action):
            """What was done; the words of the call are kept beside it."""

        class Saw(Observation):
            """What came back."""

        self.event, self.llm, self.did, self.saw, self.view = event, llm, Did, Saw, View
        self.condenser, self.scripted = LLMSummarizingCondenser, TestLLM
        self.agent = LLM(model="gpt-4o", api_key="none", usage_id="agent", max_input_tokens=10**9)

    def load(self, messages: Messages) -> Any:
        text = self.llm.TextContent
        acts: dict[str, Any] = {}
        found: list[Any] = []
        for number, message in enumerate(messages):
            said = message.get("content") or ""
            if message["role"] == "system":
                found.append(self.event.SystemPromptEvent(system_prompt=text(text=said), tools=[]))
            elif message["role"] == "tool":
                act = acts[message["tool_call_id"]]
                saw = self.saw.from_text(said)
                ids = {"action_id": act.id, "tool_name": act.tool_name, "tool_call_id": act.tool_call_id}
                found.append(self.event.ObservationEvent(observation=saw, **ids))
            elif message.get("tool_calls"):
                for place, (id, name, arguments) in enumerate(map(called, message["tool_calls"])):
                    call = self.llm.MessageToolCall(id=id, name=name, arguments=arguments, origin="completion")
                    acts[id] = self.event.ActionEvent(
                        thought=[text(text=said)] if said and not place else [],
                        action=self.did(),
                        tool_name=name,
                        tool_call_id=id,
                        tool_call=call,
                        llm_response_id=f"r{number}",
                    )
                    found.append(acts[id])
            else:
                source = "user" if message["role"] == "user" else "agent"
                spoken = self.llm.Message(role=message["role"], content=[text(text=said)])
                found.append(self.event.MessageEvent(source=source, llm_message=spoken))
        return found

    def compact(self, native: Any, budget: int) -> Any:
        answers = [self.llm.Message(role="assistant", content=[self.llm.TextContent(text=SUMMARY)])] * 8
        model = self.scripted.from_messages(answers)
        condenser = self.condenser(llm=model, max_size=100_000, max_tokens=budget, keep_first=2)
        made = condenser.condense(self.view.from_events(native), agent_llm=self.agent)
        return made.events if isinstance(made, self.view) else self.view.from_events([*native, made]).events

    def dump(self, native: Any) -> Messages:
        found: Messages = []
        for message in self.event.LLMConvertibleEvent.events_to_messages(list(native)):
            text = "\n".join(part.text for part in message.content if hasattr(part, "text"))
            if message.role == "tool":
                found.append(tool(message.tool_call_id, text))
            elif message.role == "assistant":
                calls = [calling(call.id, call.name, call.arguments) for call in message.tool_calls or ()]
                found.append(assistant(text, calls))
            else:
                found.append({"role": message.role, "content": text})
        return found


PEERS = [Condenser]
