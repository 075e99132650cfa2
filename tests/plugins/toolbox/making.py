"""Tools, and things that tests of the toolbox make of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agenthost import Effect, ToolContext, ToolResult, ToolSpec, ToolUse
from pydantic import BaseModel, Field

CITY: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "which"},
        "days": {"type": "integer", "minimum": 1},
    },
    "required": ["city"],
    "additionalProperties": False,
}


class Arguments(BaseModel, extra="forbid"):
    """What a tool takes."""

    path: str = Field("", description="a path")


async def say_done(context: ToolContext, arguments: Any) -> ToolResult:
    return ToolResult("done")


def tool(name: str, *aliases: str, **facts: Any) -> ToolSpec:
    """Make a tool that reads and says ``done``, unless the facts are others."""
    made = {
        "description": "A tool for tests.",
        "input": Arguments,
        "effect": Effect.READ,
        "call": say_done,
        "idempotent": True,
    }
    return ToolSpec(name, aliases=aliases, **{**made, **facts})


def call(name: str, **arguments: Any) -> ToolUse:
    """Make a call of a tool."""
    return ToolUse("c1", name, arguments)
