"""Search one's own memory and conversations: ``memory_search``."""

from __future__ import annotations

import json
from collections.abc import Iterable

from agenthost import (
    Effect,
    InvalidInput,
    Json,
    ToolContext,
    ToolResult,
    ToolSpec,
    hookimpl,
    namespace_of,
)
from pydantic import BaseModel, Field

from .rooms import LEFT_OUT, WITHHELD, is_private, is_said_elsewhere


class MemorySearch(BaseModel, extra="forbid", defer_build=True):
    """Arguments of ``memory_search``."""

    query: str = Field(
        description="Words that all occur in what you look for",
        min_length=1,
        max_length=1_000,
        pattern=r"\S",
    )


async def memory_search(context: ToolContext, call: MemorySearch) -> ToolResult:
    """Return what has these words, as JSON: only of whoever the turn is for.

    Raises:
        InvalidInput: No agent is calling.
    """
    agent = context.agent
    if agent is None:
        raise InvalidInput("", "only an agent has a memory; none is calling")
    found = await context.host.kv.search(context.owner, agent.id, call.query)
    known = [each for each in found if _may_be_shown(context, agent.id, each)]
    shown = [each for each in known if not _is_withheld(context, each)]
    labels = frozenset(label for each in shown for label in each["labels"])
    text = json.dumps(shown, ensure_ascii=False) if shown else "nothing found"
    if len(shown) == len(known):
        return ToolResult(text, labels=labels)
    return ToolResult(text + LEFT_OUT, structured=WITHHELD, labels=labels)


def _is_withheld(context: ToolContext, found: Json) -> bool:
    if found["kind"] == "message":
        return is_said_elsewhere(context, found)
    return is_private(context, found["labels"])


def _may_be_shown(context: ToolContext, agent_id: str, found: Json) -> bool:
    """Leave out what this turn has said itself, and keys the agent may not read."""
    if found["kind"] == "message":
        return bool(found["turn_id"] != context.turn_id)
    key, grants = found["key"], context.principal.grants
    own = namespace_of(agent_id, key) == agent_id
    resource = f"self.{key}" if own else key
    return grants is None or grants.allow("memory_read", resource)


@hookimpl
def register_tool() -> Iterable[ToolSpec]:
    """Offer ``memory_search``."""
    yield ToolSpec(
        "memory_search",
        "Search what you remember, and earlier conversations, by words.",
        MemorySearch,
        Effect.READ,
        memory_search,
        idempotent=True,
    )
