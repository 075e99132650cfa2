"""Light and dark, wide and narrow; ``AGENTHOST_SHOTS`` keeps the pictures."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import pytest

from .conftest import Watched
from .test_cards import STOCK

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.conformance]


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


def test_the_drawer_stays_open_when_the_page_chooses_an_agent(watched: Watched) -> None:
    watched.page.set_viewport_size({"width": 390, "height": 800})
    page = watched.open()
    page.get_by_role("button", name="Show agents").click()
    new = page.get_by_role("button", name="New agent")
    expect(new).to_be_visible()
    watched.daemon.spawn('name = "late"')
    page.evaluate("dispatchEvent(new Event('focus'))")
    expect(page.get_by_role("listitem").filter(has_text="late")).to_be_visible()
    expect(new).to_be_visible()


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


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_words_and_numbers_of_a_table_stay_whole(
    chat: Watched, scheme: str, width: int
) -> None:
    chat.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    chat.page.set_viewport_size({"width": width, "height": 800})
    chat.say("table")
    tables = chat.page.get_by_role("table")
    expect(tables).to_have_count(2)
    for word in ("Python", "100000", "Incomprehensibilities", "100000000"):
        assert lines_of(chat.page, word) == 1
    expect(chat.page.get_by_role("button", name="Send")).to_be_visible()
    assert overhang(chat.page) == [0, 0]
    if width == 390:
        assert tables.last.evaluate("box => box.scrollWidth > box.clientWidth")
    keep(chat.page, f"table-{scheme}-{width}")


def lines_of(page: Page, word: str) -> int:
    """On how many lines the first cell that begins with a word shows that word."""
    found = page.locator("td", has_text=word).first.evaluate(
        """(cell, word) => {
             const range = document.createRange();
             range.setStart(cell.firstChild, 0);
             range.setEnd(cell.firstChild, word.length);
             return new Set([...range.getClientRects()].map((box) => box.top)).size;
           }""",
        word,
    )
    assert isinstance(found, int)
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_create_dialog_shows_its_help_above_its_buttons(
    watched: Watched, scheme: str, width: int
) -> None:
    watched.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    watched.page.set_viewport_size({"width": width, "height": 800})
    page = watched.open()
    page.get_by_role("button", name="Create an agent").click()
    help_text = page.get_by_text("The agent can do nothing but")
    expect(page.get_by_label("web_search")).to_be_attached()
    keep(page, f"dialog-{scheme}-{width}")
    words = help_text.bounding_box()
    buttons = page.locator(".dialog-actions").bounding_box()
    assert words
    assert buttons
    assert words["y"] + words["height"] <= buttons["y"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_answers_that_broke_off_look_the_same_in_every_window(
    chat: Watched, scheme: str, width: int
) -> None:
    (agent,) = chat.daemon.agents.values()
    agent.past("Count to ten.", "one two three", "stopped")
    agent.past("Tell me more.", "half a word", "interrupted")
    agent.past("And now?", "", "failed", "openai: `401` the key was not accepted " * 3)
    chat.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    chat.page.set_viewport_size({"width": width, "height": 800})
    page = chat.open()
    expect(page.get_by_role("button", name="Try again")).to_have_count(2)
    expect(page.get_by_text("Stopped.")).to_be_visible()
    assert overhang(page) == [0, 0]
    keep(page, f"endings-{scheme}-{width}")


def test_headings_follow_one_another_and_the_field_is_a_plain_one(
    chat: Watched,
) -> None:
    chat.say("use tools")
    chat.page.locator("summary").first.click()
    expect(chat.page.get_by_role("heading", name="Input")).to_be_visible()
    levels = chat.page.locator("h1, h2, h3, h4, h5, h6").evaluate_all(
        "all => all.map((heading) => Number(heading.tagName[1]))"
    )
    steps = [low - high for high, low in pairwise(levels)]
    assert max(steps) <= 1
    expect(chat.page.get_by_role("textbox", name="Message assistant")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_cards_fit_the_window(watched: Watched, scheme: str, width: int) -> None:
    watched.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    watched.page.set_viewport_size({"width": width, "height": 800})
    watched.daemon.spawn('name = "assistant"')
    watched.daemon.cards["stock"] = STOCK
    watched.daemon.cards["long"] = {
        "text": "a-long-word-" * 30,
        "rows": [{"label": "label" * 20, "value": "value" * 40}],
        "links": [{"label": "link " * 9, "url": "/"}] * 3,
    }
    page = watched.open()
    if width == 390:
        page.get_by_role("button", name="Show agents").click()
    page.get_by_role("button", name="Cards").click()
    expect(page.get_by_role("region", name="Stock")).to_be_visible()
    assert overhang(page)[0] == 0
    body = page.locator(".dialog-body")
    assert body.evaluate("box => box.scrollWidth <= box.clientWidth")
    assert is_dark(page) is (scheme == "dark")
    keep(page, f"cards-{scheme}-{width}")
