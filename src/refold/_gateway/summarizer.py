"""Creates the summarizer of the gateway's policies from its settings; without a model, none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold.handlers import Handlers

if TYPE_CHECKING:
    from refold._gateway.settings import GatewaySettings

__all__ = ["summary_handlers"]


def summary_handlers(settings: GatewaySettings) -> Handlers:
    """Return who answers the needs of plans; its key comes from the environment and not from a client."""
    if not settings.summarizer:
        return Handlers()
    from refold.summaries.summarizers import summarizer

    return Handlers(summarize=summarizer(settings.summarizer, settings.summarizer_url or None), redact=settings.redact)
