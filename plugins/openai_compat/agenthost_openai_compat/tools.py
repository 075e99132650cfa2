"""Tools that a client has: what the model is shown, and what is called.

When the agent's own tools ran before a call of the client's, or the model thought, the
client gets ids under which the turn's journal has that part: for an hour the next
request goes on with it in its place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from agenthost import (
    Agent,
    Call,
    Context,
    Finish,
    Host,
    InvalidInput,
    JsonObject,
    Message,
    Reasoning,
    Role,
    ToolDefinition,
    ToolOutput,
    ToolUse,
    Turn,
    TurnState,
)
from agenthost_chat.history import open_calls
from agenthost_values.value_class import value_class

from .checks import taken
from .shapes import ChatBody

TURNS = 64
"""Earlier turns of a conversation whose inner part is looked up, the newest first."""
KEPT = 3_600.0
"""Seconds for which an inner part is gone on with; its rows go some time after."""
NO_PARAMETERS = {"type": "object", "properties": {}}
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TOLD = re.compile(r"call_([0-9a-f]{32})_([0-9]{1,2})")


@value_class
class Kept:
    """The inner part of a turn that ended with calls of the client's.

    ``said`` ends with the message that asks for them, ``outputs`` are those of the
    agent's own calls in it, ``calls`` the client's by the ids it knows.
    """

    said: Sequence[Message]
    outputs: Sequence[ToolOutput]
    calls: Mapping[str, ToolUse]
    labels: frozenset[str]


Inner = Mapping[str, Kept]
"""By the ids of turns, as :func:`turn_of` gives them."""


def offered(body: ChatBody) -> tuple[tuple[ToolDefinition, ...], str]:
    """Read what an agent is offered, and which of it is to be called.

    With ``none`` the model sees no tool of the client's; the agent has its own.

    Raises:
        InvalidInput: One is not as it should be.
    """
    tools, choice = wanted(body)
    return ((), "") if choice == "none" else (loosened(tools), choice)


def loosened(tools: Sequence[ToolDefinition]) -> tuple[ToolDefinition, ...]:
    """Pass over ``strict``: an agent's model, or its spare, may not know the word."""
    return tuple(replace(t, strict=None) if t.strict is not None else t for t in tools)


def wanted(body: ChatBody) -> tuple[tuple[ToolDefinition, ...], str]:
    """Read the client's tools, and which of them are to be called.

    Raises:
        InvalidInput: One is not as it should be.
    """
    given = enumerate(body.tools or ())
    tools = tuple(_definition(tool, f"tools.{at}") for at, tool in given)
    names = {tool.name for tool in tools}
    if len(names) < len(tools):
        raise InvalidInput("tools", "two have the same name")
    return tools, _choice(body.tool_choice, names)


def _definition(tool: JsonObject, place: str) -> ToolDefinition:
    match tool:
        case {"type": "function", "function": {"name": str(_)} as given}:
            return definition_of(given, f"{place}.function")
    raise InvalidInput(place, "must be of type function, with a name")


def definition_of(given: JsonObject, place: str) -> ToolDefinition:
    """Read a function that has a name.

    Raises:
        InvalidInput: It is not as it should be.
    """
    if not _NAME.fullmatch(given["name"]):
        problem = "must have 1 to 64 letters, digits, _ or -"
        raise InvalidInput(f"{place}.name", problem)
    told = given.get("description")
    words = "" if told is None else taken(told, str, f"{place}.description")
    schema = given.get("parameters")
    where = f"{place}.parameters"
    fields = NO_PARAMETERS if schema is None else taken(schema, dict, where)
    strict = given.get("strict")
    if strict is not None and not isinstance(strict, bool):
        raise InvalidInput(f"{place}.strict", "must be true or false")
    return ToolDefinition(given["name"], words, fields, strict)


def _choice(given: str | JsonObject | None, names: set[str]) -> str:
    if given is None or not names:
        return ""
    match given:
        case "auto" | "none" | "required":
            return given
        case {"type": "function", "function": {"name": str(name)}} if name in names:
            return name
    problem = "must be auto, none, required or a function of the request's tools"
    raise InvalidInput("tool_choice", problem)


def told_calls(turn: Turn, calls: Iterable[ToolUse]) -> Sequence[ToolUse]:
    """Give the client's calls of a turn with the ids that it is told."""
    calls = tuple(calls)
    if not calls or not _has_inner_part(turn, len(calls)):
        return calls
    known = UUID(turn.id).hex
    return [replace(use, id=f"call_{known}_{at}") for at, use in enumerate(calls)]


def _has_inner_part(turn: Turn, left: int) -> bool:
    said = [message for message in turn.spoken if message.role is Role.ASSISTANT]
    return (
        len(said) > 1
        or len(said[-1].tool_uses) > left
        or any(isinstance(part, Reasoning) for part in said[-1].parts)
        or any(use.opaque for use in said[-1].tool_uses)
    )


def turn_of(call_id: str) -> str:
    """Tell which turn has the inner part of a call; empty for any other."""
    told = _TOLD.fullmatch(call_id)
    return str(UUID(told[1])) if told else ""


async def kept(call: Call, agent: Agent, messages: Sequence[JsonObject]) -> Inner:
    """Look up what the conversation's earlier turns have kept of their inner parts."""
    return await kept_of(call.host, call.context, agent, _turns_in(messages))


async def kept_of(
    host: Host, context: Context, agent: Agent, turns: Iterable[str]
) -> Inner:
    """Look up what turns have kept of their inner parts, the newest at the end."""
    newest = [*dict.fromkeys(turns)][-TURNS:]
    found = {turn: await _kept(host, context, agent, turn) for turn in newest}
    return {turn: inner for turn, inner in found.items() if inner is not None}


def _turns_in(messages: Sequence[JsonObject]) -> Iterable[str]:
    for message in messages:
        match message:
            case {"role": "assistant", "tool_calls": [{"id": str(id_)}, *_]}:
                if turn := turn_of(id_):
                    yield turn


async def _kept(host: Host, context: Context, agent: Agent, turn: str) -> Kept | None:
    journal = host.journal
    record = await journal.find(turn)
    ended = record and (record.state, record.result.finish)
    if record is None or ended != (TurnState.DONE, Finish.TOOL_USE):
        return None
    if (record.agent_id, record.owner) != (agent.id, context.owner):
        return None
    # The first is the turn's question, which the client has itself.
    entries = (await journal.said(record.session_id, turn))[1:]
    if entries and host.clock.time() >= entries[-1].at + KEPT:
        return None
    said = [entry.message for entry in entries]
    left = open_calls(said)
    outputs: tuple[ToolOutput, ...] = ()
    if said and said[-1].role is Role.TOOL:
        parts = said.pop().parts
        outputs = tuple(part for part in parts if isinstance(part, ToolOutput))
    known = UUID(turn).hex
    calls = {f"call_{known}_{at}": use for at, use in enumerate(left)}
    labels: frozenset[str] = frozenset()
    return Kept(said, outputs, calls, labels.union(*(each.labels for each in entries)))


def call_of(use: ToolUse) -> dict[str, Any]:
    """Write a call that the client is to make."""
    arguments = json.dumps(dict(use.arguments), ensure_ascii=False)
    function = {"name": use.name, "arguments": arguments}
    return {"id": use.id, "type": "function", "function": function}
