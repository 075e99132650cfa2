"""Tool calls: checked, guarded, run; every failure becomes a result the model reads."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

from agenthost_chat.chat import ToolDefinition, ToolOutput, ToolUse
from agenthost_toml.suggest import did_you_mean
from pydantic import BaseModel, ValidationError

from ..authorize import authorize
from ..context import Context, Grants
from ..errors import AgentHostError, InvalidInput, NotFound
from ..observe import Observers
from ..plugins.guards import Guard, Guards, ToolCallCase, ToolResultCase
from ..plugins.specs import Effect, ToolSpec

if TYPE_CHECKING:
    from ..manifest import Manifest
    from ..plugins.registry import Registry

log = logging.getLogger(__name__)

RESULT_CHARACTERS = 100_000
BeforeEffect = Callable[[ToolUse], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Rights:
    """An agent's grants, and the tools they let its model see."""

    grants: Grants
    tools: tuple[ToolDefinition, ...]


class Toolbox:
    """Runs the calls of one step."""

    def __init__(
        self, registry: Registry, guards: Guards, observers: Observers
    ) -> None:
        self._registry = registry
        self._guards = guards
        self._observers = observers
        self._rights: dict[str, tuple[Manifest, Rights]] = {}

    def rights_of(self, agent_id: str, manifest: Manifest) -> Rights:
        """What an agent may do, and the tools its model is shown, sorted by name."""
        known = self._rights.get(agent_id)
        if known is not None and known[0] is manifest:
            return known[1]
        grants = Grants(manifest.grants(self._registry.tools))
        shown = self._registry.granted(grants)
        rights = Rights(grants, tuple(tool.definition for tool in shown))
        self._rights[agent_id] = (manifest, rights)
        return rights

    def forget(self, agent_id: str) -> None:
        """Forget a deleted agent's rights."""
        self._rights.pop(agent_id, None)

    async def run(
        self, context: Context, calls: Sequence[ToolUse], before_effect: BeforeEffect
    ) -> AsyncIterator[ToolOutput]:
        """Run the calls of a step in order; neighbouring reads run together.

        ``before_effect`` is awaited before a call that changes something, so that the
        journal knows of it first.
        """
        for group in self._groups(calls):
            outputs = await asyncio.gather(
                *(self._one(context, call, before_effect) for call in group)
            )
            for output in outputs:
                yield output

    def _groups(self, calls: Sequence[ToolUse]) -> list[list[ToolUse]]:
        groups: list[list[ToolUse]] = []
        for reads, run in groupby(calls, lambda call: self._reads(call.name)):
            together = list(run)
            groups += [together] if reads else [[call] for call in together]
        return groups

    def _reads(self, name: str) -> bool:
        try:
            return self._registry.tool(name).spec.effect is Effect.READ
        except NotFound:
            return True

    async def _one(
        self, context: Context, call: ToolUse, before_effect: BeforeEffect
    ) -> ToolOutput:
        try:
            with self._observers.watch(context, call) as seen:
                inside = context if seen is None else replace(context, cause=seen.id)
                text, is_error = await self._call(inside, call, before_effect)
                text = _capped(text)
                if self._guards.filled(Guard.TOOL_RESULT):
                    case = ToolResultCase(context, call.name, text)
                    text = self._guards.replace(Guard.TOOL_RESULT, case, text)
                output = ToolOutput(call.id, call.name, text, is_error)
                if seen is not None:
                    seen.result = output
                return output
        except AgentHostError as error:
            problem = error.message
        except TimeoutError:
            problem = "it took too long"
        except Exception:
            log.exception("tool %s failed in turn %s", call.name, context.turn_id)
            problem = "an internal error, see the log"
        text = f"{call.name} failed: {problem}"
        return ToolOutput(call.id, call.name, text, is_error=True)

    def _allowed(self, context: Context, name: str) -> ToolSpec:
        try:
            tool = self._registry.tool(name)
        except NotFound:
            hint = did_you_mean(name, self._registry.tools)
            raise InvalidInput("tool", f"there is no tool {name!r}{hint}") from None
        grants = context.principal.grants
        granted = (n for n in tool.names if grants and grants.allow("tool", n))
        authorize(context.principal, "tool", next(granted, tool.spec.name))
        return tool.spec

    async def _call(
        self, context: Context, call: ToolUse, before_effect: BeforeEffect
    ) -> tuple[str, bool]:
        if call.malformed:
            raise InvalidInput("", call.malformed)
        spec = self._allowed(context, call.name)
        arguments = validated(spec, call)
        if self._guards.filled(Guard.TOOL_CALL):
            case = ToolCallCase(context, spec.name, spec.effect.value, call.arguments)
            self._guards.check(Guard.TOOL_CALL, case)
        if spec.effect is not Effect.READ:
            await before_effect(call)
        async with asyncio.timeout(spec.timeout):
            result = await spec.call(context, arguments)
        return result.text, result.is_error


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


def _capped(text: str) -> str:
    if len(text) <= RESULT_CHARACTERS:
        return text
    left_out = len(text) - RESULT_CHARACTERS
    return f"{text[:RESULT_CHARACTERS]}\n[{left_out} characters left out]"
