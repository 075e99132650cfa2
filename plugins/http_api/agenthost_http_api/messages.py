"""Messages: a turn over one request, blocking or as server-sent events."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from agenthost import (
    Answer,
    Call,
    Done,
    EventStream,
    Failed,
    InvalidInput,
    Missed,
    RouteGroup,
    TextDelta,
    Thinking,
    ToolEnd,
    ToolStart,
    Turn,
    TurnEvent,
    TurnOptions,
    TurnResult,
    user_message,
)

from .shapes import MessageAnswer, SendMessage

routes = RouteGroup("http_api.messages")

COST = 30
KEY_LENGTH = 255


def dollars(micro_usd: int) -> float:
    """Write micro-USD as US dollars."""
    return micro_usd / 1_000_000


def result_body(result: TurnResult) -> MessageAnswer:
    """The totals of a turn."""
    return {
        "response": result.text,
        "input_tokens": result.usage.input_tokens,
        "output_tokens": result.usage.output_tokens,
        "iterations": result.iterations,
        "cost_usd": dollars(result.cost_micro_usd),
    }


def _turn_id(call: Call, agent_id: str) -> str | None:
    key = call.headers.get("idempotency-key")
    if key is None:
        return None
    if not 0 < len(key) <= KEY_LENGTH:
        raise InvalidInput("Idempotency-Key", f"must have 1 to {KEY_LENGTH} characters")
    return str(uuid5(NAMESPACE_URL, f"agenthost:{agent_id}:{key}"))


def _start(call: Call, agent_id: UUID, text: str) -> Turn:
    agent = call.daemon.agents.get(str(agent_id))
    options = TurnOptions(turn_id=_turn_id(call, agent.id))
    return call.daemon.turns.start(call.context, agent, user_message(text), options)


@routes.post(
    "/api/agents/<agent_id>/message",
    scope="agents:message",
    cost=COST,
    body=SendMessage,
    answer=MessageAnswer,
    direct=True,
)
async def send_message(call: Call, agent_id: UUID, body: SendMessage) -> Answer:
    """Send a message and wait for the answer.

    With an ``Idempotency-Key`` header a repeated request is the same turn.
    """
    return result_body(await _start(call, agent_id, body.message).result())


@routes.post(
    "/api/agents/<agent_id>/message/stream",
    scope="agents:message",
    cost=COST,
    body=SendMessage,
    answer=EventStream,
    direct=True,
)
async def stream_message(call: Call, agent_id: UUID, body: SendMessage) -> Answer:
    """Send a message and read the answer as events; leaving stops the turn."""
    turn = _start(call, agent_id, body.message)
    return EventStream(_frames(turn, turn.events()))


def _frame(event: str, data: dict[str, Any]) -> bytes:
    return f"event: {event}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


async def _frames(turn: Turn, events: AsyncIterator[TurnEvent]) -> AsyncIterator[bytes]:
    try:
        async for event in events:
            for frame in _frames_of(event):
                yield frame
    finally:
        turn.cancel("the client left")


def _frames_of(event: TurnEvent) -> list[bytes]:
    if isinstance(event, Failed):
        error = {"error": event.error.message, "code": event.error.code}
        return [_frame("error", error), _frame("done", _totals(event.so_far))]
    if isinstance(event, Thinking):
        return []
    return [_frame(*_event_of(event))]


def _event_of(
    event: TextDelta | ToolStart | ToolEnd | Missed | Done,
) -> tuple[str, dict[str, Any]]:
    match event:
        case TextDelta(text):
            return "chunk", {"content": text, "done": False}
        case ToolStart(id_, tool, _):
            return "tool_use", {"tool": tool, "id": id_}
        case ToolEnd(id_, tool, input_, output, is_error):
            return "tool_result", {
                "tool": tool,
                "input": dict(input_),
                "id": id_,
                "result": output,
                "is_error": is_error,
            }
        case Missed(count):
            return "missed", {"events": count}
        case Done(result):
            return "done", _totals(result)


def _totals(result: TurnResult) -> dict[str, Any]:
    totals: dict[str, Any] = dict(result_body(result))
    del totals["response"]
    usage = {key: totals.pop(key) for key in ("input_tokens", "output_tokens")}
    return {"done": True, "usage": usage, **totals}
