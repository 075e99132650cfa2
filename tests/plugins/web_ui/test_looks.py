"""Light and dark, wide and narrow; ``AGENTHOST_SHOTS`` keeps the pictures."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .conftest import Watched

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser


def background(page: Page) -> str:
    found = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    assert isinstance(found, str)
    return found


def is_dark(page: Page) -> bool:
    channels = background(page).removeprefix("rgb(").removesuffix(")").split(",")
    return int(channels[0]) < 128


def overhang(page: Page) -> list[int]:
    """By how many pixels the page and the conversation are wider than their boxes."""
    found = page.evaluate(
        """() => [...document.querySelectorAll("html, .scroll")].map(
             (box) => box.scrollWidth - box.clientWidth)"""
    )
    assert isinstance(found, list)
    return found


def keep(page: Page, name: str) -> None:
    if folder := os.environ.get("AGENTHOST_SHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png")


def test_the_system_decides_until_the_person_does(chat: Watched) -> None:
    chat.page.emulate_media(color_scheme="dark")
    assert is_dark(chat.page)
    chat.page.get_by_role("button", name="Use the light theme").click()
    assert not is_dark(chat.page)
    chat.page.reload()
    expect(chat.page.get_by_role("button", name="Use the dark theme")).to_be_visible()
    assert not is_dark(chat.page)
    chat.page.get_by_role("button", name="Use the dark theme").click()
    chat.page.emulate_media(color_scheme="light")
    assert not is_dark(chat.page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_wider_than_the_window(
    chat: Watched, scheme: str, width: int
) -> None:
    chat.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    chat.page.set_viewport_size({"width": width, "height": 800})
    for text in ("use tools", "markdown with " + "a-long-word-" * 20):
        chat.say(text)
        expect(chat.page.get_by_label("You").last).to_have_text(text)
        expect(chat.page.get_by_role("button", name="Send")).to_be_visible()
    expect(chat.page.get_by_text("See the notes for more.")).to_be_in_viewport()
    assert overhang(chat.page) == [0, 0]
    assert is_dark(chat.page) is (scheme == "dark")
    keep(chat.page, f"chat-{scheme}-{width}")


def test_agents_are_a_drawer_on_a_phone(chat: Watched) -> None:
    chat.daemon.spawn('name = "other"')
    page = chat.open()
    page.set_viewport_size({"width": 390, "height": 800})
    row = page.get_by_role("listitem").get_by_role("button").filter(has_text="other")
    expect(row).to_be_hidden()
    page.get_by_role("button", name="Show agents").click()
    expect(row).to_be_visible()
    page.keyboard.press("Escape")
    expect(row).to_be_hidden()
    page.get_by_role("button", name="Show agents").click()
    row.click()
    expect(row).to_be_hidden()
    expect(page.get_by_role("heading", name="Talk to other")).to_be_visible()
