"""A question asked on one surface and answered on another: one outcome, told to both.

The page is a browser's, the terminal a pseudo-terminal; both speak to a real daemon.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import websockets
from agenthost import TurnState
from agenthost.testing.scripted import Pause

from tests.plugins.approvals.stage import (
    TOOLS,
    Shop,
    answer,
    ask,
    ends,
    listed,
    results,
    waits,
)

from .conftest import PATIENCE_MS, Watched
from .live_daemon import LiveDaemon, live
from .terminal import END, UP, Terminal, terminal

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import Browser, Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.conformance]


@pytest.fixture
def shop() -> Shop:
    return Shop(asks={"pay": ask(seconds=7200)})


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@contextmanager
def started(home: Path, shop: Shop) -> Iterator[LiveDaemon]:
    """Run a daemon where the command line finds it."""
    with live(home, shop.plugins) as daemon:
        facts = {"pid": os.getpid(), "listen_addr": daemon.running.daemon.address}
        (home / "daemon.json").write_text(json.dumps(facts), encoding="utf-8")
        yield daemon


@pytest.fixture
def daemon(home: Path, shop: Shop) -> Iterator[LiveDaemon]:
    with started(home, shop) as daemon:
        daemon.do(daemon.running.agent("ada", tools=TOOLS))
        yield daemon


@contextmanager
def page_of(browser: Browser, daemon: LiveDaemon) -> Iterator[Watched]:
    """Open the page of the agent."""
    page = browser.new_context().new_page()
    page.set_default_timeout(PATIENCE_MS)
    watched = Watched(page, daemon)  # type: ignore[arg-type]  # a real one
    watched.open()
    empty = page.get_by_role("heading", name="Talk to ada")
    expect(empty.or_(page.get_by_label("You", exact=True))).to_be_visible()
    yield watched
    page.context.close()


def asked(daemon: LiveDaemon) -> dict[str, Any]:
    """What waits: one question."""
    (row,) = daemon.do(listed(daemon.running, state="pending"))
    return row


def has_paid_once(daemon: LiveDaemon, shop: Shop, turn: str) -> None:
    """The turn went on, and its call ran once."""
    daemon.do(ends(daemon.running, turn, TurnState.DONE))
    assert shop.runs == [("pay", 5)]


def begin(daemon: LiveDaemon, chat: Terminal) -> dict[str, Any]:
    """Have the agent ask in the terminal."""
    daemon.running.model.calls("pay", amount=5)
    chat.until("you> ")
    chat.line("pay it")
    chat.until("allow it? [y/N] ")
    return asked(daemon)


def yes_on(page: Page) -> None:
    """Press the button of a yes."""
    form = page.get_by_role("form", name="Question about pay")
    form.get_by_role("button", name="Approve once").click()
    expect(form).to_have_count(0)


def test_asked_in_the_terminal_answered_on_the_page(
    browser: Browser, daemon: LiveDaemon, home: Path, shop: Shop
) -> None:
    with terminal(home, "chat") as chat, page_of(browser, daemon) as ada:
        row = begin(daemon, chat)
        yes_on(ada.page)
        has_paid_once(daemon, shop, row["turn_id"])
        # Whoever sits at the terminal says no, too late, and is told what stands.
        chat.line("n")
        chat.line("too dear")
        chat.until("approved already, by loopback")
        chat.until("[approved by loopback")
        chat.until("You said:")
        chat.until("you> ")
        chat.types(END)
        assert chat.ends() == 0
        assert shop.runs == [("pay", 5)]


def test_asked_on_the_page_answered_in_the_terminal(
    browser: Browser, daemon: LiveDaemon, home: Path, shop: Shop
) -> None:
    with page_of(browser, daemon) as ada:
        daemon.running.model.calls("pay", amount=5)
        ada.say("pay it")
        expect(ada.page.get_by_role("form", name="Question about pay")).to_be_visible()
        row = asked(daemon)
        with terminal(home, "approvals", "answer", row["id"][:8], "yes") as said:
            said.until("approved")
            assert said.ends() == 0
        has_paid_once(daemon, shop, row["turn_id"])
        told = ada.page.get_by_role("alert").filter(has_text="was approved by loopback")
        expect(told).to_be_visible()
        with terminal(home, "approvals", "answer", row["id"], "no") as late:
            late.until("approved already, by loopback")
            assert late.ends() == 1
    assert shop.runs == [("pay", 5)]


def test_asked_in_the_terminal_answered_there_and_seen_on_the_page(
    browser: Browser, daemon: LiveDaemon, home: Path, shop: Shop
) -> None:
    with terminal(home, "chat") as chat, page_of(browser, daemon) as ada:
        row = begin(daemon, chat)
        expect(ada.page.get_by_role("form", name="Question about pay")).to_be_visible()
        chat.line("y")
        chat.until("You said:")
        has_paid_once(daemon, shop, row["turn_id"])
        told = ada.page.get_by_role("alert").filter(has_text="was approved by loopback")
        expect(told).to_be_visible()


async def by_command(daemon: LiveDaemon, line: str) -> dict[str, Any]:
    """Say a chat command over a WebSocket; give the frame that answers it."""
    agent = daemon.running.known_agent("ada")
    url = daemon.base_url.replace("http", "ws", 1)
    async with websockets.connect(f"{url}/api/agents/{agent.id}/ws") as socket:
        await socket.send(json.dumps({"type": "message", "id": "me", "content": line}))
        async for text in socket:
            frame: dict[str, Any] = json.loads(text)
            if frame.get("id") == "me":
                return frame
    raise AssertionError("the socket ended without an answer")


def test_answered_twice_at_once_over_rest_and_websocket(
    daemon: LiveDaemon, shop: Shop
) -> None:
    """One of both wins, the other is told who; and the call runs once."""
    daemon.running.model.calls("pay", amount=5)
    told = daemon.do(waits(daemon.running.known_agent("ada"), "pay it"))
    id_ = told["approval_id"]

    async def both() -> tuple[Any, dict[str, Any]]:
        rest = answer(daemon.running, id_, "approve")
        socket = by_command(daemon, f"/approve {id_[:8]}")
        said, frame = await asyncio.gather(rest, socket)
        return said, frame

    rest, frame = daemon.do(both())
    won = [rest.status_code == 200, frame["type"] == "response"]
    assert sorted(won) == [False, True], (rest.text, frame)
    loser = frame["content"] if won[0] else rest.text
    assert "already" in loser or "open question" in loser, loser
    has_paid_once(daemon, shop, told["turn_id"])


def test_asked_before_a_restart_answered_after_it_on_the_page(
    browser: Browser, home: Path, shop: Shop
) -> None:
    with started(home, shop) as daemon:
        daemon.do(daemon.running.agent("ada", tools=TOOLS))
        daemon.running.model.calls("pay", amount=5)
        told = daemon.do(waits(daemon.running.known_agent("ada"), "pay it"))
    assert shop.runs == []
    with started(home, shop) as daemon, page_of(browser, daemon) as ada:
        yes_on(ada.page)
        has_paid_once(daemon, shop, told["turn_id"])
        expect(ada.page.get_by_text("You said:")).to_be_visible()


def test_after_its_deadline_nobody_answers_and_both_are_told(
    browser: Browser, daemon: LiveDaemon, home: Path, shop: Shop
) -> None:
    shop.asks["pay"] = ask(seconds=9.0)
    with terminal(home, "chat") as chat, page_of(browser, daemon) as ada:
        row = begin(daemon, chat)
        expect(ada.page.get_by_role("form", name="Question about pay")).to_be_visible()
        daemon.do(ends(daemon.running, row["turn_id"], TurnState.DONE))
        told = ada.page.get_by_role("alert").filter(has_text="answered by nobody")
        expect(told).to_be_visible()
        chat.line("y")
        chat.until("the approval is expired already")
        chat.until("[expired]")
        chat.until("you> ")
    assert shop.runs == []
    assert "no person answered in time" in results(daemon.running)[-1]


def test_a_chat_streams_is_stopped_and_remembers(
    daemon: LiveDaemon, home: Path
) -> None:
    """Ctrl-C stops the answer and not the program; arrows bring back lines."""
    pause = Pause()
    daemon.running.model.says("the first half ", pause, "the second half")
    with terminal(home, "chat", "ada") as chat:
        chat.until("you> ")
        chat.line("tell me all")
        chat.until("the first half")
        chat.interrupts("[stopped]")
        chat.until("you> ")
        chat.interrupts("you> ")
        chat.line("hello")
        chat.until("You said: hello")
        chat.until("you> ")
        chat.line("/quit")
        assert chat.ends() == 0
    assert "the second half" not in chat.shown
    with terminal(home, "chat", "ada") as chat:
        chat.until("you> ")
        chat.types(UP + UP)
        chat.until("hello")
        chat.line("")
        chat.until("You said: hello")
    assert os.stat(home / "chat_history").st_mode & 0o077 == 0
