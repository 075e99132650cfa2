"""The list of an agent's conversations, on a real daemon in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from agenthost.testing import DaemonProcess

from .conftest import PATIENCE_MS, Watched

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import Browser, Locator, Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.conformance]
MANIFEST = """
name = "ada"
[capabilities]
tools = ["kv_set", "calculate"]
memory_write = ["*"]
"""


class Address:
    """What the watcher needs of a daemon: where it is."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url


@pytest.fixture
def ada(browser: Browser, tmp_path: Path) -> Iterator[Watched]:
    """The page of an agent that has been told something twice."""
    with DaemonProcess(tmp_path / "home") as daemon:
        daemon.http.post("/api/agents", json={"manifest_toml": MANIFEST})
        page = browser.new_context().new_page()
        page.set_default_timeout(PATIENCE_MS)
        address = str(daemon.http.base_url).rstrip("/")
        watched = Watched(page, Address(address))  # type: ignore[arg-type]  # a real one
        page.on("pageerror", watched.failed)
        page.on("console", watched.printed)
        watched.open()
        watched.say("remember colour is blue")
        page.get_by_text("I will remember").wait_for()
        yield watched
        assert watched.complaints == []
        page.context.close()


def listed(page: Page) -> Locator:
    page.get_by_role("button", name="Conversations with ada").click()
    return page.get_by_role("dialog").get_by_role("listitem")


def test_new_keeps_the_conversation_and_the_list_goes_on_in_it(ada: Watched) -> None:
    page = ada.page
    ada.say("/new")
    page.get_by_text("the one before is in the archive").wait_for()
    expect(page.get_by_text("remember colour is blue")).to_have_count(0)
    rows = listed(page)
    expect(rows).to_have_count(2)
    page.get_by_label("Search conversations").fill("COLOUR blue")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("archived")
    rows.get_by_role("button", name="remember colour").first.click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_text("remember colour is blue")).to_be_visible()
    ada.say("calculate 6 * 7")
    page.get_by_text("6 * 7 = 42").wait_for()


def test_a_conversation_is_begun_renamed_and_put_away(ada: Watched) -> None:
    page = ada.page
    rows = listed(page)
    page.get_by_role("button", name="New conversation").click()
    expect(page.get_by_role("heading", name="Talk to ada")).to_be_visible()
    rows = listed(page)
    old = rows.filter(has_text="remember colour")
    old.get_by_role("button", name=re.compile("^Rename")).click()
    title = page.get_by_label("Title", exact=True)
    expect(title).to_be_focused()
    title.fill("<b>Colours</b>")
    title.press("Escape")
    expect(title).to_have_count(0)
    expect(page.get_by_role("dialog")).to_be_visible()
    expect(old).to_have_count(1)
    old.get_by_role("button", name=re.compile("^Rename")).click()
    page.get_by_label("Title", exact=True).fill("<b>Colours</b>")
    page.get_by_label("Title", exact=True).press("Enter")
    renamed = rows.filter(has_text="<b>Colours</b>")
    expect(renamed).to_contain_text("archived")
    renamed.get_by_role("button", name=re.compile("^Take out")).click()
    expect(renamed).not_to_contain_text("archived")
    renamed.get_by_role("button", name=re.compile("^Archive")).click()
    expect(renamed).to_contain_text("archived")
    page.get_by_label("Search conversations").fill("nothing like it")
    expect(page.get_by_text("Nothing found.")).to_be_visible()
