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
    from playwright.sync_api import Browser, Page

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

    def say(self, text: str) -> None:
        """Send a message as a person does."""
        self.page.get_by_role("combobox", name="Message").fill(text)
        self.page.get_by_role("button", name="Send").click()


@pytest.fixture
def daemon() -> Iterator[FakeDaemon]:
    with running(FakeDaemon()) as started:
        yield started


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed"
    )
    chromium = os.environ.get("AGENTHOST_CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium on the PATH and AGENTHOST_CHROMIUM is not set")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture
def watched(browser: Browser, daemon: FakeDaemon) -> Iterator[Watched]:
    """A fresh page; the test fails when it complained or spoke to somebody else."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.set_default_timeout(5_000)
    seen = Watched(page, daemon)
    page.on("pageerror", lambda error: seen.complaints.append(str(error)))
    page.on(
        "console",
        lambda line: line.type in {"error", "warning"}
        and seen.complaints.append(line.text),
    )
    page.on(
        "request",
        lambda request: request.url.startswith(daemon.base_url)
        or seen.foreign.append(request.url),
    )
    yield seen
    context.close()
    assert seen.complaints == []
    assert seen.foreign == []


@pytest.fixture
def chat(watched: Watched) -> Watched:
    """The page with one agent, ready to talk to."""
    watched.daemon.spawn(AGENT)
    watched.open()
    return watched
