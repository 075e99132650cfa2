"""Triggers over the API: made, listed, changed, deleted, and what is refused."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from agenthost.testing import Daemons

from .stage import ORDERS, Stage, stage_at

REFUSED: dict[str, tuple[dict[str, Any], int, str]] = {
    "no agent": ({"agent_id": None}, 400, "agent_id"),
    "no id": ({"agent_id": "tester"}, 400, "agent_id"),
    "nobody": ({"agent_id": str(uuid4())}, 404, "agent not found"),
    "no pattern": ({"pattern": "lifecycles"}, 400, "pattern: unknown; it is one of"),
    "negative": ({"max_fires": -1}, 400, "max_fires"),
    "not whole": ({"max_fires": 1.5}, 400, "max_fires"),
    "no number": ({"max_fires": "3"}, 400, "max_fires"),
    "empty": ({"prompt_template": ""}, 400, "prompt_template"),
    "too long": ({"prompt_template": "x" * 16_385}, 400, "prompt_template"),
    "too many": ({"prompt_template": "{{event}}" * 17}, 400, "16 are the most"),
    "no allowance": ({"allowance_usd": None}, 400, "allowance_usd"),
    "none at all": ({"allowance_usd": 0}, 400, "allowance_usd"),
    "endless rest": ({"cooldown_secs": 86_401}, 400, "cooldown_secs"),
    "rolling": ({"session": "rolling"}, 400, "keep: must say how many messages"),
    "no session": ({"session": "mine"}, 400, "session"),
    "nowhere": ({"delivery": {"kind": "webhook"}}, 400, "delivery.target: must say"),
    "no URL": (
        {"delivery": {"kind": "webhook", "target": "file:///etc"}},
        400,
        "delivery.target: must be an http or https URL",
    ),
    "misspelt": ({"cooldown": 5}, 400, "cooldown"),
}


async def test_a_trigger_is_made_with_what_is_left_out(stage: Stage) -> None:
    trigger = await stage.trigger("lifecycle")
    shown = await stage.shown(trigger)
    made_at = shown.pop("created_at")
    assert made_at == "2026-01-01T00:00:00.000Z"
    assert shown == {
        "id": trigger,
        "agent_id": stage.agent.id,
        "pattern": {"lifecycle": {}},
        "prompt_template": "Event: {{event}}",
        "enabled": True,
        "fire_count": 0,
        "max_fires": 0,
        "cooldown_secs": None,
        "session": "own",
        "keep": 0,
        "delivery": {"kind": "none", "target": ""},
        "allowance_usd": 0.5,
        "own_events": False,
        "paused_reason": None,
        "held_back": 0,
        "created_by": "loopback:loopback",
        "last_fired_at": None,
    }


async def test_what_cannot_be_is_refused_by_its_field(stage: Stage) -> None:
    http = stage.daemon.http
    body = {"agent_id": stage.agent.id, "pattern": "all"}
    missing = await http.post("/api/triggers", json={"agent_id": stage.agent.id})
    assert (missing.status_code, "pattern" in missing.text) == (400, True)
    for name, (changes, status, told) in REFUSED.items():
        answer = await http.post("/api/triggers", json=body | changes)
        assert (answer.status_code, name) == (status, name), answer.text
        assert told in answer.json()["error"], (name, answer.text)
    assert (await http.get("/api/triggers")).json() == []


async def test_triggers_are_listed_of_an_agent(stage: Stage) -> None:
    http, other = stage.daemon.http, await stage.daemon.agent("other")
    first = await stage.trigger("all")
    await stage.clock.advance(1)
    second = await stage.trigger("system")
    assert [row["id"] for row in (await http.get("/api/triggers")).json()] == [
        first,
        second,
    ]
    for agent_id, found in ((other.id, []), (stage.agent.id.upper(), [first, second])):
        rows = await http.get("/api/triggers", params={"agent_id": agent_id})
        assert [row["id"] for row in rows.json()] == found
    wrong = await http.get("/api/triggers", params={"agent_id": "tester"})
    assert wrong.status_code == 400
    assert "agent_id" in wrong.json()["error"]


async def test_a_change_leaves_what_it_does_not_name(stage: Stage) -> None:
    trigger = await stage.trigger(cooldown_secs=7)
    before = await stage.shown(trigger)
    await stage.change(trigger)
    assert await stage.shown(trigger) == before
    changes = {
        "pattern": "system",
        "prompt_template": "{{event}}!",
        "max_fires": 3,
        "cooldown_secs": None,
        "session": "rolling",
        "keep": 9,
        "delivery": {"kind": "session", "target": "s"},
        "allowance_usd": 2.5,
        "own_events": True,
        "enabled": False,
    }
    await stage.change(trigger, **changes)
    now = {"pattern": {"system": {}}, "paused_reason": "disabled by loopback:loopback"}
    assert await stage.shown(trigger) == before | changes | now


@pytest.mark.parametrize("verb", ["get", "put", "delete"])
async def test_a_trigger_that_is_not_there_is_not_found(
    stage: Stage, verb: str
) -> None:
    body = {"enabled": True} if verb == "put" else None
    for id_, status in ((uuid4(), 404), ("x", 400)):
        answer = await stage.daemon.http.request(
            verb, f"/api/triggers/{id_}", json=body
        )
        assert answer.status_code == status


async def test_null_changes_nothing_that_must_be(stage: Stage) -> None:
    trigger = await stage.trigger()
    for name in ("pattern", "enabled", "max_fires", "allowance_usd", "session"):
        path = f"/api/triggers/{trigger}"
        answer = await stage.daemon.http.put(path, json={name: None})
        assert answer.status_code == 400
        assert answer.json()["error"].startswith(f"{name}: must not be null")


async def test_a_deleted_trigger_fires_no_more(stage: Stage) -> None:
    trigger = await stage.trigger()
    keep = stage.asked(stage.custom())
    gone = await stage.daemon.http.delete(f"/api/triggers/{trigger}")
    assert gone.json() == {"status": "removed", "trigger_id": trigger}
    # What was asked about before that is not written after it.
    assert keep is not None
    await stage.daemon.daemon.store.write(keep)
    assert await stage.occasions(trigger) == []


async def test_triggers_are_there_after_a_start(daemons: Daemons, stage: Stage) -> None:
    triggers = [await stage.trigger(each) for each in ("all", ORDERS, "lifecycle")]
    before = [await stage.shown(each) for each in triggers[1:]]
    await stage.daemon.daemon.stop()
    again = await stage_at(daemons, stage.daemon.daemon.home)
    assert [await again.shown(each) for each in triggers[1:]] == before
    await again.cause(again.custom())
    assert len(await again.occasions(triggers[1])) == 1


async def test_what_became_of_firings_is_listed_newest_first(stage: Stage) -> None:
    trigger = await stage.trigger(cooldown_secs=0)
    events = []
    for number in range(3):
        events.append(await stage.publish("order", {"number": number}))
        await stage.clock.advance(1)
    await stage.settled()
    path = f"/api/triggers/{trigger}/occasions"
    listed = (await stage.daemon.http.get(path, params={"limit": 2})).json()
    assert [row["key"] for row in listed["occasions"]] == events[:0:-1]
    [row, _] = listed["occasions"]
    assert (row["source"], row["source_id"], row["state"]) == (
        "trigger",
        trigger,
        "due",
    )
    assert row["at"] == "2026-01-01T00:00:02.000Z"


async def test_only_so_many_triggers_can_be(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agenthost_orchestration.triggers import writes

    monkeypatch.setattr(writes, "MOST", 2)
    for _ in range(2):
        await stage.trigger()
    body = {"agent_id": stage.agent.id, "pattern": "all"}
    answer = await stage.daemon.http.post("/api/triggers", json=body)
    assert answer.status_code == 409
    assert "delete one" in answer.json()["error"]
