"""Keeps plans where another process of the gateway finds them."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from refold.core.plan import Plan
    from refold.gateway.tracks import Track

__all__ = ["Keeper"]


class Keeper:
    """Keeps nothing: conversations live as long as the process."""

    @asynccontextmanager
    async def alone(self, track: Track) -> AsyncIterator[None]:
        """Be the only one, over all replicas, who compacts a conversation."""
        yield

    async def follow(self, track: Track) -> bool:
        """Take over what others have planned for a conversation; tell whether there was something new."""
        return False

    async def keep(self, track: Track, plan: Plan) -> None:
        """Keep a plan and the messages it was made for."""

    async def close(self) -> None:
        """Give connections back."""
