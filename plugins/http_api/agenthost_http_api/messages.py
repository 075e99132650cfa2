"""Messages: a turn over one request, blocking or as server-sent events."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial
from typing import Any
from uuid import UUID

from agenthost import (
    Agent,
    AgentHostError,
    Answer,
    Call,
    Context,
    Done,
    EventStream,
    Failed,
    HeldFrames,
    Host,
    JsonObject,
    Message,
    Missed,
    Reply,
    RouteGroup,
    TextDelta,
    Thinking,
    Thought,
    ToolEnd,
    ToolProgress,
    ToolStart,
    Turn,
    TurnEvent,
    TurnOptions,
    TurnResult,
    Waiting,
    Watcher,
)

from .attachments import asked_with
from .receipts import HEADER, TOLD, receipts_for
from .shapes import AttachQuery, MessageAnswer, SendMessage, StreamQuery, TurnEvents
from .tool_frames import progress_of, structured_of
from .transcript import cited

routes = RouteGroup("messages")
KEY_HEADER = {"Idempotency-Key": "The same key and body are the same turn"}
COST = 30
Issue = Callable[[TurnResult], Awaitable[JsonObject]]
LINE_ENDS = {0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029"}
"""Some readers of event streams take these for the end of a line."""


def dollars(micro_usd: int) -> float:
    """Write micro-USD as US dollars."""
    return micro_usd / 1_000_000


def result_body(result: TurnResult) -> MessageAnswer:
    """The totals of a turn."""
    body: MessageAnswer = {
        "response": result.text,
        "input_tokens": result.usage.input_tokens,
        "output_tokens": result.usage.output_tokens,
        "iterations": result.iterations,
        "cost_usd": dollars(result.cost_micro_usd),
    }
    if result.finish is not None:
        body["finish"] = result.finish.value
    if result.citations:
        body["citations"] = cited(result.citations)
    return body


async def _ended(turn: Turn) -> MessageAnswer | Reply:
    """Wait for a turn's end, or until it waits for a person."""
    try:
        return result_body(await turn.result())
    except Waiting as waiting:
        told = {"status": "waiting", **waiting.facts, "message": waiting.message}
        place = f"/api/approvals/{waiting.facts['approval_id']}"
        return Reply(told, 202, {"Location": place})


async def _asked(
    call: Call, agent: Agent, body: SendMessage
) -> tuple[Message, Context, TurnOptions]:
    """Read what a turn is started with."""
    options = await _options(call, agent.id, body)
    turn = options.turn_id or ""
    asked = await asked_with(call, agent, body.message, body.files, turn)
    return *asked, options


async def _options(call: Call, agent_id: str, body: SendMessage) -> TurnOptions:
    """Read where it is said, and what makes the request repeatable.

    That is its key, bound to what it asks.
    """
    session_id = None
    if body.session_id is not None:
        session_id = await named_session(call.host, agent_id, body.session_id)
    options = TurnOptions(
        session_id=session_id,
        max_cost_micro_usd=body.max_cost_micro_usd,
        settings=body.settings,
    )
    key = call.headers.get("idempotency-key")
    if key is None:
        return options
    asked = body.model_dump(mode="json", exclude_none=True)
    return options.repeatable(key, agent_id, asked)


async def named_session(
    host: Host, agent_id: str, session_id: UUID | None
) -> str | None:
    """Check a session that a message names, before it waits for a place there.

    Raises:
        NotFound: It is not the agent's.
    """
    if session_id is None:
        return None
    return (await host.sessions.get(str(session_id), agent_id)).id


@routes.post(
    "/api/agents/<agent_id>/message",
    scope="agents:message",
    cost=COST,
    body=SendMessage,
    answer=MessageAnswer,
    headers={**KEY_HEADER, **TOLD},
    direct=True,
)
async def send_message(call: Call, agent_id: UUID, body: SendMessage) -> Answer:
    """Send a message and wait for the answer.

    With an ``Idempotency-Key`` header a repeated request is the same turn: it waits
    for it, goes on with it when it was cut off, or gives its answer again. A turn that
    waits for a person's approval is answered with 202 and its ``approval_id``. With
    ``X-Receipt: 1`` the answer has a signed receipt.
    """
    receipts = receipts_for(call) if HEADER in call.headers else None
    agent = call.host.agents.get(str(agent_id))
    message, context, options = await _asked(call, agent, body)
    turn = call.host.turns.start(context, agent, message, options)
    answer = await _ended(turn)
    if receipts is None or isinstance(answer, Reply):
        return answer
    receipt = await receipts.open(call.host, turn, await turn.result())
    return {**answer, "receipt": receipt}


@routes.post(
    "/api/agents/<agent_id>/message/stream",
    scope="agents:message",
    cost=COST,
    body=SendMessage,
    query=StreamQuery,
    answer=EventStream,
    events=TurnEvents,
    headers={**KEY_HEADER, **TOLD},
    direct=True,
)
async def stream_message(
    call: Call, agent_id: UUID, body: SendMessage, query: StreamQuery
) -> Answer:
    """Send a message and read the answer as events.

    Leaving stops the turn, unless the request has an ``Idempotency-Key`` or asks
    ``detach=true``: then it goes on, and may be read again by its key or its id. With
    ``X-Receipt: 1`` the event ``receipt`` comes before ``done``.
    """
    receipts = receipts_for(call) if HEADER in call.headers else None
    agent = call.host.agents.get(str(agent_id))
    message, context, options = await _asked(call, agent, body)
    watcher = call.host.turns.watch(context, agent, message, options)
    tell_thoughts(watcher, query.thinking)
    stays = query.detach or options.turn_id is not None
    if receipts is None:
        return EventStream(frames_of(watcher, stays=stays))
    issue = partial(receipts.open, call.host, watcher.turn)
    return EventStream(frames_of(watcher, stays=stays, issue=issue))


@routes.get(
    "/api/agents/<agent_id>/message/stream",
    scope="agents:message",
    query=AttachQuery,
    answer=EventStream,
    events=TurnEvents,
    headers={"Last-Event-ID": "Where the reader broke off"},
    direct=True,
)
async def attach_to_turn(call: Call, agent_id: UUID, query: AttachQuery) -> Answer:
    """Read a turn's events, running or ended; leaving does not stop it.

    It begins with what was said and done behind ``Last-Event-ID``, and so with all of
    it where there is none.
    """
    agent = call.host.agents.get(str(agent_id))
    turn_id = str(query.turn)
    offset = _offset(call.headers.get("last-event-id", ""), turn_id)
    watcher = await call.host.turns.attach(agent, turn_id, offset)
    tell_thoughts(watcher, query.thinking)
    return EventStream(frames_of(watcher, stays=True))


@routes.post(
    "/api/agents/<agent_id>/turns/<turn_id>/resume",
    scope="agents:message",
    cost=COST,
    answer=MessageAnswer,
    direct=True,
)
async def resume_turn(call: Call, agent_id: UUID, turn_id: UUID) -> Answer:
    """Go on with a turn that was interrupted or failed, and wait for its answer."""
    agent = call.host.agents.get(str(agent_id))
    watcher = await call.host.turns.resume(call.context, agent, str(turn_id))
    watcher.leave()
    return await _ended(watcher.turn)


def tell_thoughts(watcher: Watcher, asked: bool | None) -> None:  # noqa: FBT001 - as a request has it
    """Tell a watcher from now on what the model thinks, as asked or by default."""
    usual = watcher.turn.agent.manifest.thinking.stream_thinking
    watcher.thoughts = usual if asked is None else asked


def _offset(event_id: str, turn_id: str) -> int:
    turn, _, offset = event_id.rpartition(":")
    return int(offset) if turn == turn_id and offset.isdecimal() else 0


def _frame(event: str, data: dict[str, Any], event_id: str = "") -> bytes:
    text = json.dumps(data, ensure_ascii=False).translate(LINE_ENDS)
    return f"{event_id}event: {event}\ndata: {text}\n\n".encode()


def frames_of(
    watcher: Watcher, *, stays: bool, issue: Issue | None = None
) -> HeldFrames:
    """Tell of a turn; unless it stays, it is stopped when nobody reads it any more.

    Args:
        watcher: What is told.
        stays: Whether it goes on when nobody reads it.
        issue: Gives the receipt that is told before the end of an answer.
    """

    def leave() -> None:
        # Whoever else reads the turn keeps it going.
        if watcher.leave() and not stays:
            watcher.turn.cancel("the client left")

    return HeldFrames(_told(watcher, issue), leave)


async def _told(watcher: Watcher, issue: Issue | None) -> AsyncGenerator[bytes, None]:
    async for event in watcher.events():
        if issue is not None and isinstance(event, Done):
            yield await _receipt(issue, event.result)
        for frame in _frames_of(event, watcher.turn.id):
            yield frame


async def _receipt(issue: Issue, result: TurnResult) -> bytes:
    try:
        return _frame("receipt", dict(await issue(result)))
    except AgentHostError as error:
        # The answer is there and on disk all the same.
        return _frame("receipt", {"error": error.message, "code": error.code})


def _frames_of(event: TurnEvent, turn_id: str) -> list[bytes]:
    match event:
        case Failed(Waiting() as waiting, so_far):
            told = {**waiting.facts, "message": waiting.message}
            return [_frame("waiting", told), _frame("done", _totals(so_far))]
        case Failed(error, so_far):
            told = {"error": error.message, "code": error.code, **error.facts}
            return [_frame("error", told), _frame("done", _totals(so_far))]
        case Thinking():
            return []
        case Thought(text):
            return [_frame("thinking", {"content": text})]
        case TextDelta(text, offset):
            chunk = {"content": text, "done": False}
            return [_frame("chunk", chunk, f"id: {turn_id}:{offset}\n")]
    return [_frame(*_event_of(event))]


def _event_of(
    event: ToolStart | ToolProgress | ToolEnd | Missed | Done,
) -> tuple[str, dict[str, Any]]:
    match event:
        case ToolStart(id_, tool, _):
            return "tool_use", {"tool": tool, "id": id_}
        case ToolProgress():
            return "tool_progress", progress_of(event)
        case ToolEnd(id_, tool, input_, output, is_error):
            return "tool_result", {
                "tool": tool,
                "input": dict(input_),
                "id": id_,
                "result": output,
                "is_error": is_error,
                **structured_of(event),
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
