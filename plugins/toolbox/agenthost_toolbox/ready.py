"""A tool made ready: its arguments and its structured results are checked."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from copy import deepcopy
from functools import cached_property
from typing import Any, cast

from agenthost import (
    InvalidInput,
    JsonObject,
    Manifest,
    PluginError,
    ToolDefinition,
    ToolOutput,
    ToolSpec,
    ToolUse,
    describe,
)
from pydantic import ValidationError

from .json_schema import JsonSchema
from .modelled import schema_of

log = logging.getLogger(__name__)

DESCRIPTION_CHARACTERS = 10_000
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class ReadyTool:
    """A tool that is on offer, and what it is called through.

    Args:
        plugin: The key of the plugin that offers it.
        spec: What it is.

    Raises:
        PluginError: One of its names is none, or its description is endless.
        InvalidInput: One of its schemas is none.
    """

    def __init__(self, plugin: str, spec: ToolSpec) -> None:
        for name in spec.names:
            if not NAME.fullmatch(name):
                raise PluginError(
                    f"tool name {name!r} must be 1 to 64 letters, digits, _ and -"
                )
        if len(spec.description) > DESCRIPTION_CHARACTERS:
            most = f"the description is over {DESCRIPTION_CHARACTERS} characters long"
            raise PluginError(most)
        self.plugin, self.spec = plugin, spec
        self._input: JsonSchema | None = None
        self._output: JsonSchema | None = None
        if isinstance(spec.input, Mapping):
            self._input = JsonSchema(spec.input)
            if self.schema.get("type") != "object":
                raise InvalidInput("input.type", "arguments are an object; say so")
        if spec.output is not None:
            self._output = JsonSchema(spec.output)

    @cached_property
    def schema(self) -> JsonObject:
        """The JSON Schema of its arguments; a pydantic model may raise anything."""
        if isinstance(self.spec.input, Mapping):
            return cast("JsonSchema", self._input).schema
        return schema_of(self.spec.input)

    @cached_property
    def definition(self) -> ToolDefinition:
        """The tool as a model sees it; a pydantic model may raise anything."""
        return ToolDefinition(self.spec.name, self.spec.description, self.schema)

    @cached_property
    def whole(self) -> bool:
        """Whether it can be shown to a model."""
        try:
            return bool(self.definition)
        except Exception:  # noqa: BLE001 - as above; it is told when all are looked at
            return False

    @property
    def effect(self) -> str:
        """What it does to the world."""
        return self.spec.effect.value

    def offered_to(self, manifest: Manifest) -> bool:
        """Tell whether an agent may have it, as far as the tool itself says so."""
        return self.spec.offered_to is None or self.spec.offered_to(manifest)

    def arguments(self, call: ToolUse) -> Any:
        """Read a call's arguments: the tool's model, or a dict that fits its schema.

        Raises:
            InvalidInput: Naming every argument that is wrong.
        """
        if self._input is None:
            problems, arguments = self._modelled(call)
        else:
            problems = self._input.problems(dict(call.arguments))
            # What the tool does to them must not change what the model has said.
            arguments = None if problems else deepcopy(dict(call.arguments))
        if problems:
            raise InvalidInput("", f"wrong arguments: {problems}")
        return arguments

    def fits(self, output: ToolOutput) -> None:
        """Hold a good result against the schema that was promised.

        Raises:
            InvalidInput: It does not fit; what the tool did is done.
        """
        if self._output is None or output.is_error:
            return
        if problems := self._output.problems(output.structured):
            log.warning("tool %s breaks its output schema: %s", output.name, problems)
            raise InvalidInput(
                "", f"it ran, but its result does not fit its schema: {problems}"
            )

    def _modelled(self, call: ToolUse) -> tuple[str, Any]:
        try:
            return "", self.spec.input.model_validate(dict(call.arguments))  # type: ignore[union-attr]  # reason: a schema has its own way
        except ValidationError as error:
            problems = (
                f"{'.'.join(map(str, item['loc'])) or 'arguments'}: {item['msg']}"
                for item in error.errors(include_url=False, include_input=False)
            )
            return "; ".join(problems), None


def made_ready(
    plugin: str,
    specs: Iterable[ToolSpec],
    known: Iterable[ReadyTool] = (),
    *,
    whole: bool = True,
) -> tuple[tuple[ReadyTool, ...], list[str]]:
    """Make tools ready; one that cannot be is left out alone.

    Args:
        plugin: The key of the plugin that offers them.
        specs: What they are.
        known: Tools that were made ready before; who has not changed stays as it is.
        whole: Whether the schemas of models are written, which takes a while.

    Returns:
        The tools, and for each that is left out a line that says why.
    """
    before = {tool.spec.name: tool for tool in known}
    ready: list[ReadyTool] = []
    problems: list[str] = []
    for spec in specs:
        old = before.get(spec.name)
        try:
            same = old is not None and old.spec == spec
            tool = old if old and same else ReadyTool(plugin, spec)
            if whole:
                # What cannot be shown to a model is no tool.
                _ = tool.definition
            ready.append(tool)
        except Exception as error:  # noqa: BLE001 - a schema may be anything
            problems.append(
                f"tool {spec.name} of {plugin} is left out: {describe(error)}"
            )
    return tuple(ready), problems
