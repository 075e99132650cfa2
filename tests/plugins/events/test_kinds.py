"""Each kind of event is told by a real daemon, and made only for who wants it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from agenthost import (
    Activity,
    AgentCrashed,
    AgentResumed,
    AgentSpawned,
    AgentState,
    AgentSuspended,
    AgentTerminated,
    AgentUpdated,
    BudgetAlert,
    BudgetExceeded,
    Custom,
    DaemonStarted,
    DaemonStopping,
    Event,
    HealthChanged,
    LifecycleEvent,
    MemoryChanged,
    MessageEvent,
    MessageReceived,
    Observer,
    PluginFailed,
    ProviderFault,
    QuotaEvent,
    SystemEvent,
    ToolCalled,
    ToolDenied,
    ToolEnded,
    ToolEvent,
    TurnEnded,
    TurnStarted,
    Usage,
    as_json,
    hookimpl,
)
from agenthost.testing import Daemons, ManualClock, Pause, RunningAgent, RunningDaemon

from ..agents.test_lives import stands

PAGE = Path(__file__).parents[3] / "docs" / "events.md"
GROUPS = (LifecycleEvent, MessageEvent, ToolEvent, SystemEvent, QuotaEvent)
KINDS: tuple[type[Event], ...] = (
    AgentSpawned,
    AgentUpdated,
    AgentSuspended,
    AgentResumed,
    AgentCrashed,
    AgentTerminated,
    MessageReceived,
    TurnStarted,
    TurnEnded,
    ToolCalled,
    ToolEnded,
    ToolDenied,
    MemoryChanged,
    DaemonStarted,
    DaemonStopping,
    HealthChanged,
    PluginFailed,
    BudgetAlert,
    BudgetExceeded,
    Custom,
)
BUDGET = "[budget]\nmax_hourly_usd = 0.01\n"
# Schedules and triggers hear of agents, whose ends are theirs too; the audit trail
# wants to hear of everything.
DEAF = """
[plugins]
disable = ["plugin:orchestration", "security:merkle_audit_trail"]
"""
PATIENCE = 30.0


class Ear:
    """A plugin that notes what it hears, in its thread."""

    def __init__(self, on_event: Callable[[list[Event]], Callable[..., None]]) -> None:
        self.heard: list[Event] = []
        hook = hookimpl(on_event(self.heard))
        self.plugin = SimpleNamespace(__name__="ear", on_event=hook)

    async def until(self, kind: type[Event]) -> Event:
        """Wait until a kind was heard."""
        async with asyncio.timeout(PATIENCE):
            while True:
                for event in self.heard:
                    if isinstance(event, kind):
                        return event
                await asyncio.sleep(0.001)


def to_all(heard: list[Event]) -> Callable[..., None]:
    def on_event(event: Event) -> None:
        heard.append(event)

    return on_event


class Breaks(Observer):
    """Fails its plugin when it is told of a turn."""

    def ended(self, activity: Activity) -> None:
        raise RuntimeError("tired")


def failing() -> SimpleNamespace:
    @hookimpl
    def register_observer() -> Iterator[Observer]:
        yield Breaks()

    return SimpleNamespace(__name__="tired", register_observer=register_observer)


async def everything(daemons: Daemons, *plugins: object) -> RunningAgent:
    """Let all that has an event happen to one daemon, which is stopped."""
    clock = ManualClock()
    running = await daemons.start(
        plugins=[failing(), *plugins], config=BUDGET + DEAF, clock=clock
    )
    agent = await running.agent("ada")
    http, path = running.http, f"/api/memory/agents/{agent.id}/kv/colour"
    calls = (
        ("calculate", {"expression": "1+1"}),
        ("web_fetch", {"url": "http://127.0.0.1/"}),
    )
    for name, arguments in calls:
        running.model.calls(name, **arguments)
    running.model.says("two")
    await agent.ask("what is 1+1?")
    await http.put(path, json={"value": "blue"})
    await http.delete(path)
    await http.put(f"/api/agents/{agent.id}/model", json={"model": "scripted-model"})
    running.model.says("dear", usage=Usage(9_900, 0))
    assert (await agent.send("again")).status_code == 200
    assert (await agent.send("again")).status_code == 429
    running.daemon.agents.crash(agent.id, "it fell")
    await stands(agent, AgentState.CRASHED)
    assert (await http.post(f"/api/agents/{agent.id}/suspend")).status_code == 200
    assert (await http.post(f"/api/agents/{agent.id}/resume")).status_code == 200
    running.daemon.events.publish(Custom("test", clock.time(), "done", {"n": 1}))
    assert (await http.delete(f"/api/agents/{agent.id}")).status_code == 200
    await running.daemon.stop()
    return agent


async def test_every_kind_is_heard_by_a_plugin(
    daemons: Daemons, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agenthost_http_api.health.LOOKED_AT_EVERY", 0.02)
    ear = Ear(to_all)
    agent = await everything(daemons, ear.plugin)
    heard = {type(event): event for event in reversed(ear.heard)}
    assert set(heard) == set(KINDS)
    assert ear.heard[0].kind == "daemon_started"
    assert ear.heard[-1].kind == "daemon_stopping"
    told: Any = {kind: as_json(event) for kind, event in heard.items()}
    received, ended = told[MessageReceived]["data"], told[TurnEnded]["data"]
    assert told[MessageReceived]["subject"] == told[ToolEnded]["subject"] == agent.id
    assert received["text"] == "what is 1+1?"
    assert (received["agent"], received["caller"]) == ("ada", "loopback")
    assert (
        ended["turn_id"] == received["turn_id"] == told[ToolCalled]["data"]["turn_id"]
    )
    assert (ended["state"], ended["text"], ended["error"]) == ("done", "two", "")
    assert (ended["input_tokens"], ended["output_tokens"]) == (30, 15)
    assert ended["cost_micro_usd"] == 60
    assert told[ToolEnded]["data"]["tool"] == "calculate"
    assert told[ToolEnded]["data"]["text"] == "2"
    assert told[MemoryChanged]["data"] == {"key": "colour", "operation": "set"}
    assert told[PluginFailed]["subject"] == "plugin:tired"
    assert told[HealthChanged]["data"] == {"status": "degraded"}
    assert told[BudgetExceeded]["data"]["limit"] == "budget.max_hourly_usd"
    json.dumps(list(told.values()))


async def test_a_turn_is_told_in_order(daemons: Daemons) -> None:
    ear = Ear(to_all)
    running = await daemons.start(plugins=[ear.plugin])
    agent = await running.agent()
    running.model.calls("calculate", expression="1+1")
    await agent.ask("hello")
    await ear.until(TurnEnded)
    told = [
        event.kind for event in ear.heard if isinstance(event, MessageEvent | ToolEvent)
    ]
    assert told == [
        "message_received",
        "turn_started",
        "tool_called",
        "tool_ended",
        "turn_ended",
    ]


async def stopped(running: RunningDaemon, agent: RunningAgent) -> tuple[str, str]:
    pause = Pause()
    running.model.says("one", pause)
    turn = agent.start("hello")
    await pause.reached.wait()
    await turn.stop()
    return "cancelled", "cancelled"


async def failed(running: RunningDaemon, agent: RunningAgent) -> tuple[str, str]:
    running.model.fails(ProviderFault.AUTH)
    answer = await agent.send("hello")
    return "failed", answer.json()["code"]


@pytest.mark.parametrize("happens", [stopped, failed])
async def test_how_a_turn_ended_is_told(
    daemons: Daemons, happens: Callable[..., Awaitable[tuple[str, str]]]
) -> None:
    ear = Ear(to_all)
    running = await daemons.start(plugins=[ear.plugin])
    ending = await happens(running, await running.agent())
    event = await ear.until(TurnEnded)
    assert isinstance(event, TurnEnded)
    assert (event.state, event.error) == ending


def count(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note each event that is made."""
    made: list[str] = []
    for kind in KINDS:
        with suppress(TypeError):
            # It makes its methods when it is first used: not while they are replaced.
            kind()  # type: ignore[call-arg]
        before: Any = kind.__init__

        def init(self: Event, *given: Any, before: Any = before, **named: Any) -> None:
            made.append(self.kind)
            before(self, *given, **named)

        monkeypatch.setattr(kind, "__init__", init)
    return made


async def test_no_event_is_made_that_nobody_wants(
    daemons: Daemons, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = count(monkeypatch)
    await everything(daemons)
    assert made == ["custom"], "the one that the test makes itself"


async def test_only_the_kinds_that_somebody_wants_are_made(
    daemons: Daemons, monkeypatch: pytest.MonkeyPatch
) -> None:
    def to_some(heard: list[Event]) -> Callable[..., None]:
        def on_event(event: AgentSpawned | ToolEvent) -> None:
            heard.append(event)

        return on_event

    made = count(monkeypatch)
    ear = Ear(to_some)
    await everything(daemons, ear.plugin)
    kinds = {"agent_spawned", "tool_called", "tool_denied", "tool_ended"}
    assert {event.kind for event in ear.heard} == kinds
    assert set(made) == {*kinds, "custom"}


def sections() -> dict[str, tuple[str, Any]]:
    """The first line and the example of each kind of the page."""
    found = re.findall(
        r"^## (\w+)\n\n`(\w+)`.*?```json\n(.*?)\n```",
        PAGE.read_text("utf-8"),
        re.M | re.S,
    )
    return {kind: (name, json.loads(example)) for kind, name, example in found}


def leaves(kind: type[Event]) -> Iterator[type[Event]]:
    """The kinds of the kernel below one."""
    inner = [
        each for each in kind.__subclasses__() if each.__module__ == Event.__module__
    ]
    if not inner:
        yield kind
    for each in inner:
        yield from leaves(each)


def test_the_page_shows_every_kind_as_it_is_told() -> None:
    known = sections()
    assert set(leaves(Event)) == set(KINDS)
    assert known.keys() == {kind.kind for kind in KINDS}
    for kind in KINDS:
        name, example = known[kind.kind]
        common = {each.name for each in fields(Event)}
        data = {each.name for each in fields(kind)} - common
        assert name == kind.__name__
        assert example["kind"] == kind.kind
        assert example["data"].keys() == data
        told = {name: example[name] for name in common - {"kind"}}
        made = kind(**told, **example["data"])
        assert as_json(made) == example


def test_an_event_is_frozen() -> None:
    event = AgentSpawned("id", 0.0, "ada")
    with pytest.raises(AttributeError):
        event.name = "bob"  # type: ignore[misc]  # what the test is about


def test_a_plugin_has_kinds_of_its_own() -> None:
    class ShelfEmpty(Event):
        """A shelf has run empty."""

        shelf: int

    told = as_json(ShelfEmpty("stock", 1.0, 4, id="1", by="agent:ada", depth=1))
    assert told == {
        "kind": "shelf_empty",
        "id": "1",
        "subject": "stock",
        "at": 1.0,
        "by": "agent:ada",
        "source": "",
        "depth": 1,
        "data": {"shelf": 4},
    }
