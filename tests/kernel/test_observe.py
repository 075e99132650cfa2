"""Observers hear of everything a turn does, and harm nothing."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from agenthost import (
    Activity,
    Cancelled,
    ChatRequest,
    Completion,
    Denied,
    Message,
    Observer,
    ProviderError,
    ProviderFault,
    ToolOutput,
    ToolUse,
    TurnResult,
    hookimpl,
)
from agenthost.context import OPERATOR, Context
from agenthost.testing import Daemons, Pause
from agenthost_events.observers import ToldObservers
from agenthost_events.telling import Teller


class Notes(Observer):
    """Everything that it was told."""

    def __init__(self) -> None:
        self.begun: list[Activity] = []
        self.done: list[Activity] = []

    def started(self, activity: Activity) -> None:
        assert activity.result is None
        self.begun.append(activity)

    def ended(self, activity: Activity) -> None:
        self.done.append(activity)

    def about(self, kind: type) -> list[Activity]:
        return [a for a in self.done if isinstance(a.subject, kind)]


class Breaks(Observer):
    """Raises at every word."""

    def __init__(self, error: BaseException) -> None:
        self.told = 0
        self._error = error

    def started(self, activity: Activity) -> None:
        self.told += 1
        raise self._error


def observing(*observers: Observer) -> SimpleNamespace:
    """A plugin with these observers."""

    def register_observer() -> list[Observer]:
        return [*observers]

    return SimpleNamespace(
        __name__="watching", register_observer=hookimpl(register_observer)
    )


async def test_register_observer_hears_of_turns_model_calls_and_tool_calls(
    daemons: Daemons,
) -> None:
    notes = Notes()
    daemon = await daemons.start(plugins=[observing(notes)])
    agent = await daemon.agent()
    daemon.model.calls("calculate", expression="1+1")
    daemon.model.says("two")
    assert await agent.ask("what is 1+1?") == "two"
    (turn,) = notes.about(Message)
    first, second = notes.about(ChatRequest)
    (tool,) = notes.about(ToolUse)
    assert notes.begun == [turn, first, tool, second]
    assert turn.parent is None
    assert {a.parent for a in (first, second, tool)} == {turn.id}
    assert len({a.id for a in notes.done}) == 4
    assert isinstance(turn.result, TurnResult)
    assert isinstance(first.result, Completion)
    assert first.target is not None
    assert first.target.provider.facts.slug == "scripted"
    assert first.spent is not None
    assert first.spent.cost_micro_usd == 20
    assert first.failed == []
    assert isinstance(tool.result, ToolOutput)
    assert tool.result.text == "2"
    assert turn.context.caller is not None
    assert turn.context.caller.kind == "loopback"
    assert all(a.error is None and a.seconds >= 0 for a in notes.done)


async def test_a_turn_is_the_child_of_the_tool_call_that_asked_for_it(
    daemons: Daemons,
) -> None:
    notes = Notes()
    daemon = await daemons.start(plugins=[observing(notes)])
    boss = await daemon.agent("boss")
    await daemon.agent("clerk")
    daemon.model.calls("agent_call", agent_id="clerk", message="file this")
    daemon.model.says("filed")
    daemon.model.says("done")
    assert await boss.ask("have it filed") == "done"
    (call,) = notes.about(ToolUse)
    inner, outer = notes.about(Message)
    assert (inner.parent, call.parent, outer.parent) == (call.id, outer.id, None)
    assert inner.context.caller is not None
    assert inner.context.caller.name == "boss"


async def test_a_stop_a_failure_and_a_refusal_are_told_with_their_error(
    daemons: Daemons,
) -> None:
    notes = Notes()
    daemon = await daemons.start(plugins=[observing(notes)])
    agent = await daemon.agent(tools=["calculate"])
    daemon.model.says("one", Pause(), "two")
    turn = agent.start("count")
    await turn.seen("one")
    await turn.stop()
    daemon.model.fails(ProviderFault.BAD_REQUEST)
    await agent.send("again")
    daemon.model.calls("kv_set", key="self.a", value="b")
    await agent.ask("store it")
    stopped, failed, done = notes.about(Message)
    assert isinstance(stopped.error, Cancelled)
    assert isinstance(failed.error, ProviderError)
    assert done.error is None
    (refused,) = notes.about(ToolUse)
    assert isinstance(refused.error, Denied)
    assert refused.result is None


@pytest.mark.parametrize("error", [RuntimeError("broken observer"), SystemExit(3)])
async def test_an_observer_that_raises_is_dropped_and_harms_nothing(
    daemons: Daemons, error: BaseException
) -> None:
    broken, notes = Breaks(error), Notes()
    daemon = await daemons.start(plugins=[observing(broken, notes)])
    agent = await daemon.agent()
    daemon.model.calls("calculate", expression="1+1")
    daemon.model.says("two")
    assert await agent.ask("what is 1+1?") == "two"
    assert broken.told == 1
    assert len(notes.done) == 4
    assert daemon.daemon.observers.find(Breaks) is None
    detail = (await daemon.http.get("/api/health/detail")).json()
    (state,) = [s for s in detail["plugins"] if s["key"] == "plugin:watching"]
    assert state["status"] == "failed"
    assert "its observer raised" in state["reason"]


@pytest.mark.parametrize("offers", [[], [("plugin:notes", Notes())]])
async def test_nothing_is_made_where_nobody_observes(
    daemons: Daemons, offers: list[tuple[str, Observer]]
) -> None:
    daemon = await daemons.start()
    agent = await daemon.agent()
    observers = ToldObservers(daemon.daemon, offers, Teller(daemon.daemon.events))
    context = Context(OPERATOR)
    with observers.watch(agent.context(), ToolUse("1", "calculate", {})) as seen:
        assert (seen is None) == (not offers)
    assert context.cause is None
