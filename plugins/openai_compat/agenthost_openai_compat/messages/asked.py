"""A request, read wholly: what a turn is started with, and what is counted."""

from __future__ import annotations

from functools import partial
from typing import Any

from agenthost import UNTRUSTED, Agent, Call, Context, JsonObject, ToolDefinition
from agenthost_values.value_class import value_class

from ..aside import read_aside
from ..naming import named
from ..reading import Asked
from ..tools import Inner, kept_of
from .asking import refuse_unserved, tools_of
from .blocks import Fetched, fetch, remote_in
from .errors import check_version
from .reading import Reader, turns_in
from .shapes import Conversation


@value_class
class Request:
    """What a request to an agent comes to; ``chosen`` is what it says of its tools."""

    agent: Agent
    context: Context
    asked: Asked
    tools: tuple[ToolDefinition, ...]
    chosen: dict[str, Any]


async def read(call: Call, body: Conversation, *, fetching: bool = True) -> Request:
    """Read a request.

    Args:
        call: Who asks.
        body: What.
        fetching: Whether what its URLs lead to is fetched; else it stays away.

    Raises:
        AgentHostError: It cannot be served, and why.
    """
    check_version(call.headers)
    refuse_unserved(body)
    agent = named(call.host, body.model)
    tools, chosen = tools_of(body)
    named_turns = turns_in(body.messages)
    inner = await kept_of(call.host, call.context, agent, named_turns)
    asked, context = await said(call, body, inner, fetching=fetching)
    return Request(agent, context, asked, tools, chosen)


async def said(
    call: Call,
    body: Conversation,
    inner: Inner,
    *,
    fetching: bool = True,
    stamp: JsonObject | None = None,
) -> tuple[Asked, Context]:
    """Read a conversation, and the labels that it comes with.

    Args:
        call: Who asks.
        body: What.
        inner: What earlier turns have kept of their inner parts.
        fetching: Whether what its URLs lead to is fetched; else it stays away.
        stamp: The model whose vendor reads what it has thought before; None: nobody.

    Raises:
        AgentHostError: A message is not as it should be, or names what cannot be had.
    """
    remote = remote_in(body.messages)
    fetched: Fetched = dict.fromkeys(remote, ("image/png", ""))
    if fetching:
        fetched = await fetch(call, body.messages)
    reader = Reader(fetched, inner, stamp)
    asked = await read_aside(call, partial(reader.read, body.system, body.messages))
    labels = [each.labels for each in inner.values()]
    return asked, call.context.labelled(*labels, *((UNTRUSTED,) if remote else ()))
