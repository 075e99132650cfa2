"""A daemon with a key: asked for once, kept in the tab, never in an address."""

from __future__ import annotations

import pytest

from .conftest import AGENT, Watched

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import WebSocket, expect

pytestmark = [pytest.mark.browser, pytest.mark.conformance]


@pytest.fixture
def guarded(watched: Watched) -> Watched:
    watched.daemon.key = "s3cret-key"
    watched.daemon.spawn(AGENT)
    return watched


def test_the_key_is_asked_for_refused_and_accepted(guarded: Watched) -> None:
    lines: list[WebSocket] = []
    guarded.page.on("websocket", lambda line: lines.append(line))  # noqa: PLW0108 (playwright marks handlers)
    page = guarded.open()
    field = page.get_by_label("Key", exact=True)
    expect(field).to_be_focused()
    field.fill("wrong")
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("alert")).to_have_text(
        "The daemon did not accept this key."
    )
    field.fill("s3cret-key")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    guarded.say("hello")
    expect(page.get_by_text("You said: hello")).to_be_visible()
    assert ["?ticket=" in line.url for line in lines] == [True]
    assert "s3cret-key" not in lines[0].url + page.url
    guarded.forgive("401")


def test_the_key_lives_in_this_tab_only(guarded: Watched) -> None:
    page = guarded.open()
    page.get_by_label("Key", exact=True).fill("s3cret-key")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Talk to assistant")).to_be_visible()
    assert page.evaluate("() => JSON.stringify(localStorage)") == "{}"
    assert page.evaluate("() => document.cookie") == ""
    page.reload()
    expect(page.get_by_role("heading", name="Talk to assistant")).to_be_visible()
    tab = page.context.new_page()
    tab.goto(guarded.daemon.base_url)
    expect(tab.get_by_label("Key", exact=True)).to_be_visible()
    guarded.forgive("401")


def test_the_key_dialog_cannot_be_dismissed(guarded: Watched) -> None:
    page = guarded.open()
    expect(page.get_by_label("Key", exact=True)).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(page.get_by_label("Key", exact=True)).to_be_visible()
    guarded.forgive("401")
