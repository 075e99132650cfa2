"""An answer is shown as it is made: one message, changed until it is whole."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from agenthost import TurnEnded
from agenthost.testing import Daemons, Pause, RunningDaemon
from agenthost_channels.bridge.drafts import MORE, Drafts
from agenthost_channels.bridge.settings import ChannelSection
from agenthost_channels.contract import Adapter, Facts, Fate, Outbound, Sent

from .pager import CONFIG, LOST, THERE, Pager, said
from .test_bridge import quiet, rows, started
from .test_switching import posted

FACTS = Facts("pager", "Pager", "test", "", edits=True, edit_every=0.01, per_peer=1e6)
STREAMING = CONFIG + "streaming = true\n"
GONE = Sent(Fate.NOT_SENT, reason="no such message", final=True)
KEPT = "SELECT count(*) FROM channel_drafts"


class Slate(Pager):
    """A pager whose messages can be changed."""

    def __init__(self) -> None:
        super().__init__()
        self.drafts: list[Sent] = []
        self.held: asyncio.Event | None = None
        self.facts = FACTS

    def adapter(self) -> type[Adapter]:
        service = self

        class Changing(super().adapter()):  # type: ignore[misc]  # reason: made on the spot
            facts = service.facts

            async def send(self, message: Outbound) -> Sent:
                # What is not whole yet takes none of the fates of what is.
                if not message.text.endswith(MORE):
                    return cast("Sent", await super().send(message))
                service.sent.append(message)
                service.changed.set()
                if service.held is not None:
                    await service.held.wait()
                return service.drafts.pop(0) if service.drafts else THERE

        return Changing


async def begun(running: RunningDaemon) -> None:
    """Wait until it is on disk which message is changed."""
    async with asyncio.timeout(30):
        while await rows(running, KEPT) != [(1,)]:  # noqa: ASYNC110 - what it waits for has no event
            await asyncio.sleep(0.01)


async def seen(pager: Pager) -> list[tuple[str, str, str]]:
    return [(each.text, each.edit_of, each.reply_to) for each in pager.sent]


@pytest.mark.setting("channels.<name>.streaming")
async def test_an_answer_grows_in_its_message(daemons: Daemons) -> None:
    pager, first, second = Slate(), Pause(), Pause()
    running = await started(daemons, pager, STREAMING)
    line = await pager.line()
    running.model.says("one ", first, "*two* ", second, "three")
    await line.received(said("count"))
    await pager.until(lambda: pager.sent)
    await begun(running)
    first.go_on()
    await pager.until(lambda: len(pager.sent) == 2)
    second.go_on()
    await quiet(running)
    shown = await seen(pager)
    assert shown[:2] == [(f"one{MORE}", "", "m1"), (f"one two{MORE}", "v1", "")]
    assert shown[-1] == ("one two three", "v1", "")
    assert all(edit_of == "v1" for _, edit_of, _ in shown[1:])
    # A service that knows keys would take a whole answer for its draft.
    *growing, whole = [each.key for each in pager.sent]
    assert whole not in growing
    assert len(set(growing)) == 1
    assert await rows(running, KEPT) == [(0,)]


@pytest.mark.parametrize(("edits", "config"), [(True, CONFIG), (False, STREAMING)])
async def test_without_being_told_to_nothing_is_shown_before_its_end(
    daemons: Daemons, *, edits: bool, config: str
) -> None:
    pager, pause = Slate(), Pause()
    pager.facts = replace(FACTS, edits=edits)
    running = await started(daemons, pager, config)
    line = await pager.line()
    running.model.says("one ", pause, "two")
    await line.received(said("count"))
    await pause.reached.wait()
    await running.daemon.clock.sleep(0.1)
    pause.go_on()
    await quiet(running)
    assert await seen(pager) == [("one two", "", "m1")]


async def test_after_a_break_the_same_message_is_changed(
    daemons: Daemons, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agenthost.daemon.TURN_PATIENCE", 0.2)
    pager, pause = Slate(), Pause()
    running = await started(daemons, pager, STREAMING)
    line = await pager.line()
    running.model.says("half ", pause)
    await line.received(said("go"))
    await pager.until(lambda: pager.sent)
    await begun(running)
    await running.daemon.stop()
    again = await started(daemons, pager, STREAMING, running.daemon.home)
    await quiet(again)
    assert {each.edit_of for each in pager.sent[1:]} == {"v1"}
    assert pager.sent[-1].text == "You said: go"
    assert await rows(again, KEPT) == [(0,)]


@pytest.mark.parametrize(("fate", "then"), [(GONE, ""), (LOST, "v1")])
async def test_a_change_that_fails_loses_no_answer(
    daemons: Daemons, fate: Sent, then: str
) -> None:
    """Where somebody took the draft away it is said anew, else changed once more."""
    pager, pause = Slate(), Pause()
    running = await started(daemons, pager, STREAMING)
    line = await pager.line()
    running.model.says("one ", pause, "two")
    await line.received(said("count"))
    await begun(running)
    pager.fates = [fate]
    pause.go_on()
    await quiet(running)
    whole = [each for each in await seen(pager) if each[0] == "one two"]
    assert [edit_of for _, edit_of, _ in whole] == ["v1", then]


async def test_a_draft_of_unknown_fate_is_no_draft(daemons: Daemons) -> None:
    pager, pause = Slate(), Pause()
    running = await started(daemons, pager, STREAMING)
    line = await pager.line()
    pager.drafts = [LOST]
    running.model.says("one ", pause, "two")
    await line.received(said("count"))
    await pager.until(lambda: pager.looked)
    pause.go_on()
    await quiet(running)
    assert await rows(running, KEPT) == [(0,)]
    assert (pager.sent[-1].text, pager.sent[-1].edit_of) == ("one two", "")


async def test_what_was_stopped_stays_as_it_is(daemons: Daemons) -> None:
    pager, pause = Slate(), Pause()
    running = await started(daemons, pager, STREAMING)
    line = await pager.line()
    running.model.says("one ", pause)
    await line.received(said("count"))
    await pager.until(lambda: pager.sent)
    await begun(running)
    await line.received(said("/stop", 2))
    await quiet(running)
    assert [each.text for each in pager.sent] == [f"one{MORE}", "Stopped."]
    assert await rows(running, KEPT) == [(0,)]


async def test_a_draft_counts_for_the_pace_of_its_place(daemons: Daemons) -> None:
    pager, pause = Slate(), Pause()
    pager.facts = replace(FACTS, per_peer=4.0)
    running = await started(daemons, pager, STREAMING)
    line = await pager.line()
    running.model.says("one ", pause, "two")
    await line.received(said("count"))
    await pager.until(lambda: pager.sent)
    began = running.daemon.clock.monotonic()
    pause.go_on()
    await quiet(running)
    assert running.daemon.clock.monotonic() - began > 0.2
    assert pager.sent[-1].text == "one two"


async def test_what_is_on_its_way_when_the_answer_ends_is_changed_too(
    daemons: Daemons,
) -> None:
    pager, pause = Slate(), Pause()
    running = await started(daemons, pager, STREAMING)
    line = await pager.line()
    pager.held = asyncio.Event()
    running.model.says("one ", pause, "two")
    await line.received(said("count"))
    await pager.until(lambda: pager.sent)
    over = asyncio.Event()
    running.daemon.events.subscribe(lambda _: over.set(), TurnEnded)
    pause.go_on()
    # The turn is over, and its first words have not arrived yet.
    await over.wait()
    pager.held.set()
    await quiet(running)
    shown = await seen(pager)
    assert shown == [(f"one{MORE}", "", "m1"), ("one two", "v1", "")]


async def test_a_channel_that_is_off_shows_nothing_and_then_goes_on(
    daemons: Daemons,
) -> None:
    pager, first, second, third = Slate(), Pause(), Pause(), Pause()
    running = await started(daemons, pager, STREAMING)
    line = await pager.line()
    running.model.says("one ", first, "two ", second, "three ", third, "four")
    await line.received(said("count"))
    await begun(running)
    assert (await posted(running, "disable"))[0] == 200
    first.go_on()
    await second.reached.wait()
    await running.daemon.clock.sleep(0.1)
    assert await seen(pager) == [(f"one{MORE}", "", "m1")]
    assert (await posted(running, "enable"))[0] == 200
    await running.daemon.clock.sleep(0.1)
    second.go_on()
    await pager.until(lambda: len(pager.sent) == 2)
    third.go_on()
    await quiet(running)
    shown = await seen(pager)
    assert shown[1:3] == [(f"one two three{MORE}", "v1", ""), shown[-1]]
    assert shown[-1] == ("one two three four", "v1", "")


ALSO = """
[[channels.pager.bindings]]
agent = "helper"
peer = "*"
also = ["second"]
"""


@pytest.mark.parametrize("more", [ALSO, "prefix_agent_name = true\n"])
async def test_what_has_a_name_before_it_comes_whole(
    daemons: Daemons, more: str
) -> None:
    pager, pause = Slate(), Pause()
    running = await started(daemons, pager, STREAMING + more)
    await running.agent("second")
    line = await pager.line()
    running.model.says("one ", pause, "two")
    await line.received(said("count"))
    await pause.reached.wait()
    await running.daemon.clock.sleep(0.1)
    assert await seen(pager) == []
    pause.go_on()
    await quiet(running)
    assert "helper:" in pager.sent[0].text


async def test_a_draft_is_as_long_as_its_room_takes_it(daemons: Daemons) -> None:
    pager, pause = Slate(), Pause()
    pager.facts = replace(FACTS, limit=100, limits={"direct": 300})
    running = await started(daemons, pager, STREAMING)
    line = await pager.line()
    running.model.says("word " * 50, pause, "end")
    await line.received(said("count"))
    await pager.until(lambda: pager.sent)
    assert pager.sent[0].text == ("word " * 50).rstrip() + MORE
    pause.go_on()
    await quiet(running)


async def test_a_draft_answers_no_message_where_answers_do_not(
    daemons: Daemons,
) -> None:
    pager, pause = Slate(), Pause()
    running = await started(daemons, pager, f"{STREAMING}threading = false\n")
    line = await pager.line()
    running.model.says("one ", pause, "two")
    await line.received(said("count"))
    await pager.until(lambda: pager.sent)
    pause.go_on()
    await quiet(running)
    assert {each.reply_to for each in pager.sent} == {""}


@pytest.mark.parametrize(
    ("edit_every", "per_peer", "seconds"), [(0.5, 0.2, 5.0), (2.0, 1.0, 2.0)]
)
async def test_a_draft_is_changed_as_often_as_its_service_likes(
    edit_every: float, per_peer: float, seconds: float
) -> None:
    slept: list[float] = []
    over = asyncio.Event()

    async def sleep(duration: float) -> None:
        slept.append(duration)
        over.set()

    host = SimpleNamespace(clock=SimpleNamespace(sleep=sleep))
    facts = replace(FACTS, edit_every=edit_every, per_peer=per_peer)
    section = ChannelSection(agent="helper", streaming=True)
    drafts = Drafts(cast("Any", host), cast("Any", None), section, facts)
    turn = SimpleNamespace(saying="")
    await drafts._show({}, cast("Any", turn), over)
    assert slept == [seconds]
