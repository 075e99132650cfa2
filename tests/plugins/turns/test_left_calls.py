"""Calls that are left to who started a turn, when it is cut off before its end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from agenthost import (
    Context,
    Effect,
    Role,
    ToolDefinition,
    ToolOutput,
    ToolResult,
    ToolSpec,
    TurnState,
    hookimpl,
)
from agenthost.testing import Pause
from agenthost.testing.daemons import Daemons
from agenthost.testing.ports.stage import begin, ending, record_of, soon
from pydantic import BaseModel

TURN = "5f0c37ac-6d2c-4a5e-9a0b-35a9b2c7c3d5"
LOOK = ToolDefinition("look", "To look.", {"type": "object", "properties": {}})
ASKED: dict[str, Any] = {
    "turn_id": TURN,
    "digest": "a",
    "history": (),
    "tools": (LOOK,),
}


class Pay(BaseModel):
    """Arguments of ``pay``: none."""


def paying(pause: Pause) -> SimpleNamespace:
    async def pay(_context: Context, _: Pay) -> ToolResult:
        await pause.wait()
        return ToolResult("paid")

    @hookimpl
    def register_tool() -> Iterable[ToolSpec]:
        return [ToolSpec("pay", "To pay.", Pay, Effect.WRITE, pay)]

    return SimpleNamespace(__name__="paying", register_tool=register_tool)


async def test_they_are_left_once_its_own_call_is_told_as_unknown(
    daemons: Daemons, tmp_path: Path
) -> None:
    pause, home = Pause(), tmp_path / "home"
    daemon = await daemons.start(home=home, plugins=[paying(pause)])
    agent = await daemon.agent("ada", tools=["pay"])
    daemon.model.calls_all(("pay", {}), ("look", {}))
    turn = begin(agent, "hello", **ASKED)
    await soon(pause.reached.wait())
    draining = asyncio.create_task(daemon.daemon.turns.drain(0))
    await ending(turn)
    await draining
    assert (await record_of(agent, turn)).state is TurnState.INTERRUPTED
    await daemon.daemon.stop()
    daemon = await daemons.start(home=home, plugins=[paying(pause)])
    agent = daemon.known_agent("ada")
    result = await soon(begin(agent, "hello", **ASKED).result())
    assert [use.name for use in result.calls] == ["look"]
    assert daemon.model.requests == []
    said = await daemon.daemon.journal.said(TURN, TURN)
    assert [e.message.role for e in said] == [Role.USER, Role.ASSISTANT, Role.TOOL]
    (output,) = said[-1].message.parts
    assert isinstance(output, ToolOutput)
    assert (output.name, output.is_error) == ("pay", True)
    again = await soon(begin(agent, "hello", **ASKED).result())
    assert again.calls == result.calls
