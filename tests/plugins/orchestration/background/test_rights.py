"""Stored work is done with the rights that whoever asked for it has now."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from agenthost import Authenticator, Grants, Host, Principal, hookimpl
from agenthost.testing import Daemons, ManualClock
from agenthost.testing.daemons import RunningDaemon
from agenthost_orchestration.background.errands import (
    Creator,
    Errand,
    Occasion,
    OccasionState,
)
from agenthost_orchestration.background.rights import creator_of

from .stage import ME, Stage, stage_of

MASTER = "master-key-0123456789"
KEYED = f'api_key = "{MASTER}"\n'


async def keyed(daemons: Daemons, **options: Any) -> Stage:
    daemon = await daemons.start(config=KEYED, **options)
    daemon.http.headers["authorization"] = f"Bearer {MASTER}"
    return stage_of(daemon)


async def key(daemon: RunningDaemon, *scopes: str, **facts: Any) -> str:
    """Make a key named ci; give its id."""
    body = {"name": "ci", "scopes": scopes, **facts}
    made = await daemon.http.post("/api/keys", json=body)
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


def for_key(agent_id: str, **facts: Any) -> Errand:
    return Errand(Creator("named_key", "ci"), agent_id, "one", **facts)


def check_refused(stage: Stage, done: Occasion, words: str) -> None:
    assert done.state is OccasionState.REFUSED, done
    assert words in done.detail
    assert stage.daemon.model.requests == []


@pytest.mark.conformance
async def test_a_key_made_anew_inherits_nothing_by_its_name(daemons: Daemons) -> None:
    stage = await keyed(daemons)
    agent = await stage.daemon.agent("ada")
    host = stage.daemon.daemon
    first = await key(stage.daemon, "chat")
    creator = creator_of(host, Principal("named_key", "ci"))
    assert (creator.name, creator.id) == ("ci", first)
    errand = replace(for_key(agent.id), creator=creator)
    stage.dial.errands["noon"] = errand
    assert (await stage.done()).state is OccasionState.DONE
    stage.daemon.model.requests.clear()
    await stage.daemon.http.delete(f"/api/keys/{first}")
    await key(stage.daemon, "chat")
    done = await stage.done()
    check_refused(stage, done, "named_key 'ci' asked for this and may not any more")
    # Nor does one that is named as the first was known.
    await stage.daemon.http.post("/api/keys", json={"name": first, "scopes": ["chat"]})
    stage.dial.pauses.clear()
    check_refused(stage, await stage.done(), "may not any more")


@pytest.mark.conformance
async def test_a_trigger_is_kept_with_the_id_of_the_key_that_made_it(
    daemons: Daemons,
) -> None:
    stage = await keyed(daemons)
    agent = await stage.daemon.agent("ada")
    body = {"name": "ci", "scopes": ["admin"]}
    made = (await stage.daemon.http.post("/api/keys", json=body)).json()
    held = {"authorization": f"Bearer {made['key']}"}
    trigger = {"agent_id": agent.id, "pattern": "all"}
    http = stage.daemon.http
    answer = await http.post("/api/triggers", json=trigger, headers=held)
    assert answer.status_code == 201, answer.text
    ((row),) = await stage.daemon.daemon.store.read("SELECT creator FROM triggers")
    assert json.loads(row["creator"]) == ["named_key", "ci", "", made["id"]]


async def test_a_revoked_key_ends_what_it_has_stored(daemons: Daemons) -> None:
    stage = await keyed(daemons)
    agent = await stage.daemon.agent("ada")
    key_id = await key(stage.daemon, "chat")
    stage.dial.errands["noon"] = for_key(agent.id)
    assert (await stage.done()).state is OccasionState.DONE
    stage.daemon.model.requests.clear()
    await stage.daemon.http.delete(f"/api/keys/{key_id}")
    done = await stage.done()
    check_refused(stage, done, "named_key 'ci' asked for this and may not any more")
    assert stage.dial.pauses["noon"] == done.detail


@pytest.mark.conformance
async def test_an_expired_key_ends_what_it_has_stored(daemons: Daemons) -> None:
    clock = ManualClock()
    stage = await keyed(daemons, clock=clock)
    agent = await stage.daemon.agent("ada")
    await key(stage.daemon, "chat", expires_at="2026-01-01T01:00:00Z")
    stage.dial.errands["noon"] = for_key(agent.id)
    await clock.advance(3600)
    check_refused(stage, await stage.done(), "expired")
    assert "noon" in stage.dial.pauses


@pytest.mark.conformance
@pytest.mark.parametrize("scope", ["read", "chat"])
async def test_a_keys_scopes_are_those_of_now(daemons: Daemons, scope: str) -> None:
    stage = await keyed(daemons)
    agent = await stage.daemon.agent("ada")
    await key(stage.daemon, scope)
    stage.dial.errands["noon"] = for_key(agent.id)
    done = await stage.done()
    allowed = scope == "chat"
    assert (done.state is OccasionState.DONE) is allowed
    assert ("noon" in stage.dial.pauses) is not allowed


@pytest.mark.conformance
async def test_events_need_a_right_of_their_own(daemons: Daemons) -> None:
    stage = await keyed(daemons)
    await key(stage.daemon, "read")
    event = {"type": "bell", "data": {}}
    stage.dial.errands["noon"] = for_key("", event=event)
    check_refused(stage, await stage.done(), "events:write")


@pytest.mark.conformance
async def test_workflows_need_a_right_of_their_own(daemons: Daemons) -> None:
    stage = await keyed(daemons)
    await key(stage.daemon, "read")
    stage.dial.errands["noon"] = for_key("", workflow_id="review")
    check_refused(stage, await stage.done(), "workflows:run")


@pytest.mark.conformance
async def test_loopback_holds_only_while_there_is_no_key(daemons: Daemons) -> None:
    open_ = stage_of(await daemons.start())
    agent = await open_.daemon.agent("ada")
    errand = Errand(Creator("loopback", "loopback"), agent.id, "one")
    open_.dial.errands["noon"] = errand
    assert (await open_.done()).state is OccasionState.DONE
    stage = await keyed(daemons)
    other = await stage.daemon.agent("ada")
    loopback = Creator("loopback", "loopback")
    stage.dial.errands["noon"] = Errand(loopback, other.id, "one")
    check_refused(stage, await stage.done(), "loopback 'loopback'")
    holder = Creator("api_key", "api_key")
    stage.dial.errands["night"] = Errand(holder, other.id, "one")
    assert (await stage.done("night")).state is OccasionState.DONE


async def test_a_deleted_agent_ends_what_it_has_stored(daemons: Daemons) -> None:
    stage = stage_of(await daemons.start())
    ada, bob = await stage.daemon.agent("ada"), await stage.daemon.agent("bob")
    stage.dial.errands["noon"] = Errand(Creator("agent", ada.id), bob.id, "one")
    await stage.daemon.http.delete(f"/api/agents/{ada.id}")
    # Another agent of its name is not the one that asked.
    await stage.daemon.agent("ada")
    check_refused(stage, await stage.done(), f"agent '{ada.id}'")
    assert "noon" in stage.dial.pauses


@pytest.mark.conformance
async def test_an_agent_speaks_with_whom_it_may_now(daemons: Daemons) -> None:
    stage = stage_of(await daemons.start())
    answer = await stage.daemon.http.post(
        "/api/agents",
        json={
            "manifest_toml": 'name = "eve"\n[capabilities]\nagent_message = ["ada"]\n'
        },
    )
    eve = answer.json()["agent_id"]
    ada, bob = await stage.daemon.agent("ada"), await stage.daemon.agent("bob")
    for name, target in (("self", eve), ("ada", ada.id), ("bob", bob.id)):
        stage.dial.errands[name] = Errand(Creator("agent", eve), target, "one")
    assert (await stage.done("self")).state is OccasionState.DONE
    assert (await stage.done("ada")).state is OccasionState.DONE
    stage.daemon.model.requests.clear()
    check_refused(stage, await stage.done("bob"), "agent_message")


@pytest.mark.conformance
async def test_a_deleted_target_is_refused_and_the_source_paused(
    daemons: Daemons,
) -> None:
    stage = stage_of(await daemons.start())
    agent = await stage.daemon.agent("ada")
    stage.dial.errands["noon"] = Errand(ME, agent.id, "one")
    await stage.daemon.http.delete(f"/api/agents/{agent.id}")
    check_refused(stage, await stage.done(), "agent not found")
    assert "noon" in stage.dial.pauses


class Badges(Authenticator):
    """Tells people of a channel, and breaks when it is told to."""

    name = "badges"
    broken = False

    async def recall(self, host: Host, kind: str, name: str) -> Principal | None:
        if self.broken:
            raise RuntimeError("lost the book")
        if (kind, name) != ("telegram", "42"):
            return None
        return Principal(kind, name, Grants({"route": ("agents:message",)}), "anna")


@pytest.mark.conformance
async def test_whoever_a_plugin_recalls_may_what_it_says(daemons: Daemons) -> None:
    badges = Badges()

    @hookimpl
    def register_authenticator() -> Iterable[Authenticator]:
        yield badges

    plugin = SimpleNamespace(
        __name__="badges", register_authenticator=register_authenticator
    )
    stage = stage_of(await daemons.start(plugins=[plugin]))
    agent = await stage.daemon.agent("ada")
    errand = Errand(Creator("telegram", "42"), agent.id, "one")
    stage.dial.errands["noon"] = errand
    assert (await stage.done()).state is OccasionState.DONE
    stage.dial.errands["night"] = Errand(Creator("telegram", "43"), agent.id, "one")
    assert (await stage.done("night")).state is OccasionState.REFUSED
    badges.broken = True
    assert (await stage.done()).state is OccasionState.FAILED
