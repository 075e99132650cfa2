"""The page on a real daemon, whose agent has the offline provider."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from agenthost.testing import DaemonProcess

from .conftest import PATIENCE_MS, Watched

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

SIZES = {"wide": (1280, 800), "narrow": (390, 844)}


class Address:
    """What the watcher needs of a daemon: where it is."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url


@pytest.fixture
def real(tmp_path: Path) -> Iterator[DaemonProcess]:
    # A person with the page stays below what a client may ask by default.
    limited = {"AGENTHOST_RATE_LIMIT__ENABLED": "true"}
    with DaemonProcess(tmp_path / "home", limited) as daemon:
        yield daemon


@pytest.mark.parametrize(
    ("size", "scheme"),
    [
        ("wide", "light"),
        pytest.param("narrow", "dark", marks=pytest.mark.conformance),
        pytest.param("wide", "dark", marks=pytest.mark.conformance),
        pytest.param("narrow", "light", marks=pytest.mark.conformance),
    ],
)
def test_a_person_creates_an_agent_and_chats(
    browser: Browser, real: DaemonProcess, scheme: str, size: str, tmp_path: Path
) -> None:
    width, height = SIZES[size]
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    address = str(real.http.base_url).rstrip("/")
    watched = Watched(page, Address(address))  # type: ignore[arg-type]  # a real one
    page.on("pageerror", watched.failed)
    page.on("console", watched.printed)
    page.on("request", watched.asked)
    page.goto(address)
    page.get_by_role("button", name="Create").first.click()
    page.get_by_label("Name").fill("ada")
    page.get_by_role("button", name="Create").last.click()
    watched.say("remember colour is blue")
    page.get_by_text("I will remember that colour is blue").wait_for()
    watched.say("calculate 6 * 7")
    page.get_by_text("6 * 7 = 42").wait_for()
    page.reload()
    page.get_by_text("6 * 7 = 42").wait_for()
    watched.say("recall colour")
    page.get_by_text("colour is blue", exact=False).last.wait_for()
    shots = Path(os.environ.get("AGENTHOST_SHOTS") or tmp_path)
    page.screenshot(path=str(shots / f"real-{size}-{scheme}.png"))
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    context.close()
    watched.forgive("404")
    assert watched.complaints == []
    assert watched.foreign == []
