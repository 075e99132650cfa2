"""Tool calls: checked, guarded, run; every failure becomes a result the model reads."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from itertools import groupby

from agenthost import (
    Activity,
    AgentHostError,
    Asked,
    BeforeEffect,
    Context,
    Effect,
    Grants,
    Guard,
    Host,
    InvalidInput,
    Manifest,
    Observers,
    Outcome,
    OutcomeUnknown,
    RateLimited,
    Rights,
    ToolCallCase,
    ToolContext,
    ToolResultCase,
    ToolSpec,
    Waiting,
    authorize,
)
from agenthost_chat.chat import Json, ToolOutput, ToolUse
from agenthost_chat.history import UNKNOWN
from agenthost_toml.suggest import did_you_mean
from pydantic import BaseModel, ValidationError

from .manifest import PACE
from .pace import Pace

log = logging.getLogger(__name__)

RESULT_CHARACTERS = 100_000
STEP_BYTES = 400_000
CALLS_PER_ANSWER = 64
CALLS_TOGETHER = 8
WAITS = (
    "Waiting for a person's approval; it has not run yet. It goes on by itself once "
    "they have answered: do not repeat it."
)
AGAIN_IS_FINE = "Calling it again is safe."


class GuardedToolbox:
    """Runs the calls of one step.

    Args:
        host: The daemon that tools get.
        observers: Told of each call.
    """

    def __init__(self, host: Host, observers: Observers) -> None:
        self._host = host
        offered = host.registry.offered(ToolSpec)
        self._plugins = {spec.name: key for key, spec in offered}
        self._tools = {spec.name: spec for _, spec in offered}
        self._by_any_name = {name: spec for _, spec in offered for name in spec.names}
        self._guards = host.guards
        self._observers = observers
        self._rights: dict[str, tuple[Manifest, Rights]] = {}
        self._pace = Pace()

    def rights_of(self, agent_id: str, manifest: Manifest) -> Rights:
        """What an agent may do, and the tools its model is shown, sorted by name."""
        known = self._rights.get(agent_id)
        if known is not None and known[0] is manifest:
            return known[1]
        grants = Grants(self._host.agents.grants_of(manifest, self._tools))
        shown = (
            tool.definition
            for _, tool in sorted(self._tools.items())
            if any(grants.allow("tool", name) for name in tool.names)
        )
        rights = Rights(grants, tuple(shown))
        self._rights[agent_id] = (manifest, rights)
        return rights

    def forget(self, agent_id: str) -> None:
        """Forget a deleted agent's rights."""
        self._rights.pop(agent_id, None)
        self._pace.forget(agent_id)

    def repeatable(self, name: str) -> bool:
        """Tell whether calling the tool twice is the same as once."""
        spec = self._spec(name)
        return spec is None or spec.idempotent or spec.effect is Effect.READ

    async def run(
        self, context: Context, calls: Sequence[ToolUse], before_effect: BeforeEffect
    ) -> AsyncIterator[Outcome]:
        """Run the calls of a step in order; neighbouring reads run together.

        Behind one that waits for a person none begins. Of an answer with very many
        calls only the first run, and what they say is cut to what a model can use in
        one step.

        Args:
            context: For which agent, in which turn.
            calls: What the model asks for.
            before_effect: Awaited before a call that changes something, so that the
                journal knows of it first.
        """
        room = STEP_BYTES
        left = deque(calls)
        for group in self._groups(calls[:CALLS_PER_ANSWER]):
            outcomes = await asyncio.gather(
                *(self._one(context, call, before_effect) for call in group)
            )
            for outcome in outcomes:
                fitting = _fitting(outcome, room)
                room -= len(fitting.output.text.encode("utf-8", "surrogatepass"))
                yield fitting
                left.popleft()
            if waits := next((each.waits for each in outcomes if each.waits), None):
                for call in left:
                    yield _waiting(call, waits)
                return
        for call in left:
            many = f"not run: at most {CALLS_PER_ANSWER} calls in one answer"
            yield _failed(call, many)

    def _groups(self, calls: Sequence[ToolUse]) -> list[list[ToolUse]]:
        groups: list[list[ToolUse]] = []
        for reads, run in groupby(calls, lambda call: self._reads(call.name)):
            together = list(run)
            size = CALLS_TOGETHER if reads else 1
            groups += [together[i : i + size] for i in range(0, len(together), size)]
        return groups

    def _reads(self, name: str) -> bool:
        spec = self._spec(name)
        return spec is None or spec.effect is Effect.READ

    async def _one(
        self, context: Context, call: ToolUse, before_effect: BeforeEffect
    ) -> Outcome:
        with self._observers.watch(context, call) as seen:
            inside = context if seen is None else replace(context, cause=seen.id)
            outcome = await self._outcome(inside, call, before_effect, seen)
            try:
                outcome = self._checked(context, outcome)
            except AgentHostError as error:
                outcome = replace(outcome, output=_failed(call, error.message).output)
            if seen is not None and seen.error is None:
                seen.result = outcome.output
            return outcome

    def _checked(self, context: Context, outcome: Outcome) -> Outcome:
        """Let the guards read what the model will, errors included.

        Raises:
            AgentHostError: A guard refuses it.
        """
        output = outcome.output
        text = _capped(output.text)
        if self._guards.filled(Guard.TOOL_RESULT):
            case = ToolResultCase(context, output.name, text)
            text = self._guards.check(Guard.TOOL_RESULT, case).text
        if text is output.text:
            return outcome
        return replace(outcome, output=replace(output, text=text))

    async def _outcome(
        self,
        context: Context,
        call: ToolUse,
        before_effect: BeforeEffect,
        seen: Activity | None,
    ) -> Outcome:
        """Call the tool; every failure is an outcome, and told to who observes."""
        try:
            text, is_error = await self._call(context, call, before_effect)
            return Outcome(ToolOutput(call.id, call.name, text, is_error))
        except (asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001 - plugins raise anything
            if seen is not None:
                seen.error = error
            return self._failure(context, call, error)

    def _failure(
        self, context: Context, call: ToolUse, error: BaseException
    ) -> Outcome:
        match error:
            # Another turn that waits is no reason to wait: that is told as it is.
            case Waiting() if error.facts["turn_id"] == context.turn_id:
                return _waiting(call, error)
            case OutcomeUnknown():
                return self._unknown(call, error.message)
            case AgentHostError():
                return _failed(call, error.message)
            case TimeoutError():
                return self._unknown(call, "it took too long")
        # Also SystemExit: a tool that calls sys.exit ends its own call, no more.
        log.error(
            "tool %s failed in turn %s", call.name, context.turn_id, exc_info=error
        )
        return _failed(call, "an internal error, see the log")

    def _unknown(self, call: ToolUse, problem: str) -> Outcome:
        """A call whose end nobody saw: a read has failed, an effect may have happened.

        The model is told so, lest it repeats a payment.
        """
        if self._reads(call.name):
            return _failed(call, problem)
        advice = AGAIN_IS_FINE if self.repeatable(call.name) else UNKNOWN
        return replace(_failed(call, f"{problem}. {advice}"), known=False)

    def _spec(self, name: str) -> ToolSpec | None:
        return self._by_any_name.get(name)

    def _allowed(self, context: Context, name: str) -> ToolSpec:
        spec = self._spec(name)
        if spec is None:
            hint = did_you_mean(name, self._tools)
            raise InvalidInput("tool", f"there is no tool {name!r}{hint}")
        grants = context.principal.grants
        granted = (n for n in spec.names if grants and grants.allow("tool", n))
        authorize(context.principal, "tool", next(granted, spec.name))
        return spec

    async def _call(
        self, context: Context, call: ToolUse, before_effect: BeforeEffect
    ) -> tuple[str, bool]:
        if call.malformed:
            raise InvalidInput("", call.malformed)
        spec = self._allowed(context, call.name)
        arguments = validated(spec, call)
        self._keep_pace(context)
        answers: dict[str, Json] = {}
        if self._guards.filled(Guard.TOOL_CALL):
            case = ToolCallCase(context, spec.name, spec.effect.value, call.arguments)
            try:
                self._guards.check(Guard.TOOL_CALL, case)
            except Asked as asked:
                for ask in asked.asks:
                    answers |= await self._host.approvals.ask(context, call, ask)
        if spec.effect is not Effect.READ:
            await before_effect(call)
        inside = ToolContext.of(context, self._host)
        if answers:
            inside = replace(inside, answers=answers)
        with self._host.plugins.charges.timed(self._plugins[spec.name]):
            async with asyncio.timeout(spec.timeout):
                result = await spec.call(inside, arguments)
        return result.text, result.is_error

    def _keep_pace(self, context: Context) -> None:
        agent = context.agent
        if agent is None:
            return
        limit = PACE.of(agent.manifest).max_tool_calls_per_minute
        wait = self._pace.wait(agent.id, limit, self._host.clock.monotonic())
        if wait:
            raise RateLimited(
                f"more than {limit} tool calls a minute; wait {wait:.0f} s, or raise "
                "resources.max_tool_calls_per_minute in the manifest"
            )


def validated(spec: ToolSpec, call: ToolUse) -> BaseModel:
    """Read the call's arguments into the tool's model.

    Raises:
        InvalidInput: Naming every argument that is wrong.
    """
    try:
        return spec.input.model_validate(dict(call.arguments))
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, item['loc'])) or 'arguments'}: {item['msg']}"
            for item in error.errors(include_url=False, include_input=False)
        )
        raise InvalidInput("", f"wrong arguments: {problems}") from error


def _failed(call: ToolUse, problem: str) -> Outcome:
    text = f"{call.name} failed: {problem}"
    return Outcome(ToolOutput(call.id, call.name, text, is_error=True))


def _waiting(call: ToolUse, waits: Waiting) -> Outcome:
    return Outcome(ToolOutput(call.id, call.name, WAITS), known=False, waits=waits)


def _capped(text: str) -> str:
    if len(text) <= RESULT_CHARACTERS:
        return text
    left_out = len(text) - RESULT_CHARACTERS
    return f"{text[:RESULT_CHARACTERS]}\n[{left_out} characters left out]"


def _fitting(outcome: Outcome, room: int) -> Outcome:
    """Cut a result to the bytes that are left of its step."""
    output = outcome.output
    if len(output.text) * 4 <= room:
        return outcome
    data = output.text.encode("utf-8", "surrogatepass")
    if len(data) <= room:
        return outcome
    kept = data[: max(room, 0)].decode("utf-8", "ignore")
    text = f"{kept}\n[the results of this step are too long; the rest is left out]"
    return replace(outcome, output=replace(output, text=text))
