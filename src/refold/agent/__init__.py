"""A small agent whose context never runs out, and what the systems wrap around such a loop."""

from refold.agent._loop import Agent
from refold.agent._tools import Tool, ToolOutcome, tool

__all__ = ["Agent", "Tool", "ToolOutcome", "tool"]
