"""What a response is made from: the request, and the conversation that it goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

from agenthost import (
    UNTRUSTED,
    Agent,
    Context,
    Host,
    JsonObject,
    Message,
    TurnOptions,
)

from ..media import Remote
from ..naming import model_id
from ..reading import Asked
from ..tools import kept_of, loosened
from .asking import offered, settings_of, thought_of
from .draft import Draft
from .items import parts_in, turns_in
from .reading import ItemReader, Link
from .rows import Responses, row_of
from .shapes import ResponseBody

MANY = 2_000
"""Parts of an input from which on a thread is worth its while."""
Start = tuple[Context, Agent, Message, TurnOptions]
"""What a turn is started with."""


async def start_of(
    host: Host,
    context: Context,
    agent: Agent,
    body: ResponseBody,
    given: tuple[Sequence[JsonObject], Remote],
) -> Start:
    """Read a request as a turn takes it.

    Args:
        host: The daemon.
        context: Who asks.
        agent: Who answers.
        body: The request.
        given: The items of its input, and the pictures of them that were fetched.

    Raises:
        InvalidInput: Something of it is not as it should be.
        ResponseNotFound: There is no such response to go on behind.
    """
    items, remote = given
    tools, choice = offered(body)
    tools = loosened(tools)
    settings = settings_of(body, choice)
    inner = await kept_of(host, context, agent, turns_in(items))
    reader = ItemReader(inner)
    labels = [each.labels for each in inner.values()]
    links: Sequence[Link] = ()
    if body.previous_response_id is not None:
        stored = Responses(host.store, context.owner)
        before = stored.conversation(body.previous_response_id, agent.id)
        links, known = await before
        labels.append(known)
    read = partial(_read, reader, links, given, body.instructions or "")
    # Many parts, like megabytes of pictures, would hold up everybody else.
    told = chain(items, *(link.items for link in links))
    large = sum(map(parts_in, told)) > MANY
    asked = await host.workers.in_thread(read) if large else read()
    options = TurnOptions(
        max_tokens=body.max_output_tokens,
        temperature=body.temperature,
        history=asked.history,
        settings=settings,
        instructions=asked.instructions,
        tools=tools,
        thinking_budget=thought_of(body),
    )
    context = context.labelled(*labels, *((UNTRUSTED,) if remote else ()))
    return context, agent, asked.message, options


def _read(
    reader: ItemReader,
    links: Sequence[Link],
    given: tuple[Sequence[JsonObject], Remote],
    instructions: str,
) -> Asked:
    for link in links:
        reader.go_through(link)
    reader.add(*given)
    return reader.asked(instructions)


def with_id(start: Start, turn_id: str | None, digest: str | None) -> Start:
    """Give a start the id of its turn, and what that was given for."""
    context, agent, message, options = start
    return context, agent, message, replace(options, turn_id=turn_id, digest=digest)


async def draft_of(
    host: Host,
    start: Start,
    body: ResponseBody,
    given: tuple[Sequence[JsonObject], Remote],
) -> Draft:
    """Begin a response, with the row of it where it is to be kept."""
    context, agent, _, options = start
    asked = body.model_dump(mode="json", exclude_none=True, exclude={"input"})
    draft = Draft(asked, model_id(agent), host.clock.time(), None)
    if body.store is not False:
        # Megabytes of pictures would hold up everybody else.
        large = await asyncio.to_thread(row_of, asked, *given)
        draft.row = {
            **large,
            "owner": context.owner,
            "agent_id": agent.id,
            "model": draft.model,
            "created_at": draft.created_at,
            "digest": options.digest,
        }
    return draft
