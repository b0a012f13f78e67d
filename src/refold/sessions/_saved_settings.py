"""Settings that a session remembers in its log: written as JSON values, read back, and merged with those given."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from refold import policies
from refold._compaction.options import Options
from refold.core.budget import Budget, Limit
from refold.core.policy import Policy
from refold.errors import RefoldError

__all__ = ["SETTINGS", "settled", "to_remember"]

SETTINGS = ("policy", "model", "window", "budget", "goal", "system", "tools", "max_output", "counter")
DEFAULT = "refold"
OF_A_MODEL = ("window", "budget", "max_output")  # which another model has others of


def to_remember(settings: Mapping[str, Any], remembered: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return settings as JSON values; null for one that is not set or that no other process could make again.

    What they take the place of among those `remembered` is null too. A policy is remembered by the name of one that
    comes with refold, never by a file: a store holds nothing to be run.
    """
    written = {name: _written(name, value) for name, value in settings.items() if name in SETTINGS}
    return dict.fromkeys(_displaced(remembered or {}, settings)) | written


def settled(remembered: Mapping[str, Any], given: Mapping[str, Any], format: str | None) -> Options:
    """Return the options in force: what was given, else what is remembered, else the defaults.

    A window or a budget that is given takes the place of the other, and another model than the remembered one that of
    both.
    """
    known = {name: _read(name, value) for name, value in remembered.items() if name in SETTINGS}
    displaced = _displaced(remembered, given)
    chosen = {name: value for name, value in known.items() if value is not None and name not in displaced} | dict(given)
    policy = chosen.pop("policy", None) or DEFAULT
    return Options(**chosen, format=format, policy=policies.find(policy) if isinstance(policy, str) else policy)


def _displaced(remembered: Mapping[str, Any], given: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of remembered settings that do not hold beside those given."""
    displaced: set[str] = set()
    model, before = given.get("model"), remembered.get("model")
    if model is not None and before is not None and model != before:
        displaced.update(OF_A_MODEL)
    if given.get("window") is not None or given.get("budget") is not None:
        displaced.update(("window", "budget"))
    return frozenset(displaced)


def _written(name: str, value: Any) -> Any:
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
                return json.loads(json.dumps(value, default=_dumped))
            except (TypeError, ValueError, RecursionError):
                return None
        case _:
            return value


def _dumped(value: Any) -> Any:
    """Return an SDK's object as its fields."""
    if not hasattr(value, "model_dump"):
        raise TypeError(f"no JSON of {type(value).__name__}")
    return value.model_dump(mode="json", exclude_none=True, by_alias=True)


def _read(name: str, value: Any) -> Any:
    """Return a setting as it was given; None for one that this release does not understand."""
    try:
        match name, value:
            case "budget", dict():
                return msgspec.convert(value, Budget)
            case "goal", dict():
                return msgspec.convert(value, Limit)
            case "policy", _:
                return value if value in policies.names() else None
            case _:
                return value
    except (msgspec.ValidationError, RefoldError):
        return None
