"""A real Chromium, and pages of it that remember what went wrong in them."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, sync_playwright

FLAGS = [
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--js-flags=--expose-gc",
    "--enable-precise-memory-info",
]
ANSWER_MS = 20_000  # how long a page may take beside six other workers


def chromium() -> str | None:
    return shutil.which("chromium")


@contextmanager
def launched() -> Iterator[Browser]:
    flags = [*FLAGS, "--no-sandbox"] if os.geteuid() == 0 else FLAGS
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=flags)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Tab:
    """One page of a node. `troubles`: what its console and its scripts complained of."""

    page: Page
    base: str
    troubles: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.set_default_timeout(ANSWER_MS)
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("console", lambda message: self._hear(message))

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.troubles.append(f"{message.type}: {message.text} {message.location.get('url')}")

    def open(self, place: str = "") -> Page:
        """A view by its place behind the #/."""
        self.page.goto(f"{self.base}/ui/#/{place}")
        self.page.wait_for_selector("#view > *")
        return self.page

    def until(self, script: str, argument: Any = None) -> None:
        self.page.wait_for_function(script, arg=argument, timeout=ANSWER_MS)

    def says(self, text: str) -> None:
        self.page.get_by_text(text).first.wait_for()


def context(browser: Browser, **how: Any) -> BrowserContext:
    return browser.new_context(**{"viewport": {"width": 1280, "height": 860}, **how})
