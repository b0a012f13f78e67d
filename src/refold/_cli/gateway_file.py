"""`gateway.toml`: the options of `refold serve` in a file, which options on the command line override.

Click knows defaults that come from elsewhere (`default_map`), and checks them like what is typed; this module turns a
file into such defaults, names the file where a value is wrong, and tells of each option where its value comes from.
"""

from __future__ import annotations

import tomllib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click
from click.core import ParameterSource

from refold._text.suggestions import did_you_mean
from refold._text.urls import without_query_secrets, without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from refold._gateway.settings import GatewaySettings

__all__ = ["KEYS", "SECRETS", "from_file", "in_force", "named_file"]

# tables of the file, and by their keys the options that take NAME=VALUE
TABLES = {
    "models": {
        "policy": "model_policies",
        "trigger": "model_triggers",
        "window": "model_windows",
        "native_compaction": "model_native_compactions",
    },
    "routes": {
        "policy": "route_policies",
        "trigger": "route_triggers",
        "native_compaction": "route_native_compactions",
    },
}
UPSTREAMS = ("openai", "anthropic", "gemini")
KEYS = {name: f"REFOLD_{name.upper()}_KEY" for name in UPSTREAMS}  # variables that hold keys for providers
SECRETS = {  # names of variables
    "token": "REFOLD_GATEWAY_TOKEN",
    "admin_token": "REFOLD_ADMIN_TOKEN",
    "store_key": "REFOLD_STORE_KEY",
}
OWN = frozenset({"config", "check", "help"})  # options about the file itself
FILE = "refold.gateway_file"  # under which a command's context knows the path of the file
FOR_ALL = frozenset({*UPSTREAMS, "host", "port", "policy", "store"})  # what is said at every start


def from_file(context: click.Context, _option: click.Parameter, path: str | None) -> None:
    """Take the values of a file as defaults of a command's other options: the callback of `--config`.

    Raises:
        UsageError: it cannot be read, is no TOML, or has a key that is no option.
    """
    if path is None:
        return
    try:
        parsed = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise click.UsageError(f"{path}: {error.strerror or error}: name a file that can be read") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{path} is no TOML: {error}") from None
    context.default_map = _defaults(parsed, path, context.command.params)
    context.meta[FILE] = path


@contextmanager
def named_file(context: click.Context) -> Iterator[None]:
    """Name the file in an error about a value that came from it."""
    try:
        yield
    except click.BadParameter as error:
        name = error.param.name if error.param is not None else None
        if name is None or context.get_parameter_source(name) is not ParameterSource.DEFAULT_MAP:
            raise
        raise click.UsageError(f"{context.meta[FILE]}: {name}: {error.message}", context) from None


def in_force(context: click.Context, settings: GatewaySettings, *, every: bool) -> list[tuple[str, str, str]]:
    """Return the options of a command that runs with their values and where these come from, without a secret.

    Unless `every` is asked for, they are what matters to all (where requests go, the policy, the store) and what was
    set.
    """
    effective: dict[str, object] = {
        **{name: without_secrets(url) for name, url in settings.upstreams.items()},
        "policy": settings.policy,
        "window": settings.window,
        "store": _without_password(settings.store or "memory"),
        "summarizer": settings.summarizer,
        "summarizer_url": without_secrets(settings.summarizer_url),
    }
    places: dict[ParameterSource | None, str] = {
        ParameterSource.COMMANDLINE: "command line",
        ParameterSource.DEFAULT_MAP: context.meta.get(FILE, ""),
    }
    rows: list[tuple[str, str, str]] = []
    for option in context.command.params:
        name = option.name or ""
        if name in OWN:
            continue
        place = places.get(context.get_parameter_source(name), "default")
        if every or name in FOR_ALL or place != "default":
            value = effective.get(name, context.params[name])
            rows.append((max(option.opts, key=len).removeprefix("--"), _as_text(value), place))
    secrets = {"token": settings.token, "admin_token": settings.admin_token, "store_key": settings.store_key}
    rows += [(SECRETS[name], "set" if value else "not set", "environment") for name, value in secrets.items()]
    rows += [(f"key for {provider}", "set", "file or environment") for provider in settings.upstream_keys]
    return rows


def _without_password(place: str) -> str:
    if "://" not in place:
        return place
    from sqlalchemy.engine import make_url

    return without_query_secrets(make_url(place).render_as_string(hide_password=True))


def _as_text(value: object) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case None | "" | ():
            return "not set"
        case tuple():
            return ", ".join(map(str, value))
        case float():
            return f"{value:g}"
        case _:
            return str(value)


def _defaults(parsed: Mapping[str, Any], path: str, params: list[click.Parameter]) -> dict[str, Any]:
    options = {param.name: param for param in params if param.name and param.name not in OWN}
    defaults: dict[str, Any] = {}
    plain = [name for name, option in options.items() if not option.multiple and name not in UPSTREAMS]
    for key, value in parsed.items():
        if key == "upstreams":
            defaults |= _upstreams(value, path)
        elif key in TABLES:
            defaults |= _pairs(key, value, path)
        elif key in SECRETS:
            raise click.UsageError(f"{path}: {key} is a secret: set {SECRETS[key]} in the environment instead")
        elif key not in plain:
            known = [*plain, *TABLES, "upstreams"]
            raise click.UsageError(f"{path}: there is no setting {key!r}{did_you_mean(key, known)}")
        elif isinstance(value, dict | list):
            raise click.UsageError(f"{path}: {key} takes one value, not a {_kind(value)}")
        else:
            defaults[key] = value if isinstance(value, bool) else str(value)
    return defaults


def _upstreams(table: Any, path: str) -> dict[str, str]:
    for name, url in _table("upstreams", table, path).items():
        if name not in UPSTREAMS:
            raise click.UsageError(f"{path}: upstreams: there is no provider {name!r}{did_you_mean(name, UPSTREAMS)}")
        if not isinstance(url, str):
            raise click.UsageError(f"{path}: upstreams.{name} takes an address as text")
    return dict(table)


def _pairs(key: str, table: Any, path: str) -> dict[str, list[str]]:
    """Return a table of tables as options that take NAME=VALUE."""
    pairs: dict[str, list[str]] = {}
    for name, settings in _table(key, table, path).items():
        for setting, value in _table(f"{key}.{name}", settings, path).items():
            if setting not in TABLES[key]:
                raise click.UsageError(
                    f"{path}: {key}.{name}: there is no setting {setting!r}{did_you_mean(setting, TABLES[key])}"
                )
            pairs.setdefault(TABLES[key][setting], []).append(f"{name}={value}")
    return pairs


def _table(key: str, value: Any, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise click.UsageError(f"{path}: {key} is a table: write [{key}]")
    return value


def _kind(value: object) -> str:
    return "table" if isinstance(value, dict) else "list"
