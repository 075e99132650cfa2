"""An engine of turns that is as small as its port allows, for tests of its users."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar
from uuid import uuid4

from agenthost_chat.chat import Finish, Message, Role, Usage
from agenthost_chat.history import open_calls

from ...agent import Agent
from ...context import OPERATOR, AgentView, Context, Pool, Principal, PrincipalKind
from ...errors import (
    AgentHostError,
    Cancelled,
    Conflict,
    Mismatch,
    NotFound,
    PastFailure,
    Superseded,
    TurnFailed,
    Unavailable,
    Waiting,
)
from ...host import Host
from ...observe import Observers
from ...plugins.points import Guard, HistoryCase
from ...ports.records import TurnRecord, TurnResult, TurnState
from ...ports.sessions import Conversation, Session
from ...turns.events import NOTHING
from ...turns.turn import NO_OPTIONS, Turn, TurnOptions, Watcher, user_message
from ...turns.work import Work
from .plain_run import PlainRun, key_of

T = TypeVar("T")
CALL_DEPTH = 5
PATIENCE = 10.0
UNFORESEEN = "for an internal reason"

log = logging.getLogger(__name__)


class PlainTurns:
    """Runs turns, in each session one after another, without limits of its own.

    ``TurnsBackend("plain", PlainTurns)`` serves a daemon with it. It reads the session
    at each turn, and a conversation without room for an answer fails.

    Args:
        host: The daemon.
        observers: Told of turns and of model calls.
    """

    def __init__(self, host: Host, observers: Observers) -> None:
        self._host = host
        self._observers = observers
        self.panics = 0
        # In order of arrival: the first of a session runs, the others wait.
        self._works: dict[str, Work] = {}
        self._admitted = asyncio.Event()
        self._draining = False
        self._listeners: list[Callable[[Turn], None]] = []
        self.admit = self._admitted.set

    @property
    def running(self) -> int:
        """How many turns, compactions and resets run or wait."""
        return len(self._works)

    def start(
        self,
        context: Context,
        agent: Agent,
        message: Message,
        options: TurnOptions = NO_OPTIONS,
    ) -> Turn:
        """Start a turn; wait for it or stop it through what is returned."""
        turn, fresh = self._made(context, agent, message, options)
        if fresh:
            self._begin(turn, self._serve(turn))
        return turn

    def watch(
        self,
        context: Context,
        agent: Agent,
        message: Message,
        options: TurnOptions = NO_OPTIONS,
    ) -> Watcher:
        """Start a turn and subscribe to its events before the first."""
        turn, fresh = self._made(context, agent, message, options)
        watcher = turn.watch(None if fresh else 0)
        if fresh:
            self._begin(turn, self._serve(turn))
        return watcher

    async def resume(self, context: Context, agent: Agent, turn_id: str) -> Watcher:
        """Go on with a turn that was interrupted or failed, in its own place."""
        if (live := self._live(agent, turn_id)) is not None:
            return live.watch(0)
        record, spoken = await self._past(agent, turn_id)
        question = next((m for m in spoken if m.role is Role.USER), None)
        if question is None:
            raise Conflict("the turn's question is no longer in the session")
        session = record.session_id
        options = TurnOptions(
            turn_id,
            digest=record.digest,
            session_id=session,
            settings=record.settings,
        )
        return self.watch(context, agent, question, options)

    async def attach(self, agent: Agent, turn_id: str, offset: int = 0) -> Watcher:
        """Watch a turn that somebody else started, or one that has ended."""
        if (live := self._live(agent, turn_id)) is not None:
            return live.watch(offset)
        record, spoken = await self._past(agent, turn_id)
        view = AgentView(agent.id, agent.name, agent.manifest, record.session_id)
        context = Context(OPERATOR, agent=view, turn_id=turn_id)
        question = spoken[0] if spoken else Message(Role.USER, ())
        turn = Turn(turn_id, context, question, TurnOptions(turn_id))
        turn.recall(spoken)
        _give_end(turn, await self._standing(turn_id, record))
        return turn.watch(offset)

    def listen(self, listener: Callable[[Turn], None]) -> Callable[[], None]:
        """Call a function with each turn that begins to run, until what it gives is."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def call_agent(self, context: Context, name: str, message: str) -> TurnResult:
        """Ask another agent on behalf of a turn and wait for its answer."""
        agent = self._host.agents.find(name)
        caller = self._works.get(context.turn_id or "")
        turn = self.start(context, agent, user_message(message))
        asked: list[Work] = caller.asked if caller is not None else []
        asked.append(turn)
        try:
            return await turn.result()
        except asyncio.CancelledError:
            turn.cancel("the caller was stopped")
            raise
        finally:
            asked.remove(turn)

    async def stop(self, agent: Agent, reason: str, session_id: str = "") -> int:
        """End what runs in a session, the agent's own by default; the next goes on."""
        session_id = session_id or agent.session_id
        first = [w for w in self._in(session_id)[:1] if w.agent.id == agent.id]
        stopped = await _stop(first, reason)
        cancel = self._host.approvals.cancel
        return stopped or await cancel(agent.id, reason, session_id)

    async def stop_all(self, agent_id: str, reason: str) -> int:
        """End all that runs or waits for an agent, and wait until it is closed."""
        own = [work for work in self._works.values() if work.agent.id == agent_id]
        stopped = await _stop(own, reason)
        return stopped + await self._host.approvals.cancel(agent_id, reason)

    async def reset(self, agent: Agent, into: str = "", *, keep: bool = False) -> Agent:
        """Give the agent another session; what runs or waits in its old is stopped."""
        old, reason = agent.session_id, "the session was reset"
        for work in self._in(old):
            work.cancel(reason)

        async def switch(session_id: str) -> Agent:
            now = self._host.agents.get(agent.id)
            if session_id != old:
                return now
            await self._host.approvals.cancel(agent.id, reason, old)
            return await self._host.agents.new_session(now, into, keep=keep)

        return await self.apart(agent, switch, sealed=True)

    async def apart(
        self,
        agent: Agent,
        do: Callable[[str], Awaitable[T]],
        session_id: str = "",
        *,
        sealed: bool = False,
    ) -> T:
        """Do something else than a turn while no turn of the session runs."""
        work_id = str(uuid4())
        options = TurnOptions(session_id=session_id) if session_id else NO_OPTIONS
        inside = self._inside(Context(OPERATOR), agent, work_id, options)
        work = Work(work_id, inside)
        work.sealed = sealed

        async def alone() -> T:
            await self._wait(work, session_id)
            self._host.sessions.forget(work.agent.session_id)
            return await do(work.agent.session_id)

        task = self._begin(work, alone())
        # Whoever asked may be gone when it fails: then nobody else looks at it.
        task.add_done_callback(lambda each: each.cancelled() or each.exception())
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if work.cancelled_for is None:
                raise
            raise work.stopped() from None

    def refuse_new(self) -> None:
        """From now on start nothing: the daemon is draining."""
        self._draining = True

    async def drain(self, patience: float) -> None:
        """Wait for running turns, then interrupt what is left: it can be resumed."""
        self.refuse_new()
        works = list(self._works.values())
        tasks = [work.task for work in works if work.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=patience)
            for work in works:
                work.cancel("the daemon is shutting down", TurnState.INTERRUPTED)
            await asyncio.wait(tasks, timeout=PATIENCE)

    def _live(self, agent: Agent, turn_id: str) -> Turn | None:
        work = self._works.get(turn_id)
        if not isinstance(work, Turn) or work.ended or work.agent.id != agent.id:
            return None
        return work

    def _in(self, session_id: str) -> list[Work]:
        """What runs or waits in a session, in order of arrival."""
        return [w for w in self._works.values() if w.agent.session_id == session_id]

    def _before(self, work: Work) -> list[Work]:
        there = self._in(work.agent.session_id)
        return there[: there.index(work)] if work in there else there

    def _made(
        self, context: Context, agent: Agent, message: Message, options: TurnOptions
    ) -> tuple[Turn, bool]:
        """Make a turn, or give the one that has its id and runs or waits."""
        if self._draining:
            raise Unavailable("draining: the daemon is shutting down")
        agent.check_accepts_messages()
        turn_id = options.turn_id or str(uuid4())
        work = self._works.get(turn_id)
        if isinstance(work, Turn) and not work.ended:
            _check_digest(options, work.options.digest)
            return work, False
        caller = self._works.get(context.turn_id or "")
        session_id = options.elsewhere(turn_id) or agent.session_id
        deep = len(context.chain) >= CALL_DEPTH
        ring = caller and self._lead_to(caller, self._in(session_id), set())
        if deep or ring:
            raise Conflict(f"agent {agent.name!r} cannot be called from here")
        inside = self._inside(context, agent, turn_id, options)
        return Turn(turn_id, inside, message, options), True

    def _lead_to(self, caller: Work, waited: Sequence[Work], seen: set[str]) -> bool:
        """Tell whether what is waited for waits for the caller, over any others."""
        for work in waited:
            if work is caller:
                return True
            if work.id not in seen:
                seen.add(work.id)
                more = work.asked if work.runs else self._before(work)
                if self._lead_to(caller, more, seen):
                    return True
        return False

    def _inside(
        self, context: Context, agent: Agent, work_id: str, options: TurnOptions
    ) -> Context:
        session = options.elsewhere(work_id) or agent.session_id
        view = AgentView(agent.id, agent.name, agent.manifest, session)
        grants = self._host.toolbox.rights_of(agent.id, agent.manifest).grants
        person = context.principal.person
        principal = Principal(PrincipalKind.AGENT, agent.name, grants, person)
        context = context.for_agent(view, principal, work_id)
        if options.max_cost_micro_usd is None:
            return context
        pools = *context.pools, Pool(options.max_cost_micro_usd)
        return replace(context, pools=pools)

    def _begin(self, work: Work, doing: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        self._works.pop(work.id, None)
        self._works[work.id] = work
        task = asyncio.create_task(doing)
        work.task = task
        task.add_done_callback(lambda _: self._ended(work))
        return task

    def _ended(self, work: Work) -> None:
        if self._works.get(work.id) is work:
            del self._works[work.id]
        # Who was stopped before the first step of its task has no end yet.
        if isinstance(work, Turn):
            work.fail(work.stopped())

    async def _wait(self, work: Work, other: str = "") -> None:
        """Wait until the session is free, also the one that a reset has opened."""
        while True:
            if before := self._before(work):
                await asyncio.wait([each.task for each in before if each.task])
                continue
            own = isinstance(work, Turn) and work.options.elsewhere(work.id)
            own = own or other
            now = self._host.agents.get(work.agent.id)
            if own or now.session_id == work.agent.session_id:
                work.runs = True
                return
            self._works[work.id] = self._works.pop(work.id)
            work.context = work.context.moved(now.session_id)

    async def _serve(self, turn: Turn) -> None:
        run: PlainRun | None = None
        with self._observers.watch(turn.context, turn.message) as seen:
            try:
                await self._admitted.wait()
                await self._wait(turn)
                for tell in self._listeners:
                    tell(turn)
                given = turn.context.labels
                run = await self._prepare(turn)
                if run is not None:
                    await run.open(given)
                    turn.finish(await run.answer())
            except Waiting as waits:
                turn.fail(waits)
            except asyncio.CancelledError:
                await self._end(turn, run, turn.stopped(), turn.ends_as)
            except AgentHostError as error:
                await self._end(turn, run, error, TurnState.FAILED)
            except BaseException:
                log.exception("turn %s failed", turn.id)
                self.panics += 1
                self._host.agents.crash(turn.agent.id, UNFORESEEN)
                ours = TurnFailed(f"the turn failed: {UNFORESEEN}; see the log")
                await self._end(turn, run, ours, TurnState.FAILED)
            if seen is not None:
                seen.result, seen.error = turn.ending()

    async def _end(
        self,
        turn: Turn,
        run: PlainRun | None,
        error: AgentHostError,
        state: TurnState,
    ) -> None:
        """Close a turn that has no answer; from here on it cannot be stopped."""
        turn.sealed = True
        so_far = NOTHING if run is None else run.result(turn.saying)
        if run is not None:
            closed = TurnRecord(state, so_far, error)
            try:
                with suppress(NotFound, Superseded):
                    await run.close(closed)
            except Exception:
                log.exception("turn %s is closed later", turn.id)
                self._host.journal.keep_late(run.step(closed=closed))
        turn.fail(error, so_far)

    async def _prepare(self, turn: Turn) -> PlainRun | None:
        """Read what was said before; None when the turn has ended already."""
        host, session_id = self._host, turn.agent.session_id
        await host.journal.close_late(session_id)
        record = await host.journal.find(turn.id) if turn.options.turn_id else None
        if record is not None:
            _check_digest(turn.options, record.digest)
            return await self._again(turn, record)
        if turn.options.history is not None:
            key = key_of(turn.options, turn.id)
            now, agent_id = host.clock.time(), turn.agent.id
            own = Session(turn.id, agent_id, now, key=key, ephemeral=True)
            before = self._let_through(turn, turn.options.history)
            if turn.message.role is Role.TOOL:
                # It answers the calls that the history ends with.
                whole = (*turn.options.history, turn.message)
                *before, turn.message = self._let_through(turn, whole)
            said = Conversation(own, before)
            return PlainRun(host, self._observers, turn, said)
        said = await self._conversation(turn)
        said.session.check_open_to(turn.agent.id)
        turn.context = turn.context.labelled(said.labels)
        target = host.agents.target_of(host.agents.get(turn.agent.id))
        if await host.compaction.before_turn(said, target, turn.context):
            said = await self._conversation(turn)
        return PlainRun(host, self._observers, turn, said)

    def _let_through(self, turn: Turn, messages: Sequence[Message]) -> list[Message]:
        case = HistoryCase(turn.context, tuple(messages))
        return list(self._host.guards.check(Guard.HISTORY, case).messages)

    async def _conversation(self, turn: Turn) -> Conversation:
        session = await self._host.sessions.get(turn.agent.session_id)
        found = await self._host.sessions.history(session)
        said = Conversation(session, self._let_through(turn, found.messages))
        said.labels = found.labels
        return said

    async def _again(self, turn: Turn, record: TurnRecord) -> PlainRun | None:
        """Give a turn its recorded end, or take it up where it stands."""
        host, record = self._host, await self._standing(turn.id, record)
        ended = record.state in {TurnState.DONE, TurnState.CANCELLED}
        if ended or isinstance(record.error, Waiting):
            said = await host.journal.said(record.session_id, turn.id)
            turn.recall([entry.message for entry in said])
            _give_end(turn, record)
            return None
        session = await host.sessions.get(turn.agent.session_id)
        session.check_open_to(turn.agent.id)
        entries = await host.sessions.entries(session)
        own = [at for at, entry in enumerate(entries) if entry.turn_id == turn.id]
        lone = session.id == turn.id and turn.options.history is None
        if lone or not own:
            raise Conflict("the turn cannot go on: what it answers is gone; ask again")
        last = entries[own[-1]]
        # The message it was cut off in is said anew.
        head = [
            entry
            for entry in entries[: own[-1] + 1]
            if not (entry.partial and entry.turn_id == turn.id)
        ]
        turn.recall([entry.message for entry in head if entry.turn_id == turn.id])
        messages = [*(turn.options.history or ()), *(entry.message for entry in head)]
        # The calls that it ends with are answered when it goes on.
        calls = [messages.pop()] if messages[-1].tool_uses else []
        summary = [session.summary] if session.summary else []
        messages = [*summary, *self._let_through(turn, messages), *calls]
        turn.context = turn.context.labelled(
            (await host.sessions.history(session)).labels
        )
        run = PlainRun(host, self._observers, turn, Conversation(session, messages))
        run.found = record.state
        run.behind = None if last is entries[-1] else last.place
        before = await host.usage.of_turn(turn.agent.id, turn.id)
        run.usage = Usage(before.input_tokens, before.output_tokens)
        run.cost = before.cost_micro_usd
        if turn.options.max_cost_micro_usd is not None:
            turn.context.pools[-1].used += run.cost
        return run

    async def _past(
        self, agent: Agent, turn_id: str
    ) -> tuple[TurnRecord, list[Message]]:
        """Read one of an agent's turns and what was said in it."""
        record = await self._host.journal.find(turn_id)
        if record is None or record.agent_id != agent.id:
            raise NotFound("turn", turn_id)
        said = await self._host.journal.said(record.session_id, turn_id)
        return record, [entry.message for entry in said]

    async def _standing(self, turn_id: str, record: TurnRecord) -> TurnRecord:
        """Give a turn's record with what it waits for."""
        if record.state is not TurnState.WAITING:
            return record
        return replace(record, error=await self._host.approvals.pending(turn_id))


async def _stop(works: Sequence[Work], reason: str) -> int:
    stopped = [work for work in works if work.cancel(reason)]
    tasks = [work.task for work in works if work.task is not None]
    if tasks:
        await asyncio.wait(tasks, timeout=PATIENCE)
    return len(stopped)


def _give_end(turn: Turn, record: TurnRecord) -> None:
    """Give a turn the end that was written down."""
    if record.state is TurnState.DONE:
        result = record.result
        if result.finish is Finish.TOOL_USE:
            result = replace(result, calls=open_calls(turn.spoken))
        turn.finish(result)
        return
    error = record.error or PastFailure("the turn was interrupted", "interrupted")
    if record.state is TurnState.CANCELLED:
        error = Cancelled("the turn was stopped")
    turn.fail(error, record.result)


def _check_digest(options: TurnOptions, digest: str | None) -> None:
    if options.digest != digest:
        raise Mismatch("this turn id was given before for something else")
