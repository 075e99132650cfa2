"""Talking to an agent in a real browser under the strict policy."""

from __future__ import annotations

import pytest

from .conftest import Watched

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect

pytestmark = pytest.mark.browser
USAGE = "1,204 in · 86 out · 2 steps · $0.00312"


def test_a_message_is_answered_and_its_usage_shown(chat: Watched) -> None:
    chat.say("hello there")
    log = chat.page.get_by_role("log")
    expect(log.get_by_label("You")).to_have_text("hello there")
    expect(log.get_by_label("Agent", exact=True)).to_contain_text("You said: hello")
    expect(log.get_by_text(USAGE)).to_be_visible()
    expect(chat.page.get_by_text("1,290 tokens")).to_be_visible()


def test_text_is_shown_while_it_streams(chat: Watched) -> None:
    chat.say("stepwise")
    answer = chat.page.get_by_label("Agent", exact=True)
    expect(answer).to_have_text("first half")
    expect(chat.page.get_by_role("log")).to_have_attribute("aria-busy", "true")
    (agent,) = chat.daemon.agents.values()
    chat.daemon.from_test(agent.signals.go_on.set)
    expect(answer).to_contain_text("first half, second half")
    expect(chat.page.get_by_role("log")).to_have_attribute("aria-busy", "false")


def test_tool_calls_are_cards_that_open(chat: Watched) -> None:
    chat.say("use tools")
    good, bad = (chat.page.locator("details").nth(index) for index in (0, 1))
    expect(good.locator("summary")).to_contain_text("file_list")
    expect(good.locator("summary")).to_contain_text("done")
    expect(bad.locator("summary")).to_contain_text("failed")
    expect(good.get_by_text("notes.md")).to_be_hidden()
    good.locator("summary").click()
    expect(good.locator("pre").first).to_have_text('{\n  "path": "."\n}')
    expect(good.get_by_text("notes.md")).to_be_visible()


@pytest.mark.parametrize("way", ["button", "escape", "command"])
def test_a_turn_can_be_stopped_and_keeps_what_was_said(chat: Watched, way: str) -> None:
    chat.say("endless")
    expect(chat.page.get_by_text("counting one two")).to_be_visible()
    if way == "button":
        chat.page.get_by_role("button", name="Stop").click()
    elif way == "escape":
        chat.page.keyboard.press("Escape")
    else:
        chat.field.fill("/stop")
        chat.page.keyboard.press("Enter")
    expect(chat.page.get_by_text("Stopped.")).to_be_visible()
    expect(chat.page.get_by_text("counting one two")).to_be_visible()
    expect(chat.page.get_by_role("button", name="Send")).to_be_visible()


@pytest.mark.conformance
def test_a_failed_turn_says_why_and_leaves_the_field_usable(chat: Watched) -> None:
    chat.say("fail")
    expect(chat.page.get_by_role("alert")).to_contain_text(
        "openai: the model is overloaded"
    )
    chat.say("again")
    expect(chat.page.get_by_text("You said: again")).to_be_visible()


@pytest.mark.conformance
def test_a_reload_keeps_the_history_and_the_agent(chat: Watched) -> None:
    other = chat.daemon.spawn('name = "other"')
    chat.open()
    chat.page.get_by_role("button", name="other").click()
    chat.say("use tools")
    expect(chat.page.get_by_text(USAGE)).to_be_visible()
    chat.page.reload()
    expect(chat.page.get_by_label("You")).to_have_text("use tools")
    expect(chat.page.get_by_text("There are two files.")).to_be_visible()
    expect(chat.page.locator("details")).to_have_count(2)
    assert chat.page.url.endswith(f"#{other.id}")


@pytest.mark.conformance
def test_enter_sends_and_shift_enter_makes_a_line(chat: Watched) -> None:
    field = chat.field
    expect(field).to_be_focused()
    chat.page.keyboard.type("one")
    chat.page.keyboard.press("Shift+Enter")
    chat.page.keyboard.type("two")
    expect(field).to_have_value("one\ntwo")
    chat.page.keyboard.press("Enter")
    expect(chat.page.get_by_label("You")).to_have_text("one\ntwo")
    expect(field).to_have_value("")


@pytest.mark.conformance
def test_a_slash_offers_the_commands_and_new_empties_the_page(chat: Watched) -> None:
    chat.say("hello")
    expect(chat.page.get_by_text(USAGE)).to_be_visible()
    field = chat.field
    field.press_sequentially("/")
    options = chat.page.get_by_role("option")
    expect(options).to_have_count(4)
    field.press_sequentially("n")
    expect(options).to_have_count(1)
    chat.page.keyboard.press("Enter")
    expect(field).to_have_value("/new")
    chat.page.keyboard.press("Enter")
    expect(chat.page.get_by_text("Started a new session.")).to_be_visible()
    expect(chat.page.get_by_label("You")).to_have_count(0)


@pytest.mark.conformance
def test_code_can_be_copied(chat: Watched) -> None:
    chat.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    chat.say("markdown")
    chat.page.get_by_role("button", name="Copy").click()
    expect(chat.page.get_by_role("button", name="Copied")).to_be_visible()
    copied = chat.page.evaluate("() => navigator.clipboard.readText()")
    assert copied.startswith("def total(prices: list[float]) -> float:\n    return")


def test_hostile_output_is_text_and_stays_inert(chat: Watched) -> None:
    chat.say("hostile")
    expect(chat.page.get_by_text(USAGE)).to_be_visible()
    answer = chat.page.get_by_label("Agent", exact=True)
    expect(answer).to_contain_text('<img src=x onerror="window.pwned = 2">')
    live = "script, img, iframe, svg, style, form, [style], [onclick], [onmouseover]"
    expect(answer.locator(live)).to_have_count(0)
    for link in answer.locator("a").all():
        assert (link.get_attribute("href") or "").startswith("https://example.org/")
        assert link.get_attribute("rel") == "noopener noreferrer nofollow"
    for word in ("click me", "data", "code"):
        answer.get_by_text(word).last.hover()
        answer.get_by_text(word).last.click()
    assert chat.page.evaluate("() => window.pwned") is None


@pytest.mark.conformance
def test_a_lost_line_is_announced_and_comes_back(chat: Watched) -> None:
    chat.say("endless")
    expect(chat.page.get_by_text("counting one two")).to_be_visible()
    chat.daemon.down = True
    chat.daemon.from_test(chat.daemon.hang_up)
    banner = chat.page.get_by_role("alert").filter(has_text="Offline")
    expect(banner).to_be_visible()
    expect(chat.page.get_by_role("button", name="Send")).to_be_disabled()
    button = banner.get_by_role("button", name="Try now").element_handle()
    chat.daemon.down = False
    # The page may come back by itself before, and the banner be gone.
    button.evaluate("button => button.click()")
    expect(banner).to_be_hidden()
    chat.page.get_by_role("button", name="Stop").click()
    chat.say("back again")
    expect(chat.page.get_by_text("You said: back again")).to_be_visible()
    chat.forgive("503", "WebSocket")


@pytest.mark.conformance
def test_pages_that_an_answer_rests_on_are_links_also_after_a_reload(
    chat: Watched,
) -> None:
    chat.say("cite")
    for _ in range(2):
        sources = chat.page.get_by_role("list", name="Sources")
        links = sources.get_by_role("link")
        expect(links).to_have_text(["<b>A</b> page", "http://b.example/"])
        expect(links.first).to_have_attribute("href", "https://a.example/x")
        expect(links.first).to_have_attribute("rel", "noopener noreferrer nofollow")
        chat.page.reload()
