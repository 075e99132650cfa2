"""The contract of agents finds who breaks it; the shipped ones are what is broken."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from agenthost import (
    OPERATOR,
    Agent,
    AgentMode,
    AgentRows,
    Agents,
    AgentsBackend,
    Choice,
    Conflict,
    Context,
    Host,
    InvalidInput,
    Keep,
    Manifest,
    Principal,
    Target,
)
from agenthost.testing import AgentsContract, Daemons
from agenthost.testing.ports.agents import WRONG
from agenthost.testing.ports.stage import Stage
from agenthost_agents.agents import KeptAgents, _merged

from .finding import names_in, names_of
from .staged import name_of, stage_finds

Spawned = tuple[Agent, Sequence[str]]


class FindsByNameAlone(KeptAgents):
    def find(self, reference: str) -> Agent:
        return self._by_name[reference]


class FindsAnySpelling(KeptAgents):
    def find(self, reference: str) -> Agent:
        return super().find(reference.lower())


class ListsByName(KeptAgents):
    def list(self) -> list[Agent]:
        return sorted(super().list(), key=lambda agent: agent.name)


class ExistsAlways(KeptAgents):
    async def load(self) -> None:
        await super().load()
        self.exist.set()


class TakesANameTwice(KeptAgents):
    async def spawn(self, context: Context, manifest_toml: str) -> Spawned:
        with suppress(Conflict):
            return await super().spawn(context, manifest_toml)
        return await super().spawn(context, f'name = "twin-{uuid4()}"\n')


class KeepsBeforeItWrites(KeptAgents):
    async def spawn(self, context: Context, manifest_toml: str) -> Spawned:
        try:
            return await super().spawn(context, manifest_toml)
        except Conflict:
            self._by_id["twin"] = self._by_name["ada"]
            raise


class TakesAnyManifest(KeptAgents):
    async def spawn(self, context: Context, manifest_toml: str) -> Spawned:
        try:
            return await super().spawn(context, manifest_toml)
        except InvalidInput:
            return await super().spawn(context, f'name = "plain-{uuid4()}"\n')


class TakesAnyProvider(KeptAgents):
    async def spawn(self, context: Context, manifest_toml: str) -> Spawned:
        plain = manifest_toml.partition("[model]")[0]
        return await super().spawn(context, plain)


class WarnsOfNothing(KeptAgents):
    async def spawn(self, context: Context, manifest_toml: str) -> Spawned:
        agent, _ = await super().spawn(context, manifest_toml)
        return agent, ()


class WarnsOfNoTool(KeptAgents):
    def _unknown_tools(self, manifest: Manifest) -> Sequence[str]:
        return ()


class AsksNoGuard(KeptAgents):
    def _check(self, principal: Principal, manifest: Manifest) -> None:
        pass


class AsksForTheOperator(KeptAgents):
    def _check(self, principal: Principal, manifest: Manifest) -> None:
        super()._check(OPERATOR, manifest)


class AsksNoGuardOfChanges(KeptAgents):
    def _check(self, principal: Principal, manifest: Manifest) -> None:
        if manifest.name not in self._by_name:
            super()._check(principal, manifest)


class AsksGuardsLate(KeptAgents):
    async def _save(
        self,
        context: Context,
        agent_id: str,
        changed: Callable[[Agent], Agent],
        *_: Any,
    ) -> Agent:
        check, self._check = self._check, lambda *_: None  # type: ignore[method-assign]
        try:
            kept = await super()._save(context, agent_id, changed)
        finally:
            self._check = check  # type: ignore[method-assign]
        check(OPERATOR, kept.manifest)
        return kept


class ChangesWhatWasSeen(KeptAgents):
    async def change(
        self, context: Context, agent: Agent, changes: Mapping[str, object]
    ) -> Agent:
        manifest = _merged(agent.manifest, changes)
        self._check(context.principal, manifest)
        return await self._save(
            context, agent.id, lambda _: replace(agent, manifest=manifest)
        )


class PinsWhatWasSeen(KeptAgents):
    async def set_mode(self, context: Context, agent: Agent, mode: AgentMode) -> Agent:
        return await self._save(context, agent.id, lambda _: replace(agent, mode=mode))


class SetsAnyModel(KeptAgents):
    async def set_model(self, *given: Any) -> Choice:
        with suppress(InvalidInput):
            return await super().set_model(*given)
        return Choice(self._host.models.default())


class SetsTheModelInMemory(KeptAgents):
    async def set_model(self, *given: Any) -> Choice:
        return await self._host.models.choose(*given[2:])


class NeverPins(KeptAgents):
    def target_of(self, agent: Agent) -> Target:
        return super().target_of(replace(agent, pinned_model=None))


class NeverLetsGo(KeptAgents):
    async def set_mode(self, context: Context, agent: Agent, mode: AgentMode) -> Agent:
        return await super().set_mode(context, agent, AgentMode.STABLE)


class KeepsNoSession(KeptAgents):
    async def new_session(self, agent: Agent, into: str, *, keep: bool) -> Agent:
        return await super().new_session(agent, into, keep=False)


class TakesWhoComesLate(KeptAgents):
    async def new_session(self, agent: Agent, into: str, *, keep: bool) -> Agent:
        return await super().new_session(self.get(agent.id), into, keep=keep)


class LeavesTurnsRunning(KeptAgents):
    def __init__(self, host: Host, rows: AgentRows, _: Any) -> None:
        async def nothing(agent_id: str, reason: str) -> None:
            pass

        super().__init__(host, rows, nothing)


class ForgetsInMemory(KeptAgents):
    async def delete(self, context: Context, agent: Agent) -> None:
        self.get(agent.id)
        await self._end_turns(agent.id, "deleted")
        del self._by_id[agent.id], self._by_name[agent.name]


class DeletesTwice(KeptAgents):
    async def delete(self, context: Context, agent: Agent) -> None:
        if agent.id in self._by_id:
            await super().delete(context, agent)


class WritesNoChange(KeptAgents):
    async def _save(
        self,
        context: Context,
        agent_id: str,
        changed: Callable[[Agent], Agent],
        *_: Any,
    ) -> Agent:
        kept = changed(self.get(agent_id))
        self._keep(kept)
        return kept


class GivesNoReason(KeptAgents):
    async def suspend(self, context: Context, agent: Agent, reason: str) -> Agent:
        return await super().suspend(context, agent, reason[:0])


class StaysSuspended(KeptAgents):
    async def resume(self, context: Context, agent: Agent) -> Agent:
        return self.get(agent.id)


class StaysCrashed(KeptAgents):
    def crash(self, agent_id: str, reason: str) -> None:
        pass


class KnowsNoParent(KeptAgents):
    async def spawn(self, context: Context, manifest_toml: str) -> Spawned:
        return await super().spawn(replace(context, agent=None), manifest_toml)


class LeavesTheChildren(KeptAgents):
    def list(self) -> list[Agent]:
        return [replace(agent, parent="") for agent in super().list()]


class LoadsInAnyOrder(KeptAgents):
    async def load(self) -> None:
        await super().load()
        for agent in reversed(self.list()):
            del self._by_id[agent.id]
            self._keep(agent)


class TellsOfNothing(KeptAgents):
    def _telling(self, *_: Any) -> Any:
        return nullcontext()


class TellsTwice(KeptAgents):
    @contextmanager
    def _telling(self, *given: Any) -> Iterator[Keep | None]:
        with super()._telling(*given) as also, super()._telling(*given):
            yield also


class RecordsNothing(KeptAgents):
    @contextmanager
    def _telling(self, *given: Any) -> Iterator[Keep | None]:
        with super()._telling(*given):
            yield None


class TellsOfNobody(KeptAgents):
    def _telling(self, kind: Any, context: Context, agent: Agent) -> Any:
        return super()._telling(kind, Context(Principal("who", "knows")), agent)


class GrantsAll(KeptAgents):
    def grants_of(self, manifest: Manifest, tools: Any = None) -> Any:
        return {**super().grants_of(manifest, tools), "network": ("*",)}


class BlocksNothing(KeptAgents):
    def grants_of(self, manifest: Manifest, tools: Any = None) -> Any:
        return super().grants_of(manifest)


C = AgentsContract()
BREACHES: tuple[tuple[type[KeptAgents], Any, tuple[object, ...]], ...] = (
    (FindsByNameAlone, C.test_an_agent_is_there_with_its_session, ()),
    (FindsAnySpelling, C.test_an_agent_is_there_with_its_session, ()),
    (ListsByName, C.test_they_are_told_apart_from_the_first_on, ()),
    (ExistsAlways, C.test_they_are_told_apart_from_the_first_on, ()),
    (TakesANameTwice, C.test_a_name_is_taken_once, ()),
    (KeepsBeforeItWrites, C.test_a_name_is_taken_once, ()),
    (TakesAnyManifest, C.test_a_wrong_manifest_is_refused, WRONG[:1]),
    (TakesAnyProvider, C.test_a_wrong_manifest_is_refused, WRONG[:1]),
    (WarnsOfNothing, C.test_what_has_no_effect_is_warned_of, ()),
    (WarnsOfNoTool, C.test_what_has_no_effect_is_warned_of, ()),
    (AsksNoGuard, C.test_a_guard_may_refuse_who_comes_into_being, ()),
    (AsksForTheOperator, C.test_nobody_gets_more_than_its_maker_has, ()),
    (AsksNoGuardOfChanges, C.test_a_change_keeps_the_rest, ()),
    (AsksGuardsLate, C.test_a_change_keeps_the_rest, ()),
    (ChangesWhatWasSeen, C.test_changes_at_once_lose_nothing, ()),
    (PinsWhatWasSeen, C.test_changes_at_once_lose_nothing, ()),
    (SetsAnyModel, C.test_a_model_is_set_as_it_is_named, ()),
    (SetsTheModelInMemory, C.test_a_model_is_set_as_it_is_named, ()),
    (NeverPins, C.test_a_stable_agent_stays_with_its_model, ()),
    (NeverLetsGo, C.test_a_stable_agent_stays_with_its_model, ()),
    (KeepsNoSession, C.test_a_new_session_takes_the_place_of_the_old, ()),
    (TakesWhoComesLate, C.test_a_new_session_takes_the_place_of_the_old, ()),
    (LeavesTurnsRunning, C.test_a_deleted_agent_is_gone_with_all_it_had, ()),
    (ForgetsInMemory, C.test_a_deleted_agent_is_gone_with_all_it_had, ()),
    (DeletesTwice, C.test_a_deleted_agent_is_gone_with_all_it_had, ()),
    (WritesNoChange, C.test_the_next_daemon_finds_the_same, ()),
    (GivesNoReason, C.test_a_suspended_agent_stands_still_until_it_is_resumed, ()),
    (StaysSuspended, C.test_a_suspended_agent_stands_still_until_it_is_resumed, ()),
    (LeavesTurnsRunning, C.test_a_suspended_agent_stands_still_until_it_is_resumed, ()),
    (StaysCrashed, C.test_a_crashed_agent_is_started_again_by_itself, ()),
    (KnowsNoParent, C.test_what_an_agent_makes_is_its_child, ()),
    (LeavesTheChildren, C.test_what_an_agent_makes_is_its_child, ()),
    (LoadsInAnyOrder, C.test_the_next_daemon_finds_the_same, ()),
    (TellsOfNothing, C.test_what_becomes_of_an_agent_is_told_once, ()),
    (RecordsNothing, C.test_what_becomes_of_an_agent_is_recorded_with_it, ()),
    (TellsOfNobody, C.test_what_becomes_of_an_agent_is_recorded_with_it, ()),
    (TellsTwice, C.test_what_becomes_of_an_agent_is_told_once, ()),
    (GrantsAll, C.test_rights_are_what_the_manifest_asks_for, ()),
    (BlocksNothing, C.test_rights_are_what_the_manifest_asks_for, ()),
)


@pytest.mark.breaches
@pytest.mark.parametrize(("broken", "test", "more"), BREACHES, ids=name_of)
async def test_broken_agents_are_found(
    broken: type[KeptAgents],
    test: Any,
    more: tuple[object, ...],
    daemons: Daemons,
    tmp_path: Path,
) -> None:
    def open_broken(
        host: Host, rows: AgentRows, end_turns: Callable[[str, str], Awaitable[object]]
    ) -> Agents:
        return broken(host, rows, end_turns)

    stage = Stage(daemons, AgentsBackend("broken", open_broken), tmp_path / "stage")
    await stage_finds(test, stage, *more)


def test_every_test_of_the_contract_can_fail() -> None:
    assert names_in(breach[1] for breach in BREACHES) == names_of(AgentsContract)
