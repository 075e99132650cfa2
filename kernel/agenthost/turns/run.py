"""One turn: the model is asked until it has an answer, each step journalled."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypedDict, Unpack

from agenthost_chat.chat import (
    ChatRequest,
    Delta,
    Finish,
    Message,
    Role,
    Text,
    TextChunk,
    ToolDefinition,
    ToolUse,
    Usage,
)

from ..context import AgentView
from ..errors import AgentHostError
from ..model_port import Answered, Payer, Target
from ..record_port import Spent, Step, TurnRecord, TurnState
from .events import TextDelta, Thinking, ToolEnd, ToolStart, TurnResult
from .prompt import system_prompt
from .turn import Turn
from .warm import Conversation

if TYPE_CHECKING:
    from ..daemon import Daemon

THINKING_BUDGET = 10_000
TOGETHER = 0.05


class TurnFailed(AgentHostError):
    """The turn ended without an answer, for a reason of our own."""

    code = "turn_failed"


class Facts(TypedDict, total=False):
    """What a step may say besides its message, as :class:`Step` has it."""

    opened: str
    reopened: bool
    spent: Spent
    closed: TurnRecord


@dataclass
class Progress:
    """What a turn has come to so far."""

    usage: Usage = field(default_factory=Usage)
    cost: int = 0
    iterations: int = 0
    said: str = ""

    def add(self, spent: Spent | None) -> None:
        """Count what a call has taken."""
        if spent is not None:
            self.usage += spent.usage
            self.cost += spent.cost_micro_usd

    def result(self, text: str) -> TurnResult:
        """The result with this answer."""
        return TurnResult(text, self.usage, self.iterations, self.cost)


class Run:
    """The work of one turn, inside its session's mailbox."""

    def __init__(
        self, daemon: Daemon, turn: Turn, said: Conversation, target: Target
    ) -> None:
        self.daemon = daemon
        self.turn = turn
        self.target = target
        self.session = said.session
        self.progress = Progress()
        self._said = said
        self._seq = said.session.next_seq
        self._steps: list[Step] = []
        self._commits: list[asyncio.Future[None]] = []
        self._latest: asyncio.TimerHandle | None = None
        self._lost = False

    def begin(self, *, resumed: bool) -> None:
        """Take up the conversation.

        The user message is on its way to disk now, or within ``TOGETHER`` seconds: when
        nobody watches, a quick answer goes with it in one commit.
        """
        if resumed:
            said = self._said.messages
            while said and _is_answer(said[-1]):
                said.pop()
            self._note(reopened=True)
        else:
            self._said.add(self.turn.message)
            self._note(self.turn.message, opened=self.session.agent_id)
        if resumed or self.turn.watched:
            self._flush()
        else:
            loop = asyncio.get_running_loop()
            self._latest = loop.call_later(TOGETHER, self._flush_in_time)

    async def converse(self) -> TurnResult:
        """Ask the model and run its tools until it answers.

        Raises:
            ProviderError: A model call failed.
            QuotaExceeded: A budget has no room for the call.
            TurnFailed: The model asked for tools again and again.
        """
        agent, options, target = self.turn.agent, self.turn.options, self.target
        choice = agent.manifest.model
        tools = self._tools(agent)
        system = system_prompt(agent, tools)
        temperature = options.temperature
        if temperature is None:
            temperature = choice.temperature
        limit = self.daemon.config.turns.max_iterations
        self.turn.emit(Thinking())
        while self.progress.iterations < limit:
            request = ChatRequest(
                model=target.model.upstream_id,
                system=system,
                messages=tuple(self._said.messages),
                tools=tools,
                max_tokens=options.max_tokens or choice.max_tokens,
                temperature=temperature,
                thinking_budget=self._thinking(agent),
            )
            context = self.turn.context
            payer = Payer(agent, self.turn.id, context.pools, context=context)
            watch = self.daemon.observers.watch(context, request, target, payer.failed)
            with watch as seen:
                answered = await self._ask(request, payer)
                completion, spent = answered.completion, answered.spent
                if seen is not None:
                    seen.result, seen.spent = completion, spent
            self.progress.add(spent)
            calls = completion.message.tool_uses
            if completion.finish is not Finish.TOOL_USE or not calls:
                return await self._answer(completion.message, spent)
            await self._run_tools(completion.message, calls, spent)
        raise TurnFailed(
            f"the model still asked for tools after {limit} calls; simplify the "
            "request or raise turns.max_iterations"
        )

    def left(self) -> Conversation | None:
        """The session as this turn left it; None when its history was given."""
        if self.turn.options.history is not None:
            return None
        self._said.session = replace(self.session, next_seq=self._seq)
        return self._said

    async def keep_what_was_said(self, closed: TurnRecord) -> None:
        """Close the turn's row; words already delivered stay in the session."""
        await self._settled()
        with suppress(AgentHostError):
            await self._settled()
        said = "" if self._lost else self.progress.said
        message = Message(Role.ASSISTANT, (Text(said),)) if said else None
        self._note(message, closed=closed)
        await self._settled()

    async def _ask(self, request: ChatRequest, payer: Payer) -> Answered:
        self.progress.iterations += 1
        stream = self.daemon.models.stream(self.target, request, payer)
        try:
            return await self._hear(stream)
        finally:
            for attempt in payer.failed:
                self.progress.add(attempt.spent)

    async def _hear(self, stream: AsyncGenerator[Delta | Answered, None]) -> Answered:
        async with aclosing(stream) as deltas:
            async for delta in deltas:
                if self.turn.watched and (self._steps or self._commits):
                    await self._settled()
                if isinstance(delta, TextChunk):
                    self.progress.said += delta.text
                    self.turn.emit(TextDelta(delta.text))
                elif isinstance(delta, Answered):
                    return delta
        raise TurnFailed("the model call ended without an answer")

    async def _answer(self, message: Message, spent: Spent) -> TurnResult:
        if not message.parts:
            message = Message(Role.ASSISTANT, (Text(""),))
        result = self.progress.result(message.text)
        self.turn.seal()
        self.progress.said = ""
        self._said.add(message)
        closed = TurnRecord(TurnState.DONE, result)
        self._note(message, spent=spent, closed=closed)
        await self._settled()
        return result

    async def _run_tools(
        self, message: Message, calls: tuple[ToolUse, ...], spent: Spent
    ) -> None:
        self.progress.said = ""
        self._said.add(message)
        self._note(message, spent=spent)
        await self._settled()
        inputs = {call.id: call.arguments for call in calls}
        for call in calls:
            self.turn.emit(ToolStart(call.id, call.name, call.arguments))
        outputs = []
        toolbox = self.daemon.toolbox
        async for out in toolbox.run(self.turn.context, calls, self._before_effect):
            outputs.append(out)
            self.turn.emit(
                ToolEnd(out.id, out.name, inputs[out.id], out.text, out.is_error)
            )
        answers = Message(Role.TOOL, tuple(outputs))
        self._said.add(answers)
        self._note(answers)
        self._flush()

    async def _before_effect(self, call: ToolUse) -> None:
        await self.daemon.journal.start_call(self.turn.id, call.id)

    def _tools(self, agent: AgentView) -> tuple[ToolDefinition, ...]:
        if not self.target.model.supports_tools:
            return ()
        return self.daemon.toolbox.rights_of(agent.id, agent.manifest).tools

    def _thinking(self, agent: AgentView) -> int | None:
        budget = agent.manifest.thinking.budget_tokens
        return (budget or THINKING_BUDGET) if self.session.thinking else budget

    def _note(self, message: Message | None = None, **facts: Unpack[Facts]) -> None:
        """Make the next step."""
        step = Step(
            session_id=self.session.id,
            turn_id=self.turn.id,
            at=self.daemon.clock.time(),
            seq=self._seq,
            message=message,
            **facts,
        )
        if message is not None:
            self._seq += 1
        self._steps.append(step)

    def _flush(self) -> None:
        """Write what was noted, in one commit; nobody waits for it here."""
        if self._latest is not None:
            self._latest.cancel()
            self._latest = None
        if self._steps:
            self._commits.append(self.daemon.journal.keep(*self._steps))
            self._steps = []

    def _flush_in_time(self) -> None:
        # A store that takes nothing now is asked again, and heard, at the next step.
        with suppress(AgentHostError):
            self._flush()

    async def _settled(self) -> None:
        """Wait until what was noted is on disk; nothing goes behind a lost step."""
        try:
            await self._committed()
            self._flush()
            await self._committed()
        except Exception:
            self._lost = True
            self._steps, self._commits = [], []
            raise

    async def _committed(self) -> None:
        while self._commits:
            commit = self._commits[0]
            await (commit if self.turn.sealed else asyncio.shield(commit))
            self._commits.pop(0)


def _is_answer(message: Message) -> bool:
    return message.role is Role.ASSISTANT and not message.tool_uses
