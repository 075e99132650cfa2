"""The contract of toolboxes finds who breaks it; the shipped one is what is broken."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from agenthost import (
    Context,
    Guards,
    Host,
    InvalidInput,
    Json,
    JsonObject,
    Manifest,
    Observers,
    Outcome,
    Rights,
    Toolbox,
    ToolOutput,
    ToolsBackend,
    ToolUse,
)
from agenthost.testing import Daemons, ToolsContract
from agenthost.testing.ports.stage import Stage
from agenthost.testing.ports.workshop import use
from agenthost_toolbox.toolbox import GuardedToolbox

from .finding import names_in, names_of
from .staged import name_of, stage_finds

Outcomes = AsyncIterator[Outcome]


class LosesArguments(GuardedToolbox):
    def run(self, context: Context, calls: Sequence[ToolUse], *more: Any) -> Outcomes:
        return super().run(context, [replace(c, arguments={}) for c in calls], *more)


class LosesTheTurn(GuardedToolbox):
    def run(self, context: Context, calls: Sequence[ToolUse], *more: Any) -> Outcomes:
        return super().run(replace(context, turn_id=None), calls, *more)


class KnowsNoAlias(GuardedToolbox):
    @property
    def tools(self) -> Mapping[str, Any]:
        return {n: t for n, t in super().tools.items() if n == t.spec.name}


class ChecksNoArguments(GuardedToolbox):
    async def _admitted(self, context: Context, call: ToolUse) -> Any:
        with suppress(InvalidInput):
            return await super()._admitted(context, call)
        tool = self._allowed(context, call.name)
        return tool, tool.spec.input.model_construct(amount=0), {}  # type: ignore[union-attr]


class JournalsWhatIsWrong(GuardedToolbox):
    async def _admitted(self, context: Context, call: ToolUse) -> Any:
        try:
            return await super()._admitted(context, call)
        except InvalidInput:
            tool = self._table.tools["put"]
            return tool, tool.spec.input(), {}  # type: ignore[operator]


class StopsAtTheFirstError(GuardedToolbox):
    async def run(self, *given: Any) -> Outcomes:
        async for outcome in super().run(*given):
            yield outcome
            if outcome.output.is_error:
                return


class AllowsAll(GuardedToolbox):
    def _allowed(self, context: Context, name: str) -> Any:
        return self._table.tools[name]


class ShowsAll(GuardedToolbox):
    def rights_of(self, agent_id: str, manifest: Manifest) -> Rights:
        rights = super().rights_of(agent_id, manifest)
        every = {each.definition.name: each.definition for each in self.tools.values()}
        return replace(rights, tools=tuple(every[name] for name in sorted(every)))


class ShowsInAnyOrder(GuardedToolbox):
    def rights_of(self, agent_id: str, manifest: Manifest) -> Rights:
        rights = super().rights_of(agent_id, manifest)
        return replace(rights, tools=rights.tools[::-1])


class OneByOne(GuardedToolbox):
    def _groups(self, calls: Sequence[ToolUse]) -> list[list[ToolUse]]:
        return [[call] for call in calls]


class AllTogether(GuardedToolbox):
    def _groups(self, calls: Sequence[ToolUse]) -> list[list[ToolUse]]:
        return [list(calls)]


class TellsTheJournalLate(GuardedToolbox):
    async def run(
        self, context: Context, calls: Sequence[ToolUse], before: Any, *more: Any
    ) -> Outcomes:
        late: list[ToolUse] = []

        async def remember(call: ToolUse) -> None:
            late.append(call)

        async for outcome in super().run(context, calls, remember, *more):
            for call in late:
                await before(call)
            late.clear()
            yield outcome


class JournalsReads(GuardedToolbox):
    async def _call(self, context: Context, call: ToolUse, *more: Any) -> Any:
        if self._reads(call.name):
            await more[1][0](call)
        return await super()._call(context, call, *more)


class IgnoresTheJournal(GuardedToolbox):
    def run(
        self, context: Context, calls: Sequence[ToolUse], before: Any, *more: Any
    ) -> Outcomes:
        async def tell(call: ToolUse) -> None:
            with suppress(Exception):
                await before(call)

        return super().run(context, calls, tell, *more)


class AsksNoGuard(GuardedToolbox):
    def __init__(self, host: Host, observers: Observers) -> None:
        super().__init__(host, observers)
        self._guards = Guards()


class AsksGuardsLate(GuardedToolbox):
    async def _admitted(self, context: Context, call: ToolUse) -> Any:
        tool = self._allowed(context, call.name)
        with suppress(InvalidInput):
            await tool.spec.call(_inside(context, self._host), tool.arguments(call))
        return await super()._admitted(context, call)


def _inside(context: Context, host: Host) -> Any:
    from agenthost import Reports, ToolContext

    return ToolContext.of(context, host, Reports())


class ShowsErrorsToNoGuard(GuardedToolbox):
    def _checked(self, context: Context, call: ToolUse, outcome: Outcome) -> Outcome:
        if outcome.output.is_error:
            return outcome
        return super()._checked(context, call, outcome)


class GoesOnBehindFailures(GuardedToolbox):
    async def run(
        self, context: Context, calls: Sequence[ToolUse], *more: Any
    ) -> Outcomes:
        for call in calls:
            async for outcome in super().run(context, [call], *more):
                yield outcome


class EndsNoTurn(GuardedToolbox):
    def _failure(
        self, context: Context, call: ToolUse, error: BaseException
    ) -> Outcome:
        return replace(super()._failure(context, call, error), ends=None)


class KnowsEverything(GuardedToolbox):
    def _unknown(self, call: ToolUse, problem: str) -> Outcome:
        return replace(super()._unknown(call, problem), known=True)


class KnowsNoFailedRead(GuardedToolbox):
    def _unknown(self, call: ToolUse, problem: str) -> Outcome:
        return replace(super()._unknown(call, problem), known=False)


class LetsErrorsOut(GuardedToolbox):
    def _failure(self, *given: Any) -> Outcome:
        raise RuntimeError("the step ends with it") from given[-1]


class TellsAllOfIt(GuardedToolbox):
    def _failure(self, context: Context, call: ToolUse, error: Any) -> Outcome:
        return Outcome(ToolOutput(call.id, call.name, str(error), is_error=True))


class TellsOfNoLabels(GuardedToolbox):
    async def _one(self, *given: Any) -> Outcome:
        return replace(await super()._one(*given), labels=frozenset())


class ForgetsLabelsOfErrors(GuardedToolbox):
    async def _one(self, context: Context, *more: Any) -> Outcome:
        outcome = await super()._one(context, *more)
        wrong = outcome.output.is_error
        return replace(outcome, labels=context.labels) if wrong else outcome


class TakesAnyForm(GuardedToolbox):
    async def checker(self, _: JsonObject) -> Callable[[Json], str]:
        return lambda _: ""


class TakesAnySchema(GuardedToolbox):
    async def checker(self, schema: JsonObject) -> Callable[[Json], str]:
        with suppress(InvalidInput):
            return await super().checker(schema)
        return lambda _: ""


class RepeatsAll(GuardedToolbox):
    def repeatable(self, name: str) -> bool:
        return True


class RepeatsReadsAlone(GuardedToolbox):
    def repeatable(self, name: str) -> bool:
        return self._reads(name)


class TellsNoProgress(GuardedToolbox):
    def run(
        self, context: Context, calls: Sequence[ToolUse], before: Any, told: Any
    ) -> Outcomes:
        return super().run(context, calls, before, lambda _: None)


class RunsBehindWhatWaits(GuardedToolbox):
    async def run(
        self, context: Context, calls: Sequence[ToolUse], *more: Any
    ) -> Outcomes:
        for call in calls:
            async for outcome in super().run(context, [call], *more):
                yield outcome


class TakesAskForYes(GuardedToolbox):
    async def _admitted(self, context: Context, call: ToolUse) -> Any:
        tool = self._allowed(context, call.name)
        return tool, tool.arguments(call), {}


class DropsTheRest(GuardedToolbox):
    def run(self, context: Context, calls: Sequence[ToolUse], *more: Any) -> Outcomes:
        return super().run(context, calls[:64], *more)


class LeavesToolsRunning(GuardedToolbox):
    async def _call(self, *given: Any) -> Any:
        return await asyncio.shield(super()._call(*given))


C = ToolsContract()
WRONG = (use("put", amount="many"),)
BREACHES: tuple[tuple[type[GuardedToolbox], Any, tuple[object, ...]], ...] = (
    (LosesArguments, C.test_a_call_runs_its_tool_for_its_agent, ()),
    (LosesTheTurn, C.test_a_call_runs_its_tool_for_its_agent, ()),
    (KnowsNoAlias, C.test_the_tools_are_there_by_every_name, ()),
    (ChecksNoArguments, C.test_wrong_arguments_are_told_and_run_nothing, WRONG),
    (JournalsWhatIsWrong, C.test_wrong_arguments_are_told_and_run_nothing, WRONG),
    (StopsAtTheFirstError, C.test_a_tool_that_is_not_there_is_told, ()),
    (AllowsAll, C.test_an_agent_calls_what_its_manifest_grants, ()),
    (ShowsAll, C.test_a_model_is_shown_what_its_agent_may_call, ()),
    (ShowsInAnyOrder, C.test_a_model_is_shown_what_its_agent_may_call, ()),
    (OneByOne, C.test_neighbouring_reads_run_together, ()),
    (AllTogether, C.test_effects_run_one_after_another, ()),
    (TellsTheJournalLate, C.test_an_effect_is_journalled_before_it_begins, ()),
    (JournalsReads, C.test_an_effect_is_journalled_before_it_begins, ()),
    (IgnoresTheJournal, C.test_an_effect_that_is_not_journalled_does_not_run, ()),
    (AsksNoGuard, C.test_guards_are_asked_before_a_call, ()),
    (AsksGuardsLate, C.test_guards_are_asked_before_a_call, ()),
    (AsksNoGuard, C.test_guards_read_what_the_model_will, ()),
    (ShowsErrorsToNoGuard, C.test_guards_read_what_the_model_will, ()),
    (KnowsEverything, C.test_an_effect_whose_end_nobody_saw_is_unknown, ()),
    (KnowsNoFailedRead, C.test_an_effect_whose_end_nobody_saw_is_unknown, ()),
    (LetsErrorsOut, C.test_a_tool_that_fails_ends_its_own_call, ()),
    (TellsAllOfIt, C.test_a_tool_that_fails_ends_its_own_call, ()),
    (
        GoesOnBehindFailures,
        C.test_nothing_is_changed_behind_a_call_that_failed,
        (),
    ),
    (EndsNoTurn, C.test_a_guard_may_end_the_turn, ()),
    (TellsOfNoLabels, C.test_labels_are_carried_on, ()),
    (ForgetsLabelsOfErrors, C.test_labels_are_carried_on, ()),
    (TakesAnyForm, C.test_values_are_held_against_a_schema, ()),
    (TakesAnySchema, C.test_values_are_held_against_a_schema, ()),
    (RepeatsAll, C.test_only_what_may_run_twice_is_repeatable, ()),
    (RepeatsReadsAlone, C.test_only_what_may_run_twice_is_repeatable, ()),
    (TellsNoProgress, C.test_progress_is_told_of_its_call, ()),
    (
        RunsBehindWhatWaits,
        C.test_nothing_begins_behind_a_call_that_waits_for_a_person,
        (),
    ),
    (TakesAskForYes, C.test_nothing_begins_behind_a_call_that_waits_for_a_person, ()),
    (DropsTheRest, C.test_every_call_has_one_outcome, ()),
    (LeavesToolsRunning, C.test_a_step_that_is_stopped_stops_its_tools, ()),
)


@pytest.mark.breaches
@pytest.mark.parametrize(("broken", "test", "more"), BREACHES, ids=name_of)
async def test_a_broken_toolbox_is_found(
    broken: type[GuardedToolbox],
    test: Any,
    more: tuple[object, ...],
    daemons: Daemons,
    tmp_path: Path,
) -> None:
    def open_broken(host: Host, observers: Observers) -> Toolbox:
        return broken(host, observers)

    stage = Stage(daemons, ToolsBackend("broken", open_broken), tmp_path / "stage")
    await stage_finds(test, stage, *more)


def test_every_test_of_the_contract_can_fail() -> None:
    assert names_in(breach[1] for breach in BREACHES) == names_of(ToolsContract)
