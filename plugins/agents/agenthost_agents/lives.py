"""Crashed agents: started again by themselves, later each time, or suspended.

What is known of their crashes stands in their rows, so a restart of the daemon goes on
where it was.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agenthost import (
    Agent,
    AgentCrashed,
    AgentHostError,
    AgentResumed,
    AgentState,
    AgentSuspended,
    Conflict,
    Context,
    Host,
    InvalidInput,
    Principal,
    PrincipalKind,
)

from .autonomous import RESTARTS

if TYPE_CHECKING:
    from .agents import KeptAgents

LATELY = 3_600.0
"""Seconds after which a crash is forgotten."""
FIRST = 1.0
LONGEST = 300.0
"""Seconds until an agent is started again: doubled each time, up to the longest."""
REASON = 500
"""So many characters of a reason are kept."""
DAEMON = Context(Principal(PrincipalKind.PLUGIN, "agents"))

log = logging.getLogger(__name__)


def suspended(reason: str) -> Callable[[Agent], Agent]:
    """Change an agent so that it takes no messages."""

    def changed(now: Agent) -> Agent:
        _check_alive(now)
        return replace(now, state=AgentState.SUSPENDED, reason=reason[:REASON])

    return changed


def resumed(now: Agent) -> Agent:
    """The agent as it takes messages; its crashes are forgotten."""
    _check_alive(now)
    return replace(now, state=AgentState.RUNNING, reason="", crashes=())


class Lives:
    """Starts the crashed agents of one daemon again.

    Args:
        host: The daemon.
        agents: Who keeps them.
        end_turns: Stops all that runs or waits for an agent; told why.
    """

    def __init__(
        self,
        host: Host,
        agents: KeptAgents,
        end_turns: Callable[[str, str], Awaitable[object]],
    ) -> None:
        self._host = host
        self._agents = agents
        self._end_turns = end_turns
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def begin(self) -> None:
        """Start again, in time, those that an earlier process has left crashed."""
        for agent in self._agents.list():
            if agent.state is AgentState.CRASHED:
                self._own(agent.id, self._restart(agent))

    async def end(self) -> None:
        """Start no more; their rows say that they have crashed."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def crash(self, agent_id: str, reason: str) -> None:
        """Take note of a crash; one that comes while another is at work is the same."""
        if agent_id not in self._tasks:
            self._own(agent_id, self._crashed(agent_id, reason[:REASON]))

    def drop(self, agent_id: str) -> None:
        """Leave it to whoever suspends, resumes or deletes the agent now."""
        if task := self._tasks.pop(agent_id, None):
            task.cancel()

    def _own(self, agent_id: str, doing: Coroutine[Any, Any, None]) -> None:
        self._tasks[agent_id] = asyncio.create_task(self._done(agent_id, doing))

    async def _done(self, agent_id: str, doing: Coroutine[Any, Any, None]) -> None:
        try:
            await doing
        except AgentHostError as error:
            # It was deleted or suspended meanwhile, or the store takes nothing.
            log.warning("agent %s stays as it is: %s", agent_id, error.message)
        finally:
            # Another may have its place by now.
            if self._tasks.get(agent_id) is asyncio.current_task():
                del self._tasks[agent_id]

    async def _crashed(self, agent_id: str, reason: str) -> None:
        now = self._host.clock.time()
        log.warning("agent %s has crashed: %s", agent_id, reason)
        known = self._agents.get(agent_id)
        crashes = (*(at for at in known.crashes if at > now - LATELY), now)
        most = _most(known)
        if len(crashes) > most:
            why = f"it crashed {len(crashes)} times within an hour: {reason}"
            changed = _standing(AgentState.SUSPENDED, why, crashes)
            await self._agents.stand(agent_id, changed, AgentSuspended)
            await self._end_turns(agent_id, "the agent was suspended")
            return
        changed = _standing(AgentState.CRASHED, reason, crashes)
        crashed = await self._agents.stand(agent_id, changed, AgentCrashed)
        await self._restart(crashed)

    async def _restart(self, agent: Agent) -> None:
        clock, number = self._host.clock, len(agent.crashes)
        due = max(agent.crashes, default=0.0) + min(FIRST * 2 ** (number - 1), LONGEST)
        # A clock that was set back must not have it wait for ever.
        await clock.sleep(min(max(due - clock.time(), 0.0), LONGEST))
        await self._agents.stand(agent.id, _restarted, AgentResumed)
        self._agents.restarts += 1


def _standing(
    state: AgentState, reason: str, crashes: tuple[float, ...]
) -> Callable[[Agent], Agent]:
    def changed(now: Agent) -> Agent:
        # A person may have suspended it meanwhile.
        if now.state is not AgentState.RUNNING:
            raise Conflict(f"agent {now.name!r} is {now.state}")
        return replace(now, state=state, reason=reason[:REASON], crashes=crashes)

    return changed


def _restarted(now: Agent) -> Agent:
    if now.state is not AgentState.CRASHED:
        raise Conflict(f"agent {now.name!r} is {now.state}")
    return replace(now, state=AgentState.RUNNING, reason="")


def _check_alive(now: Agent) -> None:
    if now.state is AgentState.TERMINATED:
        raise Conflict(f"agent {now.name!r} is being deleted")


def _most(agent: Agent) -> int:
    try:
        return RESTARTS.of(agent.manifest).max_restarts
    except InvalidInput:
        # It was written when nobody read it.
        return RESTARTS.model().max_restarts
