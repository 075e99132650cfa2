"""Observers hear of everything a turn does, and harm nothing."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from agenthost import (
    ALLOW,
    Activity,
    Cancelled,
    ChatRequest,
    Completion,
    Denied,
    Deny,
    Grants,
    Guard,
    Message,
    Observer,
    Principal,
    PrincipalKind,
    ProviderError,
    ProviderFault,
    Refused,
    SecuritySystem,
    ToolOutput,
    ToolUse,
    TurnResult,
    Verdict,
    hookimpl,
)
from agenthost.context import OPERATOR, Context
from agenthost.testing import Daemons, Pause
from agenthost_events.observers import ToldObservers
from agenthost_front.access import Access
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus


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
    observers = ToldObservers(daemon.daemon, offers)
    context = Context(OPERATOR)
    with observers.watch(agent.context(), ToolUse("1", "calculate", {})) as seen:
        assert (seen is None) == (not offers)
    assert context.cause is None


class Judge(Observer):
    """Every verdict and refusal that it was told of."""

    def __init__(self) -> None:
        self.verdicts: list[tuple[str, Any, Verdict, str]] = []
        self.refusals: list[tuple[str, str, str]] = []
        self.threads: set[int] = set()

    def judged(self, point: str, case: Any, verdict: Verdict, system: str) -> None:
        self.threads.add(threading.get_ident())
        self.verdicts.append((point, case, verdict, system))

    def refused(self, error: Refused) -> None:
        of = error.principal
        self.refusals.append((f"{of.kind}:{of.name}", error.action, error.resource))

    def at(self, point: str) -> list[tuple[Verdict, str]]:
        return [(verdict, s) for p, _, verdict, s in self.verdicts if p == point]


def guarding(**guards: Callable[[Any], Verdict]) -> SimpleNamespace:
    """A plugin with these guards."""

    def security_system() -> SecuritySystem:
        return SecuritySystem("strict", cast("Any", guards), lambda: None)

    return SimpleNamespace(__name__="strict", security_system=hookimpl(security_system))


async def test_observers_are_told_of_verdicts(daemons: Daemons) -> None:
    judge = Judge()
    no_files = guarding(path=lambda case: Deny("no") if case.write else ALLOW)
    daemon = await daemons.start(plugins=[observing(judge), no_files])
    agent = await daemon.agent(tools=["file_write", "file_list"])
    daemon.model.calls("file_list")
    daemon.model.calls("file_write", path="a", content="b")
    assert await agent.ask("write")
    # A path is judged in a thread; it is told of on the loop.
    assert judge.at("path") == [(ALLOW, ""), (Deny("no"), "strict")]
    # Where nobody guards, who listens hears of what passed.
    assert judge.at("tool_call") == [(ALLOW, "")] * 2
    calls = [case for point, case, *_ in judge.verdicts if point == "tool_call"]
    assert [case.tool for case in calls] == ["file_list", "file_write"]
    assert judge.at("manifest") == [(ALLOW, "")]
    assert judge.threads == {threading.get_ident()}


async def test_observers_are_told_who_had_no_right(daemons: Daemons) -> None:
    judge = Judge()
    daemon = await daemons.start(plugins=[observing(judge)])
    agent = await daemon.agent(tools=["kv_set", "agent_call"])
    daemon.model.calls("file_write", path="a", content="b")
    daemon.model.calls("kv_set", key="shared.a", value=1)
    await agent.ask("try it")
    assert judge.refusals == [
        ("agent:tester", "tool", "file_write"),
        ("agent:tester", "memory_write", "shared.a"),
    ]


@pytest.mark.parametrize("path", ["/api/health/detail", "/api/agents/x/ws"])
async def test_observers_are_told_who_had_no_right_to_a_route(
    daemons: Daemons, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    judge = Judge()
    daemon = await daemons.start(plugins=[observing(judge)])
    guest = Principal(PrincipalKind.ANONYMOUS, "guest", Grants())
    monkeypatch.setattr(Access, "identify", lambda *_: guest)
    monkeypatch.setattr(Access, "identify_socket", lambda *_: guest)
    if path.endswith("ws"):
        agent = await daemon.daemon.agents.spawn(Context(OPERATOR), 'name = "ada"')
        url = f"{daemon.url}/api/agents/{agent[0].id}/ws".replace("http", "ws")
        with pytest.raises(InvalidStatus):
            await connect(url)
    else:
        assert (await daemon.http.get(path)).status_code == 403
    [(who, action, _)] = judge.refusals
    assert (who, action) == ("anonymous:guest", "route")


async def test_nobody_is_told_of_verdicts_who_does_not_listen(
    daemons: Daemons,
) -> None:
    config = '[plugins]\ndisable = ["security:loop_guard"]\n'
    daemon = await daemons.start(plugins=[observing(Notes())], config=config)
    guards = daemon.daemon.guards
    assert guards.on_verdict is None
    assert not guards.filled(Guard.TOOL_CALL)


@pytest.mark.parametrize(
    "error",
    [RuntimeError("x"), SystemExit(3), asyncio.CancelledError(), BaseException("odd")],
)
async def test_an_observer_of_verdicts_that_raises_is_dropped_and_decides_nothing(
    daemons: Daemons, error: BaseException
) -> None:
    class Raises(Observer):
        def judged(self, *_: object) -> None:
            raise error

        def refused(self, _: Refused) -> None:
            raise error

    daemon = await daemons.start(plugins=[observing(Raises())])
    agent = await daemon.agent()
    daemon.model.calls("calculate", expression="1+1")
    daemon.model.says("two")
    assert await agent.ask("what is 1+1?") == "two"
    assert daemon.daemon.observers.find(Raises) is None
    assert daemon.daemon.guards.on_verdict is None
    assert not daemon.daemon.plugins.healthy("plugin:watching")
