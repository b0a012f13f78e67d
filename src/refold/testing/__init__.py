"""Builders and doubles for tests of agents, stages and policies; public, and used by our own tests."""

from refold.testing.builders import ScriptedSummarizer, talk, view_of

__all__ = ["ScriptedSummarizer", "talk", "view_of"]
