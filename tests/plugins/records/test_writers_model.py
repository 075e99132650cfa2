"""Whatever two nodes and their crashes do, a turn ends once and says each word once.

Processes are never taken away: one whose node has started again goes on as one that was
only held up, with late steps of every kind.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from agenthost import (
    Role,
    Step,
    Superseded,
    TurnRecord,
    TurnState,
    Writer,
)
from agenthost_records import register_schema
from agenthost_records.tables import messages, turns
from agenthost_storage.sqlite import SqliteStore
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import select

from .nodes import ADA, RESULT, Process, begin, words

NODES = st.sampled_from(("a", "b"))
PICKS = st.integers(0, 50)
ENDS = st.sampled_from([each for each in TurnState if each is not TurnState.RUNNING])
FINAL = {TurnState.DONE, TurnState.CANCELLED}


@dataclass
class Told:
    """What is to stand in the rows of a turn."""

    session: str
    holder: Writer
    state: TurnState = TurnState.RUNNING
    said: list[str] = field(default_factory=list)


class Nodes(RuleBasedStateMachine):
    """Two nodes over one database, and what the rows are to say."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.Runner()
        self.folder = TemporaryDirectory()
        self.processes: list[Process] = []
        self.started = {"a": 0, "b": 0}
        self.turns: dict[str, Told] = {}
        self.words = 0

    @initialize()
    def open(self) -> None:
        path = Path(self.folder.name) / "agenthost.db"
        opening = SqliteStore.open(path, register_schema())
        self.store = self.loop.run(opening)
        for node in self.started:
            self.boot(node)
        self.loop.run(self.processes[0].records.agents.add(ADA))

    def teardown(self) -> None:
        self.loop.run(self.store.close())
        self.loop.close()
        self.folder.cleanup()

    def process(self, pick: int) -> Process:
        return self.processes[pick % len(self.processes)]

    def turn(self, pick: int) -> tuple[str, Told]:
        return [*self.turns.items()][pick % len(self.turns)]

    def current(self, process: Process) -> bool:
        return process.writer.epoch == self.started[process.writer.node]

    def holds(self, process: Process, told: Told) -> bool:
        if told.state in FINAL:
            return False
        own = told.holder.node == process.writer.node
        return told.state is TurnState.WAITING or (
            own and told.holder.epoch <= process.writer.epoch
        )

    def keep(self, process: Process, turn_id: str, *, may: bool, **facts: Any) -> bool:
        """Write a step with new words, which is taken or refused as it is to be."""
        self.words += 1
        said, told = f"word {self.words}", self.turns[turn_id]
        role = Role.USER if facts.get("opened") else Role.ASSISTANT
        ids = {"session_id": told.session, "turn_id": turn_id}
        step = process.step(len(told.said), words(said, role), **ids, **facts)
        if self.taken(process, step, may=may):
            told.said.append(said)
            return True
        return False

    def taken(self, process: Process, step: Step, *, may: bool) -> bool:
        """Write a step, which is taken or refused as it is to be."""
        if not may:
            with pytest.raises(Superseded):
                self.loop.run(self.write(process, step))
            return False
        self.loop.run(self.write(process, step))
        return True

    async def write(self, process: Process, step: Step) -> None:
        await process.records.journal.keep(step)

    @rule(node=NODES)
    def enter(self, node: str) -> None:
        """A start that a crash cuts off before it has marked anything."""
        process = self.loop.run(begin(self.store, node))
        self.started[node] += 1
        assert process.writer == Writer(node, self.started[node])
        self.processes.append(process)

    @rule(node=NODES)
    def boot(self, node: str) -> None:
        self.enter(node)
        process = self.processes[-1]
        left = [
            told
            for told in self.turns.values()
            if told.state is TurnState.RUNNING
            and told.holder.node == node
            and told.holder.epoch < process.writer.epoch
        ]
        marking = process.records.journal.interrupt(process.writer)
        assert self.loop.run(marking) == len(left)
        for told in left:
            told.state, told.holder = TurnState.INTERRUPTED, process.writer

    @rule(pick=PICKS)
    def ask(self, pick: int) -> None:
        process, turn_id = self.process(pick), f"t{len(self.turns)}"
        session = self.loop.run(process.records.sessions.open(ADA.id, turn_id))
        self.turns[turn_id] = Told(session.id, process.writer)
        may = self.current(process)
        if not self.keep(process, turn_id, may=may, opened=ADA.id):
            del self.turns[turn_id]

    @precondition(lambda self: self.turns)
    @rule(pick=PICKS, who=PICKS)
    def say(self, pick: int, who: int) -> None:
        process, (turn_id, told) = self.process(who), self.turn(pick)
        self.keep(process, turn_id, may=self.holds(process, told))

    @precondition(lambda self: self.turns)
    @rule(pick=PICKS, who=PICKS, state=ENDS)
    def end(self, pick: int, who: int, state: TurnState) -> None:
        process, (turn_id, told) = self.process(who), self.turn(pick)
        closed, may = TurnRecord(state, RESULT), self.holds(process, told)
        if self.keep(process, turn_id, may=may, closed=closed):
            told.state, told.holder = state, process.writer

    @precondition(lambda self: self.turns)
    @rule(pick=PICKS, who=PICKS, state=ENDS)
    def end_late(self, pick: int, who: int, state: TurnState) -> None:
        process, (turn_id, told) = self.process(who), self.turn(pick)
        closed, may = TurnRecord(state, RESULT), self.holds(process, told)
        ids = {"session_id": told.session, "turn_id": turn_id}
        self.loop.run(self.write_late(process, closed, ids))
        if may:
            told.state, told.holder = state, process.writer

    async def write_late(
        self, process: Process, closed: TurnRecord, ids: dict[str, Any]
    ) -> None:
        journal = process.records.journal
        journal.keep_late(process.step(closed=closed, **ids))
        await journal.close_late(ids["session_id"])
        await journal.stop()

    @precondition(lambda self: self.turns)
    @rule(pick=PICKS, who=PICKS)
    def resume(self, pick: int, who: int) -> None:
        process, (turn_id, told) = self.process(who), self.turn(pick)
        step = process.step(session_id=told.session, turn_id=turn_id, reopened=True)
        may = self.current(process) and told.state not in FINAL
        if self.taken(process, step, may=may):
            told.state, told.holder = TurnState.RUNNING, process.writer

    @invariant()
    def every_row_says_what_happened(self) -> None:
        self.loop.run(self.check())

    async def check(self) -> None:
        rows = await self.store.read(select(turns))
        stands = {row["id"]: (row["state"], row["node"], row["epoch"]) for row in rows}
        nobody = ("waiting", "", 0)
        assert stands == {
            turn_id: nobody
            if told.state is TurnState.WAITING
            else (told.state.value, told.holder.node, told.holder.epoch)
            for turn_id, told in self.turns.items()
        }
        said = await self.store.read(select(messages).order_by(messages.c.seq))
        kept: dict[str, list[str]] = {turn_id: [] for turn_id in self.turns}
        for row in said:
            kept[row["turn_id"]].append(row["parts"])
        for turn_id, told in self.turns.items():
            assert len(kept[turn_id]) == len(told.said)
            for parts, text in zip(kept[turn_id], told.said, strict=True):
                assert f'"{text}"' in parts


@pytest.mark.conformance
def test_turns_of_two_nodes_end_once_whoever_crashes() -> None:
    quick = settings(max_examples=25, stateful_step_count=40, deadline=None)
    run_state_machine_as_test(Nodes, settings=quick)
