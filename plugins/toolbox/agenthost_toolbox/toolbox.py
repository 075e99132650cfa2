"""Tool calls: checked, guarded, run; every failure becomes a result the model reads."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any

from agenthost import (
    Activity,
    AgentHostError,
    Ask,
    Asked,
    BeforeEffect,
    Blocked,
    Context,
    Effect,
    Grants,
    Guard,
    Host,
    InvalidInput,
    LoopDetected,
    Manifest,
    Observers,
    Outcome,
    OutcomeUnknown,
    RateLimited,
    Refused,
    Rights,
    ToolCallCase,
    ToolContext,
    ToolResult,
    ToolResultCase,
    ToolSource,
    ToolSpec,
    Waiting,
    authorize,
    guarded_each,
)
from agenthost_chat.chat import Json, JsonObject, ToolOutput, ToolUse
from agenthost_chat.history import UNKNOWN
from agenthost_toml.suggest import did_you_mean

from .denials import Unapproved, denial
from .json_schema import JsonSchema
from .manifest import PACE
from .pace import Pace
from .ready import ReadyTool, made_ready
from .reports import CallReports, Progressed
from .results import (
    STEP_BYTES,
    STEP_MEDIA_BYTES,
    capped,
    fitting,
    outcome_of,
    reworded,
    weights,
)
from .sources import Sources
from .table import Offer, Table

log = logging.getLogger(__name__)

SCHEMA_SECONDS = 10.0
LOOKED_AT_AFTER = 0.3
"""Seconds after a start in which nobody waits for the schemas of tools."""
CALLS_PER_ANSWER = 64
CALLS_TOGETHER = 8
WAITS = (
    "Waiting for a person's approval; it has not run yet. It goes on by itself once "
    "they have answered: do not repeat it."
)
AGAIN_IS_FINE = "Calling it again is safe."
NOT_BEHIND = (
    "not run, because {} failed before it in the same answer; read what that said, and "
    "call this one again if it is still right"
)
_Admitted = tuple[ReadyTool, Any, Mapping[str, Json]]
"""A call that may begin: its tool, its arguments, what people said of it."""
_Told = tuple[BeforeEffect, Progressed]


class GuardedToolbox:
    """Runs the calls of one step.

    Args:
        host: The daemon that tools get.
        observers: Told of each call.
    """

    def __init__(self, host: Host, observers: Observers) -> None:
        self._host = host
        self._guards = host.guards
        self._observers = observers
        self._rights: dict[str, tuple[Manifest, Table, Rights]] = {}
        self._pace = Pace()
        self._lasting: list[Offer] = []
        self._problems: set[str] = set()
        self._looking: asyncio.Task[None] | None = None
        self._sources = Sources(host, host.registry.offered(ToolSource), self._renew)
        self._table = Table()

    async def start(self) -> None:
        """Make the tools ready, and follow the sources of more."""
        await self._make_ready(whole=False)
        await self._sources.start()
        self._looking = asyncio.create_task(self._look())

    async def stop(self) -> None:
        """Follow no source any more."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        await self._sources.stop()

    @property
    def tools(self) -> Mapping[str, ReadyTool]:
        """The tools on offer now, by every name that each goes by."""
        return self._table.tools

    def rights_of(self, agent_id: str, manifest: Manifest) -> Rights:
        """What an agent may do now, and the tools its model is shown, by name."""
        known, table = self._rights.get(agent_id), self._table
        if known is not None and known[0] is manifest and known[1] is table:
            return known[2]
        own = (name for name, tool in table.tools.items() if name == tool.spec.name)
        grants = Grants(self._host.agents.grants_of(manifest, own))
        rights = Rights(grants, table.granted(grants, manifest))
        self._rights[agent_id] = (manifest, table, rights)
        return rights

    def forget(self, agent_id: str) -> None:
        """Forget a deleted agent's rights."""
        self._rights.pop(agent_id, None)
        self._pace.forget(agent_id)

    def repeatable(self, name: str) -> bool:
        """Tell whether calling the tool twice is the same as once."""
        tool = self._table.tools.get(name)
        return tool is None or tool.spec.idempotent or self._reads(name)

    async def run(
        self,
        context: Context,
        calls: Sequence[ToolUse],
        before_effect: BeforeEffect,
        progressed: Progressed,
    ) -> AsyncIterator[Outcome]:
        """Run the calls of a step in order; neighbouring reads run together.

        Behind one that waits for a person none begins, and behind one that failed none
        that changes something: the model had not read of it. Of an answer with very
        many calls only the first run, and what they say is cut to what a model can use
        in one step.

        Args:
            context: For which agent, in which turn.
            calls: What the model asks for.
            before_effect: Awaited before a call that changes something, so that the
                journal knows of it first.
            progressed: Told of a call's progress.
        """
        told = (before_effect, progressed)
        room, media_room = STEP_BYTES, STEP_MEDIA_BYTES
        left = deque(calls)
        broken = ""
        for group in self._groups(calls[:CALLS_PER_ANSWER]):
            if broken and not self._reads(group[0].name):
                yield _failed(left.popleft(), NOT_BEHIND.format(broken))
                continue
            outcomes = await asyncio.gather(
                *(self._one(context, call, told) for call in group)
            )
            for outcome in outcomes:
                if outcome.output.is_error:
                    broken = broken or outcome.output.name
                output = fitting(outcome.output, room, media_room)
                words, media = weights(output)
                room, media_room = room - words, media_room - media
                yield replace(outcome, output=output)
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
        tool = self._table.tools.get(name)
        return tool is None or tool.spec.effect is Effect.READ

    async def _one(self, context: Context, call: ToolUse, told: _Told) -> Outcome:
        with self._observers.watch(context, call) as seen:
            inside = context if seen is None else replace(context, cause=seen.id)
            outcome = await self._outcome(inside, call, told, seen)
            try:
                outcome = self._checked(context, call, outcome)
            except AgentHostError as error:
                refused = self._failure(context, call, error)
                outcome = replace(outcome, output=refused.output, ends=refused.ends)
            if seen is not None and seen.error is None:
                seen.result = outcome.output
            return outcome

    def _checked(self, context: Context, call: ToolUse, outcome: Outcome) -> Outcome:
        """Let the guards read what the model will, errors included.

        Raises:
            AgentHostError: A guard refuses it.
        """
        output = capped(outcome.output)
        if self._guards.filled(Guard.TOOL_RESULT):
            tool = self._table.tools.get(call.name)
            name = call.name if tool is None else tool.spec.name
            said = output.text, outcome.labels
            case = ToolResultCase(context, name, *said, call.arguments)
            left = self._guards.check(Guard.TOOL_RESULT, case)
            output = reworded(output, left.text)
        return outcome if output is outcome.output else replace(outcome, output=output)

    async def _outcome(
        self,
        context: Context,
        call: ToolUse,
        told: _Told,
        seen: Activity | None,
    ) -> Outcome:
        """Call the tool; every failure is an outcome, and told to who observes."""
        # Also what was refused is made from what the turn knew.
        labels = context.labels
        try:
            admitted = await self._admitted(context, call)
            tool = admitted[0]
            if tool.spec.effect is not Effect.READ:
                await told[0](call)
            # From here on also an error may hold words of whom the tool speaks to.
            labels |= tool.spec.labels
            result = await self._answered(context, call, admitted, told)
            labels |= result.labels
            output = outcome_of(call, result)
            tool.fits(output)
            return Outcome(output, labels=labels)
        except (asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001 - plugins raise anything
            if seen is not None:
                seen.error = error
            return replace(self._failure(context, call, error), labels=labels)

    def _failure(
        self, context: Context, call: ToolUse, error: BaseException
    ) -> Outcome:
        if isinstance(error, Refused):
            self._guards.on_refused(error)
        if denied := denial(error):
            return replace(_failed(call, str(error)), denied=denied)
        match error:
            # Another turn that waits is no reason to wait: that is told as it is.
            case Waiting() if error.facts["turn_id"] == context.turn_id:
                return _waiting(call, error)
            case OutcomeUnknown():
                return self._unknown(call, error.message)
            case AgentHostError():
                ends = error if isinstance(error, LoopDetected) else None
                return replace(_failed(call, error.message), ends=ends)
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

    async def checker(self, schema: JsonObject) -> Callable[[Json], str]:
        """Read a JSON Schema, off the loop: what it says is looked up in full.

        Raises:
            InvalidInput: It is none, or uses what is not taken.
        """
        try:
            async with asyncio.timeout(SCHEMA_SECONDS):
                return (await asyncio.to_thread(JsonSchema, schema)).problems
        except TimeoutError:
            raise InvalidInput("schema", "to read it takes too long") from None

    async def _look(self) -> None:
        """Write the schemas of models, before a turn needs them but after the start."""
        await asyncio.sleep(LOOKED_AT_AFTER)
        await self._make_ready(whole=True)

    async def _make_ready(self, *, whole: bool) -> None:
        """Make the lasting tools ready, each plugin's off the loop and on its own."""
        known = {offer.owner: offer.tools for offer in self._lasting}
        by_plugin: dict[str, list[ToolSpec]] = {}
        for key, spec in self._host.registry.offered(ToolSpec):
            by_plugin.setdefault(key, []).append(spec)
        calls = [
            (
                f"{k} tool schemas",
                partial(made_ready, k, specs, known.get(k, ()), whole=whole),
            )
            for k, specs in by_plugin.items()
        ]
        outcomes = await guarded_each(calls, SCHEMA_SECONDS)
        lasting = []
        for key, (made, reason) in zip(by_plugin, outcomes, strict=True):
            ready, problems = made or (
                (),
                [f"the tools of {key} are left out: {reason}"],
            )
            lasting.append(Offer(key, ready, {}))
            for problem in problems:
                if problem not in self._problems:
                    self._problems.add(problem)
                    self._host.warnings.append(problem)
                    log.warning("%s", problem)
        self._lasting = lasting
        self._renew()

    def _renew(self) -> None:
        """Take over what the sources offer; turns that run keep their prompt."""
        before = set(self._table.left_out)
        self._table = Table([*self._lasting, *self._sources.offers])
        for line in self._table.left_out:
            if line not in before:
                log.warning("%s", line)

    def _allowed(self, context: Context, name: str) -> ReadyTool:
        tool, principal = self._table.tools.get(name), context.principal
        if tool is None:
            if reason := self._table.gone(name):
                authorize(principal, "tool", name)
                raise InvalidInput("", f"tool {name} is gone: {reason}")
            hint = did_you_mean(name, self._table.tools)
            raise InvalidInput("tool", f"there is no tool {name!r}{hint}")
        grants, names = principal.grants, tool.spec.names
        granted = (n for n in names if grants and grants.allow("tool", n))
        authorize(principal, "tool", next(granted, tool.spec.name))
        if context.agent and not tool.offered_to(context.agent.manifest):
            raise Refused(principal, "tool", tool.spec.name)
        return tool

    async def _admitted(self, context: Context, call: ToolUse) -> _Admitted:
        """Check everything before a call begins; people may be asked.

        Raises:
            AgentHostError: It may not begin.
        """
        if call.malformed:
            raise InvalidInput("", call.malformed)
        tool = self._allowed(context, call.name)
        spec, arguments = tool.spec, tool.arguments(call)
        self._keep_pace(context)
        answers: dict[str, Json] = {}
        asks: Sequence[Ask] = ()
        if self._guards.filled(Guard.TOOL_CALL):
            case = ToolCallCase(
                context,
                spec.name,
                spec.effect.value,
                call.arguments,
                spec.accepts,
                spec.critical,
            )
            try:
                self._guards.check(Guard.TOOL_CALL, case)
            except Asked as asked:
                asks = asked.asks
        approvals = self._host.approvals
        try:
            for ask in asks:
                answers |= await approvals.ask(context, call, ask)
            if context.found:
                # Whoever asked before may be off now; what people said of it holds.
                answers = {**await approvals.standing(context, call), **answers}
        except Blocked as error:
            raise Unapproved(error.message) from error
        return tool, arguments, answers

    async def _answered(
        self, context: Context, call: ToolUse, admitted: _Admitted, told: _Told
    ) -> ToolResult:
        """Call the tool; what it asks people itself, they are asked first.

        Raises:
            AgentHostError: Nobody has answered yet, or it fails.
        """
        try:
            return await self._call(context, call, admitted, told)
        except Asked as asked:
            asks = asked.asks
        tool, arguments, answers = admitted
        said = dict(answers)
        try:
            for ask in asks:
                said |= await self._host.approvals.ask(context, call, ask)
        except Blocked as error:
            raise Unapproved(error.message) from error
        return await self._call(context, call, (tool, arguments, said), told)

    async def _call(
        self, context: Context, call: ToolUse, admitted: _Admitted, told: _Told
    ) -> ToolResult:
        tool, arguments, answers = admitted
        reports = CallReports(context, call, self._host.clock, told[1])
        inside = ToolContext.of(context, self._host, reports)
        if answers:
            inside = replace(inside, answers=answers)
        try:
            with self._host.plugins.charges.timed(tool.plugin):
                async with asyncio.timeout(tool.spec.timeout):
                    result: ToolResult = await tool.spec.call(inside, arguments)
        finally:
            reports.end()
        return result

    def _keep_pace(self, context: Context) -> None:
        agent = context.agent
        if agent is None:
            return
        self._keep_pace_of(agent.id, agent.manifest)
        if agent.parent:
            # Its calls are also those of who has spawned it.
            for each in self._host.agents.above(agent.parent):
                self._keep_pace_of(each.id, each.manifest)

    def _keep_pace_of(self, agent_id: str, manifest: Manifest) -> None:
        limit = PACE.of(manifest).max_tool_calls_per_minute
        wait = self._pace.wait(agent_id, limit, self._host.clock.monotonic())
        if wait:
            raise RateLimited(
                f"more than {limit} tool calls a minute; wait {wait:.0f} s, or raise "
                "resources.max_tool_calls_per_minute in the manifest"
            )


def _failed(call: ToolUse, problem: str) -> Outcome:
    text = f"{call.name} failed: {problem}"
    return Outcome(ToolOutput(call.id, call.name, text, is_error=True))


def _waiting(call: ToolUse, waits: Waiting) -> Outcome:
    return Outcome(ToolOutput(call.id, call.name, WAITS), known=False, waits=waits)
