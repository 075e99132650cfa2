"""One turn: the model is asked until it has an answer, each step journalled."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

from agenthost import (
    AgentHostError,
    Answered,
    Conversation,
    Outcome,
    Payer,
    PoolSpent,
    ProviderError,
    ProviderFault,
    Spent,
    Step,
    Target,
    Thinking,
    ToolEnd,
    ToolStart,
    Turn,
    TurnFailed,
    TurnRecord,
    TurnResult,
    TurnState,
    Waiting,
)
from agenthost_chat.chat import (
    ChatRequest,
    Delta,
    Finish,
    Message,
    ReasoningChunk,
    Role,
    Text,
    TextChunk,
    ToolUse,
)
from agenthost_chat.history import open_calls

from .asking import Form, agreed, merged, unforced
from .calls import outcomes_of, unlike
from .ends import Room, cut_off, shortened, too_long
from .histories import conversation_of
from .left import key_of, left_of
from .manifest import ANSWERING
from .money import more_granted
from .progress import Progress
from .prompt import shown_tools, system_prompt, thinking_budget

if TYPE_CHECKING:
    from .parts import Parts

TOGETHER = 0.05
NOTHING_KNOWN: Mapping[str, Outcome] = MappingProxyType({})


class Run:
    """The work of one turn, inside its session's mailbox.

    Args:
        parts: What it works with.
        turn: What is told of it.
        said: The conversation up to where the turn goes on.
        target: The model that is asked.
        behind: Where a resumed turn goes on in the middle of a session: the number of
            its last message.

    Attributes:
        found: The state in which a resumed turn was found, "" of a new one.
        settings: What is asked of the answers; when that is anything,
            :meth:`agree` comes first.
    """

    found = ""

    def __init__(
        self,
        parts: Parts,
        turn: Turn,
        said: Conversation,
        target: Target,
        behind: int | None = None,
    ) -> None:
        self.parts = parts
        self.turn = turn
        self.target = target
        self.session = said.session
        self.progress = Progress()
        self._own = said.session if turn.options.history is not None else None
        self._said = said
        self._behind = behind
        self._seq = said.session.next_seq
        self._steps: list[Step] = []
        self._commits: list[asyncio.Future[None]] = []
        self._latest: asyncio.TimerHandle | None = None
        self._lost = False
        self._room = Room(target, turn.agent, turn.options)
        # Not a function of its own: every message comes by here, and few ask more.
        usual, self.settings = ANSWERING.of(turn.agent.manifest), turn.options.settings
        if usual.model_fields_set:
            self.settings = merged(usual, self.settings)
        self._form: Form | None = None
        self._left: tuple[ToolUse, ...] = ()
        self._call_ids: set[str] = set()
        self._effects: set[str] = set()
        self._ended: list[Outcome] = []

    async def agree(self) -> None:
        """Make sure that what is asked of the answers can be asked.

        Raises:
            InvalidInput: There is no such tool, or the form of the answer is none.
        """
        if self.settings is not None:
            given = self.turn.agent, self.turn.options, self.target.model
            tools = shown_tools(self.parts, *given)
            self._form = await agreed(self.settings, tools, self.parts.toolbox)

    def begin(self, given: frozenset[str]) -> None:
        """Take up the conversation with the user's message.

        It is on its way to disk now, or within ``TOGETHER`` seconds: when nobody
        watches, a quick answer goes with it in one commit.

        Args:
            given: The labels that the message came with.
        """
        turn = self.turn
        self._said.add(turn.message)
        opened, options = self.session.agent_id, turn.options
        known = {"digest": options.digest, "settings": options.settings}
        self._note(turn.message, opened=opened, labels=given, **known)
        if turn.watched:
            self._flush()
        else:
            turn.keeping = self._keeping
            loop = asyncio.get_running_loop()
            self._latest = loop.call_later(TOGETHER, self._flush_in_time)

    async def go_on(self) -> None:
        """Take up a turn that was cut off, its unanswered calls first."""
        self._note(reopened=True)
        self._flush()
        spoken = self.turn.spoken
        self._call_ids.update(use.id for m in spoken for use in m.tool_uses)
        calls = open_calls(spoken)
        self._left = left_of(self.turn.options, calls)
        if own := [call for call in calls if call not in self._left]:
            parts = self.parts
            known = await outcomes_of(self.turn.id, own, parts.journal, parts.toolbox)
            await self._run_tools(own, known, self.found)

    async def converse(self) -> TurnResult:
        """Ask the model and run its tools until it answers.

        Raises:
            ProviderError: A model call failed.
            QuotaExceeded: A budget has no room for the call.
            Waiting: A person is asked whether more may be spent; that is on disk.
            CutShort: The answer reached its length limit before it was one.
            UnfitAnswer: It does not have the form that was asked for.
            TurnFailed: The model asked for tools again and again.
        """
        agent, options = self.turn.agent, self.turn.options
        choice = agent.manifest.model
        tools = shown_tools(self.parts, agent, options, self.target.model)
        temperature = options.temperature
        if temperature is None:
            temperature = choice.temperature
        written = partial(
            ChatRequest,
            model=self.target.model.upstream_id,
            system=system_prompt(agent, tools, options.instructions),
            tools=tools,
            temperature=temperature,
            thinking_budget=thinking_budget(agent, options, self.session),
            cache_key=str(self.session.id),
            **(self.settings.asked if self.settings else {}),
        )
        limit = self.parts.limits.max_iterations
        if self.turn.watched:
            self.turn.emit(Thinking())
        while self._left or self.progress.iterations < limit:
            if self._left:
                return await self._leave()
            try:
                answered = await self._asked(written)
            except (ProviderError, PoolSpent) as error:
                await self._make_room(error)
                continue
            completion, spent = answered.completion, answered.spent
            if cut_off(completion):
                self._note(spent=spent)
                self._flush()
                self._room.grow(completion)
                continue
            message = unlike(self._call_ids, self._room.whole(completion.message))
            calls = message.tool_uses
            ends = completion.finish is not Finish.TOOL_USE or not calls
            if self._form and await self._unfit(self._form, message, spent, ends=ends):
                continue
            self._left = () if ends else left_of(options, calls)
            if ends or len(self._left) == len(calls):
                return await self._answer(message, spent)
            self._spoke(message)
            self._note(message, spent=spent)
            await self._settled()
            await self._run_tools([call for call in calls if call not in self._left])
        raise TurnFailed(
            f"the model still asked for tools after {limit} calls; simplify the "
            "request or raise turns.max_iterations"
        )

    async def wait(
        self, waits: Waiting, said: Message | None = None, **facts: Any
    ) -> NoReturn:
        """Put the turn aside until a person has answered; that is on disk then."""
        so_far = self.progress.result("", self.turn.context.labels)
        self.turn.sealed = True
        closed = TurnRecord(TurnState.WAITING, so_far)
        self._note(said, closed=closed, **facts)
        await self._settled()
        self.turn.fail(waits, so_far)
        raise waits

    def left(self) -> Conversation | None:
        """The session as this turn left it; None when it cannot tell."""
        if self.turn.options.history is not None or self._behind is not None:
            return None
        self._said.session = replace(self.session, next_seq=self._seq)
        self._said.labels = self.turn.context.labels
        return self._said

    async def keep_what_was_said(self, closed: TurnRecord) -> None:
        """Close the turn's row; words already delivered stay in the session."""
        with suppress(AgentHostError):
            await self._settled()
        said = "" if self._lost else shortened(self.turn.saying)
        message = Message(Role.ASSISTANT, (Text(said),)) if said else None
        self._note(message, closed=closed)
        await self._settled()

    def closing(self, closed: TurnRecord) -> Step:
        """What closes the turn's row, without words: for a store that took none."""
        self._note(closed=closed)
        return self._steps.pop()

    async def _asked(self, written: Callable[..., ChatRequest]) -> Answered:
        """Ask the model, with all that has been said by now."""
        said, tokens = self._room.asked(self._said.messages), self._room.tokens
        if self._form is not None:
            said = self._form.asked(said)
        request = written(messages=said, max_tokens=tokens)
        if request.tool_choice and self._call_ids:
            request = unforced(request)
        context, target = self.turn.context, self.target
        agent, unsay = self.turn.agent, self._take_back
        payer = Payer(
            agent, self.turn.id, context.pools, context=context, take_back=unsay
        )
        watch = self.parts.observers.watch(context, request, target, payer.failed)
        self.progress.iterations += 1
        self.progress.ended = None
        with watch as seen:
            stream = self.parts.models.stream(target, request, payer)
            try:
                answered = await self._hear(stream)
            finally:
                for attempt in payer.failed:
                    self.progress.add(attempt.spent)
            if seen is not None:
                seen.result, seen.spent = answered.completion, answered.spent
                seen.answered = answered
        self.progress.add(answered.spent)
        self.progress.ended = answered.completion
        return answered

    def _take_back(self) -> bool:
        # Of an answer that is to have a form nobody has heard anything yet.
        return self._form is not None or self.turn.take_back()

    async def _make_room(self, error: ProviderError | PoolSpent) -> None:
        """Have what a call has no room for: money, or a shorter conversation.

        All before the turn's question is summarised; it goes on behind that. A second
        time there is nothing left to summarise, and with a history of its own there
        never is. Not in a turn that others stand behind, nor behind words of an answer,
        which would be said anew.

        Raises:
            ProviderError: There is no way, or it has another fault.
            QuotaExceeded: Nobody lets it spend more.
            Waiting: Somebody is asked; that is on disk.
        """
        if isinstance(error, PoolSpent):
            await more_granted(self, error)
            return
        if error.fault is not ProviderFault.CONTEXT_OVERFLOW:
            raise error
        if self._behind is not None or self.turn.saying:
            raise too_long(error)
        # The summary is made of what is on disk.
        await self._settled()
        parts, context = self.parts, self.turn.context
        if not await parts.compaction.make_room(self.session, self.target, context):
            raise too_long(error)
        self._said = await conversation_of(parts, context, self.session.id)
        self.session = self._said.session

    async def _hear(self, stream: AsyncGenerator[Delta | Answered, None]) -> Answered:
        async with aclosing(stream) as deltas:
            async for delta in deltas:
                if self.turn.watched and (self._steps or self._commits):
                    await self._settled()
                if isinstance(delta, TextChunk):
                    # Of an answer that may have to be given anew nothing is told yet.
                    if self._form is None:
                        self.turn.say(delta.text)
                elif isinstance(delta, ReasoningChunk) and delta.text:
                    self.turn.think(delta.text)
                elif isinstance(delta, Answered):
                    return delta
        raise TurnFailed("the model call ended without an answer")

    async def _unfit(
        self, form: Form, message: Message, spent: Spent, *, ends: bool
    ) -> bool:
        """Ask again for an answer without the form; what is taken is told now.

        Raises:
            UnfitAnswer: It was asked for again before.
        """
        text = message.text
        if ends and (problem := await form.problem(text, self.progress.finish)):
            self._note(spent=spent)
            self._flush()
            form.again(text, problem)
            return True
        self.turn.say(text)
        return False

    async def _answer(self, message: Message, spent: Spent) -> TurnResult:
        if not message.parts:
            message = Message(Role.ASSISTANT, (Text(""),))
        labels = self.turn.context.labels
        result = self.progress.result(message.text, labels, message.citations)
        result = replace(result, calls=self._left) if self._left else result
        # From here on a stop would come too late: the answer is on its way to the disk.
        self.turn.sealed = True
        self._spoke(message)
        closed = TurnRecord(TurnState.DONE, result)
        self._note(message, spent=spent, closed=closed)
        await self._settled()
        return result

    async def _leave(self) -> TurnResult:
        """End with calls that are the caller's; what was said is on its way to disk."""
        said = [m.text for m in self.turn.spoken if m.role is Role.ASSISTANT]
        ended = self.progress.result(said[-1], self.turn.context.labels)
        result = replace(ended, finish=Finish.TOOL_USE, calls=self._left)
        self.turn.sealed = True
        self._note(closed=TurnRecord(TurnState.DONE, result))
        await self._settled()
        return result

    async def _run_tools(
        self,
        calls: Sequence[ToolUse],
        known: Mapping[str, Outcome] = NOTHING_KNOWN,
        found: str = "",
    ) -> None:
        """Run the calls that are not known yet, and take up what came of all.

        Args:
            calls: All of the step.
            known: What came of those that a turn has found answered.
            found: The state in which it was found.

        Raises:
            Waiting: A person is asked about one; that is on disk.
            LoopDetected: Guards have told the model often enough that it is in one.
        """
        inputs = {call.id: call.arguments for call in calls}
        waits: Waiting | None = None
        ends: AgentHostError | None = None
        left = [call for call in calls if call.id not in known]
        if self.turn.watched:
            for call in left:
                self.turn.emit(ToolStart(call.id, call.name, call.arguments))
        outcomes = dict(known)
        toolbox, before = self.parts.toolbox, self._before_effect
        now = self.turn.context
        context = replace(now, found=found) if found else now
        async for outcome in toolbox.run(context, left, before, self.turn.emit):
            out = outcome.output
            outcomes[out.id] = outcome
            waits, ends = waits or outcome.waits, ends or outcome.ends
            # A read rides with the step: it is asked anew if that is lost.
            if out.id in self._effects:
                self._ended.append(outcome)
            if self.turn.watched:
                self.turn.emit(ToolEnd.of(out, inputs[out.id]))
        self._ended = []
        # What the model has read labels all that follows, in this turn and behind it.
        learnt = [each.labels for each in outcomes.values()]
        self.turn.context = self.turn.context.labelled(*learnt)
        unknown = frozenset(id_ for id_, each in outcomes.items() if not each.known)
        denied = {id_: each.denied for id_, each in outcomes.items() if each.denied}
        answers = Message(Role.TOOL, tuple(outcomes[c.id].output for c in calls))
        self._spoke(answers)
        if waits is not None:
            # They stand in for those to come: others of the session see no call
            # without an answer.
            await self.wait(waits, answers, unknown=unknown, denied=denied)
        self._note(answers, unknown=unknown, denied=denied)
        self._flush()
        self.progress.check(ends)

    async def _before_effect(self, call: ToolUse) -> None:
        # What came of the effects before this one is durable before it begins.
        ended, self._ended = tuple(self._ended), []
        self._effects.add(call.id)
        start_call, turn = self.parts.journal.start_call, self.turn
        await start_call(turn.id, call.id, ended, turn.writer)

    def _spoke(self, message: Message) -> None:
        self._said.add(message)
        self.turn.spoke(message)

    def _note(self, message: Message | None = None, **facts: Any) -> None:
        """Make the next step; ``facts`` are further fields of :class:`Step`."""
        facts.setdefault("labels", self.turn.context.labels)
        own, closed = self._own, facts.get("closed")
        if own is not None and closed is not None:
            # One that is kept for calls that are left may have none.
            kept = key_of(self.turn.options, self.turn.id, closed.result)
            own = replace(own, key=kept)
        step = Step(
            session_id=self.session.id,
            turn_id=self.turn.id,
            at=self.parts.clock.time(),
            seq=self._seq,
            message=message,
            behind=self._behind,
            owner=self.turn.context.owner,
            writer=self.turn.writer,
            own=own,
            agent_id=self.turn.agent.id,
            depth=self.turn.context.depth,
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
            self._commits.append(self.parts.journal.keep(*self._steps))
            self._steps = []

    def _keeping(self) -> asyncio.Future[None] | None:
        """Put what was noted on its way to disk; give its commit, if one is left."""
        self._flush_in_time()
        return self._commits[-1] if self._commits else None

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
            # A stop must not cancel the write: others ride in the same commit. A sealed
            # turn is never cancelled and saves the shield.
            await (commit if self.turn.sealed else asyncio.shield(commit))
            self._commits.pop(0)
