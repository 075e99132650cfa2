"""The turn engine: every surface starts its turns here, and nowhere else."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from agenthost import (
    LOG_FIELDS,
    NO_OPTIONS,
    NOTHING,
    OPERATOR,
    Agent,
    AgentHostError,
    AgentView,
    Conflict,
    Context,
    Conversation,
    NotFound,
    Pool,
    Principal,
    PrincipalKind,
    Superseded,
    Turn,
    TurnFailed,
    TurnOptions,
    TurnRecord,
    TurnResult,
    TurnState,
    Unavailable,
    Waiting,
    Watcher,
    Work,
    new_id,
    user_message,
)
from agenthost_chat.chat import Message, Role

from .heart import Heart
from .mailbox import Mailboxes
from .parts import nodes_of
from .resume import Past, check_digest
from .run import Run
from .slots import Slot, expire
from .waits import check_no_ring

if TYPE_CHECKING:
    from .parts import Parts

log = logging.getLogger(__name__)
T = TypeVar("T")

CALL_DEPTH = 5
WAITING_FOR_EACH_RUNNING = 16
STOP_PATIENCE = 10.0
RETRY_IN = 5


class TurnEngine:
    """Starts turns, knows the running ones, stops them.

    Args:
        parts: What it works with.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._mailboxes = Mailboxes(parts.host)
        # None until all services are up: a turn waits for its place.
        self._places = asyncio.Semaphore(0)
        self._live: dict[str, Work] = {}
        self._slots: dict[str, Slot] = {}
        self._nodes = nodes_of(parts, self._live)
        self._past = Past(parts)
        self._withdraw = parts.approvals.cancel
        self._draining = False
        self.panics = 0
        self._heart = Heart(parts, self._live)
        self._listeners: list[Callable[[Turn], None]] = []

    @property
    def running(self) -> int:
        """How many turns, compactions and resets run or wait."""
        return len(self._live)

    def start(
        self,
        context: Context,
        agent: Agent,
        message: Message,
        options: TurnOptions = NO_OPTIONS,
    ) -> Turn:
        """Start a turn that nobody watches yet; see :class:`agenthost.Turns`."""
        if (known := self._known(agent, options)) is not None:
            return known
        turn = self._made(context, agent, message, options)
        self._begin(turn, self._serve(turn))
        return turn

    def watch(
        self,
        context: Context,
        agent: Agent,
        message: Message,
        options: TurnOptions = NO_OPTIONS,
    ) -> Watcher:
        """Start a turn and watch it from its first event on."""
        if (known := self._known(agent, options)) is not None:
            return known.watch(0)
        turn = self._made(context, agent, message, options)
        watcher = turn.watch()
        self._begin(turn, self._serve(turn))
        return watcher

    async def resume(self, context: Context, agent: Agent, turn_id: str) -> Watcher:
        """Go on with a turn that was interrupted or failed, in its own place.

        Raises:
            NotFound: The agent has no such turn.
            Conflict: Its question is no longer in the session.
        """
        live = self._live_turn(agent, turn_id)
        if live is not None:
            return live.watch(0)
        record, spoken = await self._past.of(agent, turn_id)
        question = next((m for m in spoken if m.role is Role.USER), None)
        if question is None:
            raise Conflict("the turn's question is no longer in the session; ask again")
        options = TurnOptions(
            turn_id,
            digest=record.digest,
            session_id=record.session_id,
            settings=record.settings,
        )
        return self.watch(context, agent, question, options)

    async def attach(self, agent: Agent, turn_id: str, offset: int = 0) -> Watcher:
        """Watch a turn that somebody else started, or one that has ended.

        Raises:
            NotFound: The agent has no such turn.
        """
        live = self._live_turn(agent, turn_id)
        if live is not None:
            return live.watch(offset)
        return await (self._nodes or self._past).told(agent, turn_id, offset)

    def listen(self, listener: Callable[[Turn], None]) -> Callable[[], None]:
        """Call a function with each turn that begins to run.

        Returns:
            A function that ends it.
        """
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def call_agent(self, context: Context, name: str, message: str) -> TurnResult:
        """Ask another agent on behalf of a turn and wait for its answer.

        Raises:
            NotFound: No agent has this id or name.
            Conflict: The call would wait for itself, or is nested too deeply.
        """
        agent = self._parts.agents.find(name)
        caller = self._live.get(context.turn_id or "")
        turn = self.start(context, agent, user_message(message))
        async with AsyncExitStack() as waiting:
            slot = self._slots.get(context.turn_id or "")
            if isinstance(caller, Turn) and slot is not None:
                caller.asked.append(turn)
                turn.asked_by = caller.id
                waiting.callback(caller.asked.remove, turn)
                # While it waits, its slot is for others and its clock stands.
                await waiting.enter_async_context(slot.aside())
            try:
                return await turn.result()
            except asyncio.CancelledError:
                turn.cancel("the caller was stopped")
                raise

    async def stop(self, agent: Agent, reason: str, session_id: str = "") -> int:
        """End what runs in a session, the agent's own by default; what waits goes on.

        Where nothing runs, the turns of the session end that wait for a person.

        Returns:
            How many turns or compactions were stopped. They are closed on disk.
        """
        session_id = session_id or agent.session_id
        if self._nodes and await self._nodes.stop(agent.id, reason, session_id):
            return 1
        runs = self._mailboxes.ahead(session_id)[:1]
        own = [work for work in runs if work.agent.id == agent.id]
        stopped = await self._stop(own, reason)
        # What waits for a person is stopped where nothing runs.
        return stopped or await self._withdraw(agent.id, reason, session_id)

    async def stop_all(self, agent_id: str, reason: str) -> int:
        """End all that runs or waits for an agent, and wait until it is closed."""
        own = [work for work in self._live.values() if work.agent.id == agent_id]
        if self._nodes is not None:
            self._nodes.stop_all(agent_id, reason)
        return await self._stop(own, reason) + await self._withdraw(agent_id, reason)

    async def reset(self, agent: Agent, into: str = "", *, keep: bool = False) -> Agent:
        """Give the agent another session; what runs or waits in its old is stopped.

        Of several resets at once one changes the session, and all tell of that one.
        """
        old, why = agent.session_id, "the session was reset"
        for work in self._mailboxes.ahead(old):
            work.cancel(why)
        if self._nodes is not None:
            await self._nodes.reset(agent.id, why, old)

        async def switch(session_id: str) -> Agent:
            now = self._parts.agents.get(agent.id)
            if session_id != old:
                return replace(now, session_id=session_id)
            await self._withdraw(agent.id, why, old)
            return await self._parts.agents.new_session(now, into, keep=keep)

        # Sealed: neither a stop nor another reset ends one that waits its turn.
        return await self.apart(agent, switch, sealed=True)

    async def apart(
        self,
        agent: Agent,
        do: Callable[[str], Awaitable[T]],
        session_id: str = "",
        *,
        sealed: bool = False,
    ) -> T:
        """Do something else than a turn inside the agent's mailbox.

        Raises:
            Cancelled: It was stopped.
        """
        work_id = new_id()
        options = TurnOptions(session_id=session_id or None)
        work = Work(work_id, self._inside(Context(OPERATOR), agent, work_id, options))
        work.sealed = sealed

        async def inside() -> T:
            while True:
                async with self._mailboxes.hold(work.agent.session_id, work):
                    if session_id or not await self._moved(work):
                        work.runs = True
                        self._parts.sessions.forget(work.agent.session_id)
                        return await do(work.agent.session_id)

        task = self._begin(work, inside())
        # Whoever asked may be gone when it fails: then nobody else looks at it.
        task.add_done_callback(lambda each: each.cancelled() or each.exception())
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if work.cancelled_for is None:
                raise
            raise work.stopped() from None

    def admit(self) -> None:
        """From now on run turns; those that were started before have waited."""
        for _ in range(self._parts.limits.max_concurrent):
            self._places.release()
        self._heart.begin()

    def refuse_new(self) -> None:
        """From now on start nothing: the daemon is draining."""
        self._draining = True

    async def drain(self, patience: float) -> None:
        """Wait for running turns, then interrupt what is left: it can be resumed."""
        self.refuse_new()
        self._heart.end()
        if self._nodes is not None:
            await self._nodes.end()
        tasks = {work.task for work in self._live.values() if work.task is not None}
        if tasks:
            log.info("waiting up to %g s for %d turns", patience, len(tasks))
            await asyncio.wait(tasks, timeout=patience)
        for work in list(self._live.values()):
            work.cancel("the daemon is shutting down", TurnState.INTERRUPTED)
        if tasks:
            await asyncio.wait(tasks, timeout=5.0)

    def _known(self, agent: Agent, options: TurnOptions) -> Turn | None:
        """Find the turn that has this id already, and runs or waits."""
        if self._draining:
            raise Unavailable("draining: the daemon is shutting down")
        agent.check_accepts_messages()
        known = self._live.get(options.turn_id or "")
        if not isinstance(known, Turn) or known.ended:
            return None
        check_digest(options, known.options.digest)
        return known

    def _made(
        self, context: Context, agent: Agent, message: Message, options: TurnOptions
    ) -> Turn:
        turn_id = options.turn_id or new_id()
        self._check_room(context, agent, options.elsewhere(turn_id) or agent.session_id)
        inside = self._inside(context, agent, turn_id, options)
        return Turn(turn_id, inside, message, options)

    def _begin(self, work: Work, doing: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        self._live[work.id] = work
        task = asyncio.create_task(doing)
        work.task = task
        task.add_done_callback(lambda _: self._ended(work))
        return task

    def _ended(self, work: Work) -> None:
        """Close what a task that was cancelled before its first step left open."""
        if self._live.get(work.id) is work:
            del self._live[work.id]
            self._slots.pop(work.id, None)
        if isinstance(work, Turn):
            work.fail(work.stopped())

    async def _stop(self, works: Sequence[Work], reason: str) -> int:
        stopped = [work for work in works if work.cancel(reason)]
        tasks = [work.task for work in works if work.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=STOP_PATIENCE)
        return len(stopped)

    def _check_room(self, context: Context, agent: Agent, session_id: str) -> None:
        limit = self._parts.limits.max_concurrent
        if len(self._live) >= limit * (1 + WAITING_FOR_EACH_RUNNING):
            full = Unavailable(f"{len(self._live)} turns run or wait; try again soon")
            full.retry_in = RETRY_IN
            raise full
        caller = self._live.get(context.turn_id or "")
        if caller is not None:
            check_no_ring(self._mailboxes, caller, session_id, agent.name)
        if len(context.chain) >= CALL_DEPTH:
            raise Conflict(f"agent calls are nested {CALL_DEPTH} deep; answer instead")

    def _inside(
        self,
        context: Context,
        agent: Agent,
        work_id: str,
        options: TurnOptions = NO_OPTIONS,
    ) -> Context:
        session = options.elsewhere(work_id) or agent.session_id
        view = AgentView(agent.id, agent.name, agent.manifest, session, agent.parent)
        rights = self._parts.toolbox.rights_of(agent.id, agent.manifest)
        person = context.principal.person
        principal = Principal(PrincipalKind.AGENT, agent.name, rights.grants, person)
        context = context.for_agent(view, principal, work_id)
        if options.max_cost_micro_usd is not None:
            pool = Pool(options.max_cost_micro_usd)
            context = replace(context, pools=(*context.pools, pool))
        return context

    async def _moved(self, work: Work) -> bool:
        """Move work whose agent's own session was reset while it waited there."""
        if isinstance(work, Turn) and work.options.elsewhere(work.id) is not None:
            return False
        now = self._parts.agents.get(work.agent.id).session_id
        if self._nodes is not None:
            now = await self._nodes.session_of(work.agent.id)
        if now == work.agent.session_id:
            return False
        work.context = work.context.moved(now)
        return True

    async def _serve(self, turn: Turn) -> None:
        ids = {"turn_id": turn.id, "agent_id": turn.agent.id}
        LOG_FIELDS.set({**turn.context.log_fields, **ids})
        with self._parts.observers.watch(turn.context, turn.message) as seen:
            try:
                while not await self._held(turn):
                    continue
            except asyncio.CancelledError:
                turn.fail(turn.stopped())
            except AgentHostError as error:
                turn.fail(error)
            if seen is not None:
                seen.result, seen.error = turn.ending()

    async def _held(self, turn: Turn) -> bool:
        """Run the turn in its mailbox; False when the session was reset meanwhile.

        The mailbox is kept until the turn's last row is on disk, however it ends: the
        next turn reads the session and goes on from its numbers.
        """
        session_id = turn.agent.session_id
        async with self._mailboxes.hold(session_id, turn):
            if await self._moved(turn):
                return False
            limit = self._parts.limits.max_seconds
            slot = Slot(self._places, limit, partial(expire, turn))
            async with slot as self._slots[turn.id]:
                turn.runs = True
                for tell in self._listeners:
                    tell(turn)
                warm = self._parts.sessions.take(session_id)
                left = None
                try:
                    left = await self._conduct(turn, warm)
                finally:
                    self._parts.sessions.give_back(session_id, left)
        return True

    async def _conduct(
        self, turn: Turn, warm: Conversation | None
    ) -> Conversation | None:
        """Run a turn to its end; return the session as it left it, if it can tell."""
        run: Run | None = None
        try:
            run = await self._prepare(turn, warm)
            if run is not None:
                if run.found:
                    await run.go_on()
                turn.finish(await run.converse())
                return run.left()
        except Waiting:
            # Its row says so and its watchers know: session and slot are for others.
            return None if run is None else run.left()
        except asyncio.CancelledError:
            await self._end(turn, run, turn.stopped(), turn.ends_as)
        except AgentHostError as error:
            await self._end(turn, run, error, TurnState.FAILED)
        except BaseException:
            # Also SystemExit: a driver or an observer ends its turn, not the daemon.
            log.exception("turn %s failed", turn.id)
            self.panics += 1
            crash = "a turn ended in an error that nobody had foreseen"
            self._parts.agents.crash(turn.agent.id, crash)
            ours = TurnFailed("the turn failed for an internal reason; see the log")
            await self._end(turn, run, ours, TurnState.FAILED)
        return None

    async def _prepare(self, turn: Turn, warm: Conversation | None) -> Run | None:
        """Load the session and begin; None when the turn had already ended."""
        await self._parts.journal.close_late(turn.agent.session_id)
        if turn.options.turn_id is not None:
            known = await self._parts.journal.find(turn.id)
            if known is not None:
                check_digest(turn.options, known.digest)
                if await self._past.replayed(turn, known):
                    return None
                return await self._past.resumed(turn, known)
        said = await self._past.begun(turn, warm)
        given = turn.context.labels
        turn.context = turn.context.labelled(said.labels)
        agent = self._parts.agents.get(turn.agent.id)
        target = self._parts.agents.target_of(agent)
        if turn.options.model or "routing" in (agent.manifest.model_extra or ()):
            from .routing import routed

            target = await routed(self._parts, turn, agent, said, target)
        before_turn = self._parts.compaction.before_turn
        stateless = turn.options.history is not None
        if not stateless and await before_turn(said, target, turn.context):
            said = await self._past.conversation(turn)
        run = Run(self._parts, turn, said, target)
        if run.settings is not None:
            await run.agree()
        run.begin(given)
        return run

    async def _end(
        self, turn: Turn, run: Run | None, error: AgentHostError, state: TurnState
    ) -> None:
        """Close a turn that has no answer; from here on it cannot be stopped."""
        turn.sealed = True
        result = NOTHING
        if run is not None:
            result = run.progress.result(turn.saying, turn.context.labels)
            closed = TurnRecord(state, result, error)
            try:
                # Of a session that was deleted meanwhile nothing is left to close.
                with suppress(NotFound):
                    await run.keep_what_was_said(closed)
            except Superseded as refused:
                # Whoever has the turn now ends it; what was said here is not kept.
                log.warning("turn %s ends here: %s", turn.id, refused.message)
            except Exception:
                # Whatever the store raised, the row must not say running for ever.
                log.exception("turn %s could not be closed; trying again", turn.id)
                self._parts.journal.keep_late(run.closing(closed))
        turn.fail(error, result)

    def _live_turn(self, agent: Agent, turn_id: str) -> Turn | None:
        live = self._live.get(turn_id)
        if not isinstance(live, Turn) or live.ended or live.agent.id != agent.id:
            return None
        return live
