"""What an agent asks people, in the page: text, fields, yes and no, live."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agenthost import TurnState

from tests.plugins.approvals.stage import TOOLS, Shop, answer, ask, ends, listed

from .conftest import PATIENCE_MS, Watched
from .live_daemon import LiveDaemon, live

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import Browser, Locator, Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.conformance]
EVIL = '<img src=x onerror="document.title=1">'
SCHEMA = {
    "type": "object",
    "properties": {
        "street": {"type": "string", "minLength": 1, "title": f"Street {EVIL}"},
        "number": {"type": "integer", "minimum": 1},
        "factor": {"type": "number", "default": 1.5, "description": "How much"},
        "gift": {"type": "boolean"},
        "speed": {"type": "string", "enum": ["slow", "fast"]},
        "floor": {"type": "integer", "enum": [1, 2]},
        "__proto__": {"type": "string"},
    },
    "required": ["street", "number", "gift", "speed"],
}
SIZES = {"wide": (1280, 800), "narrow": (390, 844)}


@pytest.fixture
def shop() -> Shop:
    return Shop(asks={"pay": ask(f"Shall it be paid? {EVIL}", seconds=7200)})


@pytest.fixture
def daemon(tmp_path: Path, shop: Shop) -> Iterator[LiveDaemon]:
    with live(tmp_path / "home", shop.plugins) as started:
        started.do(started.running.agent("ada", tools=TOOLS))
        yield started


@pytest.fixture
def ada(browser: Browser, daemon: LiveDaemon) -> Iterator[Watched]:
    """The page of an agent; nothing may be complained about, nor asked elsewhere."""
    page = browser.new_context().new_page()
    page.set_default_timeout(PATIENCE_MS)
    watched = Watched(page, daemon)  # type: ignore[arg-type]  # a real one
    page.on("pageerror", watched.failed)
    page.on("console", watched.printed)
    page.on("request", watched.asked)
    watched.open()
    yield watched
    page.context.close()
    assert (watched.complaints, watched.foreign) == ([], [])


def asks(ada: Watched, daemon: LiveDaemon, **arguments: Any) -> str:
    """Have the agent ask; give the id of the turn that waits."""
    daemon.running.model.calls("pay", **arguments)
    ada.say("pay it")
    expect(question(ada.page)).to_be_visible()
    (row,) = daemon.do(listed(daemon.running, state="pending"))
    return str(row["turn_id"])


def question(page: Page) -> Locator:
    return page.get_by_role("form", name="Question about pay")


def test_a_question_is_text_and_its_yes_goes_on_live(
    ada: Watched, daemon: LiveDaemon, shop: Shop
) -> None:
    page = ada.page
    turn = asks(ada, daemon, amount=5, note=EVIL)
    expect(question(page)).to_contain_text(f"Shall it be paid? {EVIL}")
    expect(question(page)).to_contain_text("No answer until")
    expect(page.locator("img")).to_have_count(0)
    expect(page.locator(".tool-state")).to_have_text("waiting")
    # The conversation is free meanwhile, and the question stays over a reload.
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    page.reload()
    question(page).get_by_role("button", name="Approve").click()
    expect(question(page)).to_have_count(0)
    expect(page.locator(".tool-state")).to_have_text("done")
    expect(page.get_by_text("You said:")).to_be_visible()
    daemon.do(ends(daemon.running, turn, TurnState.DONE))
    assert shop.runs == [("pay", 5)]


def test_a_no_is_told_with_its_reason(
    ada: Watched, daemon: LiveDaemon, shop: Shop
) -> None:
    page = ada.page
    asks(ada, daemon)
    why = question(page).get_by_label("Why not")
    why.fill("too dear")
    why.press("Enter")
    question(page).get_by_role("button", name="Deny").click()
    expect(page.locator(".tool-state")).to_have_text("failed")
    expect(page.locator(".tool")).to_contain_text("a person said no: too dear")
    assert shop.runs == []


def test_values_come_as_the_kinds_that_are_asked_for(
    ada: Watched, daemon: LiveDaemon, shop: Shop
) -> None:
    page = ada.page
    shop.asks["pay"] = ask("Where to?", schema=SCHEMA, url="https://bank.example/?a=1")
    turn = asks(ada, daemon)
    form = question(page)
    link = form.get_by_role("link")
    expect(link).to_have_attribute("href", "https://bank.example/?a=1")
    expect(link).to_have_attribute("rel", "noopener noreferrer")
    expect(form).to_contain_text(f"Street {EVIL}")
    form.get_by_role("button", name="Approve").click()
    assert daemon.do(listed(daemon.running))[0]["state"] == "pending"
    form.get_by_label("Street").fill("Main 1")
    form.get_by_label("number").fill("3")
    form.get_by_label("gift").select_option("no")
    form.get_by_label("speed").select_option("fast")
    form.get_by_label("floor").select_option("2")
    form.get_by_label("__proto__").fill("x")
    form.get_by_role("button", name="Approve").click()
    daemon.do(ends(daemon.running, turn, TurnState.DONE))
    assert shop.answers == [
        {
            "street": "Main 1",
            "number": 3,
            "factor": 1.5,
            "gift": False,
            "speed": "fast",
            "floor": 2,
            "__proto__": "x",
        }
    ]


def test_a_choice_is_one_of_those_offered(
    ada: Watched, daemon: LiveDaemon, shop: Shop
) -> None:
    page = ada.page
    shop.asks["pay"] = ask("From which?", choices=("savings", EVIL))
    turn = asks(ada, daemon)
    question(page).get_by_label("Which?").select_option(EVIL)
    question(page).get_by_role("button", name="Approve").click()
    daemon.do(ends(daemon.running, turn, TurnState.DONE))
    assert shop.answers == [{"choice": EVIL}]


def test_an_answer_given_elsewhere_goes_on_here(
    ada: Watched, daemon: LiveDaemon
) -> None:
    page = ada.page
    asks(ada, daemon)
    (row,) = daemon.do(listed(daemon.running, state="pending"))
    daemon.do(answer(daemon.running, row["id"]))
    expect(question(page)).to_have_count(0)
    expect(page.locator(".tool-state")).to_have_text("done")
    told = page.get_by_role("alert").filter(has_text="was approved by loopback")
    expect(told).to_contain_text(f"Shall it be paid? {EVIL}")
    expect(page.locator("img")).to_have_count(0)


def test_a_yes_for_the_session_is_asked_once(
    ada: Watched, daemon: LiveDaemon, shop: Shop
) -> None:
    page = ada.page
    turn = asks(ada, daemon, amount=5)
    question(page).get_by_role("button", name="Allow for this session").click()
    daemon.do(ends(daemon.running, turn, TurnState.DONE))
    expect(page.get_by_text("You said:")).to_have_count(1)
    # Whoever answered here is not told that somebody did.
    expect(page.get_by_role("alert")).to_have_count(0)
    daemon.running.model.calls("pay", amount=6)
    ada.say("again")
    expect(page.get_by_text("You said:")).to_have_count(2)
    assert shop.runs == [("pay", 5), ("pay", 6)]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_a_yes_for_a_pattern_is_edited_before_it_is_given(
    ada: Watched, daemon: LiveDaemon, shop: Shop, scheme: str, size: str
) -> None:
    page = ada.page
    width, height = SIZES[size]
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    turn = asks(ada, daemon, amount=5, note="rent: May\nflat 7")
    form = question(page)
    form.get_by_role("button", name="Allow for a pattern").click()
    note = form.get_by_role("textbox", name="note")
    expect(note).to_have_value("rent: May\nflat 7")
    home = daemon.running.daemon.home
    shots = Path(os.environ.get("AGENTHOST_SHOTS") or home)
    page.screenshot(path=str(shots / f"pattern-{size}-{scheme}.png"))
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    note.fill("food: *")
    form.get_by_role("button", name="Allow this pattern").click()
    expect(form.get_by_role("alert")).to_contain_text("fit each")
    ada.forgive("400")
    note.fill("rent: *\nflat 7")
    form.get_by_role("button", name="Allow this pattern").click()
    daemon.do(ends(daemon.running, turn, TurnState.DONE))
    daemon.running.model.calls("pay", amount=5, note="rent: June\nflat 7")
    ada.say("again")
    expect(page.get_by_text("You said:")).to_have_count(2)
    assert shop.runs == [("pay", 5), ("pay", 5)]
    asks(ada, daemon, amount=5, note="food")


def test_a_question_that_ended_elsewhere_is_taken_away(
    ada: Watched, daemon: LiveDaemon
) -> None:
    page = ada.page
    asks(ada, daemon)
    agent = daemon.running.known_agent("ada")
    daemon.do(daemon.running.http.post(f"/api/agents/{agent.id}/stop"))
    question(page).get_by_role("button", name="Approve").click()
    expect(question(page)).to_have_count(0)
    expect(page.get_by_text("Stopped.")).to_be_visible()
    ada.forgive("409")


def test_other_messages_are_answered_while_a_question_waits(
    ada: Watched, daemon: LiveDaemon
) -> None:
    page = ada.page
    asks(ada, daemon)
    ada.say("hello")
    expect(page.get_by_text("You said: hello")).to_be_visible()
    expect(question(page)).to_be_visible()
    # Begun anew, the conversation would lose its question.
    expect(page.get_by_role("button", name="Ask again").first).to_be_disabled()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_a_question_fits(
    ada: Watched, daemon: LiveDaemon, shop: Shop, scheme: str, size: str
) -> None:
    page = ada.page
    width, height = SIZES[size]
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    properties = {k: v for k, v in SCHEMA["properties"].items() if k != "__proto__"}  # type: ignore[attr-defined]
    schema = {**SCHEMA, "properties": properties}
    shop.asks["pay"] = ask("Where shall it go?", schema=schema, url="https://a.example")
    asks(ada, daemon, amount=5, note="x" * 200)
    home = daemon.running.daemon.home
    shots = Path(os.environ.get("AGENTHOST_SHOTS") or home)
    page.screenshot(path=str(shots / f"question-{size}-{scheme}.png"))
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for name in ("Approve", "Deny"):
        expect(question(page).get_by_role("button", name=name)).to_be_visible()


def test_a_message_is_edited_in_another_conversation(
    ada: Watched, daemon: LiveDaemon
) -> None:
    page = ada.page
    for text in ("one", "two", "three"):
        ada.say(text)
        expect(page.get_by_text(f"You said: {text}")).to_be_visible()
    said = page.get_by_label("You", exact=True).filter(has_text="two")
    said.get_by_role("button", name="Edit this message").click()
    field = page.get_by_role("textbox", name="Edit this message")
    expect(field).to_have_value("two")
    field.press("Escape")
    expect(field).to_have_count(0)
    said.get_by_role("button", name="Edit this message").click()
    page.get_by_role("textbox", name="Edit this message").fill("2 & <b>")
    page.get_by_role("button", name="Send").first.click()
    expect(page.get_by_text("You said: 2 & <b>")).to_be_visible()
    expect(page.get_by_label("You", exact=True)).to_have_text(["one", "2 & <b>"])
    page.get_by_role("button", name="Conversations with ada").click()
    rows = page.get_by_role("dialog").get_by_role("listitem")
    expect(rows).to_have_count(2)
    rows.filter(has_text="archived").get_by_role(
        "button", name=re.compile("one")
    ).first.click()
    expect(page.get_by_label("You", exact=True)).to_have_text(["one", "two", "three"])


def test_the_same_is_asked_again(ada: Watched, daemon: LiveDaemon) -> None:
    page = ada.page
    ada.say("one")
    expect(page.get_by_text("You said: one")).to_be_visible()
    daemon.running.model.says("Another answer.")
    page.get_by_role("button", name="Ask again").click()
    expect(page.get_by_text("Another answer.")).to_be_visible()
    expect(page.get_by_text("You said: one")).to_have_count(0)
    expect(page.get_by_label("You", exact=True)).to_have_text(["one"])
    daemon.running.model.says("A third.")
    page.get_by_role("button", name="Ask again").click()
    expect(page.get_by_text("A third.")).to_be_visible()


def test_a_double_click_asks_again_once(ada: Watched, daemon: LiveDaemon) -> None:
    page = ada.page
    ada.say("one")
    expect(page.get_by_text("You said: one")).to_be_visible()
    daemon.running.model.says("Another answer.")
    again = page.get_by_role("button", name="Ask again")
    again.evaluate("button => { button.click(); setTimeout(() => button.click(), 0); }")
    expect(page.get_by_text("Another answer.")).to_be_visible()
    sessions = daemon.do(daemon.running.http.get("/api/sessions")).json()["sessions"]
    assert len(sessions) == 2


def test_a_message_that_is_gone_cannot_be_asked_again(
    ada: Watched, daemon: LiveDaemon
) -> None:
    page = ada.page
    ada.say("one")
    expect(page.get_by_text("You said: one")).to_be_visible()
    agent = daemon.running.known_agent("ada")
    daemon.do(daemon.running.http.post(f"/api/agents/{agent.id}/session/reset"))
    page.get_by_role("button", name="Ask again").click()
    expect(page.get_by_text("no longer part of the conversation")).to_be_visible()
    expect(page.get_by_role("button", name="Ask again")).to_be_enabled()
