"""The page on a real daemon whose model is slow, refuses, or is cut off."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from agenthost.testing import DaemonProcess

from .conftest import PATIENCE_MS
from .slow_upstream import HALVES, SlowUpstream, upstream

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import Browser, Locator, Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.conformance]
WHOLE = "".join(HALVES)


@pytest.fixture
def model() -> Iterator[SlowUpstream]:
    with upstream() as started:
        yield started


@pytest.fixture
def home(tmp_path: Path, model: SlowUpstream) -> Path:
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    (folder / "config.toml").write_text(model.config)
    return folder


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context()
    context.set_default_timeout(PATIENCE_MS)
    yield context.new_page()
    context.close()


def opened(page: Page, daemon: DaemonProcess) -> Page:
    page.goto(str(daemon.http.base_url))
    return page


def spawn(daemon: DaemonProcess) -> None:
    body = {"manifest_toml": 'name = "ada"\n'}
    assert daemon.http.post("/api/agents", json=body).status_code == 201


def say(page: Page, text: str) -> None:
    page.get_by_placeholder("Message ").fill(text)
    page.get_by_role("button", name="Send").click()


def answer(page: Page) -> Locator:
    return page.get_by_label("Agent", exact=True)


def test_an_answer_outlives_a_reload_and_is_seen_by_two_tabs(
    page: Page, home: Path, model: SlowUpstream
) -> None:
    with DaemonProcess(home) as daemon:
        spawn(daemon)
        tab = opened(page.context.new_page(), daemon)
        expect(tab.get_by_role("button", name="What can you do?")).to_be_enabled()
        say(opened(page, daemon), "go")
        expect(answer(page)).to_have_text(HALVES[0])
        page.reload()
        for view in (page, tab):
            expect(answer(view)).to_have_text(HALVES[0])
            expect(view.get_by_label("You")).to_have_text("go")
        model.go_on.set()
        for view in (page, tab):
            expect(answer(view)).to_contain_text(WHOLE)
            expect(view.get_by_role("button", name="Send")).to_be_visible()
        page.reload()
        expect(answer(page)).to_contain_text(WHOLE)
        expect(page.get_by_label("You")).to_have_count(1)


def test_a_refused_call_is_told_after_a_reload_and_tried_again(
    page: Page, home: Path, model: SlowUpstream
) -> None:
    model.refuses = True
    with DaemonProcess(home) as daemon:
        spawn(daemon)
        say(opened(page, daemon), "go")
        expect(page.get_by_role("button", name="Try again")).to_be_visible()
        live = answer(page).inner_text()
        page.reload()
        expect(page.get_by_role("button", name="Try again")).to_be_enabled()
        assert answer(page).inner_text() == live
        model.refuses = False
        model.go_on.set()
        page.get_by_role("button", name="Try again").click()
        expect(answer(page)).to_contain_text(WHOLE)
        page.reload()
        expect(answer(page)).to_contain_text(WHOLE)
        expect(page.get_by_role("article")).to_have_count(2)


def test_an_answer_cut_by_a_crash_is_told_and_tried_again(
    page: Page, home: Path, model: SlowUpstream
) -> None:
    with DaemonProcess(home) as daemon:
        spawn(daemon)
        say(opened(page, daemon), "go")
        expect(answer(page)).to_have_text(HALVES[0])
        daemon.kill()
    model.go_on.set()
    with DaemonProcess(home) as daemon:
        opened(page, daemon)
        expect(page.get_by_text("This answer was interrupted.")).to_be_visible()
        page.get_by_role("button", name="Try again").click()
        expect(answer(page)).to_contain_text(WHOLE)
        expect(page.get_by_label("You")).to_have_text("go")


def test_a_stopped_answer_says_so_after_a_reload(page: Page, home: Path) -> None:
    with DaemonProcess(home) as daemon:
        spawn(daemon)
        say(opened(page, daemon), "go")
        expect(answer(page)).to_have_text(HALVES[0])
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_text("Stopped.")).to_be_visible()
        page.reload()
        expect(answer(page)).to_contain_text(HALVES[0])
        expect(page.get_by_text("Stopped.")).to_be_visible()
