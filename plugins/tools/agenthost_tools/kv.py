"""Remember values by key: ``kv_get`` and ``kv_set``.

Each agent has a namespace of its own; keys that begin with ``shared.`` are common to
all agents.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from agenthost import (
    Effect,
    InvalidInput,
    ToolContext,
    ToolResult,
    ToolSpec,
    authorize,
    hookimpl,
    namespace_of,
)
from pydantic import BaseModel, Field, JsonValue

from .rooms import WITHHELD, is_private

KEY = Field(description="Key; one that begins with shared. is common to all agents")


class KvGet(BaseModel, extra="forbid", defer_build=True):
    """Arguments of ``kv_get``."""

    key: str = KEY


class KvSet(BaseModel, extra="forbid", defer_build=True):
    """Arguments of ``kv_set``."""

    key: str = KEY
    value: JsonValue = Field(description="Any JSON value")


async def kv_get(context: ToolContext, call: KvGet) -> ToolResult:
    """Return the value of a key as JSON; text as it is."""
    namespace = _allowed(context, "memory_read", call.key)
    value, labels = await context.host.kv.get(namespace, call.key)
    if is_private(context, labels):
        told = (
            f"{call.key} was told in private, and several people hear this; it may be "
            "asked for in a direct conversation"
        )
        return ToolResult(told, is_error=True, structured=WITHHELD)
    if not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False)
    return ToolResult(value, labels=labels)


async def kv_set(context: ToolContext, call: KvSet) -> ToolResult:
    """Put a value under a key."""
    namespace = _allowed(context, "memory_write", call.key)
    await context.host.kv.set(context, namespace, call.key, call.value)
    return ToolResult(f"remembered {call.key}")


def _allowed(context: ToolContext, action: str, key: str) -> str:
    """Return the key's namespace if the agent may use the key so.

    Raises:
        Denied: It may not.
        InvalidInput: No agent is calling.
    """
    if context.agent is None:
        raise InvalidInput("", "only an agent has a memory; none is calling")
    namespace = namespace_of(context.agent.id, key)
    resource = f"self.{key}" if namespace == context.agent.id else key
    authorize(context.principal, action, resource)
    return namespace


@hookimpl
def register_tool() -> Iterable[ToolSpec]:
    """Offer the key and value tools."""
    yield ToolSpec(
        "kv_get",
        "Recall the value remembered under a key.",
        KvGet,
        Effect.READ,
        kv_get,
        idempotent=True,
        aliases=("memory_recall",),
    )
    yield ToolSpec(
        "kv_set",
        "Remember a value under a key, across conversations.",
        KvSet,
        Effect.WRITE,
        kv_set,
        idempotent=True,
        aliases=("memory_store",),
    )
