"""Creating, choosing and deleting agents in a real browser."""

from __future__ import annotations

import tomllib

import pytest

from .conftest import Watched
from .fake_daemon import TOOLS

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.conformance]
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
    expect(page.get_by_text("no API key for Acme")).to_have_count(0)
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


def test_an_agent_can_be_left_before_its_line_is_open(chat: Watched) -> None:
    chat.daemon.spawn('name = "other"')
    chat.daemon.from_test(chat.daemon.gate.clear)
    with chat.page.expect_websocket():
        page = chat.open()
    page.get_by_role("button", name="other").click()
    expect(page.get_by_placeholder("Message other")).to_be_visible()
    chat.daemon.from_test(chat.daemon.gate.set)
    expect(page.get_by_role("button", name="What can you do?")).to_be_enabled()


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
    expect(row.get_by_title("Ready")).to_be_visible()
    expect(row).to_have_attribute("aria-current", "true")


def test_an_agent_is_called_answering_only_while_it_answers(chat: Watched) -> None:
    row = chat.page.get_by_role("navigation").get_by_role("button", name="assistant")
    expect(row).to_have_accessible_name("assistant offline-1 Ready")
    chat.say("endless")
    expect(row).to_have_accessible_name("assistant offline-1 Answering")
    chat.page.keyboard.press("Escape")
    expect(row).to_have_accessible_name("assistant offline-1 Ready")


def test_a_suspended_agent_is_marked(watched: Watched) -> None:
    watched.daemon.spawn('name = "tired"\nstate = "Suspended"')
    row = watched.open().get_by_role("navigation").get_by_role("button", name="tired")
    expect(row.get_by_title("Suspended")).to_be_visible()


def test_models_without_a_key_come_last_and_say_so(watched: Watched) -> None:
    page = watched.open()
    open_dialog(page)
    choice = page.get_by_label("Model")
    labels = choice.locator("optgroup").evaluate_all("all => all.map((g) => g.label)")
    assert labels == ["Acme", "Offline", "Aardvark (no API key)"]
    options = choice.locator("option").all_inner_texts()
    assert options[1:] == ["Big One", "Small One", "Offline", "Dear One"]
    choice.select_option(label="Dear One")
    expect(page.get_by_text("no API key for Aardvark")).to_contain_text(
        "Set AARDVARK_API_KEY"
    )


def test_what_the_daemon_warns_of_is_shown(watched: Watched) -> None:
    watched.daemon.warnings = ["provider aardvark has no API key", "x: unknown key."]
    page = watched.open()
    open_dialog(page)
    page.get_by_label("Name").fill("ada")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text(
        "ada was created. provider aardvark has no API key. x: unknown key."
    )
    page.get_by_role("button", name="Dismiss").click()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_the_help_names_only_tools_that_exist(watched: Watched) -> None:
    watched.daemon.tools = ["calculate", "web_fetch"]
    page = watched.open()
    page.get_by_role("button", name="New agent").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("Web tools get network access")).to_be_visible()
    expect(dialog).not_to_contain_text("shell_exec")
    watched.daemon.tools = TOOLS
    page.keyboard.press("Escape")
    open_dialog(page)
    expect(dialog).to_contain_text("shell_exec runs commands")
