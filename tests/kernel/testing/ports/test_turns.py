"""The contract of turns finds who breaks it; the shipped engine is what is broken."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from agenthost import (
    Agent,
    AgentHostError,
    Conflict,
    Context,
    Engine,
    Host,
    Observers,
    Thinking,
    Turn,
    TurnEvent,
    TurnOptions,
    TurnResult,
    TurnsBackend,
    TurnState,
    Watcher,
    Work,
    new_id,
)
from agenthost.testing import Daemons, TurnsContract
from agenthost.testing.ports.stage import Stage
from agenthost.testing.scripted import USAGE
from agenthost_turns.engine import TurnEngine
from agenthost_turns.mailbox import Mailboxes
from agenthost_turns.parts import parts_of
from agenthost_turns.progress import Progress

from .finding import names_in, names_of
from .staged import name_of, stage_finds


class NoQueues(Mailboxes):
    @asynccontextmanager
    async def hold(self, session_id: str, work: Work) -> AsyncIterator[None]:
        yield


class OneQueue(Mailboxes):
    @asynccontextmanager
    async def hold(self, session_id: str, work: Work) -> AsyncIterator[None]:
        async with super().hold("all", work):
            yield


class QueuesNothing(TurnEngine):
    def __init__(self, parts: Any) -> None:
        super().__init__(parts)
        self._mailboxes = NoQueues(parts.host)


class OneAtATime(TurnEngine):
    def start(self, context: Context, agent: Agent, message: Any, *more: Any) -> Turn:
        if self.running:
            raise Conflict("busy")
        return super().start(context, agent, message, *more)


class CountsNothing(TurnEngine):
    running = 0


class AnswersEarly(TurnEngine):
    async def _conduct(self, turn: Turn, warm: Any) -> Any:
        took = (USAGE, 1, 20, "scripted/scripted-model")
        turn.finish(TurnResult("You said: hello", *took))
        return await super()._conduct(turn, warm)


class StopsLater(TurnEngine):
    async def _stop(self, works: Any, reason: str) -> int:
        return len([work for work in works if work.cancel(reason)])


class StopsAll(TurnEngine):
    async def stop(self, agent: Agent, reason: str, session_id: str = "") -> int:
        return await self.stop_all(agent.id, reason)


class StopsAnybodys(TurnEngine):
    async def stop(self, agent: Agent, reason: str, session_id: str = "") -> int:
        runs = self._mailboxes.ahead(session_id or agent.session_id)[:1]
        return await self._stop(runs, reason)


class StopsWhatRunsAlone(TurnEngine):
    async def stop_all(self, agent_id: str, reason: str) -> int:
        return await self.stop(self._parts.agents.get(agent_id), reason)


class StopsTheWorld(TurnEngine):
    async def stop_all(self, agent_id: str, reason: str) -> int:
        return await self._stop(list(self._live.values()), reason)


class FailsAsCancelled(TurnEngine):
    async def _end(self, turn: Turn, run: Any, error: Any, state: TurnState) -> None:
        if state is TurnState.FAILED:
            state = TurnState.CANCELLED
        await super()._end(turn, run, error, state)


class FailsForAll(TurnEngine):
    async def _end(self, turn: Turn, run: Any, error: Any, state: TurnState) -> None:
        for work in list(self._live.values()):
            if work is not turn:
                work.cancel("another turn failed")
        await super()._end(turn, run, error, state)


class EachIsNew(TurnEngine):
    def start(self, context: Context, agent: Agent, message: Any, *more: Any) -> Turn:
        options = replace(more[0], turn_id=None) if more else TurnOptions()
        return super().start(context, agent, message, options)


class LeavesTheDigestOut(TurnEngine):
    def start(self, context: Context, agent: Agent, message: Any, *more: Any) -> Turn:
        options = replace(more[0], digest=None) if more else TurnOptions()
        return super().start(context, agent, message, options)


class TellsNoThoughts(TurnEngine):
    def watch(self, *given: Any) -> Watcher:
        watcher = super().watch(*given)
        emit = watcher.turn.emit

        def told(event: TurnEvent) -> None:
            if not isinstance(event, Thinking):
                emit(event)

        watcher.turn.emit = told  # type: ignore[method-assign]
        return watcher


class TellsFromNowOn(TurnEngine):
    async def attach(self, agent: Agent, turn_id: str, offset: int = 0) -> Watcher:
        live = self._live_turn(agent, turn_id)
        if live is not None:
            return live.watch()
        return await super().attach(agent, turn_id, offset)


class TellsAllAgain(TurnEngine):
    async def attach(self, agent: Agent, turn_id: str, offset: int = 0) -> Watcher:
        return await super().attach(agent, turn_id)


class ShowsToAnybody(TurnEngine):
    async def attach(self, agent: Agent, turn_id: str, offset: int = 0) -> Watcher:
        live = self._live.get(turn_id)
        if isinstance(live, Turn):
            return live.watch(offset)
        return await super().attach(agent, turn_id, offset)


class TellsWhatWaits(TurnEngine):
    def start(self, *given: Any) -> Turn:
        turn = super().start(*given)
        for tell in self._listeners:
            tell(turn)
        return turn


class TellsForEver(TurnEngine):
    def listen(self, listener: Callable[[Turn], None]) -> Callable[[], None]:
        super().listen(listener)
        return lambda: None


class CountsNoCauses(TurnEngine):
    def start(self, context: Context, *given: Any) -> Turn:
        return super().start(replace(context, depth=0), *given)


class CallsByNameAlone(TurnEngine):
    async def call_agent(self, context: Context, name: str, message: str) -> TurnResult:
        names = {agent.name for agent in self._parts.agents.list()}
        if name not in names:
            raise Conflict("there is no such name")
        return await super().call_agent(context, name, message)


class SeesNoRing(TurnEngine):
    def _check_room(self, context: Context, agent: Agent, session_id: str) -> None:
        super()._check_room(replace(context, turn_id=None), agent, session_id)


class CountsNoDepth(TurnEngine):
    def _check_room(self, context: Context, agent: Agent, session_id: str) -> None:
        super()._check_room(replace(context, chain=()), agent, session_id)


class SpeaksToAnybody(TurnEngine):
    def _known(self, agent: Agent, options: TurnOptions) -> Turn | None:
        return super()._known(self._parts.agents.get(agent.id), options)


class KeepsTheStateless(TurnEngine):
    def start(self, context: Context, agent: Agent, message: Any, *more: Any) -> Turn:
        options = replace(more[0], history=None) if more else TurnOptions()
        return super().start(context, agent, message, options)


class HasOneSession(TurnEngine):
    def start(self, context: Context, agent: Agent, message: Any, *more: Any) -> Turn:
        options = replace(more[0], session_id=None) if more else TurnOptions()
        return super().start(context, agent, message, options)


class ResetsAgainAndAgain(TurnEngine):
    async def reset(self, agent: Agent, into: str = "", *, keep: bool = False) -> Agent:
        now = self._parts.agents.get(agent.id)
        fresh = await super().reset(now, into, keep=keep)
        return await super().reset(fresh, into, keep=keep)


class ResetsAndWaits(TurnEngine):
    async def reset(self, agent: Agent, into: str = "", *, keep: bool = False) -> Agent:
        fresh = await super().reset(agent, into, keep=keep)
        return replace(fresh, session_id=agent.session_id)


class KeepsNothing(TurnEngine):
    async def reset(self, agent: Agent, into: str = "", *, keep: bool = False) -> Agent:
        return await super().reset(agent, into)


class GoesNowhere(TurnEngine):
    async def reset(self, agent: Agent, into: str = "", *, keep: bool = False) -> Agent:
        return await super().reset(agent, keep=keep)


class AtOnce(TurnEngine):
    async def apart(
        self, agent: Agent, do: Any, session_id: str = "", *, sealed: bool = False
    ) -> Any:
        return await do(session_id or agent.session_id)


class ApartAtHome(TurnEngine):
    async def apart(
        self, agent: Agent, do: Any, session_id: str = "", *, sealed: bool = False
    ) -> Any:
        return await super().apart(agent, do, sealed=sealed)


class SealsAll(TurnEngine):
    async def apart(
        self, agent: Agent, do: Any, session_id: str = "", *, sealed: bool = False
    ) -> Any:
        return await super().apart(agent, do, session_id, sealed=True)


class SealsNothing(TurnEngine):
    async def apart(
        self, agent: Agent, do: Any, session_id: str = "", *, sealed: bool = False
    ) -> Any:
        return await super().apart(agent, do, session_id)


class NeverRefuses(TurnEngine):
    def refuse_new(self) -> None:
        pass


class RefusesAndEnds(TurnEngine):
    def refuse_new(self) -> None:
        super().refuse_new()
        for work in self._live.values():
            work.cancel("enough")


class DrainsInAHurry(TurnEngine):
    async def drain(self, patience: float) -> None:
        await super().drain(0)


class DrainsForEver(TurnEngine):
    async def drain(self, patience: float) -> None:
        self.refuse_new()


class DrainsAsAPerson(TurnEngine):
    async def drain(self, patience: float) -> None:
        self.refuse_new()
        await self._stop(list(self._live.values()), "the end")


class ResumesAsNew(TurnEngine):
    async def resume(self, context: Context, agent: Agent, turn_id: str) -> Watcher:
        _, spoken = await self._past.of(agent, turn_id)
        return self.watch(context, agent, spoken[0])


class SpendsFreely(TurnEngine):
    def start(self, context: Context, agent: Agent, message: Any, *more: Any) -> Turn:
        options = replace(more[0], max_cost_micro_usd=None) if more else TurnOptions()
        return super().start(context, agent, message, options)


class AsksNothing(TurnEngine):
    def start(self, context: Context, agent: Agent, message: Any, *more: Any) -> Turn:
        options = replace(more[0], settings=None) if more else TurnOptions()
        return super().start(context, agent, message, options)


class LeavesAll(TurnOptions):
    """Knows the agent's own tool, which is called as it is, as one of the caller's."""

    def beside(self, own: Any) -> Any:
        return (*own, *(tool for tool in self.tools if tool not in own))


class Shadows(TurnOptions):
    def beside(self, own: Any) -> Any:
        return (*own, *self.tools)


class WithOptions(TurnEngine):
    kind: type[TurnOptions] = TurnOptions

    def start(self, context: Context, agent: Agent, message: Any, *more: Any) -> Turn:
        (given,) = more
        told = {each.name: getattr(given, each.name) for each in fields(TurnOptions)}
        return super().start(context, agent, message, self.kind(**told))


class RunsNoneFirst(WithOptions):
    kind = LeavesAll

    def start(self, context: Context, agent: Agent, message: Any, *more: Any) -> Turn:
        rights = self._parts.toolbox.rights_of(agent.id, agent.manifest)
        tools = (*more[0].tools, *rights.tools)
        return super().start(context, agent, message, replace(more[0], tools=tools))


class KeepsForADay(TurnEngine):
    def start(self, context: Context, agent: Agent, message: Any, *more: Any) -> Turn:
        options = replace(more[0], turn_id=more[0].turn_id or new_id())
        return super().start(context, agent, message, options)


class TakesAnyName(WithOptions):
    kind = Shadows


class HidesTools(TurnEngine):
    def start(self, context: Context, agent: Agent, message: Any, *more: Any) -> Turn:
        options = replace(more[0], tools=()) if more else TurnOptions()
        return super().start(context, agent, message, options)


class AnswersAnything(TurnEngine):
    def start(self, context: Context, agent: Agent, message: Any, *more: Any) -> Turn:
        options = replace(more[0], history=()) if more else TurnOptions()
        return super().start(context, agent, message, options)


class TakesAnyAnswer(TurnEngine):
    async def _prepare(self, *given: Any) -> Any:
        run = await super()._prepare(*given)
        if run is not None:
            run._form = None
        return run


class Patient(Progress):
    def check(self, ends: AgentHostError | None) -> None:
        pass


class GoesRound(TurnEngine):
    async def _prepare(self, *given: Any) -> Any:
        run = await super()._prepare(*given)
        if run is not None:
            run.progress = Patient()
        return run


class GivesUp(TurnEngine):
    async def _prepare(self, *given: Any) -> Any:
        run = await super()._prepare(*given)
        if run is not None:
            run.progress.loops = 99
        return run


class AsksNoGuard(TurnEngine):
    async def _prepare(self, turn: Turn, warm: Any) -> Any:
        session = await self._parts.sessions.get(turn.agent.session_id)
        return await super()._prepare(turn, await self._parts.sessions.history(session))


C = TurnsContract()
BREACHES: tuple[tuple[type[TurnEngine], Any], ...] = (
    (QueuesNothing, C.test_turns_of_a_session_run_one_after_another),
    (CountsNothing, C.test_turns_of_a_session_run_one_after_another),
    (OneAtATime, C.test_turns_of_two_sessions_run_at_once),
    (AnswersEarly, C.test_an_answer_is_on_disk_when_it_is_given),
    (StopsLater, C.test_a_stop_is_on_disk_when_it_answers),
    (StopsAll, C.test_a_stop_is_on_disk_when_it_answers),
    (StopsAnybodys, C.test_a_stop_ends_only_what_is_meant),
    (StopsWhatRunsAlone, C.test_stopping_all_ends_what_runs_and_what_waits),
    (StopsTheWorld, C.test_stopping_all_ends_what_runs_and_what_waits),
    (FailsAsCancelled, C.test_a_failure_ends_its_own_turn_alone),
    (FailsForAll, C.test_a_failure_ends_its_own_turn_alone),
    (EachIsNew, C.test_an_id_asked_again_is_the_same_turn),
    (LeavesTheDigestOut, C.test_an_id_given_for_something_else_is_refused),
    (TellsNoThoughts, C.test_a_watcher_hears_all_from_the_first_event_on),
    (TellsFromNowOn, C.test_who_comes_late_hears_what_was_said),
    (TellsAllAgain, C.test_who_comes_late_hears_what_was_said),
    (ShowsToAnybody, C.test_a_turn_is_shown_to_its_own_agent_alone),
    (TellsWhatWaits, C.test_a_listener_hears_of_turns_that_begin_to_run),
    (TellsForEver, C.test_a_listener_hears_of_turns_that_begin_to_run),
    (CountsNoCauses, C.test_what_becomes_of_a_turn_is_recorded_and_told),
    (CallsByNameAlone, C.test_a_call_of_another_agent_gives_its_answer),
    (SeesNoRing, C.test_a_call_that_closes_a_ring_is_refused),
    (CountsNoDepth, C.test_a_call_that_closes_a_ring_is_refused),
    (SpeaksToAnybody, C.test_an_agent_that_takes_no_messages_starts_nothing),
    (KeepsTheStateless, C.test_a_stateless_turn_leaves_the_session_alone),
    (HasOneSession, C.test_a_turn_may_speak_in_another_session_of_its_agent),
    (ResetsAgainAndAgain, C.test_resets_at_once_change_the_session_once),
    (ResetsAndWaits, C.test_resets_at_once_change_the_session_once),
    (KeepsNothing, C.test_a_reset_may_keep_the_session_and_go_back_to_it),
    (GoesNowhere, C.test_a_reset_may_keep_the_session_and_go_back_to_it),
    (AtOnce, C.test_what_is_done_apart_has_the_session_for_itself),
    (ApartAtHome, C.test_something_can_be_done_apart_in_another_session),
    (SealsAll, C.test_what_is_done_apart_can_be_stopped_unless_it_is_sealed),
    (SealsNothing, C.test_what_is_done_apart_can_be_stopped_unless_it_is_sealed),
    (NeverRefuses, C.test_a_draining_engine_starts_nothing_new),
    (RefusesAndEnds, C.test_a_draining_engine_starts_nothing_new),
    (DrainsInAHurry, C.test_a_drain_waits_for_what_ends_in_time),
    (DrainsForEver, C.test_a_drain_waits_for_what_ends_in_time),
    (DrainsAsAPerson, C.test_what_a_drain_interrupts_the_next_daemon_resumes),
    (ResumesAsNew, C.test_what_a_drain_interrupts_the_next_daemon_resumes),
    (AsksNothing, C.test_what_is_asked_of_answers_is_kept_to),
    (TakesAnyAnswer, C.test_what_is_asked_of_answers_is_kept_to),
    (HidesTools, C.test_calls_of_the_callers_tools_are_left_to_it),
    (RunsNoneFirst, C.test_calls_of_the_callers_tools_are_left_to_it),
    (AnswersAnything, C.test_a_turn_may_answer_calls_of_its_history),
    (GoesRound, C.test_a_turn_of_which_guards_say_it_loops_ends),
    (GivesUp, C.test_a_turn_of_which_guards_say_it_loops_ends),
    (AsksNoGuard, C.test_guards_are_asked_of_what_was_said_before),
    (EachIsNew, C.test_calls_that_were_left_are_told_again),
    (KeepsForADay, C.test_nothing_is_kept_of_a_turn_without_left_calls),
    (TakesAnyName, C.test_a_tool_of_a_name_that_is_taken_is_refused),
    (SpendsFreely, C.test_a_turn_spends_no_more_than_it_may),
)


@pytest.mark.breaches
@pytest.mark.parametrize(("broken", "test"), BREACHES, ids=name_of)
async def test_a_broken_engine_is_found(
    broken: type[TurnEngine], test: Any, daemons: Daemons, tmp_path: Path
) -> None:
    def open_broken(host: Host, observers: Observers) -> Engine:
        return broken(parts_of(host, observers))

    stage = Stage(daemons, TurnsBackend("broken", open_broken), tmp_path / "stage")
    await stage_finds(test, stage)


def test_every_test_of_the_contract_can_fail() -> None:
    assert names_in(breach[1] for breach in BREACHES) == names_of(TurnsContract)
