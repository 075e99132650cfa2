"""What holds triggers back: rests, the depth of events, ten an event, their fires."""

from __future__ import annotations

from typing import Any

import pytest
from agenthost import Custom
from agenthost.testing import Daemons

from .stage import Stage, stage_at


async def test_a_trigger_rests_for_a_subject_it_has_fired_for(
    daemons: Daemons, stage: Stage
) -> None:
    trigger = await stage.trigger()

    async def fired(subject: str, after: float = 0.0) -> int:
        await stage.clock.advance(after)
        await stage.cause(stage.custom(subject=subject))
        return len(await stage.occasions(trigger))

    assert await fired("a") == 1
    assert await fired("a", 4.9) == 1
    assert await fired("b") == 2
    assert await fired("a", 0.2) == 3
    assert (await stage.shown(trigger))["held_back"] == 1
    # A start remembers it.
    await stage.daemon.daemon.stop()
    stage = await stage_at(daemons, stage.daemon.daemon.home)
    assert await fired("a", 9.9) == 3
    assert await fired("a", 0.2) == 4
    # A clock that was set back holds nothing back.
    await stage.daemon.daemon.stop()
    stage = await stage_at(daemons, stage.daemon.daemon.home)
    assert await fired("a", -1) == 5


@pytest.mark.setting("triggers.cooldown_secs")
async def test_rests_are_as_configured_unless_a_trigger_says_it(
    daemons: Daemons,
) -> None:
    stage = await stage_at(daemons, config="[triggers]\ncooldown_secs = 60\n")
    long, none = await stage.trigger(), await stage.trigger(cooldown_secs=0)
    for _ in range(3):
        await stage.cause(stage.custom())
        await stage.clock.advance(25)
    assert len(await stage.occasions(long)) == 1
    assert len(await stage.occasions(none)) == 3
    await stage.cause(stage.custom())
    assert len(await stage.occasions(long)) == 2


async def test_events_that_many_led_to_set_off_nothing(stage: Stage) -> None:
    trigger = await stage.trigger(cooldown_secs=0)

    async def states(*depths: int) -> list[tuple[str, str]]:
        for depth in depths:
            await stage.cause(stage.custom(depth=depth))
            await stage.settled()
        found = await stage.occasions(trigger)
        return [(each.state, each.code) for each in found]

    assert await states(4) == [("due", "")]
    # It is told once an hour, however often it happens.
    assert await states(5, 6, 5) == [("refused", "depth"), ("due", "")]
    shown = await stage.shown(trigger)
    assert (shown["fire_count"], shown["held_back"]) == (1, 3)
    await stage.clock.advance(3601)
    assert len(await states(5)) == 3


async def test_ten_triggers_fire_at_an_event(stage: Stage) -> None:
    triggers = []
    for _ in range(12):
        triggers.append(await stage.trigger(cooldown_secs=0))
        await stage.clock.advance(1)
    event = stage.custom()
    for _ in range(2):
        await stage.cause(event)
        await stage.settled()
        codes = [each.code for one in triggers for each in await stage.occasions(one)]
        assert codes == [""] * 10 + ["many"] * 2
    # The oldest go first, and an eleventh is noted once an hour. It does not fire when
    # the event is told again.
    event = stage.custom()
    for _ in range(2):
        await stage.cause(event)
        await stage.settled()
    assert [len(await stage.occasions(each)) for each in triggers] == [2] * 10 + [1] * 2


async def test_a_trigger_is_disabled_in_the_commit_of_its_last_fire(
    stage: Stage,
) -> None:
    # The audit trail wants to hear of everything.
    bus: Any = stage.daemon.daemon.events
    bus._recorders.clear()
    bus._wanted.clear()
    trigger = await stage.trigger(max_fires=2, cooldown_secs=0)
    await stage.cause(stage.custom())
    assert (await stage.shown(trigger))["enabled"]
    keep = stage.asked(stage.custom())
    assert keep is not None
    late = stage.asked(stage.custom())
    await stage.daemon.daemon.store.write(keep)
    [row] = await stage.daemon.daemon.store.read("SELECT enabled FROM triggers")
    assert row["enabled"] == 0
    # What was asked about before that is not written after it.
    assert late is not None
    await stage.daemon.daemon.store.write(late)
    shown = await stage.shown(trigger)
    assert (shown["enabled"], shown["fire_count"]) == (False, 2)
    assert shown["paused_reason"] is None
    assert len(await stage.occasions(trigger)) == 2
    assert not stage.daemon.daemon.events.wants(Custom)


async def test_more_fires_arm_a_trigger_that_has_spent_them(stage: Stage) -> None:
    http, trigger = stage.daemon.http, await stage.trigger(max_fires=1, cooldown_secs=0)
    path = f"/api/triggers/{trigger}"
    await stage.cause(stage.custom())
    await stage.settled()
    refused = await http.put(path, json={"enabled": True})
    assert refused.status_code == 400
    assert refused.json()["error"].startswith("enabled: it has fired 1 times")
    await stage.change(trigger, max_fires=2)
    assert (await stage.shown(trigger))["enabled"]
    await stage.cause(stage.custom())
    assert len(await stage.occasions(trigger)) == 2
    assert not (await stage.shown(trigger))["enabled"]
    # What a person has disabled is not armed by that; fewer fires disable.
    await stage.change(trigger, enabled=False)
    await stage.change(trigger, max_fires=0)
    shown = await stage.shown(trigger)
    assert (shown["enabled"], shown["paused_reason"]) == (
        False,
        "disabled by loopback:loopback",
    )
    await stage.change(trigger, enabled=True)
    await stage.change(trigger, max_fires=2)
    shown = await stage.shown(trigger)
    assert (shown["enabled"], shown["paused_reason"]) == (False, None)
