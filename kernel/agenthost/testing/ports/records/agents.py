"""What every backend of RECORDS promises of agents, as tests to inherit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from ....agent import AgentMode, AgentState
from ....context import OPERATOR, Context
from ....errors import Conflict, NotFound, Unavailable
from ....manifest_model import Manifest
from ....ports.records import Records
from .scenes import (
    ADA,
    BOB,
    HERE,
    SPENT,
    Beside,
    OpenRecords,
    RecordsFixtures,
    is_gone,
    listed,
    said,
    say,
)

BY = Context(OPERATOR)
ODD = replace(
    ADA,
    id="odd-id",
    name="odd",
    state=AgentState.SUSPENDED,
    mode=AgentMode.STABLE,
    session_id="odd-session",
    manifest=Manifest(name="odd", description="Ключ \U0001f511"),
    pinned_model=("p", "m/é"),
    created_at=ADA.created_at - 5,
    updated_at=ADA.updated_at + 0.25,
    parent=ADA.id,
    reason="müde",
    crashes=(ADA.created_at, ADA.created_at + 0.5),
)


class AgentRowsContract(RecordsFixtures):
    """The rows of agents keep every promise of the port.

    Example:
        ::

            class TestAgents(AgentRowsContract):
                @pytest.fixture
                def opened(self, store: Store, clock: ManualClock) -> OpenRecords:
                    return partial(open_records, store, clock)
    """

    async def test_agents_come_back_as_they_are_oldest_first(
        self, records: Records, opened: OpenRecords
    ) -> None:
        """Also for the next process."""
        await records.agents.add(ODD)
        assert [*await opened().agents.load()] == [ODD, ADA, BOB]

    async def test_what_goes_with_a_write_is_written_or_nothing_is(
        self, records: Records
    ) -> None:
        """When it is refused, the agent stays as it was."""
        also, changed = Beside(), replace(ADA, name="ada-2")
        agents = records.agents
        writes: list[Callable[[], Awaitable[None]]] = [
            lambda: agents.add(ODD, also),
            lambda: agents.save(changed, also),
            lambda: agents.delete(BOB.id, also),
        ]
        for write in writes:
            before, also.refuses, also.times = await agents.load(), True, 0
            with pytest.raises(Unavailable, match="the book is closed"):
                await write()
            assert [*await agents.load()] == [*before]
            also.refuses = False
            await write()
            assert also.times >= 1
        assert [*await agents.load()] == [ODD, changed]

    async def test_an_agent_begins_with_its_own_empty_session(
        self, records: Records
    ) -> None:
        """Both are written together."""
        own = await records.sessions.of_agent(ADA.id)
        assert (own.id, own.agent_id, own.next_seq) == (HERE, ADA.id, 0)
        assert (own.created_at, own.archived_at) == (ADA.created_at, None)
        assert await records.sessions.entries(own) == []

    async def test_a_name_is_taken_once(self, records: Records) -> None:
        """In any case, asked for at once; nothing is left of the others."""
        wanted = [
            replace(ADA, id=name, name=name, session_id=f"{name}'s")
            for name in ("Eve", "eve", "EVE")
        ]
        async with asyncio.timeout(self.patience):
            added = await asyncio.gather(
                *map(records.agents.add, wanted), return_exceptions=True
            )
        taken = [
            agent
            for agent, error in zip(wanted, added, strict=True)
            if not isinstance(error, Conflict)
        ]
        assert len(taken) == 1
        assert {agent.id for agent in await records.agents.load()} == {
            *(ADA.id, BOB.id, taken[0].id)
        }
        for agent in wanted:
            assert await is_gone(records, agent.session_id) is (agent not in taken)

    async def test_a_saved_agent_is_as_it_stands_now(
        self, records: Records, opened: OpenRecords
    ) -> None:
        """Nothing else changes."""
        await say(records, HERE, "one")
        now = replace(ODD, id=ADA.id, session_id=HERE, created_at=ADA.created_at)
        await records.agents.save(now)
        assert [*await opened().agents.load()] == [now, BOB]
        assert await said(records) == ["one", "re one"]

    async def test_an_agent_that_is_deleted_stays_so(self, records: Records) -> None:
        """Saving it late brings nothing back."""
        await records.agents.delete(ADA.id)
        await records.agents.save(ADA)
        assert [*await records.agents.load()] == [BOB]

    async def test_an_agent_goes_on_in_a_new_empty_session(
        self, records: Records, opened: OpenRecords
    ) -> None:
        """The old one is deleted."""
        await say(records, HERE, "one")
        fresh = replace(ADA, session_id="fresh", updated_at=ADA.updated_at + 1)
        await records.agents.switch_session(fresh, HERE, keep=False)
        found = opened()
        own = await found.sessions.of_agent(ADA.id)
        assert (own.id, own.agent_id, own.next_seq) == ("fresh", ADA.id, 0)
        assert await is_gone(found, HERE)
        assert (await found.agents.load())[0] == fresh

    async def test_what_is_kept_of_a_switch_is_what_was_said(
        self, records: Records
    ) -> None:
        """It is archived until it is taken up again; an empty session is deleted."""
        await say(records, HERE, "one")
        fresh = replace(ADA, session_id="fresh")
        await records.agents.switch_session(fresh, HERE, keep=True)
        assert (await records.sessions.get(HERE)).archived_at is not None
        assert await said(records) == ["one", "re one"]
        await records.agents.switch_session(ADA, "fresh", keep=True)
        assert (await records.sessions.of_agent(ADA.id)).archived_at is None
        assert await said(records) == ["one", "re one"]
        assert await is_gone(records, "fresh")

    async def test_of_two_switches_at_once_one_happens(self, records: Records) -> None:
        """The other leaves a session that is no longer the agent's: NotFound."""
        wanted = [replace(ADA, session_id=name) for name in ("one", "two")]
        switches = (
            records.agents.switch_session(agent, HERE, keep=False) for agent in wanted
        )
        async with asyncio.timeout(self.patience):
            done = await asyncio.gather(*switches, return_exceptions=True)
        assert [isinstance(each, NotFound) for each in done].count(True) == 1
        own = (await records.sessions.of_agent(ADA.id)).id
        assert sorted(await listed(records, agent_id=ADA.id)) == [own]

    async def test_a_switch_to_a_session_of_another_changes_nothing(
        self, records: Records
    ) -> None:
        """NotFound, and the agent goes on where it was."""
        await say(records, HERE, "one")
        for keep in (True, False):
            with pytest.raises(NotFound):
                await records.agents.switch_session(
                    replace(ADA, session_id=BOB.session_id), HERE, keep=keep
                )
        own = await records.sessions.of_agent(ADA.id)
        assert (own.id, own.archived_at) == (HERE, None)
        assert await said(records) == ["one", "re one"]

    async def test_a_deleted_agent_switches_nothing(self, records: Records) -> None:
        """NotFound, and no session is made."""
        await records.agents.delete(ADA.id)
        fresh = replace(ADA, session_id="fresh")
        with pytest.raises(NotFound):
            await records.agents.switch_session(fresh, HERE, keep=False)
        assert await is_gone(records, "fresh")

    async def test_what_a_child_has_used_becomes_its_parents(
        self, records: Records
    ) -> None:
        """Once it is deleted: the parent's budget is not given back."""
        await records.agents.add(ODD)
        await records.usage.book(replace(SPENT, agent_id=ODD.id))
        await records.agents.delete(ODD.id)
        assert (await records.usage.of_agent(ODD.id)).requests == 0
        assert (await records.usage.of_agent(ADA.id)).requests == 1

    async def test_an_agent_goes_with_its_sessions_and_its_memory(
        self, records: Records
    ) -> None:
        """Its usage stays, and all that is another's or everybody's."""
        run = await records.sessions.open(ADA.id, "run", ephemeral=True)
        old = await records.sessions.open(ADA.id, "old")
        await records.sessions.archive(old.id)
        for session in (HERE, run.id, old.id, BOB.session_id):
            await say(records, session, "one")
        for namespace in (ADA.id, BOB.id, "shared"):
            await records.memory.set(BY, namespace, "shared.key", 1)
        await records.usage.book(SPENT)
        await records.agents.delete(ADA.id)
        assert [*await records.agents.load()] == [BOB]
        for session_id in (HERE, run.id, old.id):
            assert await is_gone(records, session_id)
            assert await records.journal.find(f"{session_id}:0") is None
        assert await said(records, BOB.session_id) == ["one", "re one"]
        assert await records.journal.find(f"{BOB.session_id}:0") is not None
        kept = [await records.memory.items(n) for n in (ADA.id, BOB.id, "shared")]
        assert kept == [[], [("shared.key", 1)], [("shared.key", 1)]]
        assert (await records.usage.of_agent(ADA.id)).requests == 1
