"""Turns a provider error into one line that names the place and the remedy, and into an exit code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold.core._json import string_of
from refold.errors import OutsideError, RefoldError, UsageError

if TYPE_CHECKING:
    from refold.clients._protocol import Client

__all__ = ["failure", "unreachable"]

KEYS = {"openai-chat": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
OWN = {"openai-chat": "OpenAI", "anthropic": "Anthropic"}
CONNECTING = ("ConnectError", "ConnectTimeout", "gaierror", "ConnectionRefusedError")
NOT_FOUND = 404


def failure(error: Exception, client: Client) -> RefoldError:
    """Return an error of ours for one of a provider's; ours are returned as they are.

    What another argument corrects is a UsageError: the key, the base URL, the model.
    """
    from refold.models.provider_errors import classify_error

    if isinstance(error, RefoldError):
        return error
    place = client.base_url or OWN[client.format]
    classified = classify_error(error)
    words = _words(_own_words(error) or classified.message or str(error))
    if unreachable(error):
        return OutsideError(f"no server answers at {place}: start it, or name another with --base-url")
    if classified.kind == "auth" or classified.status in (401, 403):
        return UsageError(f"{place} refused the key ({words}): set {KEYS[client.format]}")
    if classified.status == NOT_FOUND and client.model.lower() in words.lower():
        return UsageError(f"{place} knows no model {client.model} ({words}): name another with --model")
    if classified.status == NOT_FOUND:
        return UsageError(f"there is no such service at {place} ({words}): check --base-url, it often ends in /v1")
    if "timeout" in type(error).__name__.lower() or "timed out" in str(error).lower():
        return OutsideError(f"{place} did not answer in time: try again")
    return OutsideError(f"{place} did not answer as it should ({words}): try again")


def unreachable(error: BaseException | None) -> bool:
    """Tell whether no connection came about, so that no other attempt will do better at once."""
    while error is not None:
        if type(error).__name__ in CONNECTING:
            return True
        error = error.__cause__ or error.__context__
    return False


def _own_words(error: Exception) -> str:
    """Return what the provider's own body says, which an SDK carries with or without its outer object."""
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, dict) else None
    words = inner.get("message") if isinstance(inner, dict) else inner
    return string_of(words)


def _words(text: str) -> str:
    words = " ".join(text.split()).rstrip(".")
    return words if len(words) <= 300 else f"{words[:300]}…"
