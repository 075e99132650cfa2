"""The calls of agents that a run makes: each is a turn, which the journal knows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn
from uuid import NAMESPACE_URL, uuid5

from agenthost import (
    Agent,
    AgentHostError,
    Cancelled,
    Context,
    Host,
    Interrupted,
    InvalidInput,
    Message,
    NotFound,
    Pool,
    Role,
    Text,
    Turn,
    TurnFailed,
    TurnOptions,
    TurnRecord,
    TurnResult,
    TurnState,
    Unavailable,
    Waiting,
)
from agenthost_values.value_class import value_class

from ..background.outcomes import NOT_GRANTED
from .definition import Mode, WorkflowStep
from .run_rows import Run, StepRecord
from .spending import Spending
from .walk import Asked, record_name, timed_out

if TYPE_CHECKING:
    from collections.abc import Awaitable

STOP_PATIENCE = 10.0
"""Seconds in which a turn that is stopped must have ended."""
GIVEN_UP = frozenset({TurnState.FAILED, TurnState.CANCELLED})


@value_class
class _Open:
    """A call under way: whose turn it is, and what its tree has spent."""

    agent_id: str
    turn_id: str
    spent: Pool
    turns: list[Turn]


class Calls:
    """Asks agents on behalf of one run.

    Args:
        host: The daemon.
        run: The run.
        context: Who caused it.
        spending: What its calls draw from.
        park: Awaited where the daemon ends: it never returns.
    """

    def __init__(
        self,
        host: Host,
        run: Run,
        context: Context,
        spending: Spending,
        *,
        park: Callable[[], Awaitable[NoReturn]],
    ) -> None:
        self._host = host
        self._run = run
        self._context = context
        self._spending = spending
        self._park = park
        self._open: dict[str, _Open] = {}
        self.sessions: dict[str, str] = {}
        """The sessions that end with the run, by their keys."""

    async def ask(self, asked: Asked) -> StepRecord:
        """Make a call and tell what came of it.

        Raises:
            Waiting: Its turn waits for a person.
        """
        clock, began = self._host.clock, self._host.clock.time()
        turn_id = turn_id_of(self._run.id, asked)
        open_ = _Open("", turn_id, Pool(), [])
        self._open[asked.key] = open_
        agent: Agent | None = None
        result: TurnResult | None = None
        failed: AgentHostError | None = None
        try:
            agent, known = await self._agent(asked, open_.turn_id)
            if known is not None:
                await self._spending.count(self._host, agent.id, turn_id)
            spent = self._spending.pools(turn_id)[1]
            open_ = replace(open_, agent_id=agent.id, spent=spent)
            self._open[asked.key] = open_
            result = await self._answer(asked, agent, open_, known)
        except Waiting:
            raise
        except Interrupted:
            await self._park()
        except AgentHostError as error:
            failed = error
        taken = await self._taken(open_, result)
        del self._open[asked.key]
        step = self._run.steps[asked.index]
        ended = timed_out(step) if _is_late(failed, step) else ""
        code = failed.code if failed else ""
        return StepRecord(
            run_id=self._run.id,
            seq=0,
            key=asked.key,
            index=asked.index,
            name=record_name(step, asked.iteration),
            attempt=asked.attempt,
            agent_id=agent.id if agent else "",
            agent_name=agent.name if agent else step.agent_name,
            session_id=self._session_of(asked, agent),
            output=result.text if result else None,
            error=ended or (failed.message if failed else ""),
            code=code,
            final=isinstance(failed, Cancelled) or code == NOT_GRANTED,
            input_tokens=taken[0],
            output_tokens=taken[1],
            cost_micro_usd=taken[2],
            started_at=began,
            ended_at=clock.time(),
            owner=self._run.owner,
            labels=result.labels if result else frozenset(),
        )

    def learn(self, labels: frozenset[str]) -> None:
        """Take note of where what was answered came from: what follows knows of it."""
        self._context = self._context.labelled(labels)

    async def stop(self, reason: str, ends_as: TurnState) -> None:
        """End the turns that run, and wait until they are closed."""
        turns = [turn for each in self._open.values() for turn in each.turns]
        for turn in turns:
            turn.cancel(reason, ends_as)
        if tasks := [turn.task for turn in turns if turn.task is not None]:
            await asyncio.wait(tasks, timeout=STOP_PATIENCE)

    async def apart(self) -> int:
        """Give what the agents took that the unfinished calls had asked.

        What their own turns took stands in the ledger under their ids.
        """
        apart = 0
        for each in self._open.values():
            own = await self._host.usage.of_turn(each.agent_id, each.turn_id)
            apart += max(each.spent.used - own.cost_micro_usd, 0)
        return apart

    async def _agent(
        self, asked: Asked, turn_id: str
    ) -> tuple[Agent, TurnRecord | None]:
        """Find who is asked, and the turn of a call that was made before."""
        step, agents = self._run.steps[asked.index], self._host.agents
        again = self._run.started_at is not None
        known = await self._host.journal.find(turn_id) if again else None
        if known is not None:
            # By this name there may be another agent now.
            return agents.get(known.agent_id), known
        return agents.find(step.agent_id or step.agent_name), None

    async def _answer(
        self, asked: Asked, agent: Agent, open_: _Open, known: TurnRecord | None
    ) -> TurnResult:
        if known is not None:
            if (key := self._key(asked, agent)) is not None:
                self.sessions[key] = known.session_id
            if known.state in GIVEN_UP:
                raise known.error or Cancelled("the turn was stopped")
        turn = await self._turn(asked, agent, open_, known)
        open_.turns.append(turn)
        return await self._in_time(turn, self._run.steps[asked.index])

    async def _turn(
        self, asked: Asked, agent: Agent, open_: _Open, known: TurnRecord | None
    ) -> Turn:
        pools = self._spending.pools(open_.turn_id)
        context = replace(self._context, pools=pools)
        if known is not None and known.state is TurnState.INTERRUPTED:
            watcher = await self._host.turns.resume(context, agent, open_.turn_id)
            watcher.leave()
            return watcher.turn
        if not asked.prompt.strip():
            raise InvalidInput("prompt", "it is empty; the output before it may be")
        message = Message(Role.USER, (Text(asked.prompt),))
        session = await self._session(asked, agent)
        options = TurnOptions(turn_id=open_.turn_id, session_id=session)
        while True:
            try:
                return self._host.turns.start(context, agent, message, options)
            except Unavailable as full:
                if full.retry_in is None:
                    # The daemon is draining: after its next start this goes on.
                    await self._park()
                await self._host.clock.sleep(full.retry_in)

    async def _session(self, asked: Asked, agent: Agent) -> str | None:
        key = self._key(asked, agent)
        if key is None:
            return None
        if key not in self.sessions:
            opened = await self._host.sessions.open(agent.id, key, ephemeral=True)
            self.sessions[key] = opened.id
        return self.sessions[key]

    def _key(self, asked: Asked, agent: Agent) -> str | None:
        """Name the session of a call: one for each agent, and for each FAN_OUT step."""
        step = self._run.steps[asked.index]
        if step.shared_session:
            return None
        branch = f":{asked.index}" if step.mode is Mode.FAN_OUT else ""
        return f"workflow:{self._run.id}:{agent.id}{branch}"

    def _session_of(self, asked: Asked, agent: Agent | None) -> str:
        key = self._key(asked, agent) if agent else None
        return self.sessions.get(key, "") if key else ""

    async def _in_time(self, turn: Turn, step: WorkflowStep) -> TurnResult:
        """Wait for a turn's end as long as the step allows, then end it."""
        ending = asyncio.ensure_future(turn.result())
        late = asyncio.ensure_future(self._host.clock.sleep(step.timeout_secs))
        try:
            await asyncio.wait((ending, late), return_when=asyncio.FIRST_COMPLETED)
            if not ending.done():
                turn.cancel(timed_out(step), TurnState.FAILED)
                await asyncio.wait((ending,), timeout=STOP_PATIENCE)
            if ending.done():
                return ending.result()
            raise TurnFailed(timed_out(step))
        finally:
            ending.cancel()
            late.cancel()

    async def _taken(
        self, open_: _Open, result: TurnResult | None
    ) -> tuple[int, int, int]:
        """Tell the tokens of a turn, and what it and those it asked have cost."""
        if result is not None:
            usage, cost = result.usage, result.cost_micro_usd
            tokens = usage.input_tokens, usage.output_tokens
        else:
            total = await self._host.usage.of_turn(open_.agent_id, open_.turn_id)
            tokens, cost = (
                (total.input_tokens, total.output_tokens),
                (total.cost_micro_usd),
            )
        # One that had gone on before anybody listened drew from no pool.
        self._spending.pool.used += max(cost - open_.spent.used, 0)
        return *tokens, max(cost, open_.spent.used)


async def erase(host: Host, session_ids: set[str]) -> None:
    """Delete the sessions of a run."""
    for session_id in session_ids:
        with suppress(NotFound):
            await host.sessions.erase(session_id)


def turn_id_of(run_id: str, asked: Asked) -> str:
    """Name the turn of a call, the same whenever the run is walked."""
    name = f"agenthost:workflow:{run_id}:{asked.key}"
    return str(uuid5(NAMESPACE_URL, name))


def _is_late(error: AgentHostError | None, step: WorkflowStep) -> bool:
    """Tell whether a turn was ended since it took too long, now or in another life."""
    return isinstance(error, AgentHostError) and error.message.endswith(timed_out(step))
