"""Opens the page in Chromium and looks at it as its users do: by eye, by keyboard, by a screen reader's rules.

    make try-page                            # looks at every view; the exit code is 1 if something is wrong
    make page-pictures                       # writes the pictures of docs/page.md

It needs Chromium (`--chromium PATH`) and npm, from whose registry it takes axe-core. Every view is opened at 320, 800
and 1400 pixels, light and dark: no error in the console, nothing wider than the screen, no serious fault by axe. Then
the page is used by keyboard alone, without scripts, and beside an agent that works through a gateway.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from base64 import b64decode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from playwright.sync_api import Browser, Page, sync_playwright

from refold._gateway.server.serving import Serving
from refold._gateway.settings import GatewaySettings
from refold.core.budget import Share
from refold.testing.provider import ScriptedProvider
from tools.page_store import fill

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
AXE = "axe-core@4.14.1"
ARGUMENTS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
VIEWS = {
    "list": "/",
    "conversation": "/c/orderdesk",
    "messages": "/c/orderdesk?from=40#messages",
    "originals": "/c/orderdesk?show=originals&from=200#messages",
    "compare": "/c/mailbox/compare",
    "tokens": "/c/orderdesk/tokens",
    "must-hold": "/c/orderdesk/must-hold",
    "search": "/search?q=invoice",
    "compact": "/c/orderdesk/compact?preview=1",
    "question": "/c/orderdesk/policy?policy=opal",
    "reports": "/reports?id=orderdesk",
}
PICTURED = ("list", "conversation", "messages", "compare", "tokens", "must-hold", "compact")
WIDTHS, SCHEMES = (320, 800, 1400), ("light", "dark")
HEIGHTS = {"list": 460, "compare": 980}
QUALITY = 75  # of the pictures, which then take about 40 kB each
START = 1_790_000_000.0
# pictures of one store are the same whenever they are taken
SAME_TIME = """document.querySelectorAll("time").forEach((time) => {
  if (/ago|now/.test(time.textContent)) time.textContent = "today";
})"""
TOKEN = "the token of an administrator"  # noqa: S105 - of a gateway that lives as long as this program


class Faults:
    """What is wrong, printed as it is found."""

    def __init__(self) -> None:
        self.count = 0

    def check(self, right: object, what: str) -> None:
        """Note that something is wrong, unless it is right."""
        if not right:
            self.count += 1
            print(f"WRONG: {what}")


def main() -> int:
    """Look at the page, or take its pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", action="store_true")
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    parser.add_argument("--keep", metavar="FOLDER", help="write a picture of every view at every width there")
    wanted = parser.parse_args()
    faults = Faults()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        store = Path(folder) / "page.db"
        fill(store, START if wanted.pictures else time.time() - 4 * 3600)
        browser = playwright.chromium.launch(executable_path=wanted.chromium, args=ARGUMENTS)
        with served(store) as (base, token):
            if wanted.pictures:
                take_pictures(browser, base, token)
                return 0
            axe = axe_core(Path(folder))
            look(browser, base, token, axe, faults, wanted.keep)
            by_keyboard(browser, base, token, faults)
            without_scripts(browser, base, token, faults)
        beside_an_agent(browser, folder, faults)
        acts_by_keyboard(browser, folder, faults)
        browser.close()
    print(f"{faults.count} faults")
    return 1 if faults.count else 0


@contextmanager
def served(store: Path) -> Iterator[tuple[str, str]]:
    """Run `refold page` over a store; yield its address and its token."""
    command = [sys.executable, "-m", "refold", "page", "--store", str(store), "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stderr is not None
        printed = process.stderr.readline()
        found = re.search(r"(http://[\d.:]+)/\?token=([\w-]+)", printed)
        assert found, printed
        try:
            yield found[1], found[2]
        finally:
            process.terminate()


def axe_core(folder: Path) -> str:
    """Return the script of axe-core."""
    packed = subprocess.run(["npm", "pack", "-s", AXE], cwd=folder, check=True, capture_output=True, text=True)  # noqa: S607
    name = "package/axe.min.js"
    subprocess.run(["tar", "xzf", packed.stdout.strip(), name], cwd=folder, check=True)  # noqa: S607
    return (folder / name).read_text()


def opened(browser: Browser, base: str, token: str, width: int, scheme: Any, **more: Any) -> tuple[Page, list[str]]:
    """Return a signed-in page, and the list of what its console says."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, **more)
    page, said = context.new_page(), list[str]()
    page.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(f"{base}/?token={token}")
    return page, said


def look(browser: Browser, base: str, token: str, axe: str, faults: Faults, keep: str | None) -> None:
    """Open every view at every width in both schemes."""
    for scheme in SCHEMES:
        for width in WIDTHS:
            page, said = opened(browser, base, token, width, scheme)
            for name, path in VIEWS.items():
                page.goto(base + path)
                page.wait_for_timeout(600)
                where = f"{name}, {width} px, {scheme}"
                faults.check(not said, f"{where}: the console says {said}")
                said.clear()
                wide = page.evaluate("document.documentElement.scrollWidth")
                faults.check(wide <= width, f"{where}: {wide} px wide")
                if keep:
                    page.screenshot(path=f"{keep}/{name}-{width}-{scheme}.png")
                if width != 800:
                    for fault in violations(page, axe):
                        faults.check(False, f"{where}: axe: {fault}")
            page.context.close()


def violations(page: Page, axe: str) -> list[str]:
    """Return the serious faults that axe finds; it runs beside the page, whose policy lets no other script in."""
    page.evaluate(axe)
    found = page.evaluate("axe.run()")["violations"]
    serious = [(each, each["nodes"][0]) for each in found if each["impact"] in ("serious", "critical")]
    return [f"{each['id']}: {node['html'][:160]} {node['failureSummary'][:300]}" for each, node in serious]


def by_keyboard(browser: Browser, base: str, token: str, faults: Faults) -> None:
    """Go from the list to an original with Tab and Enter."""
    page, _ = opened(browser, base, token, 1400, "light")
    page.keyboard.press("Tab")
    faults.check(page.evaluate("document.activeElement.className") == "skip", "Tab does not begin at the skip link")
    follow(page, "/c/orderdesk", faults)
    faults.check(page.url.endswith("/c/orderdesk"), "a conversation cannot be opened by keyboard")
    page.goto(f"{base}/c/orderdesk?from=40")
    follow(page, "/m/b2:", faults)
    faults.check("/m/b2:" in page.url, "an original cannot be opened by keyboard")
    page.context.close()


def follow(page: Page, part: str, faults: Faults) -> None:
    """Press Tab until the focus is on a link whose address contains a text, and then Enter."""
    for _ in range(200):
        page.keyboard.press("Tab")
        if part in page.evaluate("document.activeElement.getAttribute('href') || ''"):
            outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            faults.check(outline != "none", f"the focus on {part} cannot be seen")
            with page.expect_navigation():
                page.keyboard.press("Enter")
            return


def without_scripts(browser: Browser, base: str, token: str, faults: Faults) -> None:
    """Read everything with scripts switched off."""
    page, _ = opened(browser, base, token, 800, "light", java_script_enabled=False)
    faults.check(page.get_by_role("link", name="orderdesk").count(), "without scripts there is no list")
    page.goto(f"{base}/c/orderdesk")
    page.get_by_text("The same as a table").click()
    faults.check(
        page.get_by_role("cell", name="after the compaction").first.is_visible(), "no table stands for the plot"
    )
    page.get_by_role("link", name="Two points in time").click()
    page.get_by_role("button", name="Compare").click()
    faults.check("compare?a=" in page.url, "without scripts two points cannot be chosen")
    page.context.close()


def beside_an_agent(browser: Browser, folder: str, faults: Faults) -> None:
    """Watch the list of a gateway's page while an agent sends requests through it."""
    with ScriptedProvider() as provider:
        settings = GatewaySettings(
            upstreams={"openai": provider.openai_url}, port=0, admin_token=TOKEN, store=f"{folder}/gateway.db"
        )
        with Serving(settings) as serving:
            page, said = opened(browser, f"{serving.url}/page", TOKEN, 1400, "light")
            empty = page.get_by_text("There is no conversation yet")
            faults.check(empty.is_visible(), "the list is not empty at first")
            ask(serving.url, 1)
            page.wait_for_selector("text=Read all files", timeout=10_000)
            context = page.locator("td[data-name=Context]")
            before = context.inner_text()
            ask(serving.url, 12)
            ends = time.monotonic() + 20
            while context.inner_text() == before and time.monotonic() < ends:
                page.wait_for_timeout(200)
            faults.check(context.inner_text() != before, "the list does not follow an agent")
            faults.check(not said, f"beside an agent the console says {said}")
            page.context.close()


def acts_by_keyboard(browser: Browser, folder: str, faults: Faults) -> None:
    """Watch the card of a compaction while an agent works, and take the compaction back by keyboard."""
    with ScriptedProvider() as provider:
        settings = GatewaySettings(
            upstreams={"openai": provider.openai_url}, port=0, admin_token=TOKEN, store=f"{folder}/acts.db",
            window=400_000, trigger=Share(0.5), background=False,
        )  # fmt: skip
        with Serving(settings) as serving, ThreadPoolExecutor(1) as agent:
            page, said = opened(browser, f"{serving.url}/page", TOKEN, 1200, "light")
            ask(serving.url, 2)
            page.reload()
            follow(page, "/c/conv_", faults)
            faults.check(not page.locator("#card article").count(), "there is a card before any compaction")
            asked = agent.submit(ask, serving.url, 400)
            page.wait_for_selector(".card.running", timeout=30_000)
            moves = page.evaluate("getComputedStyle(document.querySelector('.pulse')).animationName")
            faults.check(moves == "pulse", "the card of a compaction that runs does not pulse")
            page.screenshot(path=f"{folder}/card.png")
            page.wait_for_selector(".card.done", timeout=30_000)
            asked.result()
            faults.check(not page.locator(".card.running").count(), "the card of a done compaction pulses")
            page.reload()
            faults.check(page.locator(".card.done").count() == 1, "the card is not there on reload")
            shortened = len(provider.received[-1].body["messages"])
            follow(page, "/rewind?plan=", faults)
            faults.check(page.get_by_text("tokens of originals come back").count(), "a rewind does not say its cost")
            with page.expect_navigation():
                page.keyboard.press("Enter")  # the button has the focus
            faults.check(page.url.endswith("#acts"), "a rewind by keyboard leads nowhere")
            ask(serving.url, 400)
            brought = provider.received[-1].body["messages"]
            faults.check(shortened < len(brought) == 801, "the originals are not in the next request")
            follow(page, "/undo?step=", faults)
            faults.check(page.get_by_role("button", name="Go there again").count(), "a rewind cannot be undone")
            faults.check(not said, f"while an agent works the console says {said}")
            page.context.close()


def ask(url: str, turns: int) -> None:
    """Send a request with so many turns through a gateway."""
    messages: list[dict[str, str]] = [{"role": "user", "content": "Read all files."}]
    for number in range(turns):
        messages += [{"role": "assistant", "content": f"File {number}: " + f"word{number} " * 400}]
        messages += [{"role": "user", "content": "Go on."}]
    body = json.dumps({"model": "gpt-4o", "messages": messages}).encode()
    request = Request(f"{url}/v1/chat/completions", body, {"content-type": "application/json"})  # noqa: S310
    urlopen(request, timeout=60).read()  # noqa: S310


def take_pictures(browser: Browser, base: str, token: str) -> None:
    """Write a picture of each view, light and dark."""
    for scheme in SCHEMES:
        page, _ = opened(browser, base, token, 1200, scheme)
        for name in PICTURED:
            page.set_viewport_size({"width": 1200, "height": HEIGHTS.get(name, 820)})
            page.goto(base + VIEWS[name])
            page.wait_for_timeout(800)
            page.evaluate(SAME_TIME)
            session = page.context.new_cdp_session(page)
            taken = session.send("Page.captureScreenshot", {"format": "webp", "quality": QUALITY})
            (PICTURES / f"page-{name}-{scheme}.webp").write_bytes(b64decode(taken["data"]))
        page.context.close()


if __name__ == "__main__":
    sys.exit(main())
