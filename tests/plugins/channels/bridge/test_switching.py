"""Channels are switched on and off while the daemon runs."""

from __future__ import annotations

from typing import Any

import pytest
from agenthost import Unavailable
from agenthost.testing import Daemons, Pause, RunningDaemon
from agenthost_channels.bridge import bridge
from agenthost_channels.bridge.account import Account
from agenthost_channels.bridge.bridge import bridge_of

from .pager import CONFIG, Pager, said
from .test_bridge import quiet, started


async def posted(running: RunningDaemon, way: str, name: str = "pager") -> Any:
    answer = await running.http.post(f"/api/channels/{name}/{way}", json={})
    return answer.status_code, answer.json()


async def row(running: RunningDaemon) -> dict[str, Any]:
    listed = (await running.http.get("/api/channels")).json()["channels"]
    [found] = [each for each in listed if each["name"] == "pager"]
    return dict(found)


async def reloaded(running: RunningDaemon, config: str) -> None:
    """Have the daemon read another file, and wait until it does as that says."""
    path = running.daemon.home / "config.toml"
    path.write_text(config)
    answer = await running.http.post("/api/config/reload", json={})
    assert answer.status_code == 200, answer.text
    assert answer.json()["need_restart"] == []
    await bridge_of(running.daemon).apply(running.daemon)


async def test_a_channel_that_is_switched_off_stays_off(daemons: Daemons) -> None:
    pager = Pager()
    running = await started(daemons, pager)
    await pager.line()
    for _ in range(2):
        status, told = await posted(running, "disable")
        assert (status, told["enabled"], told["connected"]) == (200, False, False)
    assert (await row(running))["enabled"] is False
    status, told = await posted(running, "test")
    assert status == 409
    assert "not switched on" in told["error"]
    recorded = (await running.http.get("/api/audit/recent")).json()["entries"]
    kinds = [entry["event_type"] for entry in recorded]
    assert kinds.count("channel_switched") == 2
    await running.daemon.stop()
    again = await started(daemons, pager, home=running.daemon.home)
    await bridge_of(again.daemon).apply(again.daemon)
    assert len(pager.lines) == 1
    status, told = await posted(again, "enable")
    assert (status, told["enabled"]) == (200, True)
    await pager.until(lambda: len(pager.lines) == 2)
    again.model.says("here again")
    await pager.lines[-1].received(said("hello?"))
    await quiet(again)
    assert [each.text for each in pager.sent] == ["here again"]


async def test_what_is_being_answered_is_answered_once_it_is_on(
    daemons: Daemons,
) -> None:
    pager, pause = Pager(), Pause()
    running = await started(daemons, pager)
    line = await pager.line()
    running.model.says("the whole ", pause, "answer")
    await line.received(said("tell me"))
    await pause.reached.wait()
    await posted(running, "disable")
    pause.go_on()
    await posted(running, "enable")
    await quiet(running)
    assert [each.text for each in pager.sent] == ["the whole answer"]
    assert len(running.model.requests) == 1


async def test_the_file_that_is_read_anew_is_followed(daemons: Daemons) -> None:
    pager = Pager()
    running = await started(daemons, pager, 'default_model = "offline"\n')
    off = 'default_model = "offline"\n'
    for status, _ in (await posted(running, "enable"), await posted(running, "test")):
        assert status == 409
    await reloaded(running, off + CONFIG)
    await pager.line()
    status, told = await posted(running, "enable")
    assert (status, told["enabled"]) == (200, True)
    other = CONFIG.replace("ada", "eve") + "number = 2\n"
    await reloaded(running, off + other)
    await pager.until(lambda: len(pager.lines) == 2)
    line = pager.lines[-1]
    assert line.settings.number == 2
    running.model.says("hello eve")
    await line.received(said("hi"), said("hi", 2, sender="eve", peer="eve"))
    await quiet(running)
    assert [each.text for each in pager.sent] == ["hello eve"]
    # Another channel is no reason to connect this one anew.
    await reloaded(running, off + other + '[channels.nosuch]\nagent = "helper"\n')
    assert len(pager.lines) == 2
    listed = (await running.http.get("/api/channels")).json()["channels"]
    [wrong] = [each for each in listed if each["name"] == "nosuch"]
    assert wrong["trouble"] == "no plugin offers this channel"
    await reloaded(running, off + other + "enabled = false\n")
    assert (await row(running))["enabled"] is False
    assert (await posted(running, "test"))[0] == 409
    await running.daemon.stop()


async def test_a_channel_that_is_off_answers_nothing(daemons: Daemons) -> None:
    pager = Pager()
    running = await started(daemons, pager)
    line = await pager.line()
    assert (await posted(running, "disable"))[0] == 200
    # What was on its way in is kept, and rests.
    await line.received(said("hello"))
    await running.daemon.clock.sleep(0.1)
    assert pager.sent == []
    assert (await posted(running, "enable"))[0] == 200
    await quiet(running)
    assert [each.text for each in pager.sent] == ["You said: hello"]


async def test_a_channel_begins_again_when_the_database_refuses(
    daemons: Daemons, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin, refusals = Account.run, [Unavailable("the disk is full")]

    async def run(account: Account) -> None:
        if refusals:
            raise refusals.pop()
        await begin(account)

    monkeypatch.setattr(Account, "run", run)
    monkeypatch.setattr(bridge, "RETRY_SECONDS", 0.01)
    pager = Pager()
    running = await started(daemons, pager)
    line = await pager.line()
    await line.received(said("hello"))
    await quiet(running)
    assert [each.text for each in pager.sent] == ["You said: hello"]


async def test_a_channel_that_is_off_has_no_door(daemons: Daemons) -> None:
    pager = Pager()
    running = await started(daemons, pager, f"{CONFIG}called = true\n")
    await pager.line()
    bridge = bridge_of(running.daemon)
    assert [*bridge.receivers] == ["pager"]
    await posted(running, "disable")
    assert not bridge.receivers
    assert (await running.http.post("/channels/pager/in", json={})).status_code == 404


async def test_what_is_configured_no_more_is_in_no_trouble(daemons: Daemons) -> None:
    pager = Pager()
    unknown = '[channels.whatsapp]\nagent = "helper"\n'
    running = await started(daemons, pager, CONFIG + unknown)
    await pager.line()
    bridge = bridge_of(running.daemon)
    await bridge.apply(running.daemon)
    assert bridge.standing("whatsapp") == (False, "no plugin offers this channel")
    assert bridge.configured == 2
    await reloaded(running, CONFIG)
    assert bridge.configured == 1
    assert bridge.standing("whatsapp") == (False, "")
