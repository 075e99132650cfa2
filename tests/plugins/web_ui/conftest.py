"""A fake daemon and a browser that watches for anything the policy forbids."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from .fake_daemon import FakeDaemon, running

if TYPE_CHECKING:
    from playwright.sync_api import (
        Browser,
        ConsoleMessage,
        Error,
        Locator,
        Page,
        Request,
    )

ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE_MS = 60_000
AGENT = """\
name = "assistant"
description = "Keeps notes and answers questions."
[capabilities]
tools = ["calculate", "file_list", "kv_set"]
"""


@dataclass
class Watched:
    """A page, and what the browser complained about or asked for elsewhere."""

    page: Page
    daemon: FakeDaemon
    complaints: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)

    def open(self) -> Page:
        """Load the page."""
        self.page.goto(f"{self.daemon.base_url}/")
        return self.page

    def failed(self, error: Error) -> None:
        """Note an exception of a script."""
        self.complaints.append(str(error))

    def printed(self, line: ConsoleMessage) -> None:
        """Note an error or warning, violations of the policy included."""
        if line.type in {"error", "warning"}:
            self.complaints.append(line.text)

    def asked(self, request: Request) -> None:
        """Note a request to somebody else."""
        if not request.url.startswith(self.daemon.base_url):
            self.foreign.append(request.url)

    def forgive(self, *words: str) -> None:
        """Forget complaints that the test provoked; each holds one of the words."""
        self.complaints[:] = [
            text for text in self.complaints if not any(word in text for word in words)
        ]

    @property
    def field(self) -> Locator:
        """Where messages are written."""
        return self.page.get_by_placeholder("Message ")

    def say(self, text: str) -> None:
        """Send a message as a person does."""
        self.field.fill(text)
        self.page.get_by_role("button", name="Send").click()


@pytest.fixture
def daemon() -> Iterator[FakeDaemon]:
    with running(FakeDaemon()) as started:
        yield started


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A chromium for one module: its loop must be gone before other async tests run."""
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed"
    )
    chromium = os.environ.get("AGENTHOST_CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium on the PATH and AGENTHOST_CHROMIUM is not set")
    sync_api.expect.set_options(timeout=PATIENCE_MS)
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture
def watched(browser: Browser, daemon: FakeDaemon) -> Iterator[Watched]:
    """A fresh page; the test fails when it complained or spoke to somebody else."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    seen = Watched(page, daemon)
    page.on("pageerror", seen.failed)
    page.on("console", seen.printed)
    page.on("request", seen.asked)
    yield seen
    context.close()
    assert seen.complaints == []
    assert seen.foreign == []


@pytest.fixture
def chat(watched: Watched) -> Watched:
    """The page with one agent, ready to talk to."""
    watched.daemon.spawn(AGENT)
    chip = watched.open().get_by_role("button", name="What can you do?")
    chip.and_(watched.page.locator(":enabled")).wait_for()
    return watched
