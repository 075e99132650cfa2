"""``POST /v1/chat/completions``: a turn over a history that the client keeps."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from agenthost import (
    UNTRUSTED,
    Agent,
    Answer,
    Call,
    Context,
    EventStream,
    HeldFrames,
    InvalidInput,
    JsonObject,
    Message,
    RouteGroup,
    Turn,
    TurnOptions,
    TurnResult,
    Watcher,
)

from .aside import read_aside
from .asking import refuse_unserved, settings_of
from .efforts import budget_of
from .errors import written
from .leaving import ended, leave
from .media import fetched
from .naming import model_id, named
from .passthrough import model_named
from .passthrough_chat import answered
from .reading import Asked, Reader
from .receipts import HEADER, TOLD, receipts_for
from .shapes import ChatBody, ChatCompletion, ChatEvents
from .stream import Chunks, begun, completion_of, frames_of, logprobs_of
from .tools import kept, offered, told_calls

routes = RouteGroup("openai_chat", errors=written)

Start = tuple[Context, Agent, Message, TurnOptions]
COST = 30
BODY_BYTES = 20 * 1024 * 1024
HEADERS = {"Idempotency-Key": "The same key and body are the same answer", **TOLD}


@routes.post(
    "/v1/chat/completions",
    scope="agents:message",
    cost=COST,
    body=ChatBody,
    answer=ChatCompletion,
    events=ChatEvents,
    headers=HEADERS,
    body_limit=BODY_BYTES,
    direct=True,
)
async def create_chat_completion(call: Call, body: ChatBody) -> Answer:
    """Let an agent, or a model itself, answer a conversation that the client keeps.

    Leaving stops the turn, unless the request has an ``Idempotency-Key``.
    """
    refuse_unserved(body)
    receipts = receipts_for(call) if HEADER in call.headers else None
    if receipts is not None and body.stream:
        raise InvalidInput("X-Receipt", "a stream has none; ask without stream")
    target = model_named(call, body.model)
    if target is not None:
        return await answered(call, target, body)
    agent = named(call.host, body.model)
    remote = await fetched(call, body.messages)
    inner = await kept(call, agent, body.messages)
    reader = Reader(remote, inner, names=False)
    asked = await read_aside(call, partial(reader.read, body.messages))
    labels = [each.labels for each in inner.values()]
    context = call.context.labelled(*labels, *((UNTRUSTED,) if remote else ()))
    start = (context, agent, asked.message, _options(call, agent, body, asked))
    if body.stream:
        return await _streamed(call, call.host.turns.watch(*start), body)
    turn, result = await _answered(call, start, body)
    scores = logprobs_of(turn.spoken[-1:]) if body.logprobs else None
    calls = told_calls(turn, result.calls)
    completion = completion_of(_head(call, turn), result, calls, scores)
    if receipts is not None:
        completion["receipt"] = await receipts.open(call.host, turn, result)
    return completion


async def _answered(
    call: Call, start: Start, body: ChatBody
) -> tuple[Turn, TurnResult]:
    turns, known = call.host.turns, start[-1].turn_id
    if known is None or not body.logprobs:
        turn = turns.start(*start)
        return turn, await ended(turn)
    # Of a turn that was answered before, who watches gets all that it said.
    watcher = turns.watch(*start)
    try:
        return watcher.turn, await ended(watcher.turn)
    finally:
        watcher.leave()


def _options(call: Call, agent: Agent, body: ChatBody, asked: Asked) -> TurnOptions:
    tools, choice = offered(body)
    options = TurnOptions(
        max_tokens=body.max_completion_tokens or body.max_tokens,
        temperature=body.temperature,
        history=asked.history,
        settings=settings_of(body, choice),
        instructions=asked.instructions,
        tools=tools,
        thinking_budget=budget_of(body.reasoning_effort, "reasoning_effort"),
    )
    key = call.headers.get("idempotency-key")
    if key is None:
        return options
    place = f"openai:{call.context.owner}:{agent.id}"
    told = body.model_dump(mode="json", exclude_none=True)
    return options.repeatable(key, place, told)


def _all_scores(turn: Turn) -> Sequence[JsonObject]:
    return logprobs_of(turn.spoken)


def _head(call: Call, turn: Turn) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{turn.id}",
        "created": int(call.host.clock.time()),
        "model": model_id(turn.agent),
    }


async def _streamed(call: Call, watcher: Watcher, body: ChatBody) -> Answer:
    try:
        told = await begun(watcher)
    except BaseException:
        # It failed before its first word, or the client has left.
        leave(watcher)
        raise
    options, turn = body.stream_options, watcher.turn
    usage = None if options is None else options.include_usage
    told_as = partial(told_calls, turn)
    # A turn keeps them with its messages, not with each word.
    scores = partial(_all_scores, turn) if body.logprobs else None
    chunks = Chunks(_head(call, turn), told_as, usage=usage, logprobs=scores)
    frames = frames_of(call.host, watcher, told, chunks)
    return EventStream(HeldFrames(frames, partial(leave, watcher)))
