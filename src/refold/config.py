"""Settings: from arguments, the environment (`REFOLD_*`), and `refold.toml`, in that order."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_type_hints

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from refold import policies
from refold._text.suggestions import did_you_mean
from refold._text.token_numbers import parse_tokens
from refold.core._decoders import convert
from refold.core._json import is_whole
from refold.core.budget import Exactly, Never, Share
from refold.core.policy import Policy, When
from refold.errors import UsageError
from refold.models import _catalog as catalog
from refold.models._tool_output import MAX_BYTES, MAX_LINES, Output, truncate_output
from refold.stages.clear import Clear
from refold.stages.deduplicate import DeduplicateReads
from refold.stages.keep_pins import keeping_pins
from refold.stages.selectors import KeepRatio
from refold.stages.slide import Slide
from refold.stages.summarize import Summarize
from refold.stages.supersede import Supersede

if TYPE_CHECKING:
    from collections.abc import Callable

    from refold.core.budget import Budget, Limit
    from refold.core.policy import Step

__all__ = ["ALIASES", "FILE", "NAMED_BY", "Settings", "names", "variable"]

FILE = "refold.toml"
REACH = frozenset(
    {"base_url", "summarizer_url", "summarizer_provider", "store"}
)  # where keys and conversations are sent
NAMED_BY = "REFOLD_CONFIG"  # the variable that names another file
BELOW = 0.75  # of a trigger that was lowered: where compaction stops, if the policy's own goal lies above
WARNED_AT = 0.5  # of the threshold, V13
SHARES = frozenset({"threshold", "file_read_budget_percent", "keep_recent_ratio", "truncation_fraction"})
DEFAULT, ARGUMENT = "default", "argument"
TRUE, FALSE = frozenset({"true", "1", "yes", "on"}), frozenset({"false", "0", "no", "off"})

# Variables of NeuroLink, read after our own.
ALIASES = {
    "NEUROLINK_MEMORY_ENABLED": "memory_enabled",
    "NEUROLINK_MEMORY_MAX_SESSIONS": "memory_max_sessions",
    "NEUROLINK_TOKEN_THRESHOLD": "auto_compact_threshold",
    "NEUROLINK_SUMMARIZATION_ENABLED": "enable_summarization",
    "NEUROLINK_SUMMARIZATION_PROVIDER": "summarizer_provider",
    "NEUROLINK_SUMMARIZATION_MODEL": "summarizer",
}


class Settings(Struct, frozen=True, kw_only=True):  # N17, V13
    """What is set; `sources` says of each setting where it comes from.

    A default of `threshold` and `auto_compact_threshold` is what the systems they come from have; the
    policy's own trigger stays unless one of them is set.
    """

    policy: str = "refold"
    model: str | None = None
    provider: str | None = None  # N19
    base_url: str | None = None
    window: int | None = None
    windows: dict[str, int] = {}
    deployments: dict[str, str] = {}
    store: str | None = None
    memory_enabled: bool = True  # N17
    memory_max_sessions: int = 50
    summarizer: str | None = None
    summarizer_provider: str | None = None
    summarizer_url: str | None = None
    enable_summarization: bool = True
    redact_secrets: bool = True
    keep_pins: bool = False
    enabled: bool = True  # N17, down to file_read_budget_percent
    threshold: float = 0.80
    enable_pruning: bool = True
    enable_deduplication: bool = True
    enable_sliding_window: bool = True
    prune_protect_tokens: int = 40_000  # N19, down to truncation_fraction
    prune_minimum_savings: int = 20_000
    prune_protected_tools: tuple[str, ...] = ("skill",)
    keep_recent_ratio: float = 0.30
    truncation_fraction: float = 0.50
    max_tool_output_bytes: int = MAX_BYTES
    max_tool_output_lines: int = MAX_LINES
    file_read_budget_percent: float = 0.60
    auto_compact_threshold: int = 200_000  # V13
    context_warnings: bool = False  # V13
    daily_log: bool = False  # W16; what `refold chat` writes and offers besides, down to subagents
    snapshots: bool = False  # W17
    decisions: bool = False  # W17
    task_files: bool = False  # W11
    subagents: bool = False  # L09
    sources: dict[str, str] = {}

    @classmethod
    def load(
        cls,
        arguments: Mapping[str, Any] | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        file: str | Path | None = None,
    ) -> Settings:
        """Return the settings in force: an argument wins over the environment, the environment over the file.

        `arguments` of None are not given. `file` is a path that must exist; without it the one that `REFOLD_CONFIG`
        names, or `refold.toml` in the working folder where there is one.

        Raises:
            UsageError: a setting there is none of, or a value that cannot be, with its place and the remedy.
        """
        space = os.environ if environ is None else environ
        merged: dict[str, tuple[Any, str]] = {}
        for values in (
            _of_file(_path(file, space), named=bool(file or space.get(NAMED_BY))),
            _of_environment(space),
            _of_arguments(arguments or {}),
        ):
            merged |= values
        checked = {name: _checked(name, value, place) for name, (value, place) in merged.items()}
        sources = {name: merged[name][1] if name in merged else DEFAULT for name in names()}
        return cls(**checked, sources=sources)

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> Settings:
        """Return the settings that these arguments alone are, without environment and file.

        Raises:
            UsageError: as `load`.
        """
        named = _of_arguments(arguments)
        checked = {name: _checked(name, value, place) for name, (value, place) in named.items()}
        return cls(**checked, sources={name: named[name][1] if name in named else DEFAULT for name in names()})

    def is_set(self, name: str) -> bool:
        """Tell whether a setting was given, and is not the default."""
        return self.sources.get(name, DEFAULT) != DEFAULT or getattr(self, name) != _DEFAULTS[name]

    def chosen(self) -> Policy:
        """Return the policy that is named, with the settings applied."""
        return self.apply_to(policies.find(self.policy))

    def apply_to(self, policy: Policy) -> Policy:
        """Return a policy as these settings have it: its trigger, and without the steps that are switched off."""
        steps = tuple(map(self._adjusted, filter(self._keeps, policy.steps)))
        trigger, goal = self.trigger or policy.trigger, policy.goal
        if trigger is not policy.trigger:
            goal = _below(trigger, goal, self.window_of().window if self._sized else None)
        after = self.apply_to(policy.after_overflow) if policy.after_overflow is not None else None
        changed = {"steps": steps, "trigger": trigger, "goal": goal, "after_overflow": after}
        if any(changed[name] != getattr(policy, name) for name in changed):
            policy = replace(policy, **changed)
        return keeping_pins(policy) if self.keep_pins else policy

    def arguments(self) -> dict[str, Any]:
        """Return what `refold.compact` and `refold.plan` are to be given: policy, model and window."""
        values: dict[str, Any] = {"policy": self.chosen()}
        if self.model is not None:
            values["model"] = self.deployments.get(self.model, self.model)
        if self.provider is not None:
            values["provider"] = self.provider
        if self._sized and not self._tabled(values["policy"]):
            values["window"] = self.window_of().window
        return values

    def window_of(self, model: str | None = None) -> catalog.Window:
        """Return the window of a model: the one that is set, the row of `windows`, or what the tables know."""
        name = model or self.model
        return catalog.window(
            name, self.provider, override=self.window or self.windows or None, deployments=self.deployments
        )

    def tool_output(self, text: str, save: Callable[[str], str] | None = None) -> Output:  # N14
        """Return an output of a tool cut to the bytes and lines that are set."""
        return truncate_output(text, self.max_tool_output_bytes, self.max_tool_output_lines, save=save)

    def file_budget(self, window: int, used: int, max_output: int = 0) -> int:  # N15
        """Return the tokens for files: the share that is set of what the window has left."""
        return max(0, window - used - max_output) * round(self.file_read_budget_percent * 10_000) // 10_000

    def warns_at(self, policy: Policy, budget: Budget) -> int | None:  # V13
        """Return the tokens from which a warning is due; None where warnings are off.

        That is half of what starts a compaction: the trigger, or the input budget where that is smaller.
        """
        off = not self.context_warnings or isinstance(policy.trigger, Never)
        return None if off else int(min(policy.trigger.tokens(budget), budget.input) * WARNED_AT)

    @property
    def summarizer_model(self) -> str | None:
        """The model that writes summaries; None where none is named or summaries are off."""
        return self.summarizer if self.enable_summarization else None

    @property
    def summarizer_base_url(self) -> str | None:
        """The URL of that model: its own; else that of the provider that is named for it, else the model's."""
        return self.summarizer_url or (None if self.summarizer_provider else self.base_url)

    @property
    def _sized(self) -> bool:
        return self.window is not None or (self.model is not None and not self.window_of().assumed)

    def _tabled(self, policy: Policy) -> bool:
        """Tell whether the policy's own table has the window, and no other is set."""
        if self.model is None or self.window_of().source == "override":
            return False
        model = self.deployments.get(self.model, self.model)
        return catalog.table_budget(policy.reserve, model, provider=self.provider) is not None

    def _keeps(self, step: Step) -> bool:
        stage = step.stage
        off = (
            (not self.enabled and step.when is When.EVERY_CALL)
            or (not self.enable_pruning and isinstance(stage, Clear))
            or (not self.enable_deduplication and isinstance(stage, DeduplicateReads | Supersede))
            or (not self.enable_sliding_window and isinstance(stage, Slide) and step.when is not When.OVER_BUDGET)
        )
        return not off

    def _adjusted(self, step: Step) -> Step:
        """Return a step with the figures that are set: what is protected, kept and cut."""
        match step.stage:
            case Clear() as clear:
                changed = self._values(
                    protect="prune_protect_tokens", saving="prune_minimum_savings", never="prune_protected_tools"
                )
                if "never" in changed:
                    changed["never"] = frozenset(changed["never"])
                return replace(step, stage=replace(clear, **changed)) if changed else step
            case Slide(share=share) as slide if share:
                changed = self._values(share="truncation_fraction")
                return replace(step, stage=replace(slide, **changed)) if changed else step
            case Summarize(cut=KeepRatio() as cut) as summarize:
                changed = self._values(ratio="keep_recent_ratio")
                return replace(step, stage=replace(summarize, cut=replace(cut, **changed))) if changed else step
            case _:
                return step

    def _values(self, **names: str) -> dict[str, Any]:
        """Return the settings that are given, by the options of a stage that they are for."""
        return {option: getattr(self, name) for option, name in names.items() if self.is_set(name)}

    @property
    def trigger(self) -> Limit | None:
        """The trigger that is set; None where the policy's own holds.

        Raises:
            UsageError: a share and a number of tokens in one place.
        """
        if not self.enabled:
            return Never()
        share, tokens = self.is_set("threshold"), self.is_set("auto_compact_threshold")
        if share and tokens:
            by_share, by_tokens = (self.sources.get(name, ARGUMENT) for name in ("threshold", "auto_compact_threshold"))
            if _rank(by_share) == _rank(by_tokens):
                raise UsageError(
                    f"threshold ({by_share}) and auto_compact_threshold ({by_tokens}) both set the trigger: give one"
                )
            share = _rank(by_share) > _rank(by_tokens)
            tokens = not share
        if tokens:
            return policies.threshold(self.auto_compact_threshold)
        return Share(self.threshold, inclusive=True) if share else None


_DEFAULTS: dict[str, Any] = {name: getattr(Settings(), name) for name in Settings.__struct_fields__}


def names() -> tuple[str, ...]:
    """Return the names of all settings."""
    return tuple(name for name in Settings.__struct_fields__ if name != "sources")


def variable(name: str) -> str:
    """Return the variable of the environment that sets a setting."""
    return f"REFOLD_{name.upper()}"


def _below(trigger: Limit, goal: Limit, window: int | None) -> Limit:
    """Return a goal under the trigger, for a compaction that stops above it would be due again at once."""
    match trigger, goal:
        case Share(share=share), Share() if goal.share >= share and not goal.of_window:
            return Share(share * BELOW)
        case Share(share=share), Share(min_message_share=least) if least:
            return replace(goal, cap=min(goal.cap, share * BELOW))
        case Exactly(count=count), Share() if window is not None and count <= window * goal.share:
            return Exactly(int(count * BELOW))
        case Exactly(count=count), Exactly() if goal.count >= count:
            return Exactly(int(count * BELOW))
        case _:
            return goal


def _rank(source: str) -> int:
    return 2 if source == ARGUMENT else 1 if source.startswith("environment") else 0


def _path(file: str | Path | None, space: Mapping[str, str]) -> Path | None:
    named = file or space.get(NAMED_BY)
    if named is None:
        return Path(FILE) if Path(FILE).is_file() else None
    if not Path(named).is_file():
        by = "" if file else f" ({NAMED_BY})"
        raise UsageError(f"there is no file {named}{by}: name a TOML file of settings")
    return Path(named)


def _of_file(path: Path | None, *, named: bool) -> dict[str, tuple[Any, str]]:
    if path is None:
        return {}
    try:
        parsed = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is no TOML: {error}") from None
    if not named:
        _refuse_reach(parsed)
    return {_known(key, str(path)): (value, f"{path}: {key}") for key, value in parsed.items()}


def _refuse_reach(parsed: Mapping[str, object]) -> None:
    """Refuse what a file that merely lies in the working folder must not decide: code that runs, where keys are sent.

    Such a file may have come with somebody else's project; a file that is named by its path is the user's own word.
    """
    for key, value in parsed.items():
        name = _known(key, FILE)
        if name in REACH or (name == "policy" and str(value).endswith(".py")):
            raise UsageError(
                f"{FILE}: {key} is not taken from a file that lies in the working folder: set {variable(name)}, "
                f"give it on the command line, or name the file in {NAMED_BY}"
            )


def _of_environment(space: Mapping[str, str]) -> dict[str, tuple[Any, str]]:
    aliases = {field: (space[name], f"environment {name}") for name, field in ALIASES.items() if space.get(name)}
    ours = {
        name: (space[variable(name)], f"environment {variable(name)}") for name in names() if space.get(variable(name))
    }
    return aliases | ours


def _of_arguments(arguments: Mapping[str, object]) -> dict[str, tuple[Any, str]]:
    return {_known(name, ARGUMENT): (value, ARGUMENT) for name, value in arguments.items() if value is not None}


def _known(key: str, place: str) -> str:
    """Return the name of a setting, written in any of three ways: max_lines, max-lines, maxLines."""
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key).replace("-", "_").lower()
    if name not in names():
        raise UsageError(f"{place}: there is no setting {key!r}{did_you_mean(name, names())}")
    return name


def _checked(name: str, value: object, place: str) -> Any:
    """Return a value in the type of its setting and within its bounds."""
    kind = get_type_hints(Settings)[name]
    try:
        parsed = _converted(kind, value)
    except (ValueError, TypeError, msgspec.MsgspecError):
        raise _wrong(name, value, place) from None
    bad = (
        (name in SHARES and not 0 < parsed <= 1)
        or (name in {"prune_protect_tokens", "prune_minimum_savings"} and parsed < 0)
        or (name in {"max_tool_output_bytes", "max_tool_output_lines", "memory_max_sessions"} and parsed < 1)
        or (name == "window" and not 0 < parsed <= catalog.LARGEST)
        or (name == "windows" and not all(0 < size <= catalog.LARGEST for size in parsed.values()))
    )
    if bad:
        raise _wrong(name, value, place)
    return parsed


def _converted(kind: object, value: object) -> Any:
    """Return a value of a file as it is, a text of the environment as what it says."""
    if kind is bool:
        return _truth(value)
    if isinstance(value, str) and kind in (int, int | None):
        return _tokens(value)
    if isinstance(value, str) and kind is float:
        return float(value.rstrip("%")) / (100 if value.endswith("%") else 1)
    if isinstance(value, str) and kind not in (str, str | None):
        value = msgspec.json.decode(value)
    if kind is float and is_whole(value):
        return float(value)
    return convert(value, kind)


def _truth(value: object) -> bool:
    word = str(value).strip().lower()
    if word not in TRUE | FALSE:
        raise ValueError(value)
    return word in TRUE


def _tokens(text: str) -> int:
    parsed = parse_tokens(text)
    if parsed is None:
        raise ValueError(text)
    return parsed


REMEDIES: dict[str, str] = {
    "threshold": "give a share above 0 and up to 1, as in 0.8",
    "file_read_budget_percent": "give a share above 0 and up to 1, as in 0.6",
    "keep_recent_ratio": "give a share above 0 and up to 1, as in 0.3",
    "truncation_fraction": "give a share above 0 and up to 1, as in 0.5",
    "prune_protected_tools": 'give a list of names of tools, as in ["skill"]',
    "windows": 'give a table of models and tokens, as in {"my-model" = 32000}',
    "deployments": 'give a table of deployments and models, as in {"prod" = "gpt-4o"}',
}
BY_KIND: dict[Literal["bool", "int", "text"], str] = {
    "bool": "give true or false",
    "int": "give a whole number, as in 200000 or 200k",
    "text": "give a text",
}


def _wrong(name: str, value: object, place: str) -> UsageError:
    kind = get_type_hints(Settings)[name]
    by_kind = BY_KIND["bool" if kind is bool else "int" if kind in (int, int | None) else "text"]
    where = place if place != ARGUMENT else f"argument {name}"
    return UsageError(f"{where} = {value!r} is not valid: {REMEDIES.get(name, by_kind)}")
