"""The handlers of the gateway's policies: summaries by the model of its settings, if there is one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold.handlers import Handlers

if TYPE_CHECKING:
    from refold._gateway.settings import GatewaySettings

__all__ = ["handlers_of"]


def handlers_of(settings: GatewaySettings) -> Handlers:
    """Return the handlers of a gateway; the summarizer's key comes from the environment, never from a client."""
    if not settings.summarizer:
        return Handlers()
    from refold.summaries.summarizers import summarizer

    return Handlers(summarize=summarizer(settings.summarizer, settings.summarizer_url or None), redact=settings.redact)
