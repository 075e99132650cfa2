"""Let calls pass by the loop guard, as a toolbox has them pass."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, Protocol, cast

from agenthost import (
    OPERATOR,
    AgentHostError,
    AgentView,
    Context,
    Guard,
    Guards,
    Host,
    Manifest,
    SecuritySystem,
    ToolCallCase,
    ToolResultCase,
)
from agenthost_security import loop_guard
from agenthost_security.loop_guard.settings import LoopGuardSection


class Called(Protocol):
    """A call and what comes of it."""

    tool: str
    arguments: Mapping[str, Any]
    result: str
    seconds: float
    agent: str
    turn: str


def system_with(clock: Any, **settings: Any) -> SecuritySystem:
    """Make the system of a daemon with these settings."""
    system = loop_guard.security_system()
    section = LoopGuardSection(**settings)
    host = SimpleNamespace(settings=lambda _: section, clock=clock)
    loops: Any = system.guards["tool_call"]
    loops.__self__.begin(cast("Host", host))
    return system


class Follower:
    """Follows the calls of one message, also those of the agents that it led to."""

    def __init__(self, system: SecuritySystem | None = None, **settings: Any) -> None:
        self.now = 0.0
        clock = SimpleNamespace(monotonic=lambda: self.now)
        self.system = system or system_with(clock, **settings)
        self.guards = Guards([self.system])
        self.said: list[str] = []
        self.errors: list[AgentHostError] = []

    def refuses(self, step: Any) -> bool:
        """Make a call; tell whether it was refused. What the model reads is noted."""
        called: Called = step
        self.now += called.seconds
        context = context_of(called.agent, called.turn)
        case = ToolCallCase(context, called.tool, "read", called.arguments)
        text, refused = called.result, False
        try:
            self.guards.check(Guard.TOOL_CALL, case)
        except AgentHostError as error:
            self.errors.append(error)
            text, refused = f"{called.tool} failed: {error.message}", True
        result = ToolResultCase(context, called.tool, text, arguments=called.arguments)
        try:
            self.said.append(self.guards.check(Guard.TOOL_RESULT, result).text)
        except AgentHostError as error:
            self.errors.append(error)
            return True
        return refused


def context_of(agent: str, turn: str, manifest: str = "") -> Context:
    """The context of an agent's turn, in a tree that begins with a turn ``root...``."""
    read = Manifest.model_validate({"name": agent}) if not manifest else None
    view = AgentView(agent, agent, cast("Manifest", read), "session")
    chain = ("session",) if turn.startswith("root") else ("session", turn)
    return Context(OPERATOR, agent=view, turn_id=turn, chain=chain)
