"""`refold page`: conversations in a browser, over a store."""

from __future__ import annotations

import os
import secrets
import socket
import sys
import threading
import webbrowser

import rich_click as click

from refold._cli import options
from refold._cli.sessions import stored_sessions

HOST = "127.0.0.1"


@options.examples("refold page", "refold page --store gateway.db")
@click.command("page")
@stored_sessions.option
@options.port_option(8788)
@click.option("--browser/--no-browser", default=True, help="Open the page in a browser, where there is a screen.")
def command(store: str | None, port: int, browser: bool) -> None:
    """Show the conversations of a store in a browser.

    Each has its compactions with their reasons, what they cost and save, and the originals.

    The page is on this machine alone, and opens with the token in the address that is printed. REFOLD_STORE_KEY opens
    a store that a gateway has encrypted.
    """
    from refold.errors import UsageError

    try:
        import uvicorn

        from refold._page.access import StartToken
        from refold._page.app import load, page_app
        from refold._page.conversations import Conversations
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("uvicorn", "starlette", "jinja2", "markupsafe"):
            raise
        raise UsageError(f"the page needs {error.name}: pip install 'refold[gateway]'") from None
    with stored_sessions.opened_store(store) as place:
        access = StartToken()
        conversations = Conversations(place, stored_sessions.opener(place), stopping=lambda: server.should_exit)
        app = page_app(conversations, access, secrets.token_bytes(32))
        listener = _listener(port)
        url = f"http://{HOST}:{listener.getsockname()[1]}/?token="
        if place.name == "memory":
            click.echo("refold: no session is stored yet: the page is empty until it is started again", err=True)
        click.echo(f"refold: the page of {place.name} is at {url}{access.token} (Ctrl-C stops)", err=True)
        threading.Thread(target=load, daemon=True).start()  # while the browser opens
        if browser and _has_screen():
            webbrowser.open(url + access.once())
        config = uvicorn.Config(
            app, log_config=None, access_log=False, lifespan="off", server_header=False, proxy_headers=False,
            timeout_graceful_shutdown=2,
        )  # fmt: skip
        server = uvicorn.Server(config)
        server.run(sockets=[listener])


def _listener(port: int) -> socket.socket:
    from refold.errors import UsageError

    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        raise UsageError(f"port {port} of {HOST} cannot be used ({error.strerror}): name another with --port") from None


def _has_screen() -> bool:
    """Tell whether a browser has somewhere to open; one in the terminal would take this one."""
    graphical = sys.platform in ("win32", "darwin") or bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
    return graphical and sys.stderr.isatty()
