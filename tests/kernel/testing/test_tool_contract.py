"""The contract of tools reads JSON Schemas and parts, and finds who breaks it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, cast

import jsonschema
import pytest
from agenthost import Effect, Image, Text, ToolContext, ToolResult, ToolSpec
from agenthost.testing import ToolContract

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "which"}},
    "required": ["city"],
    "additionalProperties": False,
}
NOWHERE = cast("ToolContext", None)


async def weather(context: ToolContext, call: Mapping[str, Any]) -> ToolResult:
    picture = Image("image/png", "iVBORw0=")
    return ToolResult(parts=(Text(call["city"]), picture), structured={"degrees": 20})


WEATHER = ToolSpec(
    "weather",
    "Tell the weather of a city.",
    SCHEMA,
    Effect.READ,
    weather,
    idempotent=True,
    output={"type": "object", "required": ["degrees"]},
)


class TestAToolWithAJsonSchema(ToolContract):
    """It keeps every promise."""

    tool = "weather"
    accepted: ClassVar[Sequence[Mapping[str, Any]]] = ({"city": "Lisbon"},)
    refused: ClassVar[Sequence[Mapping[str, Any]]] = ({}, {"city": 1})

    @pytest.fixture
    def spec(self) -> ToolSpec:
        return WEATHER

    @pytest.fixture
    def context(self) -> ToolContext:
        return NOWHERE


def gives(result: ToolResult) -> ToolSpec:
    async def call(context: ToolContext, arguments: object) -> ToolResult:
        return result

    return replace(WEATHER, call=call)


@pytest.mark.parametrize(
    "result",
    [
        ToolResult("x", parts=(Image("png", "iVBORw0="),), structured={"degrees": 1}),
        ToolResult("x", parts=(Image("image/png", "?"),), structured={"degrees": 1}),
        ToolResult("x", structured={"degrees": float("nan")}),
        ToolResult("x", structured={}),
        ToolResult("x"),
        ToolResult("x", is_error=True, structured={"degrees": 1}),
    ],
)
async def test_a_result_that_breaks_a_promise_is_found(result: ToolResult) -> None:
    contract = TestAToolWithAJsonSchema()
    with pytest.raises((AssertionError, ValueError, jsonschema.ValidationError)):
        await contract.test_it_gives_a_result(gives(result), NOWHERE)


@pytest.mark.parametrize(
    "schema",
    [
        {**SCHEMA, "additionalProperties": True},
        {"type": "object"},
        {**SCHEMA, "type": "array"},
    ],
)
def test_a_schema_that_is_open_is_found(schema: Mapping[str, Any]) -> None:
    contract = TestAToolWithAJsonSchema()
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        contract.test_its_schema_is_a_closed_object(replace(WEATHER, input=schema))
