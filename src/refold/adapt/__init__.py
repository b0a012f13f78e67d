"""Adapters for agent frameworks, and what they are made of; each adapter is a module that only its users import."""

from refold.adapt._pool import TrackPool
from refold.adapt._state import rewind_state
from refold.adapt._track import Track
from refold.adapt._view import TrackedView

__all__ = ["Track", "TrackPool", "TrackedView", "rewind_state"]
