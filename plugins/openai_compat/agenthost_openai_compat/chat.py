"""``POST /v1/chat/completions``: a turn over a history that the client keeps."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from agenthost import (
    UNTRUSTED,
    Agent,
    Answer,
    Call,
    CutShort,
    EventStream,
    Failed,
    Finish,
    HeldFrames,
    RouteGroup,
    Turn,
    TurnOptions,
    TurnResult,
    Watcher,
)

from .asking import refuse_unserved, settings_of
from .errors import written
from .media import fetched
from .naming import model_id, named
from .reading import Asked, Reader
from .shapes import ChatBody, ChatCompletion, ChatEvents, StreamOptions
from .stream import Chunks, begun, frames_of, tokens_of
from .tools import call_of, kept, offered, told_calls

routes = RouteGroup("openai_chat", errors=written)

COST = 30
BODY_BYTES = 20 * 1024 * 1024
KEY_HEADER = {"Idempotency-Key": "The same key and body are the same answer"}
LEFT = "the client left"


@routes.post(
    "/v1/chat/completions",
    scope="agents:message",
    cost=COST,
    body=ChatBody,
    answer=ChatCompletion,
    events=ChatEvents,
    headers=KEY_HEADER,
    body_limit=BODY_BYTES,
    direct=True,
)
async def create_chat_completion(call: Call, body: ChatBody) -> Answer:
    """Let an agent answer a conversation that the client keeps.

    Leaving stops the turn, unless the request has an ``Idempotency-Key``.
    """
    refuse_unserved(body)
    agent = named(call.host, body.model)
    remote = await fetched(call, body.messages)
    inner = await kept(call, agent, body.messages)
    asked = Reader(remote, inner).read(body.messages)
    labels = [each.labels for each in inner.values()]
    context = call.context.labelled(*labels, *((UNTRUSTED,) if remote else ()))
    start = (context, agent, asked.message, _options(call, agent, body, asked))
    if body.stream:
        told = body.stream_options
        return await _streamed(call, call.host.turns.watch(*start), told)
    turn = call.host.turns.start(*start)
    return _completion(call, turn, await _ended(turn))


def _options(call: Call, agent: Agent, body: ChatBody, asked: Asked) -> TurnOptions:
    tools, choice = offered(body)
    options = TurnOptions(
        max_tokens=body.max_completion_tokens or body.max_tokens,
        temperature=body.temperature,
        history=asked.history,
        settings=settings_of(body, choice),
        instructions=asked.instructions,
        tools=tools,
    )
    key = call.headers.get("idempotency-key")
    if key is None:
        return options
    place = f"openai:{call.context.owner}:{agent.id}"
    told = body.model_dump(mode="json", exclude_none=True)
    return options.repeatable(key, place, told)


async def _ended(turn: Turn) -> TurnResult:
    """Wait for a turn's end; one that was cut off is told as far as it came."""
    try:
        return await turn.result()
    except CutShort:
        async for event in turn.events():
            if isinstance(event, Failed):
                return replace(event.so_far, finish=Finish.LENGTH)
        raise
    finally:
        # It has ended, or its client has left.
        if turn.options.turn_id is None:
            turn.cancel(LEFT)


def _completion(call: Call, turn: Turn, result: TurnResult) -> Answer:
    message: dict[str, Any] = {"role": "assistant", "content": result.text}
    if result.calls:
        message["content"] = result.text or None
        message["tool_calls"] = [call_of(c) for c in told_calls(turn, result.calls)]
    finish = result.finish or Finish.STOP
    return {
        **_head(call, turn),
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": finish.value}],
        "usage": tokens_of(result.usage),
    }


def _head(call: Call, turn: Turn) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{turn.id}",
        "created": int(call.host.clock.time()),
        "model": model_id(turn.agent),
    }


async def _streamed(
    call: Call, watcher: Watcher, options: StreamOptions | None
) -> Answer:
    try:
        told = await begun(watcher)
    except BaseException:
        # It failed before its first word, or the client has left.
        _leave(watcher)
        raise
    usage = None if options is None else options.include_usage
    chunks = Chunks(watcher.turn, _head(call, watcher.turn), usage=usage)
    frames = frames_of(call.host, watcher, told, chunks)
    return EventStream(HeldFrames(frames, partial(_leave, watcher)))


def _leave(watcher: Watcher) -> None:
    # Whoever else reads the turn keeps it going.
    if watcher.leave() and watcher.turn.options.turn_id is None:
        watcher.turn.cancel(LEFT)
