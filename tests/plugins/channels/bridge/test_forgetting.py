"""What is over is known for thirty days, however long the daemon runs."""

from __future__ import annotations

import asyncio

import pytest
from agenthost.testing import Daemons, Pause, RunningDaemon
from agenthost_channels.bridge.bridge import bridge_of
from agenthost_channels.bridge.saying import Saying

from .pager import BUSY, Pager, said
from .test_bridge import changed, quiet, rows, started

DAY = 86_400
MONTH = 31 * DAY
OLDER = (
    f"UPDATE channel_inbox SET received_at = received_at - {MONTH}",
    f"UPDATE channel_outbox SET created_at = created_at - {MONTH}",
)
IN = "SELECT message_id FROM channel_inbox"
OUT = "SELECT text FROM channel_outbox"


async def forgotten(running: RunningDaemon, query: str, left: object) -> None:
    """Wait until what is left is this."""
    async with asyncio.timeout(30):
        while await rows(running, query) != left:  # noqa: ASYNC110 - what it waits for has no event
            await asyncio.sleep(0.01)


async def test_what_is_over_is_forgotten_while_the_daemon_runs(
    daemons: Daemons,
) -> None:
    pager = Pager()
    running = await started(daemons, pager)
    line = await pager.line()
    await line.received(said("one", 1))
    await quiet(running)
    await changed(running, *OLDER)
    await line.received(said("two", 2))
    await quiet(running)
    # The next look is a day away.
    assert await rows(running, f"{IN} ORDER BY seq") == [("m1",), ("m2",)]
    bridge_of(running.daemon)._forget_at = 0.0
    await forgotten(running, IN, [("m2",)])
    assert await rows(running, OUT) == [("You said: two",)]
    now = running.daemon.clock.time()
    assert bridge_of(running.daemon)._forget_at == pytest.approx(now + DAY, abs=60)
    # It comes again, is no longer known, and is answered again: that is the price.
    await line.received(said("one", 1))
    await quiet(running)
    assert pager.sent[-1].text == "You said: one"


async def test_what_is_still_to_be_sent_is_not_forgotten(
    daemons: Daemons, monkeypatch: pytest.MonkeyPatch
) -> None:
    pager = Pager()
    running = await started(daemons, pager)
    line = await pager.line()
    pager.fates = [BUSY] * 1_000
    await line.received(said("one"))
    await pager.until(lambda: len(pager.sent) > 1)
    await changed(running, *OLDER)
    await running.daemon.stop()
    pager.fates = []
    pager.sent.clear()
    # The next start sends nothing before it has forgotten.
    monkeypatch.setattr(Saying, "run", _nothing)
    again = await started(daemons, pager, home=running.daemon.home)
    await forgotten(again, IN, [])
    assert await rows(again, OUT) == [("You said: one",)]


async def _nothing(_: Saying) -> None:
    await asyncio.Event().wait()


async def test_what_is_still_to_be_answered_is_not_forgotten(daemons: Daemons) -> None:
    pager, pause = Pager(), Pause()
    running = await started(daemons, pager)
    line = await pager.line()
    await line.received(said("one", 1))
    await quiet(running)
    running.model.says("the ", pause, "answer")
    await line.received(said("two", 2))
    await pause.reached.wait()
    await changed(running, *OLDER)
    bridge_of(running.daemon)._forget_at = 0.0
    await forgotten(running, IN, [("m2",)])
    pause.go_on()
    await quiet(running)
    assert pager.sent[-1].text == "the answer"
