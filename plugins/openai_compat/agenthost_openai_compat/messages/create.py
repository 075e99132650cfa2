"""A conversation that the client keeps, answered in Anthropic's words."""

from __future__ import annotations

from functools import partial

from agenthost import (
    Answer,
    Call,
    EventStream,
    HeldFrames,
    ProviderError,
    Turn,
    TurnOptions,
    Watcher,
)

from ..leaving import ended, leave
from ..naming import model_id
from ..passthrough import model_named
from ..stream import begun
from ..tools import told_calls
from .answer import blocks_of, ending_of, head_of, tokens_of
from .asked import Request, read
from .asking import settings_of, shows_thoughts, thinking_of
from .errors import as_theirs
from .shapes import MessagesBody
from .stream import Events, frames_of


async def created(call: Call, body: MessagesBody) -> Answer:
    """Let an agent answer, or a model itself.

    Raises:
        AgentHostError: It cannot, and why.
    """
    try:
        return await _created(call, body)
    except ProviderError as error:
        raise as_theirs(error) from error


async def _created(call: Call, body: MessagesBody) -> Answer:
    target = model_named(call, body.model)
    if target is not None:
        from .passthrough import answered

        return await answered(call, target, body)
    request = await read(call, body)
    thinks = request.agent.manifest.thinking
    thoughts = shows_thoughts(body, usual=thinks.stream_thinking)
    options = _options(call, body, request)
    start = (request.context, request.agent, request.asked.message, options)
    turns = call.host.turns
    if body.stream:
        watcher = turns.watch(*start)
        watcher.thoughts = thoughts
        return await _streamed(call, watcher)
    if options.turn_id is None:
        turn = turns.start(*start)
        result = await ended(turn)
    else:
        # Of a turn that was answered before, who watches gets all that it said.
        watcher = turns.watch(*start)
        try:
            turn, result = watcher.turn, await ended(watcher.turn)
        finally:
            watcher.leave()
    return {
        **head_of(turn.id, model_id(turn.agent)),
        "content": blocks_of(turn, result, thoughts=thoughts),
        **ending_of(result),
        "usage": tokens_of(result.usage),
    }


def _options(call: Call, body: MessagesBody, request: Request) -> TurnOptions:
    asked = request.asked
    options = TurnOptions(
        max_tokens=body.max_tokens,
        temperature=body.temperature,
        thinking_budget=thinking_of(body),
        history=asked.history,
        settings=settings_of(body, request.chosen),
        instructions=asked.instructions,
        tools=request.tools,
    )
    key = call.headers.get("idempotency-key")
    if key is None:
        return options
    place = f"anthropic:{call.context.owner}:{request.agent.id}"
    return options.repeatable(key, place, body.model_dump(mode="json"))


def _events(turn: Turn) -> Events:
    return Events(turn.id, model_id(turn.agent), partial(told_calls, turn))


async def _streamed(call: Call, watcher: Watcher) -> Answer:
    try:
        told = await begun(watcher)
    except BaseException:
        # It failed before its first word, or the client has left.
        leave(watcher)
        raise
    frames = frames_of(call, watcher, told, _events(watcher.turn))
    return EventStream(HeldFrames(frames, partial(leave, watcher)))
