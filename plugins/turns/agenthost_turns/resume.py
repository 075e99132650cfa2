"""What was said before: read for a turn, told again, or gone on with."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

from agenthost import (
    OPERATOR,
    Agent,
    AgentView,
    Cancelled,
    Conflict,
    Context,
    Conversation,
    Entry,
    Finish,
    InvalidInput,
    Mismatch,
    NotFound,
    PastFailure,
    Session,
    Turn,
    TurnOptions,
    TurnRecord,
    TurnState,
    Waiting,
    Watcher,
)
from agenthost_chat.chat import Message, Role, ToolOutput, Usage
from agenthost_chat.history import open_calls

from .histories import conversation_of, let_through
from .left import key_of
from .run import Run

if TYPE_CHECKING:
    from .parts import Parts

MANY = 1_000
"""Parts of a history from which on it is read in a thread."""
_PARTS = attrgetter("parts")
GONE = (
    "the turn cannot go on: its question is no longer in the session, which was "
    "summarised or reset since; ask again"
)


class Past:
    """Reads conversations and turns back."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def conversation(self, turn: Turn) -> Conversation:
        """Read a turn's session as it finds it."""
        session_id = turn.agent.session_id
        return await conversation_of(self._parts, turn.context, session_id)

    async def begun(self, turn: Turn, warm: Conversation | None) -> Conversation:
        """Give the conversation that a turn goes on with: its own, or a session's.

        Raises:
            NotFound: The session is not the agent's.
            Conflict: The session is archived.
        """
        history = turn.options.history
        if history is not None:
            key = key_of(turn.options, turn.id)
            now = self._parts.clock.time()
            own = Session(turn.id, turn.agent.id, now, key=key, ephemeral=True)
            if sum(map(len, map(_PARTS, history))) < MANY:
                return Conversation(own, self._before(turn, history))
            read = partial(self._long, turn, own, history, asyncio.get_running_loop())
            return await self._parts.host.workers.in_thread(read)
        said = warm or await self.conversation(turn)
        said.session.check_open_to(turn.agent.id)
        return said

    async def of(self, agent: Agent, turn_id: str) -> tuple[TurnRecord, list[Message]]:
        """Read one of an agent's turns and what was said in it.

        Raises:
            NotFound: The agent has no such turn.
        """
        journal = self._parts.journal
        record = await journal.find(turn_id)
        if record is None or record.agent_id != agent.id:
            raise NotFound("turn", turn_id)
        said = await journal.said(record.session_id, turn_id)
        return record, [entry.message for entry in said]

    async def told(self, agent: Agent, turn_id: str, offset: int) -> Watcher:
        """Tell an ended turn again.

        Raises:
            NotFound: The agent has no such turn.
        """
        record, spoken = await self.of(agent, turn_id)
        turn = recalled(agent, turn_id, record, spoken)
        await self.end(turn, record)
        return turn.watch(offset)

    async def end(self, turn: Turn, record: TurnRecord) -> None:
        """Give a turn the end that its row tells of."""
        _end(turn, await self._standing(turn.id, record))

    async def replayed(self, turn: Turn, known: TurnRecord) -> bool:
        """Give a turn its recorded end; False when it must go on."""
        known = await self._standing(turn.id, known)
        ended = known.state in {TurnState.DONE, TurnState.CANCELLED}
        if not ended and not isinstance(known.error, Waiting):
            return False
        if turn.watched or known.result.finish is Finish.TOOL_USE:
            said = await self._parts.journal.said(known.session_id, turn.id)
            turn.recall([entry.message for entry in said])
        _end(turn, known)
        return True

    async def _standing(self, turn_id: str, record: TurnRecord) -> TurnRecord:
        """Give a turn's record with what it waits for."""
        if record.state is not TurnState.WAITING:
            return record
        return replace(record, error=await self._parts.approvals.pending(turn_id))

    async def resumed(self, turn: Turn, known: TurnRecord) -> Run:
        """Take up a turn that was cut off, where it stands in its session.

        Raises:
            Conflict: What it answers is no longer in the session, or only who asked it
                has the history that it came with.
        """
        session = await self._parts.sessions.get(turn.agent.session_id)
        session.check_open_to(turn.agent.id)
        history = turn.options.history
        if session.id == turn.id and history is None:
            raise Conflict("the turn brought its own history; send it again with that")
        entries = await self._parts.sessions.entries(session)
        own = [index for index, e in enumerate(entries) if e.turn_id == turn.id]
        if not own:
            raise Conflict(GONE)
        # The message it was cut off in is said anew.
        until = entries[: own[-1] + 1]
        head = [e for e in until if not (e.partial and e.turn_id == turn.id)]
        last = entries[own[-1]]
        behind = None if last is entries[-1] else last.place
        spoken = [entry.message for entry in head if entry.turn_id == turn.id]
        before = [*(history or ())]
        if session.summary is not None:
            before = [session.summary, *await self._pinned(session.id, entries)]
        whole = [*before, *(entry.message for entry in head)]
        messages = self._as_asked(turn, whole, spoken)
        agent = self._parts.agents.get(turn.agent.id)
        target = self._parts.agents.target_of(agent)
        said = Conversation(session, messages)
        if turn.options.model or "routing" in (agent.manifest.model_extra or ()):
            from .routing import routed

            target = await routed(self._parts, turn, agent, said, target)
        learnt = (await self._parts.sessions.history(session)).labels
        turn.context = turn.context.labelled(learnt)
        run = Run(self._parts, turn, said, target, behind)
        run.found = known.state
        if run.settings is not None:
            await run.agree()
        turn.recall(spoken)
        await self._count(turn, run)
        return run

    async def _pinned(
        self, session_id: str, entries: Sequence[Entry]
    ) -> Sequence[Message]:
        """Read what is kept whole of what the summary stands for."""
        there = {each.seq for each in entries}
        pinned = await self._parts.sessions.pinned(session_id)
        return [each.message for each in pinned if each.seq not in there]

    def _long(
        self,
        turn: Turn,
        own: Session,
        history: Sequence[Message],
        loop: asyncio.AbstractEventLoop,
    ) -> Conversation:
        """Read a long history in a thread: the loop has others to serve."""
        return Conversation(own, self._before(turn, history, loop))

    def _before(
        self,
        turn: Turn,
        history: Sequence[Message],
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> list[Message]:
        """Give the history before a turn's message, which may answer calls of it.

        Raises:
            InvalidInput: It answers none.
        """
        if turn.message.role is not Role.TOOL:
            return let_through(self._parts, turn.context, history, loop=loop)
        asked = {call.id for call in open_calls(history)}
        parts = turn.message.parts
        told = [p for p in parts if isinstance(p, ToolOutput) and p.id in asked]
        if not told:
            problem = "it answers no call that the history ends with"
            raise InvalidInput("message", problem)
        # What it leaves out is told as unknown.
        whole = (*history, Message(Role.TOOL, tuple(told)))
        said = let_through(self._parts, turn.context, whole, loop=loop)
        turn.message = said.pop()
        return said

    def _as_asked(
        self, turn: Turn, messages: Sequence[Message], spoken: Sequence[Message]
    ) -> list[Message]:
        """Have a history looked at, but leave open the calls that it ends with."""
        opened = messages[-1:] if messages and messages[-1].tool_uses else ()
        before = messages[: len(messages) - len(opened)]
        left = let_through(self._parts, turn.context, before, spoken)
        return [*left, *opened]

    async def _count(self, turn: Turn, run: Run) -> None:
        """Count what a resumed turn took before, also against its own limit."""
        before = await self._parts.usage.of_turn(turn.agent.id, turn.id)
        run.progress.usage = Usage(before.input_tokens, before.output_tokens)
        run.progress.cost = before.cost_micro_usd
        if turn.options.max_cost_micro_usd is not None:
            turn.context.pools[-1].used += before.cost_micro_usd


def recalled(
    agent: Agent, turn_id: str, record: TurnRecord, spoken: Sequence[Message]
) -> Turn:
    """Give a turn that does not run here, with what was said in it."""
    view = AgentView(agent.id, agent.name, agent.manifest, record.session_id)
    context = Context(OPERATOR, agent=view, turn_id=turn_id)
    question = spoken[0] if spoken else Message(Role.USER, ())
    turn = Turn(turn_id, context, question, TurnOptions(turn_id))
    turn.recall(spoken)
    return turn


def _end(turn: Turn, record: TurnRecord) -> None:
    """Give a turn the end that was written down."""
    if record.state is TurnState.DONE:
        result = record.result
        if result.finish is Finish.TOOL_USE:
            result = replace(result, calls=open_calls(turn.spoken))
        turn.finish(result)
        return
    cut_off = PastFailure("the turn was interrupted; resume it to go on", "interrupted")
    error = record.error or cut_off
    if record.state is TurnState.CANCELLED:
        error = Cancelled("the turn was stopped")
    turn.fail(error, record.result)


def check_digest(options: TurnOptions, digest: str | None) -> None:
    """See that a turn's id is given for what it was given for before.

    Raises:
        Mismatch: It is not.
    """
    if options.digest != digest:
        raise Mismatch(
            "this Idempotency-Key, or turn id, was given before with another body; "
            "use a new one"
        )
