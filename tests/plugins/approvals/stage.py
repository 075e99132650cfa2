"""A daemon whose guards ask people before some tools, whose runs are counted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import httpx
from agenthost import (
    ALLOW,
    Ask,
    Deny,
    Effect,
    Guard,
    Question,
    SecuritySystem,
    ToolCallCase,
    ToolContext,
    ToolOutput,
    ToolResult,
    ToolSpec,
    TurnState,
    Verdict,
    hookimpl,
)
from agenthost.testing.daemons import RunningAgent, RunningDaemon
from pydantic import BaseModel

TOOLS = ("pay", "ship", "look", "agent_call")
PATIENCE = 30.0


class Sum(BaseModel, extra="forbid"):
    """Arguments of all tools here."""

    amount: int = 0
    note: str = ""


@dataclass
class Shop:
    """Tools with effects, and a guard that has people asked before those it names."""

    asks: dict[str, Ask | Deny] = field(default_factory=dict)
    runs: list[tuple[str, int]] = field(default_factory=list)
    answers: list[dict[str, Any]] = field(default_factory=list)
    second: dict[str, Verdict] = field(default_factory=dict)

    def tool(self, name: str, effect: Effect) -> ToolSpec:
        async def call(context: ToolContext, sum_: Sum) -> ToolResult:
            self.runs.append((name, sum_.amount))
            self.answers.append(dict(context.answers))
            return ToolResult(f"{name} done")

        return ToolSpec(name, "Count.", Sum, effect, call, effect is Effect.READ)

    def guard(self, case: ToolCallCase) -> Verdict:
        return self.asks.get(case.tool, ALLOW)

    def other(self, case: ToolCallCase) -> Verdict:
        return self.second.get(case.tool, ALLOW)

    @property
    def plugins(self) -> list[Any]:
        return [
            *self.tools_alone,
            SimpleNamespace(
                __name__="caution", security_system=_system("caution", self.guard)
            ),
            SimpleNamespace(
                __name__="doubt", security_system=_system("doubt", self.other)
            ),
        ]

    @property
    def tools_alone(self) -> list[Any]:
        @hookimpl
        def register_tool() -> Iterable[ToolSpec]:
            yield self.tool("pay", Effect.EXTERNAL)
            yield self.tool("ship", Effect.EXTERNAL)
            yield self.tool("look", Effect.READ)

        return [SimpleNamespace(__name__="shop", register_tool=register_tool)]


def _system(
    name: str, guard: Callable[[ToolCallCase], Verdict]
) -> Callable[[], SecuritySystem]:
    @hookimpl
    def security_system() -> SecuritySystem:
        return SecuritySystem(name, {Guard.TOOL_CALL: guard}, lambda: None)

    return security_system


def ask(text: str = "Shall it be paid?", **facts: Any) -> Ask:
    """A question of these words; ``seconds`` and ``may_answer`` are the ask's own."""
    seconds = facts.pop("seconds", 3600.0)
    may_answer = facts.pop("may_answer", "*")
    return Ask(Question(text, **facts), seconds, may_answer)


async def wait_until(
    holds: Callable[[], Awaitable[bool]], what: str, patience: float = PATIENCE
) -> None:
    """Wait until something is so; what never comes is a failure, told by its name."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + patience
    while not await holds():
        assert loop.time() < deadline, f"it never came to this: {what}"
        await asyncio.sleep(0.005)


async def ends(daemon: RunningDaemon, turn_id: str, state: TurnState) -> None:
    """Wait until a turn's row says so."""

    async def holds() -> bool:
        record = await daemon.daemon.journal.find(turn_id)
        return record is not None and record.state is state

    await wait_until(holds, f"turn {turn_id} is {state}")


async def waits(agent: RunningAgent, text: str, **headers: str) -> dict[str, Any]:
    """Send a message whose turn comes to wait; give what is told of it."""
    answer = await agent.send(text, **headers)
    assert answer.status_code == 202, answer.text
    told: dict[str, Any] = answer.json()
    assert answer.headers["location"] == f"/api/approvals/{told['approval_id']}"
    return told


async def answer(
    daemon: RunningDaemon, approval_id: str, verb: str = "approve", **body: Any
) -> httpx.Response:
    """Approve or deny."""
    return await daemon.http.post(f"/api/approvals/{approval_id}/{verb}", json=body)


async def listed(daemon: RunningDaemon, **query: str) -> list[dict[str, Any]]:
    """List approvals."""
    found = await daemon.http.get("/api/approvals", params=query)
    assert found.status_code == 200, found.text
    return list(found.json()["approvals"])


def results(daemon: RunningDaemon) -> list[str]:
    """The results of tools that the model was last shown, in order."""
    return [
        part.text
        for message in daemon.model.requests[-1].messages
        for part in message.parts
        if isinstance(part, ToolOutput)
    ]
