"""The contract of agents holds for those in memory, and finds who breaks it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from agenthost import Agent, Keep, Session
from agenthost.testing import AgentRowsContract
from agenthost.testing.ports.memory_records.agents import MemoryAgents

from ..finding import names_in, names_of
from .broken import InMemory, finds_broken


class TestAgentsInMemory(InMemory, AgentRowsContract):
    """They keep every promise."""


class NewestFirst(MemoryAgents):
    async def load(self) -> Sequence[Agent]:
        return [*reversed(await super().load())]


class LosesThePin(MemoryAgents):
    async def load(self) -> Sequence[Agent]:
        return [replace(each, pinned_model=None) for each in await super().load()]


class AddsNoSession(MemoryAgents):
    async def add(self, agent: Agent, also: Keep | None = None) -> None:
        await super().add(agent, also)
        del self._rows.sessions[agent.session_id]


class TakesANameInAnotherCase(MemoryAgents):
    async def add(self, agent: Agent, also: Keep | None = None) -> None:
        await super().add(replace(agent, name=f"{len(self._rows.agents)}"), also)
        self._rows.agents[agent.id] = agent


class LeavesASessionOfTheSecond(MemoryAgents):
    async def add(self, agent: Agent, also: Keep | None = None) -> None:
        made = Session(agent.session_id, agent.id, agent.created_at)
        self._rows.sessions[made.id] = made
        await super().add(agent, also)


class KeepsNothingBeside(MemoryAgents):
    async def save(self, agent: Agent, also: Keep | None = None) -> None:
        del also
        await super().save(agent)


class SavesTheStateAlone(MemoryAgents):
    async def save(self, agent: Agent, also: Keep | None = None) -> None:
        await super().save(
            replace(self._rows.agents[agent.id], state=agent.state), also
        )


class SavesWhatIsGone(MemoryAgents):
    async def save(self, agent: Agent, also: Keep | None = None) -> None:
        self._rows.agents[agent.id] = agent


class KeepsTheOld(MemoryAgents):
    async def switch_session(self, agent: Agent, old: str, *, keep: bool) -> None:
        await super().switch_session(agent, old, keep=True)


class KeepsNothing(MemoryAgents):
    async def switch_session(self, agent: Agent, old: str, *, keep: bool) -> None:
        await super().switch_session(agent, old, keep=False)


class KeepsWhatIsEmpty(MemoryAgents):
    async def switch_session(self, agent: Agent, old: str, *, keep: bool) -> None:
        before = self._rows.sessions.get(old)
        await super().switch_session(agent, old, keep=keep)
        if before is not None and keep:
            self._rows.sessions.setdefault(old, before)


class GoesOnInTheArchive(MemoryAgents):
    def _take_up(self, session: Session) -> None:
        known = self._rows.sessions.get(session.id)
        super()._take_up(session)
        if known is not None:
            self._rows.sessions[session.id] = known


class SwitchesFromAnywhere(MemoryAgents):
    async def switch_session(self, agent: Agent, old: str, *, keep: bool) -> None:
        now = self._rows.agents.get(agent.id, agent).session_id
        await super().switch_session(agent, now, keep=keep)


class GoesOnInAnybodys(MemoryAgents):
    def _take_up(self, session: Session) -> None:
        if session.id not in self._rows.sessions:
            super()._take_up(session)


class SwitchesByHalves(MemoryAgents):
    async def switch_session(self, agent: Agent, old: str, *, keep: bool) -> None:
        self._switch_session(agent, old, keep)


class BeginsTooEarly(MemoryAgents):
    async def switch_session(self, agent: Agent, old: str, *, keep: bool) -> None:
        fresh = Session(agent.session_id, agent.id, agent.updated_at)
        self._rows.sessions.setdefault(fresh.id, fresh)
        await super().switch_session(agent, old, keep=keep)


class LeavesSessions(MemoryAgents):
    async def delete(self, agent_id: str, also: Keep | None = None) -> None:
        before = dict(self._rows.sessions)
        await super().delete(agent_id, also)
        self._rows.sessions.update(before)


class LeavesMemory(MemoryAgents):
    async def delete(self, agent_id: str, also: Keep | None = None) -> None:
        before = dict(self._rows.values)
        await super().delete(agent_id, also)
        self._rows.values.update(before)


class TakesWhatIsShared(MemoryAgents):
    async def delete(self, agent_id: str, also: Keep | None = None) -> None:
        await super().delete(agent_id, also)
        self._rows.values.clear()


class TakesTheUsage(MemoryAgents):
    async def delete(self, agent_id: str, also: Keep | None = None) -> None:
        await super().delete(agent_id, also)
        self._rows.spent.clear()


HERE = TestAgentsInMemory()
BREACHES: tuple[tuple[type[MemoryAgents], Any], ...] = (
    (NewestFirst, HERE.test_agents_come_back_as_they_are_oldest_first),
    (LosesThePin, HERE.test_agents_come_back_as_they_are_oldest_first),
    (
        KeepsNothingBeside,
        HERE.test_what_goes_with_a_write_is_written_or_nothing_is,
    ),
    (AddsNoSession, HERE.test_an_agent_begins_with_its_own_empty_session),
    (TakesANameInAnotherCase, HERE.test_a_name_is_taken_once),
    (LeavesASessionOfTheSecond, HERE.test_a_name_is_taken_once),
    (SavesTheStateAlone, HERE.test_a_saved_agent_is_as_it_stands_now),
    (SavesWhatIsGone, HERE.test_an_agent_that_is_deleted_stays_so),
    (KeepsTheOld, HERE.test_an_agent_goes_on_in_a_new_empty_session),
    (KeepsNothing, HERE.test_what_is_kept_of_a_switch_is_what_was_said),
    (KeepsWhatIsEmpty, HERE.test_what_is_kept_of_a_switch_is_what_was_said),
    (GoesOnInTheArchive, HERE.test_what_is_kept_of_a_switch_is_what_was_said),
    (SwitchesFromAnywhere, HERE.test_of_two_switches_at_once_one_happens),
    (GoesOnInAnybodys, HERE.test_a_switch_to_a_session_of_another_changes_nothing),
    (SwitchesByHalves, HERE.test_a_switch_to_a_session_of_another_changes_nothing),
    (BeginsTooEarly, HERE.test_a_deleted_agent_switches_nothing),
    (LeavesSessions, HERE.test_an_agent_goes_with_its_sessions_and_its_memory),
    (LeavesMemory, HERE.test_an_agent_goes_with_its_sessions_and_its_memory),
    (TakesWhatIsShared, HERE.test_an_agent_goes_with_its_sessions_and_its_memory),
    (TakesTheUsage, HERE.test_what_a_child_has_used_becomes_its_parents),
    (TakesTheUsage, HERE.test_an_agent_goes_with_its_sessions_and_its_memory),
)


@pytest.mark.parametrize(("broken", "test"), BREACHES)
async def test_broken_agents_are_found(broken: type[MemoryAgents], test: Any) -> None:
    await finds_broken(broken, test)


def test_every_test_of_the_contract_can_fail() -> None:
    assert names_in(breach[1] for breach in BREACHES) == names_of(AgentRowsContract)
