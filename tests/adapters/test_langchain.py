"""LangChain agents with OpenAI's and Claude's chat models, as a user writes them, under the laws of adapters."""

import base64
import sqlite3
from pathlib import Path

import pytest
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import ToolException, tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite import SqliteSaver

from refold.adapt._langchain_messages import claude_message
from refold.adapt.langchain import CompactionMiddleware
from refold.testing.adapters import LAWS, AdapterHarness, turn_costs_what_is_new
from tests.pages import follow


class LangChain(AdapterHarness):
    format = "openai-chat"

    def __init__(self, setup):
        @tool
        def read(path: str) -> str:
            """Read a part of a program."""
            try:
                return setup.read(path)
            except OSError as error:
                raise ToolException(str(error)) from error

        read.handle_tool_error = True
        self.connection = sqlite3.connect(setup.folder / "checkpoints.db", check_same_thread=False)
        self.agent = create_agent(
            self.chat_model(setup),
            [read],
            system_prompt=setup.system,
            checkpointer=SqliteSaver(self.connection),
            middleware=[CompactionMiddleware(**setup.options)],
        )

    def chat_model(self, setup):
        return ChatOpenAI(model=setup.model, base_url=setup.url, api_key="any", max_retries=0, use_responses_api=False)

    def config(self, conversation):
        return {"configurable": {"thread_id": conversation}, "recursion_limit": 500}

    def run(self, conversation, text, *, image=None, stream=False):
        content = [{"type": "text", "text": text}]
        if image:
            content.append({"type": "image", "base64": base64.b64encode(image).decode(), "mime_type": "image/png"})
        inputs = {"messages": [HumanMessage(content)]}
        if not stream:
            return self.agent.invoke(inputs, self.config(conversation))["messages"][-1].text
        pieces = [piece for piece, _ in self.agent.stream(inputs, self.config(conversation), stream_mode="messages")]
        return "".join(piece.text for piece in pieces if piece.type == "AIMessageChunk")

    def history(self, conversation):
        return self.agent.get_state(self.config(conversation)).values["messages"]

    def undo(self, conversation):
        CompactionMiddleware.rewind(self.agent, self.config(conversation), 0)

    def close(self):
        self.connection.close()


class LangChainAnthropic(LangChain):
    format = "anthropic"
    model = "claude-opus-5-5"

    def chat_model(self, setup):
        return ChatAnthropic(
            model=setup.model,
            base_url=setup.root_url,
            api_key="any",
            max_retries=0,
            max_tokens=1_000,
            thinking={"type": "adaptive"},
        )


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("harness", [LangChain, LangChainAnthropic])
def test_the_adapter_keeps_the_law(harness, law):
    LAWS[law](harness)


@pytest.mark.parametrize("harness", [LangChain, LangChainAnthropic])
def test_a_turn_costs_what_is_new(harness):
    turn_costs_what_is_new(harness)


class EachOwn(FakeListChatModel):
    """A chat model that takes the tools of any provider."""

    def bind_tools(self, tools, **_):
        return self


def test_tools_that_a_provider_runs_in_its_own_shape_are_passed_on():
    agent = create_agent(
        EachOwn(responses=["Found."]), [{"google_search": {}}], middleware=[CompactionMiddleware(window=8_000)]
    )
    assert agent.invoke({"messages": [HumanMessage("Search.")]})["messages"][-1].text == "Found."


def test_an_answer_of_claude_may_hold_plain_strings():
    assert claude_message([AIMessage(["Hello,", {"type": "text", "text": "there."}])]) == {
        "role": "assistant",
        "content": [{"type": "text", "text": "Hello,"}, {"type": "text", "text": "there."}],
    }


def test_the_tutorial_prints_what_it_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).parents[2] / "docs" / "tutorials" / "framework.md"
    typed = {each.command: each for each in follow(page.read_text("utf-8"), tmp_path)}
    assert all(each.is_as_shown for each in typed.values())
    assert "42 messages in the state" in typed["python with_langchain.py"].printed
