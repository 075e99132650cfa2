"""One turn of the plain engine: each step is on disk before the next begins."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from agenthost_chat.chat import (
    ChatRequest,
    Finish,
    Json,
    Message,
    ModelSettings,
    ReasoningChunk,
    Role,
    Text,
    TextChunk,
    ToolOutput,
    ToolUse,
    Usage,
)
from agenthost_chat.history import UNKNOWN, open_calls

from ...errors import CutShort, TurnFailed, UnfitAnswer
from ...host import Host
from ...observe import Observers
from ...ports.models import Answered, Payer, Target
from ...ports.records import CallState, Outcome, Step, TurnRecord, TurnResult, TurnState
from ...ports.sessions import Conversation
from ...ports.usage import Spent
from ...turns.events import Thinking, ToolEnd, ToolStart
from ...turns.turn import Turn, TurnOptions

MOST_CALLS = 50
MOST_LOOPS = 3
THINKING_BUDGET = 10_000


def left_of(options: TurnOptions, calls: Sequence[ToolUse]) -> tuple[ToolUse, ...]:
    """Choose the calls of the caller's tools; none that cannot be read."""
    names = {tool.name for tool in options.tools}
    return tuple([c for c in calls if c.name in names and not c.malformed])


def key_of(
    options: TurnOptions, turn_id: str, ended: TurnResult | None = None
) -> str | None:
    """What the session of a stateless turn is kept by, None when it is not."""
    if options.turn_id:
        return f"turn:{turn_id}"
    left = bool(options.tools) if ended is None else bool(ended.calls)
    return f"turn:left:{turn_id}" if left else None


class PlainRun:
    """The work of one turn, which has its session for itself.

    Args:
        host: The daemon.
        observers: Told of model calls.
        turn: What is told of it.
        said: The conversation up to where the turn goes on.
        behind: Where a resumed turn goes on in the middle of a session.
        found: The state in which a resumed turn was found, "" of a new one.
    """

    def __init__(
        self, host: Host, observers: Observers, turn: Turn, said: Conversation
    ) -> None:
        self.behind: int | None = None
        self.found = ""
        self.usage = Usage()
        self.cost = 0
        self._host = host
        self._observers = observers
        self._turn = turn
        self._said = said
        self._seq = said.session.next_seq
        self._asked = 0
        self._loops = 0
        self._model = ""
        self._finish: Finish | None = None
        self._settings = turn.options.settings or ModelSettings()
        self._fits: Callable[[Json], str] | None = None
        self._refused: tuple[Message, ...] = ()
        self._left: tuple[ToolUse, ...] = ()
        self._call_ids = {use.id for m in turn.spoken for use in m.tool_uses}

    async def open(self, given: frozenset[str]) -> None:
        """Begin with the user's message, or go on with what was cut off.

        Args:
            given: The labels that the message came with.
        """
        turn = self._turn
        if not self.found:
            known = {"digest": turn.options.digest, "settings": turn.options.settings}
            opened = turn.agent.id
            await self._keep(turn.message, opened=opened, labels=given, **known)
            return
        await self._keep(reopened=True)
        calls = open_calls(turn.spoken)
        self._left = left_of(turn.options, calls)
        if own := [call for call in calls if call not in self._left]:
            await self._run_tools(own, await self._known(own))

    async def answer(self) -> TurnResult:
        """Ask the model and run its tools until it answers."""
        turn = self._turn
        turn.emit(Thinking())
        if self._left:
            return await self._leave()
        if (form := self._settings.response_format) is not None:
            self._fits = await self._host.toolbox.checker(form)
        while self._asked < MOST_CALLS:
            agent = self._host.agents.get(turn.agent.id)
            answered = await self._ask(self._host.agents.target_of(agent))
            completion, spent = answered.completion, answered.spent
            message = self._unlike(completion.message)
            calls = message.tool_uses
            if calls and completion.finish is Finish.TOOL_USE:
                if self._fits is not None:
                    turn.say(message.text)
                self._left = left_of(turn.options, calls)
                await self._keep(message, spent=spent)
                if own := [call for call in calls if call not in self._left]:
                    await self._run_tools(own, {})
                if self._left:
                    return await self._leave()
                continue
            if completion.finish is Finish.LENGTH and not message.text.strip():
                await self._keep(spent=spent)
                raise CutShort("the answer was cut off before it said a word")
            if self._fits is not None and self._unfit(message.text):
                await self._keep(spent=spent)
                continue
            # From here on a stop would come too late.
            turn.sealed = True
            message = message if message.parts else Message(Role.ASSISTANT, (Text(""),))
            told = self.result(message.text)
            result = replace(told, citations=message.citations)
            closed = TurnRecord(TurnState.DONE, result)
            await self._keep(message, spent=spent, closed=closed)
            return result
        raise TurnFailed(f"the model still asked for tools after {MOST_CALLS} calls")

    async def _leave(self) -> TurnResult:
        """End with calls that are left to the caller."""
        turn = self._turn
        said = [m.text for m in turn.spoken if m.role is Role.ASSISTANT]
        finish = Finish.TOOL_USE
        result = replace(self.result(said[-1]), finish=finish, calls=self._left)
        turn.sealed = True
        await self._keep(closed=TurnRecord(TurnState.DONE, result))
        return result

    async def close(self, closed: TurnRecord) -> None:
        """Close the turn's row; words already delivered stay in the session."""
        said = Message(Role.ASSISTANT, (Text(self._turn.saying),))
        await self._keep(said if self._turn.saying else None, closed=closed)

    def result(self, text: str) -> TurnResult:
        """The result with this answer."""
        took = self.usage, self._asked, self.cost, self._model
        return TurnResult(text, *took, self._turn.context.labels, self._finish)

    def step(self, message: Message | None = None, **facts: Any) -> Step:
        """Make the next step; ``facts`` are further fields of :class:`Step`."""
        turn, session = self._turn, self._said.session
        facts.setdefault("labels", turn.context.labels)
        own, closed = None, facts.get("closed")
        if turn.options.history is not None:
            ended = closed and closed.result
            own = replace(session, key=key_of(turn.options, turn.id, ended))
        return Step(
            session.id,
            turn.id,
            self._host.clock.time(),
            self._seq,
            message,
            behind=self.behind,
            own=own,
            owner=turn.context.owner,
            writer=self._host.writer,
            agent_id=turn.agent.id,
            depth=turn.context.depth,
            **facts,
        )

    async def _keep(self, message: Message | None = None, **facts: Any) -> None:
        commit = self._host.journal.keep(self.step(message, **facts))
        try:
            await asyncio.shield(commit)
        finally:
            # Also who is stopped waits: what stands on disk is what comes before.
            await asyncio.wait({commit})
            if message is not None and commit.exception() is None:
                self._seq += 1
                self._said.add(message)
                self._turn.spoke(message)

    async def _ask(self, target: Target) -> Answered:
        turn, context = self._turn, self._turn.context
        manifest = turn.agent.manifest
        own = self._host.toolbox.rights_of(turn.agent.id, manifest).tools
        tools = turn.options.beside(own)
        thinks = manifest.thinking.budget_tokens
        if self._said.session.thinking:
            thinks = thinks or THINKING_BUDGET
        own_thinks = turn.options.thinking_budget
        temperature, told = turn.options.temperature, manifest.model
        system = told.system_prompt or f"Your name is {turn.agent.name}."
        request = ChatRequest(
            target.model.upstream_id,
            f"{system}\n\n{turn.options.instructions}".rstrip(),
            (*self._said.messages, *self._refused),
            tools if target.model.supports_tools else (),
            turn.options.max_tokens or told.max_tokens,
            told.temperature if temperature is None else temperature,
            thinks if own_thinks is None else own_thinks,
            **self._settings.asked,
        )
        unsay = turn.take_back
        payer = Payer(
            turn.agent, turn.id, context.pools, context=context, take_back=unsay
        )
        self._asked += 1
        with self._observers.watch(context, request, target, payer.failed) as seen:
            try:
                answered = await self._hear(target, request, payer)
            finally:
                for attempt in payer.failed:
                    self._count(attempt.spent)
            if seen is not None:
                seen.result, seen.spent = answered.completion, answered.spent
                seen.answered = answered
        self._count(answered.spent)
        self._finish = answered.completion.finish
        return answered

    async def _hear(
        self, target: Target, request: ChatRequest, payer: Payer
    ) -> Answered:
        stream = self._host.models.stream(target, request, payer)
        async with aclosing(stream) as deltas:
            async for delta in deltas:
                if isinstance(delta, Answered):
                    return delta
                if isinstance(delta, TextChunk):
                    # What may have to be said anew is told once it is whole.
                    if self._fits is None:
                        self._turn.say(delta.text)
                elif isinstance(delta, ReasoningChunk) and delta.text:
                    self._turn.think(delta.text)
        raise TurnFailed("the model call ended without an answer")

    def _unfit(self, text: str) -> bool:
        """Tell whether an answer is to be given anew; UnfitAnswer at the second one."""
        assert self._fits is not None, "asked only of answers in a form"
        try:
            wrong = self._fits(json.loads(text))
        except ValueError:
            wrong = "it is not JSON"
        if not wrong:
            self._turn.say(text)
            return False
        if self._refused:
            raise UnfitAnswer(f"the answer does not fit response_format: {wrong}")
        again = Text(f"Your answer was not taken: {wrong}. Answer again, in JSON alone")
        said = Message(Role.ASSISTANT, (Text(text),))
        self._refused = (said, Message(Role.USER, (again,)))
        return True

    def _count(self, spent: Spent | None) -> None:
        if spent is not None:
            self.usage += spent.usage
            self.cost += spent.cost_micro_usd
            self._model = f"{spent.provider}/{spent.model}"

    def _unlike(self, message: Message) -> Message:
        """Give each call an id that no other of the turn has; some models do not."""
        parts = list(message.parts)
        for at, part in enumerate(parts):
            if isinstance(part, ToolUse):
                number = len(self._call_ids)
                own = f"{part.id}_{number}" if part.id in self._call_ids else part.id
                self._call_ids.add(own)
                parts[at] = replace(part, id=own)
        return replace(message, parts=tuple(parts))

    async def _known(self, calls: Sequence[ToolUse]) -> Mapping[str, Outcome]:
        """What the journal knows of calls; an effect is never begun again."""
        journal = await self._host.journal.calls(self._turn.id)
        known: dict[str, Outcome] = {}
        for call in calls:
            state, outcome = journal.get(call.id, (CallState.UNKNOWN, None))
            begun = state is not CallState.INTENDED
            if outcome is not None:
                known[call.id] = outcome
            elif begun and not self._host.toolbox.repeatable(call.name):
                lost = ToolOutput(call.id, call.name, UNKNOWN, is_error=True)
                known[call.id] = Outcome(lost, known=False)
        return known

    async def _run_tools(
        self, calls: Sequence[ToolUse], known: Mapping[str, Outcome]
    ) -> None:
        """Run the calls that are not known yet, and take up what came of all.

        Raises:
            Waiting: A person is asked about one; that is on disk.
        """
        turn, outcomes = self._turn, dict(known)
        context, self.found = replace(turn.context, found=self.found), ""
        left = [call for call in calls if call.id not in known]
        inputs = {call.id: call.arguments for call in calls}
        for call in left:
            turn.emit(ToolStart(call.id, call.name, call.arguments))
        running = self._host.toolbox.run(context, left, self._before, turn.emit)
        async for outcome in running:
            outcomes[outcome.output.id] = outcome
            turn.emit(ToolEnd.of(outcome.output, inputs[outcome.output.id]))
        learnt = (outcome.labels for outcome in outcomes.values())
        turn.context = turn.context.labelled(*learnt)
        unknown = frozenset(id_ for id_, each in outcomes.items() if not each.known)
        answers = Message(Role.TOOL, tuple(outcomes[c.id].output for c in calls))
        waits = next((each.waits for each in outcomes.values() if each.waits), None)
        so_far = self.result("")
        closed = waits and TurnRecord(TurnState.WAITING, so_far)
        turn.sealed = waits is not None
        ends = next((each.ends for each in outcomes.values() if each.ends), None)
        await self._keep(answers, unknown=unknown, closed=closed)
        self._loops += ends is not None
        if ends is not None and self._loops >= MOST_LOOPS:
            raise ends
        if waits is not None:
            turn.fail(waits, so_far)
            raise waits

    async def _before(self, call: ToolUse) -> None:
        writer = self._host.writer
        await self._host.journal.start_call(self._turn.id, call.id, writer=writer)
