"""A small agent whose context never overflows, and the tools that the five systems add to such a loop."""

from refold.agent._changed_files import Files
from refold.agent._compaction_log import Decision, Snapshots
from refold.agent._daily_log import DailyLog
from refold.agent._heartbeat import Heartbeat
from refold.agent._loop import Agent
from refold.agent._options import AgentOptions
from refold.agent._profiles import AgentProfile
from refold.agent._session_log import SessionLog
from refold.agent._statistics import context_line
from refold.agent._subagents import subagent
from refold.agent._tasks import TaskFile, TaskFiles
from refold.agent._tools import Tool, ToolOutcome, tool

__all__ = [
    "Agent",
    "AgentOptions",
    "AgentProfile",
    "DailyLog",
    "Decision",
    "Files",
    "Heartbeat",
    "SessionLog",
    "Snapshots",
    "TaskFile",
    "TaskFiles",
    "Tool",
    "ToolOutcome",
    "context_line",
    "subagent",
    "tool",
]
