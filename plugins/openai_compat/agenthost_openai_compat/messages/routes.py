"""``POST /v1/messages`` and the count of its tokens.

What answers is imported by the first request: nobody waits for it at a start.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agenthost import Answer, Call, RouteGroup

from .errors import VERSION, written
from .shapes import (
    Answered,
    Conversation,
    Counted,
    Failure,
    MessageEvents,
    MessagesBody,
)

routes = RouteGroup("anthropic_messages", errors=written)

KEY = "x-api-key"
BODY_BYTES = 20 * 1024 * 1024
STATUSES = (400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 500, 502, 503, 507, 529)
"""Of errors."""
HEADERS = {VERSION: "Any date", KEY: "Instead of Authorization"}
SERVED: Mapping[str, Any] = {
    "scope": "agents:message",
    "body_limit": BODY_BYTES,
    "key_header": KEY,
    "id_header": "request-id",
    "direct": True,
    "others": dict.fromkeys(STATUSES, Failure),
}


@routes.post(
    "/v1/messages",
    cost=30,
    body=MessagesBody,
    answer=Answered,
    events=MessageEvents,
    headers={**HEADERS, "Idempotency-Key": "The same key and body are the same answer"},
    **SERVED,
)
async def create_message(call: Call, body: MessagesBody) -> Answer:
    """Let an agent, or a model itself, answer a conversation that the client keeps.

    Leaving stops the turn, unless the request has an ``Idempotency-Key``.
    """
    from .create import created

    return await created(call, body)


@routes.post(
    "/v1/messages/count_tokens",
    cost=5,
    body=Conversation,
    answer=Counted,
    headers=HEADERS,
    **SERVED,
)
async def count_message_tokens(call: Call, body: Conversation) -> Answer:
    """Estimate what a conversation takes, the agent's own prompt and tools with it."""
    from .counting import counted

    return await counted(call, body)
