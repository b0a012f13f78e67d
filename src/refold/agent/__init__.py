"""A small agent whose context never runs out, and what the systems wrap around such a loop."""

from refold.agent.loop import Agent
from refold.agent.tools import Outcome, Tool, tool

__all__ = ["Agent", "Outcome", "Tool", "tool"]
