"""Judges whole request bodies by the providers' official SDK types and documented rules.

Theory of operation. Each format has a module with one function `problems`. It first compares the body with the request
types of the provider's official SDK (`shapes`; for Bedrock botocore's own validator). Then it applies the documented
rules that types cannot express (pairs of calls and results, ids, signatures, order), each only to values of the right
shape. A problem names its rule, the refusal in the provider's words, the path of the value and the source of the rule.

The judge shares no code with `refold._rules`, so that tests can compare the two.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from refold._text.suggestions import did_you_mean
from refold.core._json import string_of
from refold.errors import UnknownFormat, UsageError
from refold.testing.judge._problem import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Problem", "installed", "problems"]

# The module of a format, and the package that its types come from.
_MODULES = {
    "anthropic": ("anthropic", "anthropic"),
    "bedrock": ("bedrock", "botocore"),
    "gemini": ("gemini", "google.genai"),
    "openai-chat": ("openai_chat", "openai"),
    "openai-responses": ("openai_responses", "openai"),
}


def installed(format: str) -> bool:
    """Tell whether the SDK that the judge of a format needs is installed."""
    try:
        return find_spec(_MODULES[format][1]) is not None
    except ModuleNotFoundError:  # the parent of a namespace package
        return False


def problems(
    format: str, body: Mapping[str, object], *, model: str | None = None, headers: Mapping[str, str] | None = None
) -> tuple[Problem, ...]:
    """Return every reason why the provider would refuse a whole request body; nothing where it would accept it.

    `format` is the name of a format. `model` stands in for a body that names none (Gemini); some rules depend on the
    model's version, and where it is unknown the mildest applies. `headers` are those of the request (beta headers).

    Raises:
        UnknownFormat: there is no such format.
        UsageError: the provider's SDK is not installed; the message names the extra.
    """
    if format not in _MODULES:
        raise UnknownFormat(
            f"there is no format {format!r}{did_you_mean(format, _MODULES)}; use one of {', '.join(_MODULES)}"
        )
    named = model or body.get("model") or body.get("modelId") or ""
    try:
        judge = import_module(f"refold.testing.judge._{_MODULES[format][0]}").problems
        return tuple(judge(body, string_of(named), headers or {}))
    except ImportError as error:
        raise UsageError(
            f"the judge of {format} needs {error.name}: pip install 'refold[testing]', or pass strict=False"
        ) from error
