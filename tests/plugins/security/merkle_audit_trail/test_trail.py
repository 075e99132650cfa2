"""What happens is an entry in the very commit of what happened, or does not happen."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import pytest
from agenthost import (
    AgentSpawned,
    Deny,
    Event,
    Guard,
    SecuritySystem,
    ToolContext,
    ToolResult,
    ToolSpec,
    Unavailable,
    hookimpl,
)
from agenthost.testing import Daemons, RunningDaemon
from agenthost_security.merkle_audit_trail import tables
from agenthost_security.merkle_audit_trail.system import trail_of
from agenthost_security.merkle_audit_trail.trail import Trail
from agenthost_security.merkle_audit_trail.tree import TILE
from pydantic import BaseModel

from .book import entries, kinds, standing, verified

TOOLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("agent_list", {}),
    ("calculate", {"expression": "1+1"}),
    ("file_list", {"path": "."}),
    ("file_write", {"path": "a", "content": "x"}),
    ("kv_set", {"key": "a", "value": "b"}),
    ("system_time", {}),
)


async def test_a_message_with_a_tool_is_told_from_end_to_end(
    daemons: Daemons,
) -> None:
    daemon = await daemons.start()
    agent = await daemon.agent()
    daemon.model.calls("calculate", expression="1+1")
    daemon.model.says("two")
    await agent.ask("what is it?")
    assert await kinds(daemon) == [
        "agent_spawned",
        "message_received",
        "turn_started",
        "tool_called",
        "tool_ended",
        "turn_ended",
    ]
    listed = await entries(daemon)
    assert {entry["agent_id"] for entry in listed} == {agent.id}
    assert {entry["actor"] for entry in listed} == {"loopback:loopback"}
    assert [entry["id"] for entry in listed] == [1, 2, 3, 4, 5, 6]


async def test_no_words_of_anybody_are_in_the_trail(daemons: Daemons) -> None:
    daemon = await daemons.start()
    agent = await daemon.agent()
    daemon.model.calls("file_write", path="a", content="canary one")
    daemon.model.says("canary two")
    await agent.ask("canary three")
    told = json.dumps(await entries(daemon))
    assert "canary" not in told
    assert "sha256" in told


def refusing(*tools: str) -> ModuleType:
    """A security system that denies the calls of some tools."""
    plugin = ModuleType("no_tools")

    def deny(case: Any) -> Any:
        return Deny("no") if case.tool in tools else ALLOWED

    from agenthost import ALLOW as ALLOWED

    def security_system() -> SecuritySystem:
        return SecuritySystem("no_tools", {Guard.TOOL_CALL: deny}, lambda: None)

    plugin.security_system = hookimpl(security_system)  # type: ignore[attr-defined]  # reason: made on the spot
    return plugin


class Nothing(BaseModel):
    """No arguments."""


def breaking() -> ModuleType:
    """A plugin whose tool fails."""
    plugin = ModuleType("breaking")

    async def break_down(context: ToolContext, call: Nothing) -> ToolResult:
        raise RuntimeError("down")

    def register_tool() -> Iterable[ToolSpec]:
        from agenthost import Effect

        yield ToolSpec("broken_tool", "Breaks.", Nothing, Effect.WRITE, break_down)

    plugin.register_tool = hookimpl(register_tool)  # type: ignore[attr-defined]  # reason: made on the spot
    return plugin


async def called(
    daemon: RunningDaemon, name: str, arguments: dict[str, Any], agent: Any
) -> list[dict[str, Any]]:
    """Have a tool called; give the entries of it that were not there before."""
    last = (await entries(daemon, limit=1))[-1]["id"]
    daemon.model.calls(name, **arguments)
    daemon.model.says("done")
    await agent.ask("go")
    new = [entry for entry in await entries(daemon) if entry["id"] > last]
    return [entry for entry in new if entry["details"].get("tool") == name]


async def test_every_tool_leaves_one_entry_of_its_outcome(daemons: Daemons) -> None:
    daemon = await daemons.start(plugins=[breaking()])
    every = (await daemon.http.get("/api/tools")).json()["tools"]
    good = dict(TOOLS)
    for number, name in enumerate(every):
        # Some of its own: a long session would be summarised.
        agent = await daemon.agent(f"agent{number}", tools=every, extra=PACE)
        stranger = await daemon.agent(f"stranger{number}", tools=(), extra=PACE)
        outcomes = []
        for by, arguments in (
            (agent, good.get(name, {"no": "such argument"})),
            (agent, {"no": "such argument"}),
            (stranger, good.get(name, {})),
        ):
            listed = await called(daemon, name, arguments, by)
            asked, ended = listed
            assert asked["event_type"] == "tool_called"
            outcomes.append((ended["event_type"], ended["details"].get("is_error")))
        ok = ("tool_ended", name not in good)
        assert outcomes == [ok, ("tool_ended", True), ("tool_denied", None)], name


PACE = "[resources]\nmax_tool_calls_per_minute = 0\n"


async def test_a_guard_that_denies_is_told_as_denied(daemons: Daemons) -> None:
    daemon = await daemons.start(plugins=[refusing("calculate")])
    agent = await daemon.agent()
    listed = await called(daemon, "calculate", {"expression": "1"}, agent)
    assert [e["event_type"] for e in listed] == ["tool_called", "tool_denied"]
    assert listed[1]["details"]["denied_by"] == "guard"


async def test_memory_keys_and_configuration_are_told(daemons: Daemons) -> None:
    daemon = await daemons.start()
    agent = await daemon.agent()
    path = f"/api/memory/agents/{agent.id}/kv/colour"
    await daemon.http.put(path, json={"value": "blue"})
    await daemon.http.post("/api/keys", json={"name": "ci", "scopes": ["read"]})
    await daemon.http.post("/api/providers/openai/key", json={"api_key": "canary"})
    await daemon.http.post("/api/providers/openai/test")
    path = f"/api/agents/{agent.id}/files"
    made = await daemon.http.post(path, files={"file": ("a.txt", b"secret words")})
    await daemon.http.delete(f"{path}/{made.json()['file_id']}")
    await daemon.http.delete(f"/api/agents/{agent.id}")
    assert await kinds(daemon) == [
        "agent_spawned",
        "memory_changed",
        "key_created",
        "provider_keys_changed",
        "provider_tried",
        "file_uploaded",
        "file_deleted",
        "agent_terminated",
    ]
    assert "secret words" not in json.dumps(await entries(daemon))


class Launched(Event):
    """A kind that the trail has never heard of."""

    rocket: str
    crew: list[str]


async def test_a_new_kind_is_told_without_a_change_here(daemons: Daemons) -> None:
    daemon = await daemons.start()
    host = daemon.daemon
    event = Launched("pad", 0.0, rocket="one", crew=["ada"], by="operator:ada")
    keep = host.events.keeping(event)
    assert keep is not None
    await host.store.write(keep)
    [entry] = await entries(daemon)
    assert (entry["event_type"], entry["actor"]) == ("launched", "operator:ada")
    assert entry["details"]["crew"] == ["ada"]


@pytest.mark.parametrize("text", ["\ud800", "\0", "é" * 5000, "'; DROP TABLE x"])
async def test_hostile_words_make_a_good_entry(daemons: Daemons, text: str) -> None:
    daemon = await daemons.start()
    host = daemon.daemon
    event = Launched(text, 0.0, rocket=text, crew=[text] * 9, by=f"user:{text}")
    keep = host.events.keeping(event)
    assert keep is not None
    await host.store.write(keep)
    assert (await verified(daemon))["status"] == "valid"
    [entry] = await entries(daemon)
    assert len(json.dumps(entry)) < 12_000


async def test_what_is_rolled_back_leaves_no_entry_and_no_gap(
    daemons: Daemons,
) -> None:
    daemon = await daemons.start()
    host = daemon.daemon

    def fail(connection: Any) -> None:
        raise Unavailable("no")

    async def happen(*, well: bool) -> None:
        event = AgentSpawned("a", 0.0, "ada")
        keep = host.events.keeping(event)
        assert keep is not None
        await host.store.write(keep, *(() if well else (fail,)))

    results = await asyncio.gather(
        *(happen(well=bool(n % 3)) for n in range(60)), return_exceptions=True
    )
    assert sum(isinstance(each, Unavailable) for each in results) == 20
    answer = await verified(daemon)
    assert (answer["status"], answer["chain_length"]) == ("valid", 40)


async def test_a_commit_whose_entries_find_no_place_is_rolled_back_whole(
    daemons: Daemons, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the last moment: all of it stood in the transaction by then."""
    daemon = await daemons.start()
    agent = await daemon.agent()
    path = f"/api/memory/agents/{agent.id}/kv/colour"
    assert (await daemon.http.put(path, json={"value": 1})).status_code == 200
    with monkeypatch.context() as broken:
        broken.setattr(tables, "put", lambda *_: False)
        results = await asyncio.gather(
            *(daemon.http.put(path, json={"value": n}) for n in range(2, 12))
        )
        assert {each.status_code for each in results} == {503}
    assert (await daemon.http.get(path)).json()["value"] == 1
    assert (await daemon.http.put(path, json={"value": 20})).status_code == 200
    answer = await verified(daemon)
    assert (answer["status"], answer["chain_length"]) == ("valid", 3)


async def test_without_a_row_nothing_happens(daemons: Daemons) -> None:
    daemon = await daemons.start()
    agent = await daemon.agent()
    host = daemon.daemon

    def full(*_: Any, **__: Any) -> None:
        raise Unavailable("the book is full")

    trail = trail_of(host)
    trail._append = full  # type: ignore[method-assign]  # reason: the fault
    made = await daemon.http.post("/api/agents", json={"manifest_toml": 'name = "b"'})
    assert made.status_code == 503
    assert len(host.agents) == 1
    path = f"/api/memory/agents/{agent.id}/kv/colour"
    assert (await daemon.http.put(path, json={"value": 1})).status_code == 503
    assert (await daemon.http.get(path)).status_code == 404
    daemon.model.calls("file_write", path="a", content="x")
    assert (await agent.send("write")).status_code == 503
    files = f"/api/agents/{agent.id}/files"
    sent = {"file": ("a.txt", b"words")}
    assert (await daemon.http.post(files, files=sent)).status_code == 503
    assert (await daemon.http.get(files)).json()["files"] == []
    tried = await daemon.http.post("/api/providers/ollama/test")
    assert tried.status_code == 503
    assert not list((host.data_dir / "workspaces").rglob("a"))


async def test_no_tool_runs_whose_call_cannot_be_told(daemons: Daemons) -> None:
    daemon = await daemons.start()
    agent = await daemon.agent()
    host = daemon.daemon
    trail = trail_of(host)
    append = trail._append

    def but_calls(connection: Any, facts: Any) -> None:
        if facts[1] == "tool_called":
            raise Unavailable("the book is full")
        append(connection, facts)

    trail._append = but_calls  # type: ignore[method-assign]  # reason: the fault
    daemon.model.calls("file_write", path="a", content="x")
    assert (await agent.send("write")).status_code == 503
    assert not list((host.data_dir / "workspaces").rglob("a"))


async def test_what_is_recorded_may_not_happen_before_the_trail_is_open(
    daemons: Daemons,
) -> None:
    daemon = await daemons.start()
    host = daemon.daemon
    trail_of(host).recording = False
    made = await daemon.http.post("/api/agents", json={"manifest_toml": 'name = "b"'})
    assert made.status_code == 403
    assert "audit trail" in made.json()["error"]


async def happening(daemon: RunningDaemon, count: int) -> None:
    """Let so much happen that hashes of whole tiles are kept."""
    keeps = [
        daemon.daemon.events.keeping(AgentSpawned("a", 0.0, "ada"))
        for _ in range(count)
    ]
    await daemon.daemon.store.write(*[keep for keep in keeps if keep is not None])


async def test_a_kill_between_heads_and_tiles_breaks_nothing(
    daemons: Daemons, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await daemons.start()
    with monkeypatch.context() as killed:

        async def never(self: Trail, tiles: object) -> None:
            pass

        killed.setattr(Trail, "_mark", never)
        await happening(first, TILE + 44)
        await trail_of(first.daemon).sign()
        await first.daemon.stop()
    home = first.daemon.home
    for _ in range(3):
        daemon = await daemons.start(home=home)
        await happening(daemon, TILE + 44)
        assert (await verified(daemon))["status"] == "valid"
        head = await trail_of(daemon.daemon).sign()
        assert head is not None
        rows = await daemon.daemon.store.read("SELECT tile FROM audit_tiles")
        assert [*map(tuple, rows)] == [(n,) for n in range(head["size"] // TILE)]
        assert (await standing(daemon))[0] == "active"
        await daemon.daemon.stop()
