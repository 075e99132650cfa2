"""Daemons over one database, as far as their rows go: each with a node and an epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agenthost import (
    Agent,
    AgentMode,
    AgentState,
    Manifest,
    Message,
    Records,
    Role,
    Step,
    Store,
    Text,
    ToolOutput,
    ToolUse,
    TurnRecord,
    TurnResult,
    TurnState,
    Usage,
    Writer,
)
from agenthost.testing import ManualClock
from agenthost_records import open_records, register_schema
from sqlalchemy import select

NOW = 1_767_225_600.0
ADA = Agent(
    id="ada-id",
    name="ada",
    state=AgentState.RUNNING,
    mode=AgentMode.NORMAL,
    session_id="s",
    manifest=Manifest(name="ada"),
    pinned_model=None,
    created_at=NOW,
    updated_at=NOW,
)
RESULT = TurnResult("Done.", Usage(10, 5), 2, 7)
DONE = TurnRecord(TurnState.DONE, RESULT)
WAITS = TurnRecord(TurnState.WAITING, RESULT)
CUT_OFF = TurnRecord(TurnState.INTERRUPTED, RESULT)
ASKS = Message(Role.ASSISTANT, (ToolUse("call", "kv_set", {}),))
RESULTS = Message(Role.TOOL, (ToolOutput("call", "kv_set", "ok"),))


def words(text: str, role: Role = Role.ASSISTANT) -> Message:
    return Message(role, (Text(text),))


@dataclass(frozen=True)
class Process:
    """One daemon process: what it reads and writes rows with, and as whom."""

    records: Records
    writer: Writer

    def step(self, seq: int = 0, message: Message | None = None, **facts: Any) -> Step:
        ids = {"session_id": "s", "turn_id": "t"} | facts
        return Step(at=NOW, seq=seq, message=message, writer=self.writer, **ids)

    async def keep(
        self, seq: int = 0, message: Message | None = None, **facts: Any
    ) -> None:
        await self.records.journal.keep(self.step(seq, message, **facts))

    async def ask(self, seq: int = 0, **facts: Any) -> None:
        """Open a turn with a question."""
        await self.keep(seq, words("go", Role.USER), opened=ADA.id, **facts)

    async def state(self, turn_id: str = "t") -> TurnState | None:
        known = await self.records.journal.find(turn_id)
        return None if known is None else known.state


async def begin(store: Store, node: str, clock: ManualClock | None = None) -> Process:
    """Enter a database as a node, without the marking that a boot does next."""
    records = open_records(store, clock or ManualClock(NOW))
    return Process(records, await records.journal.enter(node))


async def boot(store: Store, node: str) -> Process:
    """Start a daemon: the turns its node left running are marked."""
    process = await begin(store, node)
    await process.records.journal.interrupt(process.writer)
    return process


async def everything(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of all tables."""
    tables = [t for spec in register_schema() for t in spec.metadata.tables.values()]
    return {
        table.name: [tuple(row) for row in await store.read(select(table))]
        for table in tables
    }
