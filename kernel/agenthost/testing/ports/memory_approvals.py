"""Approvals in memory, for tests of what people are asked about."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from types import SimpleNamespace
from typing import Any, Literal
from uuid import uuid4

from agenthost_chat.chat import JsonObject, ToolUse

from ...context import AgentView, Context, Principal, PrincipalKind
from ...errors import (
    AgentHostError,
    Blocked,
    Cancelled,
    Conflict,
    Denied,
    InvalidInput,
    NotFound,
    Waiting,
)
from ...host import Host
from ...plugins.hooks import hookimpl
from ...plugins.specs import ServiceSpec
from ...ports.approvals import Approvals, Ask, Question
from ...ports.backend import Backend
from ...ports.backends import ApprovalsBackend
from ...ports.records import Step, TurnRecord, TurnState
from ...turns.turn import Turn

_log = logging.getLogger(__name__)

NOT_PEOPLE = frozenset({PrincipalKind.AGENT, PrincipalKind.ANONYMOUS})
TYPES: dict[str, Any] = {
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": float,
}
RULES = {
    "minLength": "min_length",
    "maxLength": "max_length",
    "minimum": "ge",
    "maximum": "le",
}


@dataclass(slots=True, eq=False)
class KeptQuestion:
    """A question about a call; ``state`` is pending, approved or why it is a no."""

    turn_id: str
    agent: AgentView
    asked_by: Principal
    call: ToolUse
    ask: Ask
    shown: str
    deadline: float
    id: str = field(default_factory=lambda: str(uuid4()))
    state: str = "pending"
    values: JsonObject = field(default_factory=dict)
    carried: bool = False

    @property
    def waits(self) -> Waiting:
        """What the turn is told that waits for it."""
        text = f"waiting for approval {self.id}: {self.ask.question.text}"
        return Waiting(text, self.turn_id, self.id)

    def check(self) -> None:
        """Raise Blocked where it is a no."""
        if self.state not in {"pending", "approved"}:
            raise Blocked(self.state)


class MemoryApprovals(Approvals):
    """Questions in memory; a turn goes on by itself once its last has an answer.

    One that cannot go on at that moment does so after the next start.

    Args:
        host: The daemon.
        kept: What was asked already; questions go there, too, as to a table.
    """

    def __init__(self, host: Host, kept: list[KeptQuestion] | None = None) -> None:
        self._host = host
        self._kept: list[KeptQuestion] = [] if kept is None else kept
        self._tasks: set[asyncio.Task[None]] = set()
        self._carried: set[str] = set()

    @classmethod
    def plugin(cls) -> SimpleNamespace:
        """The plugin that offers it as ``memory``, and a service for those chosen."""

        @hookimpl
        def register_backend() -> Iterable[Backend]:
            """Offer the approvals."""
            yield ApprovalsBackend("memory", cls)

        @hookimpl
        def register_service() -> Iterable[ServiceSpec]:
            """Watch deadlines, and end with the daemon."""
            yield ServiceSpec("memory-approvals", start, stop)

        async def start(host: Host) -> None:
            if isinstance(host.approvals, cls):
                host.approvals.start()

        async def stop(host: Host) -> None:
            if isinstance(host.approvals, cls):
                await host.approvals.stop()

        return SimpleNamespace(
            __name__="memory_approvals",
            register_backend=register_backend,
            register_service=register_service,
        )

    def start(self) -> None:
        """Take up what is kept."""
        for each in self._kept:
            if each.state == "pending":
                self._begin(self._expire(each))
            self._go_on(each.turn_id)

    async def stop(self) -> None:
        """End; what is kept goes on after the next start."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def ask(self, context: Context, call: ToolUse, ask: Ask) -> JsonObject:
        """Let a call pass that a person has approved; the same question is put once.

        Returns:
            The values that came with the yes.

        Raises:
            Waiting: Nobody has answered yet.
            Blocked: The answer was no, came too late, or nobody can be asked.
        """
        if context.agent is None or context.turn_id is None:
            raise Blocked("it needs a person's approval, and is not part of a turn")
        if not 0 < ask.deadline_seconds < math.inf:
            raise Blocked("a person cannot be asked: the deadline has passed")
        shown = _shown(call, ask.question)
        known = self._of_call(context, call)
        for each in known:
            each.check()
        own = next((each for each in known if each.shown == shown), None)
        if own is None:
            deadline = self._host.clock.time() + ask.deadline_seconds
            who = context.caller or context.principal
            own = KeptQuestion(
                context.turn_id, context.agent, who, call, ask, shown, deadline
            )
            self._kept.append(own)
            self._begin(self._expire(own))
        if own.state == "approved":
            return own.values
        raise own.waits

    async def standing(self, context: Context, call: ToolUse) -> JsonObject:
        """Let a call that is brought again pass only if all that was asked is approved.

        Returns:
            The values that came with each yes.

        Raises:
            Blocked: Something was not approved, or the call is another one by now.
        """
        if context.found == "waiting" and not self._of_turn(context.turn_id):
            raise Blocked("its turn waited for a person, and nobody knows for what")
        known = self._of_call(context, call)
        values: dict[str, Any] = {}
        for each in known:
            if each.state == "pending":
                each.state, each.carried = "who asked is gone", True
            each.check()
            if _shown(call, each.ask.question) != each.shown:
                raise Blocked("the call is not the one that a person was asked about")
            values |= each.values
        return values

    async def pending(self, turn_id: str) -> Waiting | None:
        """Tell what a turn waits for, None when all its questions are answered."""
        open_ = (q for q in self._of_turn(turn_id) if q.state == "pending")
        return next((question.waits for question in open_), None)

    async def cancel(self, agent_id: str, reason: str, session_id: str = "") -> int:
        """End the turns of an agent that wait, in one session when it is named.

        Returns:
            How many there were; their rows say cancelled.
        """
        ended = [
            each
            for each in self._kept
            if (each.state, each.agent.id) == ("pending", agent_id)
            and session_id in {"", each.agent.session_id}
        ]
        for each in ended:
            each.state, each.carried = f"the question was withdrawn: {reason}", True
        turns = {each.turn_id: each.agent.session_id for each in ended}
        for turn, session in turns.items():
            await self._close(turn, session, reason)
        return len(turns)

    async def answer(
        self,
        principal: Principal,
        approval_id: str,
        *,
        yes: bool,
        reason: str = "",
        values: JsonObject | None = None,
    ) -> None:
        """Take a person's answer; of several the first counts.

        Raises:
            NotFound: There is no such approval.
            Denied: The principal may not answer it.
            InvalidInput: The values are not those that were asked for.
            Conflict: It has an answer, or comes too late.
        """
        own = next((each for each in self._kept if each.id == approval_id), None)
        if own is None:
            raise NotFound("approval", approval_id)
        who = f"{principal.kind}:{principal.name}"
        if principal.kind in NOT_PEOPLE or not fnmatchcase(who, own.ask.may_answer):
            raise Denied(f"{who} may not answer this approval")
        if yes:
            _check(own.ask.question, values or {})
        if own.state != "pending" or own.deadline <= self._host.clock.time():
            raise Conflict("the approval has its answer already")
        own.state = "approved" if yes else f"a person said no: {reason}"
        own.values = values or {}
        self._go_on(own.turn_id)

    def _of_turn(self, turn_id: str | None) -> list[KeptQuestion]:
        return [each for each in self._kept if each.turn_id == turn_id]

    def _of_call(self, context: Context, call: ToolUse) -> list[KeptQuestion]:
        return [q for q in self._of_turn(context.turn_id) if q.call.id == call.id]

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _expire(self, asked: KeptQuestion) -> None:
        await self._host.clock.sleep(asked.deadline - self._host.clock.time())
        if asked.state == "pending":
            asked.state = "no person answered in time, which is a no"
            self._go_on(asked.turn_id)

    def _answered(self, turn_id: str) -> list[KeptQuestion]:
        """Give what a turn has not heard of yet; nothing while it waits for more."""
        own = self._of_turn(turn_id)
        if any(each.state == "pending" for each in own):
            return []
        return [each for each in own if not each.carried]

    def _go_on(self, turn_id: str) -> None:
        if turn_id not in self._carried and self._answered(turn_id):
            self._carried.add(turn_id)
            self._begin(self._carry(turn_id))

    async def _carry(self, turn_id: str) -> None:
        """Let a turn go on until it ends, or waits for an answer again."""
        try:
            while own := self._answered(turn_id):
                agent = self._host.agents.get(own[0].agent.id)
                by = Context(own[0].asked_by)
                watcher = await self._host.turns.resume(by, agent, turn_id)
                watcher.leave()
                waits = await _end_of(watcher.turn)
                # It may be answered before it has stopped to wait, and not know it.
                if waits not in {each.id for each in own}:
                    for each in own:
                        each.carried = True
        except AgentHostError as error:
            _log.info("turn %s goes on after a start: %s", turn_id, error.message)
        finally:
            self._carried.discard(turn_id)

    async def _close(self, turn_id: str, session_id: str, reason: str) -> None:
        record = await self._host.journal.find(turn_id)
        if record is None or record.state is not TurnState.WAITING:
            return
        error = Cancelled(f"the turn was stopped: {reason}")
        closed = TurnRecord(TurnState.CANCELLED, record.result, error)
        now, writer = self._host.clock.time(), self._host.writer
        step = Step(
            session_id,
            turn_id,
            now,
            writer=writer,
            closed=closed,
            agent_id=record.agent_id,
        )
        await self._host.journal.keep(step)


async def _end_of(turn: Turn) -> object:
    """Wait until a turn ends; give the approval that it waits for, if it does."""
    try:
        await turn.result()
    except Waiting as waits:
        return waits.facts["approval_id"]
    except AgentHostError:
        pass
    return None


def _shown(call: ToolUse, asked: Question) -> str:
    """Write what a person sees."""
    question = asked.text, asked.schema, asked.choices, asked.url
    return json.dumps([call.name, dict(call.arguments), question], sort_keys=True)


def _check(question: Question, values: JsonObject) -> None:
    """See that the values of a yes are those that were asked for.

    Raises:
        InvalidInput: They are not.
    """
    from pydantic import Field, ValidationError, create_model

    schema: JsonObject = question.schema or {}
    wanted: JsonObject = schema.get("properties", {})
    required = schema.get("required", ())
    if question.choices:
        wanted, required = {"choice": {"enum": question.choices}}, ("choice",)
    fields: dict[str, Any] = {}
    for number, (name, rules) in enumerate(wanted.items()):
        choices = rules.get("enum")
        kind = Literal[tuple(choices)] if choices else TYPES.get(rules.get("type"))
        bounds = {RULES[rule]: rules[rule] for rule in RULES if rule in rules}
        first = ... if name in required else None
        fields[f"v{number}"] = kind, Field(first, alias=name, **bounds)
    config: Any = {"extra": "forbid", "strict": True}
    try:
        create_model("Values", __config__=config, **fields).model_validate(dict(values))
    except ValidationError as error:
        raise InvalidInput("values", "are not those that were asked for") from error
