"""The turn engine: every surface starts its turns here, and nowhere else."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import uuid4

from agenthost_chat.chat import Message, Role, Text, Usage
from agenthost_chat.history import repaired

from ..context import OPERATOR, AgentView, Context, Principal, PrincipalKind
from ..errors import AgentHostError, Conflict, InvalidInput, TooLarge, Unavailable
from ..model_port import Pool
from ..record_port import TurnRecord, TurnState
from .events import NOTHING
from .mailbox import Mailboxes
from .run import Progress, Run, TurnFailed
from .turn import NO_OPTIONS, Turn, TurnOptions
from .warm import Conversation, WarmSessions

if TYPE_CHECKING:
    from ..agents import Agent
    from ..daemon import Daemon
    from ..ports import Condensed

log = logging.getLogger(__name__)

MESSAGE_BYTES = 64 * 1024
CALL_DEPTH = 5


def user_message(text: str) -> Message:
    """Make a user's message of plain text.

    Raises:
        InvalidInput: It is empty.
        TooLarge: It is over 64 KiB.
    """
    if not text.strip():
        raise InvalidInput("message", "must not be empty")
    if len(text.encode("utf-8", "surrogatepass")) > MESSAGE_BYTES:
        raise TooLarge(f"message: over the limit of {MESSAGE_BYTES} bytes")
    return Message(Role.USER, (Text(text),))


class Turns:
    """Starts turns, knows the running ones, stops them."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._mailboxes = Mailboxes()
        self._live: dict[str, Turn] = {}
        self._warm = WarmSessions()
        self._draining = False

    @property
    def running(self) -> int:
        """How many turns run or wait."""
        return len(self._live)

    def start(
        self,
        context: Context,
        agent: Agent,
        message: Message,
        options: TurnOptions = NO_OPTIONS,
    ) -> Turn:
        """Start a turn; watch it, wait for it or stop it through what is returned.

        Args:
            context: Who starts it, and the chain of calls that led here.
            agent: Who answers.
            message: What the user says.
            options: What this turn sets differently.

        Raises:
            Conflict: The agent is suspended or terminated, or would wait for itself.
            Unavailable: The daemon is draining.
        """
        if self._draining:
            raise Unavailable("draining: the daemon is shutting down")
        agent.check_accepts_messages()
        session = options.session_id or agent.session_id
        turn_id = options.turn_id or str(uuid4())
        known = self._live.get(turn_id)
        if known is not None and not known.ended:
            return known
        _check_chain(context, agent, session)
        limit = self._daemon.config.turns.max_concurrent
        if len(self._live) >= limit:
            raise Unavailable(f"{limit} turns are running or waiting; try again soon")
        view = AgentView(agent.id, agent.name, agent.manifest, session)
        rights = self._daemon.toolbox.rights_of(agent.id, agent.manifest)
        principal = Principal(PrincipalKind.AGENT, agent.name, rights.grants)
        context = context.for_agent(view, principal, turn_id)
        if options.max_cost_micro_usd is not None:
            pool = Pool(options.max_cost_micro_usd)
            context = replace(context, pools=(*context.pools, pool))
        turn = Turn(turn_id, context, message, options)
        self._live[turn_id] = turn
        turn.task = asyncio.create_task(self._serve(turn))
        turn.task.add_done_callback(lambda _: self._ended(turn))
        return turn

    async def call_agent(self, context: Context, reference: str, message: str) -> str:
        """Ask another agent on behalf of a turn and wait for its answer.

        Raises:
            NotFound: No agent has this id or name.
            Conflict: The call would wait for itself, or is nested too deeply.
        """
        agent = self._daemon.agents.find(reference)
        turn = self.start(context, agent, user_message(message))
        try:
            return (await turn.result()).text
        except asyncio.CancelledError:
            turn.cancel("the caller was stopped")
            raise

    def stop(self, agent_id: str, reason: str) -> int:
        """Stop all turns of an agent; return how many were running."""
        return sum(turn.cancel(reason) for turn in self._of(agent_id))

    async def stop_and_wait(self, agent_id: str, reason: str) -> None:
        """Stop all turns of an agent and wait until their rows are closed."""
        self.stop(agent_id, reason)
        mine = [turn.task for turn in self._of(agent_id)]
        await asyncio.gather(*filter(None, mine), return_exceptions=True)

    async def compact(self, agent: Agent) -> Condensed:
        """Compact the agent's session inside its mailbox, when it is long enough."""
        async with self._mailboxes.hold(agent.session_id):
            session = await self._daemon.sessions.get(agent.session_id)
            target = self._daemon.supervisor.target_of(agent)
            self._warm.forget(session.id)
            view = AgentView(agent.id, agent.name, agent.manifest, session.id)
            context = Context(self._daemon, OPERATOR, agent=view)
            return await self._daemon.compaction.by_count(session, target, context)

    async def set_thinking(self, session_id: str, *, on: bool) -> None:
        """Switch extended thinking, from the session's next turn on."""
        await self._daemon.sessions.set_thinking(session_id, on=on)
        self._warm.forget(session_id)

    def refuse_new(self) -> None:
        """From now on start nothing: the daemon is draining."""
        self._draining = True

    async def drain(self, patience: float) -> None:
        """Wait for running turns, then stop what is left."""
        self.refuse_new()
        tasks = {turn.task for turn in self._live.values() if turn.task is not None}
        if tasks:
            await asyncio.wait(tasks, timeout=patience)
        for turn in list(self._live.values()):
            turn.cancel("the daemon is shutting down")
        if tasks:
            await asyncio.wait(tasks, timeout=5.0)

    async def _serve(self, turn: Turn) -> None:
        with self._daemon.observers.watch(turn.context, turn.message) as seen:
            await self._conduct(turn)
            if seen is not None:
                seen.result, seen.error = turn.ending()

    async def _conduct(self, turn: Turn) -> None:
        run: Run | None = None
        try:
            session_id = turn.agent.session_id
            async with self._mailboxes.hold(session_id):
                warm = self._warm.take(session_id)
                left = None
                try:
                    run = await self._prepare(turn, warm)
                    if run is not None:
                        turn.finish(await run.converse())
                        left = run.left()
                finally:
                    self._warm.give_back(session_id, left)
        except asyncio.CancelledError:
            await self._end(turn, run, turn.stopped(), TurnState.CANCELLED)
        except AgentHostError as error:
            await self._end(turn, run, error, TurnState.FAILED)
        except Exception:
            log.exception("turn %s failed", turn.id)
            ours = TurnFailed("the turn failed for an internal reason; see the log")
            await self._end(turn, run, ours, TurnState.FAILED)

    def _ended(self, turn: Turn) -> None:
        """Close what a task that was cancelled before its first step left open."""
        if self._live.get(turn.id) is turn:
            del self._live[turn.id]
        turn.fail(turn.stopped())

    async def _prepare(self, turn: Turn, warm: Conversation | None) -> Run | None:
        """Load the session and begin; None when the turn had already ended."""
        known = None
        if turn.options.turn_id is not None:
            known = await self._daemon.journal.find(turn.id)
            if known is not None and _replayed(turn, known):
                return None
        said = warm or await self._read(turn.agent.session_id)
        target = self._daemon.supervisor.target_of(
            self._daemon.agents.get(turn.agent.id)
        )
        if turn.options.history is not None:
            said = Conversation(said.session, repaired(turn.options.history))
        elif await self._daemon.compaction.before_turn(said, target, turn.context):
            said = await self._read(turn.agent.session_id)
        run = Run(self._daemon, turn, said, target)
        if known is not None:
            await self._recall(turn, run.progress)
        run.begin(resumed=known is not None)
        return run

    async def _recall(self, turn: Turn, progress: Progress) -> None:
        """Count what a resumed turn took before, also against its own limit."""
        before = await self._daemon.usage.of_turn(turn.agent.id, turn.id)
        progress.usage = Usage(before.input_tokens, before.output_tokens)
        progress.cost = before.cost_micro_usd
        if turn.options.max_cost_micro_usd is not None:
            turn.context.pools[-1].used += before.cost_micro_usd

    async def _read(self, session_id: str) -> Conversation:
        sessions = self._daemon.sessions
        session = await sessions.get(session_id)
        return Conversation(session, repaired(await sessions.history(session)))

    async def _end(
        self, turn: Turn, run: Run | None, error: AgentHostError, state: TurnState
    ) -> None:
        result = NOTHING
        if run is not None:
            result = run.progress.result(run.progress.said)
            closed = TurnRecord(state, result, error)
            # A session that was deleted meanwhile has nothing left to close.
            with suppress(AgentHostError):
                await run.keep_what_was_said(closed)
        turn.fail(error, result)

    def _of(self, agent_id: str) -> list[Turn]:
        return [turn for turn in self._live.values() if turn.agent.id == agent_id]


def _check_chain(context: Context, agent: Agent, session_id: str) -> None:
    if session_id in context.chain:
        raise Conflict(
            f"agent {agent.name!r} is waiting for this call; it cannot call itself"
        )
    if len(context.chain) >= CALL_DEPTH:
        raise Conflict(f"agent calls are nested {CALL_DEPTH} deep; answer instead")


def _replayed(turn: Turn, known: TurnRecord) -> bool:
    """Give a turn that ended before its recorded end; False when it must go on."""
    if known.state is TurnState.CANCELLED:
        turn.fail(turn.stopped())
        return True
    if known.state is not TurnState.DONE:
        return False
    turn.finish(known.result)
    return True
