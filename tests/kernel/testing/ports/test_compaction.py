"""The contract of compactions holds for a plain one, and finds who breaks it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from agenthost import (
    Agent,
    AgentHostError,
    Answered,
    Compaction,
    CompactionBackend,
    Condensed,
    Context,
    Conversation,
    Entry,
    Host,
    Message,
    Observers,
    Role,
    Session,
    Spent,
    Target,
    Text,
    Usage,
)
from agenthost.testing import CompactionContract, CountingCompaction, Daemons
from agenthost.testing.ports.stage import Stage
from agenthost_compaction.summary import SummaryCompaction

from .finding import names_in, names_of
from .staged import name_of, stage_finds

CONFIG = "[compaction]\nthreshold_messages = 6\nkeep_recent = 2\n"
SHORT = Message(Role.USER, (Text("it was long"),))


class TestCounting(CompactionContract):
    """It keeps every promise."""

    @pytest.fixture
    def backend(self) -> CompactionBackend:
        return CompactionBackend("counting", CountingCompaction)


class CondensesAll(CountingCompaction):
    def __init__(self, host: Host, _: object = None) -> None:
        super().__init__(host, above=0)


class CondensesNothing(CountingCompaction):
    def __init__(self, host: Host, _: object = None) -> None:
        super().__init__(host, above=1_000)


class Miscounts(CountingCompaction):
    async def of_agent(self, agent: Agent, session_id: str = "") -> Condensed:
        done = await super().of_agent(agent)
        return replace(done, summarised=done.summarised + 1)


class StartsAfresh(CountingCompaction):
    async def of_agent(self, agent: Agent, session_id: str = "") -> Condensed:
        done = await super().of_agent(agent)
        await self._host.turns.reset(agent)
        return done


class CutsAnywhere(CountingCompaction):
    async def _cut(self, session: Session, entries: Sequence[Entry], most: int) -> int:
        return len(entries) - 1


class CutsWhatWaits(CountingCompaction):
    async def _cut(self, session: Session, entries: Sequence[Entry], most: int) -> int:
        return await super()._cut(replace(session, id="another"), entries, most)


class DoesNotWait(CountingCompaction):
    async def of_agent(self, agent: Agent, session_id: str = "") -> Condensed:
        return await self._inside(agent.session_id)


class CannotBeStopped(CountingCompaction):
    async def of_agent(self, agent: Agent, session_id: str = "") -> Condensed:
        return await self._host.turns.apart(agent, self._inside, sealed=True)


class NeverBeforeATurn(CountingCompaction):
    async def before_turn(self, *given: Any) -> bool:
        return False


class AlwaysReadsAnew(CountingCompaction):
    async def before_turn(self, *given: Any) -> bool:
        await super().before_turn(*given)
        return True


class CondensesOver(CountingCompaction):
    async def before_turn(
        self, conversation: Conversation, target: Target, context: Context
    ) -> bool:
        now = await self._host.sessions.get(conversation.session.id)
        if now.first_seq == conversation.session.first_seq:
            return await super().before_turn(conversation, target, context)
        with suppress(AgentHostError):
            spent = Spent(0.0, now.agent_id, now.id, "", "x", "x", Usage(), 0)
            await self._host.sessions.compact(now, now.next_seq - 1, SHORT, spent)
        return False


class CutsBeforeItAsks(SummaryCompaction):
    async def _condense(self, session: Session, *given: Any) -> Condensed:
        spent = Spent(0.0, session.agent_id, session.id, "", "x", "x", Usage(), 0)
        await self._host.sessions.compact(session, session.next_seq - 2, SHORT, spent)
        return await super()._condense(session, *given)


class AsksForFree(SummaryCompaction):
    async def _ask(self, *given: Any) -> Answered:
        answered = await super()._ask(*given)
        return replace(answered, spent=replace(answered.spent, usage=Usage()))


C = CompactionContract()
BREACHES: tuple[tuple[type[Any], Any], ...] = (
    (CondensesAll, C.test_a_short_session_is_left_alone),
    (Miscounts, C.test_a_short_session_is_left_alone),
    (CondensesNothing, C.test_a_long_session_is_condensed),
    (Miscounts, C.test_a_long_session_is_condensed),
    (StartsAfresh, C.test_what_is_condensed_is_not_lost),
    (CutsAnywhere, C.test_a_result_stays_with_its_call),
    (CutsWhatWaits, C.test_a_turn_that_waits_for_a_person_keeps_its_messages),
    (DoesNotWait, C.test_it_waits_for_the_turn_that_runs),
    (CannotBeStopped, C.test_one_that_is_stopped_changes_nothing),
    (CannotBeStopped, C.test_a_session_that_was_reset_is_not_condensed),
    (DoesNotWait, C.test_some_at_once_condense_once),
    (NeverBeforeATurn, C.test_a_turn_finds_its_conversation_condensed),
    (AlwaysReadsAnew, C.test_a_turn_finds_its_conversation_condensed),
    (CondensesOver, C.test_a_conversation_that_has_moved_on_is_left_alone),
    (CutsBeforeItAsks, C.test_a_model_that_fails_takes_nothing_away),
    (AsksForFree, C.test_what_it_takes_is_booked),
)


@pytest.mark.breaches
@pytest.mark.parametrize(("broken", "test"), BREACHES, ids=name_of)
async def test_a_broken_compaction_is_found(
    broken: type[Any], test: Any, daemons: Daemons, tmp_path: Path
) -> None:
    def open_broken(host: Host, observers: Observers) -> Compaction:
        opened: Compaction = broken(host, observers)
        return opened

    backend = CompactionBackend("broken", open_broken)
    await stage_finds(test, Stage(daemons, backend, tmp_path / "stage", (), CONFIG))


def test_every_test_of_the_contract_can_fail() -> None:
    assert names_in(breach[1] for breach in BREACHES) == names_of(CompactionContract)
