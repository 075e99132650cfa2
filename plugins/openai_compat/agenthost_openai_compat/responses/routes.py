"""``/v1/responses``: turns whose history the daemon keeps, if the client wants it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agenthost import Answer, Call, InvalidInput, RouteGroup

from ..errors import written
from .service import keeping_of
from .shapes import (
    Deleted,
    ItemPage,
    PageQuery,
    ReadQuery,
    ResponseBody,
    ResponseEvents,
    ResponseObject,
)

if TYPE_CHECKING:
    from .rows import Responses

routes = RouteGroup("openai_responses", errors=written)

COST = 30
BODY_BYTES = 20 * 1024 * 1024
KEY_HEADER = {"Idempotency-Key": "The same key and body are the same response"}


@routes.post(
    "/v1/responses",
    scope="agents:message",
    cost=COST,
    body=ResponseBody,
    answer=ResponseObject,
    events=ResponseEvents,
    headers=KEY_HEADER,
    body_limit=BODY_BYTES,
    direct=True,
)
async def create_response(call: Call, body: ResponseBody) -> Answer:
    """Let an agent answer, and keep the answer so that it can be gone on from.

    Leaving stops the turn, unless the request has an ``Idempotency-Key`` or is made in
    the background.
    """
    # What a start does not need is imported behind it.
    from .creating import created

    return await created(call, body)


@routes.get(
    "/v1/responses/<response_id>",
    scope="agents:read",
    query=ReadQuery,
    answer=ResponseObject,
    events=ResponseEvents,
)
async def get_response(call: Call, response_id: str, query: ReadQuery) -> Answer:
    """Read a stored response, or how far one in the background is.

    A stream of one in the background goes on until it ends, behind ``starting_after``.
    """
    own, after = _own(call), query.starting_after
    if after is not None and not query.stream:
        raise InvalidInput("starting_after", "is of a stream; ask with stream=true")
    stored = await own.get(response_id)
    if not query.stream:
        return stored.shown
    if after is not None and not stored.background:
        problem = "a stream goes on only where it is made in the background"
        raise InvalidInput("starting_after", problem)
    from .creating import streamed

    return streamed(call, own, stored, -1 if after is None else after)


@routes.delete("/v1/responses/<response_id>", scope="agents:message", answer=Deleted)
async def delete_response(call: Call, response_id: str) -> Answer:
    """Delete a stored response; one in the background is cancelled first."""
    own = _own(call)
    stored = await own.get(response_id)
    if stored.open:
        await keeping_of(call.host).background.cancel(stored)
    await own.remove(response_id)
    return {"id": response_id, "object": "response", "deleted": True}


@routes.post(
    "/v1/responses/<response_id>/cancel", scope="agents:message", answer=ResponseObject
)
async def cancel_response(call: Call, response_id: str) -> Answer:
    """Cancel a response in the background; one that has ended stays as it is."""
    own = _own(call)
    stored = await own.get(response_id)
    if not stored.background:
        problem = "only what is made in the background is cancelled"
        raise InvalidInput("response_id", problem)
    if stored.open:
        await keeping_of(call.host).background.cancel(stored)
        stored = await own.get(response_id)
    return stored.shown


@routes.get(
    "/v1/responses/<response_id>/input_items",
    scope="agents:read",
    query=PageQuery,
    answer=ItemPage,
)
async def list_input_items(call: Call, response_id: str, query: PageQuery) -> Answer:
    """List the items of a stored response's own input, the newest first."""
    from .items import listed

    stored = await _own(call).get(response_id)
    items = listed(stored.items, stored.hex)
    if query.order == "desc":
        items.reverse()
    begin = 0
    if query.after is not None:
        ids = [item["id"] for item in items]
        if query.after not in ids:
            raise InvalidInput("after", "is no item of this list")
        begin = ids.index(query.after) + 1
    page = items[begin : begin + query.limit]
    return {
        "object": "list",
        "data": page,
        "first_id": page[0]["id"] if page else None,
        "last_id": page[-1]["id"] if page else None,
        "has_more": len(items) > begin + query.limit,
    }


def _own(call: Call) -> Responses:
    from .rows import Responses

    return Responses(call.host.store, call.context.owner)
