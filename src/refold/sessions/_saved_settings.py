"""Settings that a session saves in its log: written as JSON values, read back, and merged with explicit ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from refold import policies
from refold._compaction.options import Options
from refold.core._decoders import convert
from refold.core._native import as_json
from refold.core.budget import Budget, Limit
from refold.core.messages import MessageId
from refold.core.policy import Policy
from refold.errors import RefoldError

__all__ = ["CHOSEN", "SETTINGS", "resolve_settings", "settings_to_save"]

SETTINGS = (
    "policy", "model", "provider", "window", "budget", "goal", "system", "tools", "max_output", "counter", "pinned",
)  # fmt: skip
DEFAULT = "refold"
CHOSEN = "chosen_policy"  # of a gateway's sessions: what a person chose; there "policy" is what acted last
OF_A_MODEL = ("provider", "window", "budget", "max_output")  # which differ between models


def settings_to_save(settings: Mapping[str, object], saved: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return settings as JSON values; null for one that is not set or that no other process could create again.

    Those among `saved` that they replace are null too. A policy is saved by the name of one that comes with refold,
    never as a file: a store contains nothing that is executed.
    """
    written = {name: _written(name, value) for name, value in settings.items() if name in SETTINGS}
    return dict.fromkeys(_replaced(saved or {}, settings)) | written


def resolve_settings(saved: Mapping[str, object], explicit: Mapping[str, object], format: str | None) -> Options:
    """Return the options: the explicit settings, else the saved ones, else the defaults.

    An explicit window or budget replaces the other, and a model other than the saved one replaces both.
    """
    known = {name: _read(name, value) for name, value in saved.items() if name in SETTINGS}
    replaced = _replaced(saved, explicit)
    chosen = {name: value for name, value in known.items() if value is not None and name not in replaced} | dict(
        explicit
    )
    policy = chosen.pop("policy", None) or DEFAULT
    return Options(**chosen, format=format, policy=policies.find(policy) if isinstance(policy, str) else policy)


def _replaced(saved: Mapping[str, object], explicit: Mapping[str, object]) -> frozenset[str]:
    """Return the names of saved settings that explicit ones replace."""
    replaced: set[str] = set()
    model, before = explicit.get("model"), saved.get("model")
    if model is not None and before is not None and model != before:
        replaced.update(OF_A_MODEL)
    if explicit.get("window") is not None or explicit.get("budget") is not None:
        replaced.update(("window", "budget"))
    return frozenset(replaced)


def _written(name: str, value: object) -> Any:
    match name, value:
        case _, None:
            return None
        case "policy", Policy(name=known) | str(known):
            return known if known in policies.names() else None
        case (("budget" | "goal"), msgspec.Struct()):
            return msgspec.to_builtins(value)
        case "counter", _:
            return value if isinstance(value, str) else None
        case (("system" | "tools"), _):
            try:
                return json.loads(json.dumps(as_json(value)))
            except (TypeError, ValueError, RecursionError):
                return None
        case _:
            return value


def _read(name: str, value: object) -> Any:
    """Return a setting as it was before it was saved; None for one that this release does not understand."""
    try:
        match name, value:
            case "budget", dict():
                return convert(value, Budget)
            case "goal", dict():
                return convert(value, Limit)
            case "pinned", list():
                return tuple(MessageId(id) for id in value if isinstance(id, str))
            case "policy", _:
                return value if value in policies.names() else None
            case _:
                return value
    except (msgspec.ValidationError, RefoldError):
        return None
