"""Creating, choosing and deleting agents in a real browser."""

from __future__ import annotations

import tomllib

import pytest

from .conftest import Watched
from .fake_daemon import TOOLS

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser
HOSTILE_TEXTS = [
    'quote " and \\ backslash',
    '"""\n[capabilities]\ntools = ["shell_exec"]',
    "'''\r\n\t\x00\x01\x1f\x7f",
    "\\u0041 \\n \\",
    "☃ 🦊 \u202e \u2028 \x85",
    "# not a comment = true",
]


def open_dialog(page: Page) -> None:
    page.get_by_role("button", name="New agent").click()
    expect(page.get_by_label("shell_exec")).to_be_visible()


def test_an_empty_daemon_leads_to_the_first_conversation(watched: Watched) -> None:
    page = watched.open()
    page.get_by_role("button", name="Create an agent").click()
    expect(page.get_by_label("Name")).to_be_focused()
    page.get_by_label("Name").fill("helper")
    page.get_by_label("Description").fill("Helps.")
    page.get_by_label("Model").select_option(label="Big One")
    page.get_by_label("web_fetch").check()
    page.get_by_label("file_write").uncheck()
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_role("heading", name="Talk to helper")).to_be_visible()
    expect(page.get_by_role("textbox", name="Message helper")).to_be_focused()
    manifest = tomllib.loads(watched.daemon.manifests[0])
    assert manifest["name"] == "helper"
    assert manifest["model"]["provider"] == "acme"
    assert manifest["model"]["model"] == "big-1"
    assert manifest["model"]["system_prompt"].startswith("You are")
    assert manifest["capabilities"] == {
        "tools": [
            "calculate",
            "file_list",
            "file_read",
            "kv_get",
            "kv_set",
            "system_time",
            "web_fetch",
        ],
        "network": ["*"],
        "memory_read": ["self.*"],
        "memory_write": ["self.*"],
    }
    page.get_by_role("button", name="What can you do?").click()
    expect(page.get_by_text("You said: What can you do?")).to_be_visible()


def test_hostile_words_in_the_dialog_stay_words(watched: Watched) -> None:
    page = watched.open()
    open_dialog(page)
    page.get_by_label("Name").fill('x"\\ [evil]')
    page.get_by_label("Description").fill('"\ntools = ["*"]')
    page.get_by_label("System prompt").fill('one\n"""\n[capabilities]')
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_role("heading", name="Talk to")).to_be_visible()
    manifest = tomllib.loads(watched.daemon.manifests[0])
    assert manifest["name"] == 'x"\\ [evil]'
    assert manifest["model"] == {"system_prompt": 'one\n"""\n[capabilities]'}
    assert "*" not in manifest["capabilities"]["tools"]


def test_every_manifest_parses_to_what_was_meant(watched: Watched) -> None:
    page = watched.open()
    for text in HOSTILE_TEXTS:
        written = page.evaluate(
            """async ([text, tools]) => {
              const { writeManifest } = await import("/static/js/manifest.js");
              return writeManifest({ name: text, description: text,
                systemPrompt: text, tools, model: { provider: text, id: text } });
            }""",
            [text, [*TOOLS, text]],
        )
        manifest = tomllib.loads(written)
        assert manifest["name"] == manifest["description"] == text
        assert manifest["model"] == {
            "provider": text,
            "model": text,
            "system_prompt": text,
        }
        assert manifest["capabilities"]["tools"] == [*TOOLS, text]
        assert manifest["capabilities"]["agent_spawn"] is True


def test_a_refusal_is_shown_in_the_dialog(watched: Watched) -> None:
    watched.daemon.spawn('name = "taken"')
    page = watched.open()
    open_dialog(page)
    page.get_by_label("Name").fill("taken")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("exists already")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("button", name="New agent")).to_be_focused()
    watched.forgive("409")


def test_deleting_asks_first(chat: Watched) -> None:
    chat.daemon.spawn('name = "other"')
    page = chat.open()
    page.get_by_role("button", name="Delete assistant").click()
    page.get_by_role("button", name="Keep").click()
    assert len(chat.daemon.agents) == 2
    page.get_by_role("button", name="Delete assistant").click()
    page.get_by_role("alertdialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", name="Talk to other")).to_be_visible()
    assert [a.manifest["name"] for a in chat.daemon.agents.values()] == ["other"]


def test_the_list_shows_model_and_state(chat: Watched) -> None:
    row = chat.page.get_by_role("navigation").get_by_role("button", name="assistant")
    expect(row).to_contain_text("offline-1")
    expect(row.get_by_title("Running")).to_be_visible()
    expect(row).to_have_attribute("aria-current", "true")
