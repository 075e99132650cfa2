"""What every tool promises, as tests to inherit."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import entry_points
from typing import Any, ClassVar, cast

import jsonschema
import pytest
from agenthost_chat.chat import File, JsonObject, Text
from pydantic import BaseModel, ValidationError

from ..errors import AgentHostError
from ..host import ToolContext
from ..plugins.specs import Effect, ToolResult, ToolSpec
from .steps import Call, check_steps

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_GROUPS = ("agenthost.tools", "agenthost.plugins")
_LONGEST_TIMEOUT = 3600
_LONGEST_DESCRIPTION = 1024
_CANCEL_SECONDS = 5

_MEDIA_TYPE = re.compile(r"[a-z]+/[A-Za-z0-9.+-]+")

Arguments = Mapping[str, Any]
Refused = (ValidationError, jsonschema.ValidationError)
"""What a tool's model, or its JSON Schema, says to arguments that do not fit."""


def offered_tools() -> Iterator[ToolSpec]:
    """Yield the tools of every installed plugin that can be imported."""
    for group in _GROUPS:
        for entry in entry_points(group=group):
            try:
                plugin = entry.load()
            except ImportError:
                continue
            if hasattr(plugin, "register_tool"):
                yield from plugin.register_tool()


def read(spec: ToolSpec, arguments: Arguments) -> Any:
    """Read arguments as the daemon does, a JSON Schema by the book.

    Raises:
        pydantic.ValidationError: They do not fit the tool's model.
        jsonschema.ValidationError: They do not fit its JSON Schema.
    """
    if isinstance(spec.input, Mapping):
        _fit(spec.input, arguments)
        return dict(arguments)
    model: type[BaseModel] = spec.input
    return model.model_validate(arguments)


def _fit(schema: JsonObject, value: Any) -> None:
    draft = jsonschema.validators.validator_for(
        schema, default=jsonschema.Draft202012Validator
    )
    draft.check_schema(dict(schema))
    draft(dict(schema)).validate(value)


def schema_of(spec: ToolSpec) -> JsonObject:
    """The JSON Schema of a tool's arguments."""
    if isinstance(spec.input, Mapping):
        return spec.input
    return spec.input.model_json_schema()


class ToolContract:
    """A tool keeps every promise of a tool.

    A subclass names the tool and gives samples. The fixture ``context`` is an agent
    with every right in a running daemon; override it where a tool needs more.

    Example:
        ::

            class TestGreet(ToolContract):
                tool = "greet"
                accepted = ({"name": "Ada"},)
                refused = ({}, {"name": 1})
                failing = ({"name": "nobody"},)
    """

    tool: ClassVar[str]
    accepted: ClassVar[Sequence[Arguments]] = ()
    """Arguments that give a result which is no error."""
    refused: ClassVar[Sequence[Arguments]] = ()
    """Arguments that do not fit the schema."""
    failing: ClassVar[Sequence[Arguments]] = ()
    """Arguments that fit the schema and fail when the tool runs."""

    @pytest.fixture
    def spec(self) -> ToolSpec:
        """The tool as its plugin offers it."""
        found = [spec for spec in offered_tools() if spec.name == self.tool]
        assert len(found) == 1, f"{self.tool} is offered {len(found)} times"
        return found[0]

    def test_its_names_are_plain(self, spec: ToolSpec) -> None:
        """Names and aliases are snake_case, as every provider takes them."""
        for name in (spec.name, *spec.aliases):
            assert _NAME.fullmatch(name), name
        assert spec.name not in spec.aliases

    def test_it_describes_itself(self, spec: ToolSpec) -> None:
        """The model reads a description of the tool and of each argument."""
        assert 10 <= len(spec.description) <= _LONGEST_DESCRIPTION
        for name, schema in _properties(spec).items():
            assert schema.get("description"), f"{name} has no description"

    def test_its_schema_is_a_closed_object(self, spec: ToolSpec) -> None:
        """Arguments are an object that takes no unknown key."""
        schema = schema_of(spec)
        assert schema["type"] == "object"
        assert schema.get("additionalProperties") is False
        with pytest.raises(Refused):
            read(spec, {"an_unknown_argument": 1})

    def test_its_effect_and_timeout_are_sane(self, spec: ToolSpec) -> None:
        """It ends in time, and reading twice is reading once."""
        assert 0 < spec.timeout <= _LONGEST_TIMEOUT
        assert spec.effect in Effect
        assert spec.idempotent or spec.effect is not Effect.READ

    def test_wrong_arguments_are_refused(self, spec: ToolSpec) -> None:
        """Arguments that do not fit never reach the tool."""
        for arguments in self.refused:
            with pytest.raises(Refused):
                read(spec, arguments)

    async def test_it_gives_a_result(
        self, spec: ToolSpec, context: ToolContext
    ) -> None:
        """A good call gives words, media that are some, and JSON as promised."""
        assert self.accepted, "give at least one sample of good arguments"
        for arguments in self.accepted:
            result = await spec.call(context, read(spec, arguments))
            assert isinstance(result, ToolResult)
            assert not result.is_error, result.text
            result.text.encode("utf-8")
            check_parts(result)
            json.dumps(result.structured, allow_nan=False)
            if spec.output is not None:
                _fit(spec.output, result.structured)

    async def test_its_errors_are_ours(
        self, spec: ToolSpec, context: ToolContext
    ) -> None:
        """A call that fails raises an error that a model can read."""
        for arguments in self.failing:
            with pytest.raises(AgentHostError) as caught:
                await spec.call(context, read(spec, arguments))
            assert caught.value.message

    async def test_it_leaves_the_loop_free(
        self, spec: ToolSpec, context: ToolContext
    ) -> None:
        """No step of a call takes the event loop's thread for long, or blocks it."""
        for arguments in (*self.accepted, *self.failing):
            call = partial(spec.call, context, read(spec, arguments))
            await check_steps(self.tool, cast("Call", call))

    async def test_it_can_be_cancelled(
        self, spec: ToolSpec, context: ToolContext
    ) -> None:
        """A stopped turn does not wait for its tool."""
        arguments = read(spec, self.accepted[0])
        task = asyncio.ensure_future(spec.call(context, arguments))
        await asyncio.sleep(0)
        task.cancel()
        done, _ = await asyncio.wait({task}, timeout=_CANCEL_SECONDS)
        assert done, f"{self.tool} goes on after it was cancelled"
        assert task.cancelled() or task.exception() is None


def check_parts(result: ToolResult) -> None:
    """Demand that words are text, and media base64 of a media type."""
    for part in result.parts:
        if isinstance(part, Text):
            part.text.encode("utf-8")
            continue
        assert _MEDIA_TYPE.fullmatch(part.media_type), part.media_type
        if isinstance(part, File):
            assert part.name, "a file has a name"
            assert bool(part.data) != bool(part.uri), "by value or by reference"
        else:
            assert part.data
        base64.b64decode(part.data, validate=True)


def _properties(spec: ToolSpec) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = schema_of(spec).get("properties", {})
    return found
