"""A toolbox that calls a table of functions, for tests of what runs tools."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from agenthost_chat.chat import (
    Json,
    JsonObject,
    Text,
    ToolDefinition,
    ToolOutput,
    ToolUse,
)
from agenthost_chat.history import UNKNOWN
from jsonschema import Draft202012Validator, SchemaError
from pydantic import ValidationError

from ...authorization import Refused, authorize
from ...context import Context, Grants
from ...errors import (
    AgentHostError,
    InvalidInput,
    LoopDetected,
    OutcomeUnknown,
    Waiting,
)
from ...host import Host, Reports, ToolContext
from ...manifest_model import Manifest
from ...observe import Observers
from ...plugins.points import Guard, ToolCallCase, ToolResultCase
from ...plugins.specs import Effect, ToolResult, ToolSpec
from ...ports.approvals import Asked
from ...ports.records import Outcome
from ...ports.tools import BeforeEffect, Rights
from ...turns.events import ToolProgress

Progressed = Callable[[ToolProgress], object]

_log = logging.getLogger(__name__)


class PlainTool:
    """A tool on offer.

    Args:
        spec: What it is; its arguments are checked where it has a pydantic model.
    """

    def __init__(self, spec: ToolSpec) -> None:
        self.spec = spec
        self.effect = spec.effect.value
        modelled = isinstance(spec.input, type)
        schema: Any = spec.input.model_json_schema() if modelled else spec.input  # type: ignore[union-attr]  # reason: it is a model
        self.definition = ToolDefinition(spec.name, spec.description, schema)

    @property
    def reads(self) -> bool:
        """Whether it changes nothing."""
        return self.spec.effect is Effect.READ

    def arguments(self, call: ToolUse) -> Any:
        """Read a call's arguments; InvalidInput when they are wrong."""
        given = dict(call.arguments)
        if call.malformed:
            raise InvalidInput("", call.malformed)
        if not isinstance(self.spec.input, type):
            return given
        try:
            return self.spec.input.model_validate(given)
        except ValidationError as error:
            wrong = error.errors(include_url=False, include_input=False)
            told = (f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in wrong)
            raise InvalidInput("arguments", "; ".join(told)) from error


class PlainReports(Reports):
    """Tells the progress of one call until that ends."""

    def __init__(self, call: ToolUse, progressed: Progressed) -> None:
        self._call = call
        self._progressed = progressed
        self.ended = False

    def progress(self, done: float, total: float | None, text: str) -> None:
        """Take how far it is."""
        if not self.ended:
            call = self._call
            self._progressed(ToolProgress(call.id, call.name, done, total, text))

    def log(self, level: str, text: str) -> None:
        """Take a line of log."""
        _log.info("%s: %s: %s", self._call.name, level, text)


class PlainTools:
    """Calls the tools of the plugins, without limits; sources of tools are not asked.

    Arguments are checked by a pydantic model alone; a JSON Schema is shown, no more.

    ``ToolsBackend("plain", PlainTools)`` serves a daemon with it.

    Args:
        host: The daemon that tools get.
        observers: Told of each call.
    """

    def __init__(self, host: Host, observers: Observers) -> None:
        self._host = host
        self._observers = observers
        self._tools: dict[str, PlainTool] = {}
        for _, spec in host.registry.offered(ToolSpec):
            self.add(spec)

    async def checker(self, schema: JsonObject) -> Callable[[Json], str]:
        """Read a JSON Schema; what is given says what of a value does not fit it."""
        try:
            Draft202012Validator.check_schema(schema)
        except SchemaError as error:
            raise InvalidInput("schema", error.message) from error
        validator = Draft202012Validator(schema)

        def check(value: Json) -> str:
            wrong = next(validator.iter_errors(value), None)
            return f"{wrong.json_path}: {wrong.message}" if wrong else ""

        return check

    def add(self, spec: ToolSpec) -> None:
        """Offer one more tool; what has a name already keeps it."""
        tool = PlainTool(spec)
        for name in spec.names:
            self._tools.setdefault(name, tool)

    @property
    def tools(self) -> Mapping[str, PlainTool]:
        """The tools on offer now, by every name that each goes by."""
        return self._tools

    def rights_of(self, agent_id: str, manifest: Manifest) -> Rights:  # noqa: ARG002
        """What an agent may do now, and the tools its model is shown, by name."""
        tools = {tool.spec.name: tool for tool in self._tools.values()}
        grants = Grants(self._host.agents.grants_of(manifest, tools))
        shown = (
            tool.definition
            for _, tool in sorted(tools.items())
            if any(grants.allow("tool", name) for name in tool.spec.names)
        )
        return Rights(grants, tuple(shown))

    def forget(self, agent_id: str) -> None:
        """Forget a deleted agent's rights; none are remembered."""

    def repeatable(self, name: str) -> bool:
        """Tell whether calling the tool twice is the same as once."""
        tool = self._tools.get(name)
        return tool is None or tool.reads or tool.spec.idempotent

    async def run(
        self,
        context: Context,
        calls: Sequence[ToolUse],
        before_effect: BeforeEffect,
        progressed: Progressed,
    ) -> AsyncIterator[Outcome]:
        """Run the calls of a step in order; neighbouring reads run together."""
        waits: Waiting | None = None
        broken = False
        for group in self._groups(calls):
            if waits is not None:
                outcomes = [_waiting(call, waits) for call in group]
            elif broken and not self._reads(group[0].name):
                outcomes = [_unread(call) for call in group]
            else:
                run = (self._one(context, c, before_effect, progressed) for c in group)
                outcomes = await asyncio.gather(*run)
            for outcome in outcomes:
                waits = waits or outcome.waits
                broken = broken or outcome.output.is_error
                yield outcome

    def _groups(self, calls: Sequence[ToolUse]) -> Iterator[Sequence[ToolUse]]:
        for reads, group in groupby(calls, lambda call: self._reads(call.name)):
            if reads:
                yield list(group)
            else:
                yield from ([call] for call in group)

    def _reads(self, name: str) -> bool:
        tool = self._tools.get(name)
        return tool is None or tool.reads

    async def _one(
        self,
        context: Context,
        call: ToolUse,
        before: BeforeEffect,
        progressed: Progressed,
    ) -> Outcome:
        labels = context.labels
        with self._observers.watch(context, call) as seen:
            inside = replace(context, cause=seen.id) if seen else context
            try:
                tool, arguments, answers = await self._admitted(inside, call)
                if not tool.reads:
                    await before(call)
                # From here on also an error may hold words of whom it speaks to.
                labels |= tool.spec.labels
                reports = PlainReports(call, progressed)
                given = ToolContext.of(inside, self._host, reports)
                given = replace(given, answers=answers)
                result = await _run(tool, given, arguments, reports)
                labels |= result.labels
                outcome = Outcome(_output(call, result))
            except (asyncio.CancelledError, GeneratorExit):
                raise
            except BaseException as error:  # noqa: BLE001 - a tool raises anything
                if seen is not None:
                    seen.error = error
                outcome = self._failure(context, call, error)
            labelled = replace(outcome, labels=labels)
            outcome = self._as_guards_let(context, call, labelled)
            if seen is not None and seen.error is None:
                seen.result = outcome.output
            return outcome

    async def _admitted(
        self, context: Context, call: ToolUse
    ) -> tuple[PlainTool, Any, JsonObject]:
        """Check all before a call begins; people may be asked.

        Returns:
            The tool, its arguments, and what people said of the call.
        """
        tool = self._tools.get(call.name)
        if tool is None:
            raise InvalidInput("tool", f"there is no tool {call.name!r}")
        spec, grants = tool.spec, context.principal.grants
        granted = (name for name in spec.names if grants and grants.allow("tool", name))
        authorize(context.principal, "tool", next(granted, spec.name))
        arguments, answers = tool.arguments(call), dict[str, Json]()
        asked = self._host.approvals
        said = call.arguments, spec.accepts, spec.critical
        case = ToolCallCase(context, spec.name, spec.effect.value, *said)
        try:
            self._host.guards.check(Guard.TOOL_CALL, case)
        except Asked as questions:
            for ask in questions.asks:
                answers |= await asked.ask(context, call, ask)
        if context.found:
            answers = {**await asked.standing(context, call), **answers}
        return tool, arguments, answers

    def _as_guards_let(
        self, context: Context, call: ToolUse, outcome: Outcome
    ) -> Outcome:
        output, tool = outcome.output, self._tools.get(call.name)
        name = tool.spec.name if tool else call.name
        said = output.text, outcome.labels, call.arguments
        case = ToolResultCase(context, name, *said)
        try:
            text = self._host.guards.check(Guard.TOOL_RESULT, case).text
        except AgentHostError as error:
            refused = self._failure(context, call, error)
            return replace(outcome, output=refused.output, ends=refused.ends)
        if text == output.text:
            return outcome
        read = replace(output, text=text, media=(), structured=None)
        return replace(outcome, output=read)

    def _failure(
        self, context: Context, call: ToolUse, error: BaseException
    ) -> Outcome:
        output = _failed(call.id, call.name, error)
        match error:
            case Waiting() if error.facts["turn_id"] == context.turn_id:
                return _waiting(call, error)
            case OutcomeUnknown() | TimeoutError() if not self._reads(call.name):
                text = f"{output.text}. {UNKNOWN}"
                return Outcome(replace(output, text=text), known=False)
            case LoopDetected():
                return Outcome(output, ends=error)
            case Refused():
                self._host.guards.on_refused(error)
        if not isinstance(error, AgentHostError | TimeoutError):
            _log.error("the tool %s failed", call.name, exc_info=error)
        return Outcome(output)


async def _run(
    tool: PlainTool, context: ToolContext, arguments: Any, reports: PlainReports
) -> ToolResult:
    try:
        async with asyncio.timeout(tool.spec.timeout):
            return await tool.spec.call(context, arguments)
    finally:
        reports.ended = True


def _output(call: ToolUse, result: ToolResult) -> ToolOutput:
    words = [result.text, *(p.text for p in result.parts if isinstance(p, Text))]
    media = tuple(p for p in result.parts if not isinstance(p, Text))
    words += [f"[{type(medium).__name__.lower()}]" for medium in media]
    if result.structured is not None:
        words.append(json.dumps(result.structured, allow_nan=False))
    text = "\n".join(filter(None, words))
    is_error, structured = result.is_error, result.structured
    return ToolOutput(call.id, call.name, text, is_error, media, structured)


def _failed(call_id: str, name: str, error: BaseException) -> ToolOutput:
    """Tell the model what agenthost says; of anything else no word."""
    problem = "it took too long" if isinstance(error, TimeoutError) else "see the log"
    if isinstance(error, AgentHostError):
        problem = error.message
    return ToolOutput(call_id, name, f"{name} failed: {problem}", is_error=True)


def _unread(call: ToolUse) -> Outcome:
    text = "Not run: one before it in the same answer has failed."
    return Outcome(ToolOutput(call.id, call.name, text, is_error=True))


def _waiting(call: ToolUse, waits: Waiting) -> Outcome:
    output = ToolOutput(
        call.id, call.name, "Waiting for a person's approval; it has not run."
    )
    return Outcome(output, known=False, waits=waits)
