"""People and agents publish events, and triggers are on disk when they have."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from agenthost import Custom, Event
from agenthost.testing import RunningAgent
from agenthost_orchestration.triggers.publishing import publish
from sqlalchemy import Connection

from . import rehearsal
from .stage import ORDERS, Stage, operator

DEEP: dict[str, Any] = {}
for _ in range(40):
    DEEP = {"in": DEEP}


async def shop(stage: Stage, name: str = "shop") -> RunningAgent:
    return await stage.daemon.agent(name, tools=("event_publish", "agent_call"))


async def test_an_agent_publishes_what_a_trigger_waits_for(stage: Stage) -> None:
    trigger = await stage.trigger()
    agent = await shop(stage)
    told: list[Event] = []
    stage.daemon.daemon.events.subscribe(told.append, Custom)
    stage.daemon.model.calls("event_publish", type="order", data={"number": 4})
    stage.daemon.model.says("Done.")
    await agent.ask("Sell.")
    [occasion] = await stage.occasions(trigger)
    [event] = told
    assert occasion.key == event.id
    assert occasion.payload["data"] == {"type": "order", "data": {"number": 4}}
    assert (event.subject, event.source, event.depth) == (agent.id, agent.id, 0)
    assert event.by == "loopback:loopback"


async def test_what_an_agent_publishes_does_not_fire_its_own_triggers(
    stage: Stage,
) -> None:
    agent = await shop(stage)
    body = {"agent_id": agent.id, "pattern": ORDERS}
    found = {}
    for own in (False, True):
        made = await stage.daemon.http.post(
            "/api/triggers", json=body | {"own_events": own}
        )
        found[own] = made.json()["trigger_id"]
    stage.daemon.model.calls("event_publish", type="order")
    stage.daemon.model.says("Done.")
    await agent.ask("Sell.")
    assert len(await stage.occasions(found[False])) == 0
    assert len(await stage.occasions(found[True])) == 1


async def test_an_event_is_published_whether_or_not_anybody_waits(stage: Stage) -> None:
    assert await stage.publish("nothing")
    heard: list[Custom] = []
    stage.daemon.daemon.events.subscribe(heard.append, Custom)
    assert await stage.publish("something") == heard[0].id
    assert heard[0].subject == "loopback:loopback"


async def test_what_is_no_event_is_refused_by_its_field(stage: Stage) -> None:
    trigger = await stage.trigger()
    refused: tuple[tuple[Any, int, str], ...] = (
        ({}, 400, "type"),
        ({"type": ""}, 400, "type: must be"),
        ({"type": "two words"}, 400, "type: must be"),
        ({"type": "x" * 129}, 400, "type: must be"),
        ({"type": "order", "data": [1]}, 400, "data"),
        ({"type": "order", "data": DEEP}, 400, "data: must be nested"),
        ({"type": "order", "data": {"a": "x" * 33_000}}, 413, "data: must be at most"),
        ({"type": "order", "subject": "me"}, 400, "subject"),
    )
    for body, status, told in refused:
        answer = await stage.daemon.http.post("/api/events", json=body)
        assert answer.status_code == status, (body, answer.text)
        assert told in answer.json()["error"]
    assert await stage.occasions(trigger) == []


async def test_many_events_at_once_fire_once_each(stage: Stage) -> None:
    trigger = await stage.trigger(cooldown_secs=0)
    events = await asyncio.gather(*(stage.publish() for _ in range(25)))
    found = [each.key for each in await stage.occasions(trigger)]
    assert sorted(found) == sorted(events)
    shown = await stage.shown(trigger)
    assert shown["fire_count"] == len(events)


async def test_many_events_of_a_subject_at_once_fire_once(stage: Stage) -> None:
    """None of them knows of another when it is asked about: the disk does."""
    trigger = await stage.trigger()
    await asyncio.gather(*(stage.publish() for _ in range(25)))
    assert len(await stage.occasions(trigger)) == 1
    assert (await stage.shown(trigger))["fire_count"] == 1


async def test_a_prompt_holds_the_data_as_json(stage: Stage) -> None:
    trigger = await stage.trigger(prompt_template="{{event.json}}")
    await stage.publish("order", {"word": 'a "quote"', "é": 1})
    [occasion] = await stage.occasions(trigger)
    errand = await stage.triggers.errand(stage.daemon.daemon, occasion)
    told = json.loads(errand.prompt)
    assert told["data"]["data"] == {"word": 'a "quote"', "é": 1}


async def test_what_an_event_sets_off_is_on_disk_when_it_was_published(
    stage: Stage,
) -> None:
    trigger = await stage.trigger()
    host = stage.daemon.daemon
    event = await publish(host, operator(), "order", {})

    def found(connection: Connection) -> list[str]:
        rows = connection.execute(rehearsal.ALL).mappings()
        return [row["key"] for row in rows if row["source_id"] == trigger]

    # It is asked for before anything else can be begun.
    assert await host.store.write(found) == [event.id]
