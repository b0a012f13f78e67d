"""Who writes summaries for the gateway's policies: a model that was named at the start, or nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold.handlers import Outside

if TYPE_CHECKING:
    from refold._gateway.settings import Settings

__all__ = ["outside"]


def outside(settings: Settings) -> Outside:
    """Return who answers the needs of plans; its key comes from the environment and not from a client."""
    if not settings.summarizer:
        return Outside()
    from refold.summaries.summarizers import summarizer

    return Outside(summarize=summarizer(settings.summarizer, settings.summarizer_url or None), redact=settings.redact)
