"""`refold serve`: a gateway between agents and their providers, until it is stopped."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from refold._cli import options, show
from refold._cli.gateway_file import KEYS, from_file, in_force, named_file
from refold._cli.options import TokenNumber
from refold._cli.tokens import default_file, file_option
from refold._gateway.observability.logs import LEVELS, LogFormat, start_log
from refold._text.urls import without_secrets

if TYPE_CHECKING:
    from refold._gateway.server.serving import Serving
    from refold._gateway.server.workers import Workers
    from refold._gateway.settings import GatewaySettings
    from refold.config import Settings as Configured

__all__ = ["NAMES", "acting", "command", "gateway_settings", "serving", "started"]

# variables by which clients are told where their provider is: provider, what follows the address
NAMES = {
    "OPENAI_BASE_URL": ("openai", "/v1"),
    "OPENAI_API_BASE": ("openai", "/v1"),
    "ANTHROPIC_BASE_URL": ("anthropic", ""),
    "ANTHROPIC_API_BASE": ("anthropic", ""),
    "GOOGLE_GEMINI_BASE_URL": ("gemini", ""),
    "GEMINI_API_BASE": ("gemini", ""),
}


def acting(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say how a gateway acts, and hand them over as keywords of its settings."""
    gateway_options = (
        click.option("--openai", metavar="URL", help="Base URL for OpenAI's paths: any OpenAI-compatible server."),
        click.option("--anthropic", metavar="URL", help="Base URL for Anthropic's paths."),
        click.option("--gemini", metavar="URL", help="Base URL for Gemini's paths."),
        options.policy_option("by default the configured one (refold)"),
        click.option("--model-policy", "model_policies", multiple=True, metavar="MODEL=POLICY",
                     help="Policy for one model."),
        click.option("--route-policy", "route_policies", multiple=True, metavar="ROUTE=POLICY",
                     help="Policy for a route: /v1/chat/completions, /v1/responses, /v1/messages or /v1beta/models."),
        click.option("--trigger", metavar="SIZE",
                     help="Size that starts a compaction: a share of the input budget (0.7), tokens (60k), or never."),
        click.option("--model-trigger", "model_triggers", multiple=True, metavar="MODEL=SIZE",
                     help="Trigger for one model."),
        click.option("--route-trigger", "route_triggers", multiple=True, metavar="ROUTE=SIZE",
                     help="Trigger for one route."),
        click.option("--native-compaction", metavar="MODE",
                     help="What is done with a provider's own compaction: pass, shadow or emulate; by default pass at "
                          "the provider's own address, else emulate."),
        click.option("--route-native-compaction", "route_native_compactions", multiple=True, metavar="ROUTE=MODE",
                     help="Mode for one route."),
        click.option("--model-native-compaction", "model_native_compactions", multiple=True, metavar="MODEL=MODE",
                     help="Mode for one model."),
        click.option("-w", "--window", type=TokenNumber(), help="Context window of all models in tokens (200k, 1M)."),
        click.option("--model-window", "model_windows", multiple=True, metavar="MODEL=TOKENS",
                     help="Context window of one model."),
        options.store_option("Place of the conversations: a file (the default), a postgresql:// URL, or memory."),
        click.option("--retention", type=click.FloatRange(0), default=30.0, show_default=True, metavar="DAYS",
                     help="Delete a conversation after this many days without use; 0: never."),
        options.summarizer_option,
        options.summarizer_url_option,
        options.keep_secrets_option,
        click.option("--strict", is_flag=True,
                     help="Reject a request whose compaction fails, instead of forwarding it."),
        click.option("--shadow", is_flag=True, help="Plan and report, but change nothing."),
        click.option("--repair", is_flag=True, help="Repair invalid conversations before they are forwarded."),
        click.option("--recall-tool", is_flag=True, help="Offer models a tool that reads content that plans removed."),
        click.option("--timeout", type=click.FloatRange(0.1), default=720.0, show_default=True, metavar="SECONDS",
                     help="Longest time that a provider may be silent."),
        file_option,
        click.option("--require-token", is_flag=True, help="Require a token of clients on this machine too."),
        click.option("--rate", type=click.IntRange(0), default=0, metavar="N",
                     help="Requests a minute for each token; 0: no limit."),
        click.option("--unknown-ids", metavar="WHAT", default="",
                     help="Whether a user or team may name what a provider stores under an id that did not pass here: "
                          "pass or refuse; by default refuse with a key of the gateway, else pass."),
        click.option("--openai-key-file", metavar="FILE", type=options.PATH,
                     help="File with the key for OpenAI's paths."),
        click.option("--anthropic-key-file", metavar="FILE", type=options.PATH,
                     help="File with the key for Anthropic's paths."),
        click.option("--gemini-key-file", metavar="FILE", type=options.PATH,
                     help="File with the key for Gemini's paths."),
        click.option("--connections", type=click.IntRange(0), default=0, metavar="N",
                     help="Maximum number of connections to providers; 0: no limit."),
        click.option("--connect-timeout", type=click.FloatRange(0.1), default=20.0, show_default=True,
                     metavar="SECONDS", help="Longest time to connect to a provider."),
        click.option("--keepalive", type=click.FloatRange(0), default=30.0, show_default=True, metavar="SECONDS",
                     help="How long an idle connection to a provider is kept."),
        click.option("--body-timeout", type=click.FloatRange(0.1), default=60.0, show_default=True,
                     metavar="SECONDS", help="Longest pause within the body of a request."),
        click.option("--upload-timeout", type=click.FloatRange(0.1), default=300.0, show_default=True,
                     metavar="SECONDS", help="Longest time for the whole body of a request."),
        click.option("--head-timeout", type=click.FloatRange(0.1), default=20.0, show_default=True,
                     metavar="SECONDS", help="Longest time for the headers of a request."),
        click.option("--drain-timeout", type=click.FloatRange(0), default=60.0, show_default=True,
                     metavar="SECONDS", help="Time for running requests after SIGTERM or Ctrl-C."),
        click.option("--max-body", type=options.Megabytes(), default=64.0, show_default=True,
                     help="Largest body of a request; a number of megabytes, or with a unit as in 512k or 1G."),
        click.option("--body-memory", type=options.Megabytes(), default=512.0, show_default=True,
                     help="Memory for bodies of requests at a time; when it is full, requests get 503."),
        click.option("--memory", type=options.Megabytes(), default=512.0, show_default=True,
                     help="Memory for conversations; those used least recently leave it first."),
        click.option("--recall-rounds", type=click.IntRange(1), default=3, show_default=True, metavar="N",
                     help="How often the recall tool is answered within one answer."),
        click.option("--recall-tokens", type=TokenNumber(200), default=6_000, show_default=True,
                     help="Largest answer of the recall tool in tokens."),
        click.option("--background/--no-background", default=True, show_default=True,
                     help="Compact in the background while requests still fit, or always before a request."),
    )  # fmt: skip

    @functools.wraps(command)
    def wrapped(**keywords: Any) -> Any:
        acts = {name: keywords.pop(name) for name in names}
        return command(acts=acts, **keywords)

    decorated: Callable[..., Any] = wrapped
    for option in reversed(gateway_options):
        decorated = option(decorated)
    names = [param.name for param in decorated.__click_params__]  # type: ignore[attr-defined]
    return decorated


class _FromFile(click.RichCommand):
    """A command whose options can be set in a file."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse a command line; an error about a value of the file names the file."""
        with named_file(ctx):
            return super().parse_args(ctx, args)


@options.examples("refold serve", "refold serve --openai http://127.0.0.1:11434/v1 --window 32k")
@click.command("serve", cls=_FromFile)
@click.option(
    "--config",
    metavar="FILE",
    type=options.PATH,
    is_eager=True,
    expose_value=False,
    callback=from_file,
    help="Read the options from a TOML file; what is given here overrides it.",
)
@click.option("--check", is_flag=True, help="Check options and store, print what would be in force, and stop.")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="Address to listen on; any other one needs a token.",
)
@options.port_option(8787)
@click.option(
    "--log-level",
    type=click.Choice(LEVELS),
    default="warning",
    show_default=True,
    help="What is logged on standard error: failures, or with `info` each request and compaction; never text.",
)
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="One line an event, as text or as JSON.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    metavar="N",
    help="Processes that serve; they share conversations through the store.",
)
@click.option(
    "--tls-certificate",
    default="",
    metavar="FILE",
    type=options.PATH,
    help="Certificate chain in PEM; clients come by https.",
)
@click.option("--tls-key", default="", metavar="FILE", type=options.PATH, help="Key of the certificate, in PEM.")
@click.option(
    "--public-url",
    default="",
    metavar="URL",
    help="Address of a proxy through which browsers come; with https, the cookie of the page is sent by https alone.",
)
@acting
@click.pass_context
def command(
    context: click.Context, host: str, port: int, check: bool, log_level: str, log_format: LogFormat,
    workers: int, tls_certificate: str, tls_key: str, public_url: str, acts: dict[str, Any],
) -> int:  # fmt: skip
    """Run a gateway: a proxy between agents and their providers.

    It keeps every conversation inside the context window.
    Point each agent at it with its base URL: OPENAI_BASE_URL=http://127.0.0.1:8787/v1,
    ANTHROPIC_BASE_URL=http://127.0.0.1:8787, GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:8787.

    Variables hold secrets: REFOLD_GATEWAY_TOKEN is a token that all clients must send, REFOLD_ADMIN_TOKEN that of an
    administrator, REFOLD_STORE_KEY encrypts the store. REFOLD_OPENAI_KEY, REFOLD_ANTHROPIC_KEY and REFOLD_GEMINI_KEY
    are keys that the gateway sends to providers instead of those of clients, which then need a token (`refold tokens`).
    """
    settings = gateway_settings(
        acts, host=host, port=port, tls_certificate=tls_certificate, tls_key=tls_key, public_url=public_url
    )
    if check:
        _check_files(settings)
        show.table(("option", "*value", "*from"), in_force(context, settings, every=True))
        return 0
    start_log(log_level, log_format)
    gateway: Serving | Workers = (
        serving(settings) if workers == 1 else _several(settings, workers, log_level, log_format)
    )
    for name, value, place in in_force(context, settings, every=False):
        show.note(f"refold: {name} = {value} ({place})")
    click.echo(f"refold: serving on {gateway.url} (Ctrl-C stops)", err=True)
    if not (settings.token or settings.admin_token or Path(settings.tokens).is_file()):
        need = f"the page ({gateway.url}/page), recall and control routes need a token"
        click.echo(f"refold: {need}: refold tokens create --admin", err=True)
    with _clear_errors():
        gateway.run()
    return 0


KEY_FILES = ("openai_key_file", "anthropic_key_file", "gemini_key_file")


def gateway_settings(acts: dict[str, Any], **more: Any) -> GatewaySettings:
    """Return the settings that options, environment and `refold.toml` make."""
    try:
        from refold._gateway.conversations.triggers import trigger
        from refold._gateway.settings import UPSTREAMS, GatewaySettings
    except ImportError as error:
        raise _missing(error) from error
    named = {provider: acts.pop(provider) for provider in UPSTREAMS}
    upstreams = {provider: url or _from_environment(provider) or UPSTREAMS[provider] for provider, url in named.items()}
    _summarizer(acts["summarizer"], acts["summarizer_url"])
    store = acts.pop("store") or _default_store()
    acts |= {name: round(acts[name] * options.MEGABYTE) for name in ("max_body", "body_memory", "memory")}
    files = {provider: acts.pop(name) for provider, name in zip(UPSTREAMS, KEY_FILES, strict=True)}
    keys = {provider: key for provider, file in files.items() if (key := _key(provider, file))}
    tokens = acts.pop("token_file") or default_file()
    more.setdefault("admin_token", os.environ.get("REFOLD_ADMIN_TOKEN", ""))
    days, size, triggers = acts.pop("retention"), acts.pop("trigger"), acts.pop("model_triggers")
    own = _configured(acts)
    windows = {name: _window(name, size) for name, size in map(_pair, acts.pop("model_windows"))}
    return GatewaySettings(
        upstreams=upstreams,
        policy=own.policy,
        policies=dict(map(_pair, acts.pop("model_policies"))),
        route_policies=dict(map(_pair, acts.pop("route_policies"))),
        trigger=own.trigger if size is None else trigger(size),
        triggers={name: trigger(size) for name, size in map(_pair, triggers)},
        route_triggers={name: trigger(size) for name, size in map(_pair, acts.pop("route_triggers"))},
        native_compaction=acts.pop("native_compaction") or "",
        route_native_compaction=dict(map(_pair, acts.pop("route_native_compactions"))),
        model_native_compaction=dict(map(_pair, acts.pop("model_native_compactions"))),
        window=own.window,
        windows=own.windows | windows,
        summarizer=own.summarizer_model or "",
        summarizer_url=own.summarizer_base_url or "",
        summarizer_provider=own.summarizer_provider or "",
        redact=own.redact_secrets,
        store=store,
        retention=days * 86_400,
        token=os.environ.get("REFOLD_GATEWAY_TOKEN", ""),
        tokens=str(Path(tokens).expanduser()),
        upstream_keys=keys,
        store_key=os.environ.get("REFOLD_STORE_KEY", ""),
        **acts,
        **more,
    )


def _configured(acts: dict[str, Any]) -> Configured:
    """Take the options that are settings of every command out, and return these with what is configured."""
    from refold.config import Settings as Configured

    keywords = {"policy": acts.pop("policy"), "window": acts.pop("window"), "summarizer": acts.pop("summarizer")}
    redact = False if acts.pop("keep_secrets") else None
    return Configured.load({**keywords, "summarizer_url": acts.pop("summarizer_url"), "redact_secrets": redact})


def serving(settings: GatewaySettings) -> Serving:
    """Return a gateway on its socket."""
    try:
        from refold._gateway.server.serving import Serving
    except ImportError as error:
        raise _missing(error) from error
    _check_files(settings)  # before it is said that anything is served
    return Serving(settings)


def _several(settings: GatewaySettings, count: int, log_level: str, log_format: LogFormat) -> Workers:
    from refold._gateway.server.workers import Workers

    _check_files(settings)
    return Workers(settings, count, log_level, log_format)


def _check_files(settings: GatewaySettings) -> None:
    from refold._gateway.server.serving import check_certificate
    from refold._gateway.server.tokens import TokenFile
    from refold.errors import UsageError
    from refold.sessions import open_store

    check_certificate(settings)
    tokens = TokenFile(Path(settings.tokens)).in_force()
    if settings.needs_token and not (tokens or settings.token or settings.admin_token):
        raise UsageError(
            f"every client needs a token, and none is in force in {settings.tokens}: "
            "make one with refold tokens create, or name its file with --token-file"
        )
    with _clear_errors():
        open_store(settings.store or "memory").close()


@contextmanager
def started(gateway: Serving) -> Iterator[None]:
    """Run a block beside a gateway."""
    with _clear_errors():
        gateway.start()
    try:
        yield
    finally:
        gateway.stop()


@contextmanager
def _clear_errors() -> Iterator[None]:
    """Say of a gateway that cannot be started where to look."""
    from refold.errors import StoreError, UsageError

    try:
        yield
    except StoreError as error:
        raise UsageError(f"{error}: check --store") from None


def _from_environment(provider: str) -> str:
    """Return where a user's clients already are told to go, which then is upstream."""
    return next((url for name, (whose, _) in NAMES.items() if whose == provider and (url := os.environ.get(name))), "")


def _key(provider: str, file: str | None) -> str:
    """Return the key that the gateway has for a provider: of a file, or of the environment."""
    if file is None:
        return os.environ.get(KEYS[provider], "")
    try:
        key = Path(file).expanduser().read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise click.UsageError(f"--{provider}-key-file {file} cannot be read ({reason}): name a text file") from None
    if not key:
        raise click.UsageError(f"--{provider}-key-file {file}: there is no key in it")
    return key


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not (name and sign and value):
        raise click.UsageError(f"{text!r} is not NAME=VALUE")
    return name, value


def _window(name: str, size: str) -> int:
    try:
        tokens: int = TokenNumber().convert(size, None, None)
    except click.BadParameter as error:
        raise click.UsageError(f"--model-window {name}: {error.message}") from None
    return tokens


def _summarizer(model: str, url: str) -> None:
    """Refuse an address of a summarizer that says nothing: before anything is served, not at the first compaction."""
    if url and not model:
        raise click.UsageError("--summarizer-url says where a model is: name it with --summarizer")
    if url and not url.startswith(("http://", "https://")):
        raise click.UsageError(f"--summarizer-url {without_secrets(url)}: no http or https address")


def _default_store() -> str:
    from platformdirs import user_data_path

    return str(user_data_path("refold", appauthor=False) / "gateway.db")


def _missing(error: ImportError) -> click.UsageError:
    return click.UsageError(f"the gateway needs {error.name}: pip install 'refold[gateway]'")
