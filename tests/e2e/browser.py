"""Chromium on our pages: opens each as a visitor would and notes everything that went wrong."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect, sync_playwright

from pages.parts.menu import SECTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, ConsoleMessage, Page, Request, Response

Theme = Literal["light", "dark"]
PAGES = tuple(name for entries in SECTIONS.values() for name, _, _ in entries)
NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")
PATIENCE_MS = 60_000
ERROR_BOXES = '[data-testid="stException"], [data-testid="stAlertContentError"]'


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser of this machine, without a window."""
    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip("no Chromium on this machine: run `make browser`")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


class Visit:
    """One visitor's tab."""

    def __init__(self, browser: Browser, base: str, theme: Theme = "light") -> None:
        self.base = base.rstrip("/")
        self.problems: list[str] = []
        context = browser.new_context(viewport={"width": 1440, "height": 1200}, color_scheme=theme)
        self.page: Page = context.new_page()
        self.page.set_default_timeout(PATIENCE_MS)
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self.problems.append(f"script error: {error}"))
        self.page.on("request", self._on_request)
        self.page.on("response", self._on_response)

    def open(self, address: str = "") -> None:
        """Go to a page by its address and wait until it is complete."""
        self.page.goto(f"{self.base}/{address}")
        self.settle()

    def follow(self, link: str) -> None:
        """Click a link by its exact name and wait until the other page is complete."""
        before = self.page.locator("h1").inner_text()
        self.page.get_by_role("link", name=link, exact=True).first.click()
        self.page.wait_for_function(
            "before => document.querySelector('h1')?.innerText !== before", arg=before
        )
        self.settle()

    def settle(self) -> None:
        """Wait until the page has its title and its script has come to the end."""
        self.page.wait_for_selector("h1")
        self.page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]')

    def error_boxes(self) -> list[str]:
        """The texts of all error boxes on the page."""
        return self.page.locator(ERROR_BOXES).all_inner_texts()

    def _on_console(self, message: ConsoleMessage) -> None:
        # What could not be loaded is judged by its response, which has the address.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.problems.append(f"console: {message.text}")

    def _on_request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme in ("http", "https", "ws") and parts.netloc != urlsplit(self.base).netloc:
            self.problems.append(f"asks another host: {request.url}")

    def _on_response(self, response: Response) -> None:
        # Opened at a page's own address, Streamlit looks for its server below it first.
        is_search = "/_stcore/" in response.url and response.status == 404
        if response.status >= 400 and not is_search:
            self.problems.append(f"{response.status} from {response.url}")


def switch_engine(visit: Visit, state: str, told: str) -> None:
    """On an engine's page: put it into another state, as `pia`, and wait for the answer."""
    visit.page.get_by_role("button", name="Switch").click()
    dialog = visit.page.get_by_role("dialog")
    dialog.get_by_text(state, exact=True).click()
    dialog.get_by_role("textbox", name="Your name").fill("pia")
    dialog.get_by_role("textbox", name="Reason").fill("upgrade")
    dialog.get_by_role("textbox", name="Reason").press("Enter")
    dialog.get_by_role("button", name="Set", exact=True).click()
    expect(visit.page.get_by_text(told)).to_be_visible(timeout=PATIENCE_MS)
    expect(dialog).to_have_count(0)


def check_every_page(browser: Browser, base: str, theme: Theme) -> None:
    """Open every page; fails on an error box, a script error, or a request to another host."""
    visit = Visit(browser, base, theme)
    for name in PAGES:
        visit.open("" if name == PAGES[0] else name)
        assert visit.error_boxes() == [], name
        assert visit.page.locator("[data-testid=stMain]").inner_text().strip(), name
    assert visit.problems == []
