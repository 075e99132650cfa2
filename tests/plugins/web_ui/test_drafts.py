"""What a person typed is never lost: drafts, long messages, refusals, broken lines."""

from __future__ import annotations

import pytest

from .conftest import Watched

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.conformance]


def messages(chat: Watched) -> list[str]:
    """What pages sent."""
    return [f["content"] for f in chat.daemon.heard if f["type"] == "message"]


def test_each_agent_keeps_its_draft(chat: Watched) -> None:
    chat.daemon.spawn('name = "other"')
    page = chat.open()
    chat.field.fill("half a thought")
    page.get_by_role("button", name="other").click()
    expect(page.get_by_placeholder("Message other")).to_have_value("")
    page.get_by_placeholder("Message other").fill("another one")
    page.get_by_role("button", name="assistant").first.click()
    expect(page.get_by_placeholder("Message assistant")).to_have_value("half a thought")


@pytest.mark.parametrize(
    "text", ["x" * 65_537, "ü" * 40_000], ids=["characters", "bytes"]
)
def test_a_message_that_is_too_long_stays_in_the_field(
    chat: Watched, text: str
) -> None:
    expect(chat.page.get_by_role("button", name="What can you do?")).to_be_enabled()
    chat.say(text)
    expect(chat.page.get_by_role("alert")).to_contain_text("at most 65,536")
    expect(chat.field).to_have_value(text)
    expect(chat.page.get_by_label("You")).to_have_count(0)
    assert messages(chat) == []
    chat.field.fill("shorter")
    expect(chat.page.get_by_role("alert")).to_have_count(0)


def test_the_longest_message_is_sent(chat: Watched) -> None:
    text = "ü" * 32_768
    chat.say(text)
    expect(chat.page.get_by_label("You")).to_have_text(text)
    expect(chat.field).to_have_value("")
    assert messages(chat) == [text]


def test_a_refused_message_goes_back_into_the_field(chat: Watched) -> None:
    (agent,) = chat.daemon.agents.values()
    agent.refusal = "the agent is suspended"
    chat.say("hello")
    expect(chat.page.get_by_role("alert")).to_have_text("the agent is suspended")
    expect(chat.field).to_have_value("hello")
    expect(chat.page.get_by_label("You")).to_have_count(0)
    agent.refusal = ""
    chat.field.press("Enter")
    expect(chat.page.get_by_text("You said: hello")).to_be_visible()
    expect(chat.page.get_by_role("alert")).to_have_count(0)


def test_a_message_lost_on_its_way_goes_back_into_the_field(chat: Watched) -> None:
    chat.say("the first")
    expect(chat.page.get_by_text("You said: the first")).to_be_visible()
    chat.daemon.deaf = True
    chat.say("the second")
    chat.field.fill("the third")
    expect(chat.page.get_by_label("You")).to_have_count(2)
    chat.daemon.deaf = False
    chat.daemon.from_test(chat.daemon.hang_up)
    expect(chat.page.get_by_text("broke before this message arrived")).to_be_visible()
    expect(chat.field).to_have_value("the second\n\nthe third")
    expect(chat.page.get_by_label("You")).to_have_count(1)
    chat.forgive("WebSocket")
