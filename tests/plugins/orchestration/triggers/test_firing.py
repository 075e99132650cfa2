"""A firing is on disk exactly when its event is, and once."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from agenthost import (
    Conflict,
    Custom,
    Denied,
    Event,
    HealthChanged,
    MemoryChanged,
    NotFound,
)
from agenthost.testing import Daemons
from agenthost_orchestration.background.errands import (
    Delivery,
    Occasion,
    OccasionState,
    SessionMode,
)
from sqlalchemy import Connection

from .stage import Stage, stage_at


def refuse(connection: Connection) -> None:
    del connection
    raise Conflict("the cause cannot be")


async def test_a_published_event_fires_a_trigger_that_waits(stage: Stage) -> None:
    trigger = await stage.trigger({"content_match": {"substring": "ORDER.paid"}})
    event = await stage.publish("order.paid", {"number": 4})
    await stage.publish("order.sent")
    [occasion] = await stage.occasions(trigger)
    assert (occasion.key, occasion.payload["kind"]) == (event, "custom")
    assert occasion.state is OccasionState.DUE
    assert occasion.labels == {"untrusted"}
    assert occasion.owner == "loopback:loopback"
    shown = await stage.shown(trigger)
    assert (shown["fire_count"], shown["last_fired_at"]) == (1, shown["created_at"])


async def test_a_cause_that_is_not_committed_leaves_all_as_it_was(stage: Stage) -> None:
    trigger = await stage.trigger(max_fires=1)
    store = stage.daemon.daemon.store
    keep = stage.asked(stage.custom())
    assert keep is not None
    with pytest.raises(Conflict):
        await store.write(keep, refuse)
    assert await stage.occasions(trigger) == []
    shown = await stage.shown(trigger)
    assert (shown["enabled"], shown["fire_count"]) == (True, 0)
    # Neither its cooldown nor its fires were spent.
    await stage.cause(stage.custom())
    assert len(await stage.occasions(trigger)) == 1


async def test_a_rider_that_runs_twice_fires_once(stage: Stage) -> None:
    trigger = await stage.trigger()
    store = stage.daemon.daemon.store
    keep = stage.asked(event := stage.custom())
    assert keep is not None
    # One of a group that is committed together raises: each runs again, alone.
    held = threading.Event()
    runs: list[object] = []
    hold = store.write(lambda _: held.wait(10))
    group = [store.write(keep, runs.append), store.write(refuse)]
    held.set()
    await asyncio.gather(hold, *group, return_exceptions=True)
    assert len(runs) == 2
    stage.daemon.daemon.events.publish(event)
    assert len(await stage.occasions(trigger)) == 1
    assert (await stage.shown(trigger))["fire_count"] == 1


async def test_an_event_told_twice_fires_once(stage: Stage) -> None:
    trigger = await stage.trigger(cooldown_secs=0)
    event = stage.custom()
    await stage.cause(event)
    await stage.cause(event)
    stage.daemon.daemon.events.publish(event)
    assert len(await stage.occasions(trigger)) == 1
    assert (await stage.shown(trigger))["fire_count"] == 1
    assert stage.woken == 1


async def test_a_firing_is_seen_to_though_its_event_is_never_told(stage: Stage) -> None:
    trigger = await stage.trigger()
    await stage.cause(stage.custom(), published=False)
    assert len(await stage.occasions(trigger)) == 1
    assert stage.woken == 1
    assert (await stage.shown(trigger))["fire_count"] == 1


async def test_what_has_no_commit_of_its_own_gets_one(stage: Stage) -> None:
    trigger = await stage.trigger("system")
    events = stage.daemon.daemon.events
    events.publish(HealthChanged("daemon", stage.clock.time(), "degraded"))
    [occasion] = await stage.occasions(trigger)
    assert occasion.payload["data"] == {"status": "degraded"}
    assert occasion.labels == frozenset()


async def test_a_start_and_a_stop_of_the_daemon_fire(
    daemons: Daemons, stage: Stage
) -> None:
    trigger = await stage.trigger("system", cooldown_secs=0)
    await stage.daemon.daemon.stop()
    again = await stage_at(daemons, stage.daemon.daemon.home)
    kinds = [each.payload["kind"] for each in await again.occasions(trigger)]
    assert kinds == ["daemon_started", "daemon_stopping"]
    assert (await again.shown(trigger))["fire_count"] == 2


async def test_only_what_is_waited_for_is_made(stage: Stage) -> None:
    # The audit trail wants to hear of everything.
    bus: Any = stage.daemon.daemon.events
    bus._recorders.clear()
    bus._wanted.clear()
    events = stage.daemon.daemon.events

    def wanted() -> list[bool]:
        kinds: tuple[type[Event], ...] = (MemoryChanged, HealthChanged, Custom)
        return [events.wants(kind) for kind in kinds]

    assert wanted() == [False, False, False]
    kept = await stage.trigger("memory_update")
    assert wanted() == [True, False, False]
    every = await stage.trigger("all")
    assert wanted() == [True, True, True]
    await stage.change(every, enabled=False)
    assert wanted() == [True, False, False]
    for each in (kept, every):
        await stage.daemon.http.delete(f"/api/triggers/{each}")
    assert wanted() == [False, False, False]


async def test_an_errand_has_the_event_in_its_prompt_and_its_labels(
    stage: Stage,
) -> None:
    trigger = await stage.trigger(
        prompt_template="Look: {{event}}",
        session="rolling",
        keep=20,
        allowance_usd=0.25,
        max_fires=1,
        delivery={"kind": "session", "target": "s"},
    )
    await stage.cause(stage.custom("order", data={"n": "{{event}}"}, depth=4))
    [occasion] = await stage.occasions(trigger)
    errand = await stage.triggers.errand(stage.daemon.daemon, occasion)
    assert errand.prompt == (
        'Look: The event "order" was published by shop: {"n": "{{event}}"}'
    )
    assert (errand.agent_id, errand.depth) == (stage.agent.id, 5)
    assert errand.labels == {"untrusted"}
    assert (errand.session, errand.keep) == (SessionMode.ROLLING, 20)
    assert errand.delivery == Delivery("session", "s")
    assert errand.allowance_micro_usd == 250_000
    assert errand.creator.kind == "loopback"


async def test_what_has_fired_is_done_unless_it_is_stopped_since(stage: Stage) -> None:
    host, triggers = stage.daemon.daemon, stage.triggers
    trigger = await stage.trigger(max_fires=1)
    await stage.cause(stage.custom())
    [occasion] = await stage.occasions(trigger)
    # It has spent its fires, and this was one of them.
    assert not (await stage.shown(trigger))["enabled"]
    assert (await triggers.errand(host, occasion)).agent_id == stage.agent.id
    await triggers.pause(host, trigger, "its allowance is spent")
    assert (await stage.shown(trigger))["paused_reason"] == "its allowance is spent"
    with pytest.raises(Denied, match="its allowance is spent"):
        await triggers.errand(host, occasion)
    await stage.daemon.http.delete(f"/api/triggers/{trigger}")
    with pytest.raises(NotFound):
        await triggers.errand(host, occasion)
    await triggers.pause(host, trigger, "nobody is there any more")


async def test_an_event_that_holds_no_json_happens_all_the_same(stage: Stage) -> None:
    trigger = await stage.trigger()
    await stage.cause(stage.custom(data={"odd": object()}))
    await stage.cause(stage.custom())
    found: list[Occasion] = await stage.occasions(trigger)
    assert len(found) == 1


async def test_triggers_end_in_the_commit_of_their_agents_end(
    daemons: Daemons, stage: Stage
) -> None:
    trigger = await stage.trigger({"agent_terminated": {}})
    watcher = await stage.daemon.agent("watcher")
    body = {"agent_id": watcher.id, "pattern": "lifecycle"}
    other = await stage.daemon.http.post("/api/triggers", json=body)
    told: list[str] = []
    stage.daemon.daemon.events.subscribe(lambda event: told.append(event.kind))
    await stage.daemon.http.delete(f"/api/agents/{stage.agent.id}")
    await stage.settled()
    rows = await stage.daemon.daemon.store.read("SELECT id, fire_count FROM triggers")
    assert [tuple(row) for row in rows] == [(other.json()["trigger_id"], 1)]
    with pytest.raises(NotFound):
        stage.triggers.get(trigger)
    assert "trigger_deleted" in told
    assert "trigger_fired" in told


async def test_triggers_whose_agent_is_gone_end_with_the_next_start(
    daemons: Daemons, stage: Stage
) -> None:
    trigger = await stage.trigger()
    store = stage.daemon.daemon.store
    await store.change("UPDATE triggers SET agent_id = 'nobody' RETURNING id")
    await stage.daemon.daemon.stop()
    again = await stage_at(daemons, stage.daemon.daemon.home)
    with pytest.raises(NotFound):
        again.triggers.get(trigger)
    assert not await again.daemon.daemon.store.read("SELECT id FROM triggers")
