"""Files in the page: chosen, dropped, pasted, shown, refused, given back."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from agenthost import File, Image
from agenthost.testing import ScriptedModel

from tests.plugins.http_api.pictures import EYES, PDF, PNG, seer

from .conftest import PATIENCE_MS, Watched
from .live_daemon import LiveDaemon, live

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import Browser, FilePayload, Locator, Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.conformance]
SIZES = {"wide": (1280, 800), "narrow": (390, 844)}
PICTURE = FilePayload(name="dot.png", mimeType="image/png", buffer=PNG)
PAPER = FilePayload(name="paper.pdf", mimeType="application/pdf", buffer=PDF)
EVIL = FilePayload(
    name="<img src=x onerror=document.title=1>.md",
    mimeType="text/markdown",
    buffer=b"# notes",
)
OPENED = """() => {
  window.opened = 0;
  document.querySelector('input[type="file"]').addEventListener("click", (event) => {
    event.preventDefault();
    window.opened += 1;
  });
}"""
"""Counts how often the browser would ask for files, and lets it not."""
DROP = """([data, kind]) => {
  const bytes = Uint8Array.from(atob(data), (each) => each.charCodeAt(0));
  const transfer = new DataTransfer();
  transfer.items.add(new File([bytes], "dot.png", { type: "image/png" }));
  const target = document.querySelector("textarea");
  const given = { bubbles: true, cancelable: true };
  const event = kind === "paste"
    ? new ClipboardEvent("paste", { ...given, clipboardData: transfer })
    : new DragEvent("drop", { ...given, dataTransfer: transfer });
  target.dispatchEvent(event);
}"""


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel()


@pytest.fixture
def daemon(tmp_path: Path, model: ScriptedModel) -> Iterator[LiveDaemon]:
    with live(tmp_path / "home", [seer(model)]) as started:
        started.do(started.running.agent("ada", extra=EYES))
        yield started


@pytest.fixture
def ada(browser: Browser, daemon: LiveDaemon) -> Iterator[Watched]:
    """The page of an agent whose model sees; nothing may be complained about."""
    page = browser.new_context().new_page()
    page.set_default_timeout(PATIENCE_MS)
    watched = Watched(page, daemon)  # type: ignore[arg-type]  # a real one
    page.on("pageerror", watched.failed)
    page.on("console", watched.printed)
    page.on("request", watched.asked)
    watched.open()
    expect(page.get_by_role("button", name="Attach files")).to_be_visible()
    yield watched
    page.context.close()
    assert (watched.complaints, watched.foreign) == ([], [])


def choose(page: Page, *files: FilePayload) -> None:
    page.locator('input[type="file"]').set_input_files(files)


def attached(page: Page) -> Locator:
    return page.get_by_role("list", name="Attached files").get_by_role("listitem")


def keep(page: Page, name: str) -> None:
    if folder := os.environ.get("AGENTHOST_SHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png")


def test_a_picture_is_chosen_sent_and_shown_after_a_reload(
    ada: Watched, model: ScriptedModel
) -> None:
    choose(ada.page, PICTURE)
    expect(attached(ada.page).locator("img")).to_be_visible()
    ada.say("look")
    expect(ada.page.get_by_text("You said: look")).to_be_visible()
    expect(attached(ada.page)).to_have_count(0)
    assert isinstance(model.requests[0].messages[0].parts[1], Image)
    for _ in range(2):
        shown = ada.page.get_by_label("You").get_by_alt_text("dot.png")
        expect(shown).to_be_visible()
        assert shown.evaluate("image => image.naturalWidth") == 1
        ada.page.reload()


@pytest.mark.conformance
@pytest.mark.parametrize("way", ["paste", "drop"])
def test_a_picture_is_pasted_or_dropped(ada: Watched, way: str) -> None:
    ada.page.evaluate(DROP, [base64.b64encode(PNG).decode(), way])
    expect(attached(ada.page)).to_have_text("dot.png")
    ada.say("look")
    expect(ada.page.get_by_label("You").get_by_alt_text("dot.png")).to_be_visible()


@pytest.mark.conformance
def test_files_are_sent_without_words_and_by_keyboard_alone(
    ada: Watched, model: ScriptedModel
) -> None:
    ada.field.focus()
    ada.page.keyboard.press("Shift+Tab")
    button = ada.page.get_by_role("button", name="Attach files")
    expect(button).to_be_focused()
    ada.page.evaluate(OPENED)
    ada.page.keyboard.press("Enter")
    assert ada.page.evaluate("window.opened") == 1
    choose(ada.page, PICTURE, PAPER)
    expect(attached(ada.page)).to_have_count(2)
    remove = ada.page.get_by_role("button", name="Remove dot.png")
    remove.focus()
    ada.page.keyboard.press("Enter")
    expect(attached(ada.page)).to_have_count(1)
    expect(ada.page.get_by_role("button", name="Send")).to_be_enabled()
    ada.field.focus()
    ada.page.keyboard.press("Enter")
    expect(ada.page.get_by_label("You")).to_contain_text("paper.pdf")
    expect(ada.page.get_by_text("You said:")).to_be_visible()
    (part,) = model.requests[0].messages[0].parts
    assert isinstance(part, File)


@pytest.mark.conformance
def test_a_file_that_is_taken_out_is_deleted(ada: Watched, daemon: LiveDaemon) -> None:
    choose(ada.page, PICTURE)
    expect(attached(ada.page)).to_have_attribute("aria-busy", "false")
    with ada.page.expect_response(lambda each: each.request.method == "DELETE"):
        ada.page.get_by_role("button", name="Remove dot.png").click()
    agent = daemon.running.known_agent("ada")
    assert daemon.do(daemon.running.daemon.uploads.list(agent.id)) == []


@pytest.mark.conformance
def test_what_cannot_be_attached_says_why(ada: Watched, tmp_path: Path) -> None:
    odd = FilePayload(name="a.bin", mimeType="application/x", buffer=b"\0\1")
    huge = tmp_path / "b.txt"
    huge.write_bytes(b"x" * (10 * 1024 * 1024 + 1))
    choose(ada.page, odd)
    ada.page.locator('input[type="file"]').set_input_files(huge)
    alerts = attached(ada.page).get_by_role("alert")
    expect(alerts.filter(has_text="no PNG")).to_be_visible()
    expect(alerts.filter(has_text="over 10 MiB")).to_be_visible()
    ada.field.fill("look")
    expect(ada.page.get_by_role("button", name="Send")).to_be_disabled()
    for name in ("a.bin", "b.txt"):
        ada.page.get_by_role("button", name=f"Remove {name}").click()
    choose(ada.page, *[PAPER] * 11)
    expect(attached(ada.page)).to_have_count(10)
    expect(ada.page.get_by_text("at most 10 files")).to_be_visible()
    ada.forgive("400")


@pytest.mark.conformance
def test_a_refused_message_gives_words_and_files_back(
    ada: Watched, daemon: LiveDaemon
) -> None:
    agent = daemon.running.known_agent("ada")
    http = daemon.running.http
    path = f"/api/agents/{agent.id}/model"
    body = {"model": "scripted/scripted-model"}
    daemon.do(http.put(path, json=body))
    choose(ada.page, PICTURE)
    ada.say("look")
    expect(ada.page.get_by_role("alert")).to_contain_text("supports_vision")
    expect(ada.field).to_have_value("look")
    expect(attached(ada.page)).to_have_text("dot.png")
    daemon.do(http.put(path, json={"model": "seer/seer-model"}))
    ada.page.get_by_role("button", name="Send").click()
    expect(ada.page.get_by_label("You").get_by_alt_text("dot.png")).to_be_visible()


@pytest.mark.conformance
def test_asked_again_a_message_keeps_its_files(
    ada: Watched, model: ScriptedModel
) -> None:
    choose(ada.page, PICTURE)
    ada.say("look")
    expect(ada.page.get_by_text("You said: look")).to_be_visible()
    ada.page.get_by_label("You").hover()
    ada.page.get_by_role("button", name="Ask again").click()
    expect(ada.page.get_by_label("You").get_by_alt_text("dot.png")).to_be_visible()
    expect(ada.page.get_by_text("You said: look")).to_be_visible()
    assert isinstance(model.requests[-1].messages[0].parts[1], Image)


@pytest.mark.conformance
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_files_fit_the_window(ada: Watched, size: str, scheme: str) -> None:
    width, height = SIZES[size]
    ada.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    ada.page.set_viewport_size({"width": width, "height": height})
    drawn = ada.page.screenshot()
    shot = FilePayload(name="screen.png", mimeType="image/png", buffer=drawn)
    choose(ada.page, shot, PAPER, EVIL)
    expect(attached(ada.page).locator("img")).to_be_visible()
    ada.say("What is wrong on this page, and what do the notes say of it?")
    shown = ada.page.get_by_label("You").get_by_alt_text("screen.png")
    expect(shown).to_be_visible()
    expect(ada.page.get_by_role("button", name="Send")).to_be_visible()
    odd = FilePayload(name="a.bin", mimeType="application/x", buffer=b"\0\1")
    choose(ada.page, shot, EVIL, odd)
    expect(attached(ada.page).get_by_role("alert")).to_be_visible()
    assert ada.page.evaluate("document.documentElement.scrollWidth") <= width
    assert ada.page.title() != "1"
    keep(ada.page, f"files-{size}-{scheme}")
    ada.forgive("400")
