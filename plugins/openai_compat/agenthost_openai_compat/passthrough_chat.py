"""``POST /v1/chat/completions`` of a model itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from functools import partial
from typing import Any

from agenthost import (
    UNTRUSTED,
    AgentHostError,
    Answer,
    Answered,
    Call,
    ChatRequest,
    Delta,
    EventStream,
    HeldFrames,
    Host,
    Payer,
    Target,
    TextChunk,
    TurnResult,
)

from .aside import read_aside
from .asking import settings_of
from .efforts import REASONING
from .heard import Heard
from .media import fetched
from .native import native_of
from .once import keyed_of
from .passthrough import payer_of, said_once, spoken, takes_names
from .reading import Reader
from .shapes import NATIVE, ChatBody
from .stream import PATIENCE, Chunks, completion_of, failure, logprobs_of
from .tools import wanted

Said = Delta | Answered
Saying = AsyncGenerator[Said, None]


async def answered(call: Call, target: Target, body: ChatBody) -> Answer:
    """Let a model answer; leaving cancels its call."""
    remote = await fetched(call, body.messages)
    context = call.context.labelled(*((UNTRUSTED,) if remote else ()))
    reader = Reader(remote, {}, names=takes_names(target))
    asked = await read_aside(call, partial(reader.read, body.messages))
    tools, choice = wanted(body)
    settings = settings_of(body, choice)
    request = ChatRequest(
        model=target.model.upstream_id,
        system=asked.instructions,
        messages=(*asked.history, asked.message),
        tools=tools,
        max_tokens=body.max_completion_tokens or body.max_tokens,
        temperature=body.temperature,
        stream=bool(body.stream),
        cache_key=body.prompt_cache_key or "",
        # Where the wire is another, its own words say about as much.
        thinking_budget=REASONING.get(body.reasoning_effort or ""),
        native=native_of(body, "openai-chat", NATIVE),
        **(settings.asked if settings else {}),
    )
    keyed = keyed_of(call, "openai", target, body)
    # Nobody has heard anything of a whole answer that breaks off.
    take_back = None if body.stream else lambda: True
    payer = payer_of(context, take_back, keyed.turn_id)
    said = spoken(call.host, target, request, payer)
    if keyed.turn_id is not None:
        said = await said_once(call, keyed, said)
    if not body.stream:
        return await _whole(call, said, request, payer)
    chunks = Chunks(_head(call, payer, "/".join(target.names)), usage=_usage(body))
    return await _streamed(call, said, chunks)


async def _whole(
    call: Call, said: Saying, request: ChatRequest, payer: Payer
) -> Answer:
    async for each in said:
        if isinstance(each, Answered):
            last = each
    result, told = result_of(last), None
    if request.logprobs is not None:
        told = logprobs_of([last.completion.message])
    head = _head(call, payer, result.model)
    return completion_of(head, result, result.calls, told)


def _usage(body: ChatBody) -> bool | None:
    told = body.stream_options
    return None if told is None else told.include_usage


async def _streamed(call: Call, said: Saying, chunks: Chunks) -> Answer:
    heard = Heard(said)
    first = await begun(heard)
    frames = _frames(call.host, heard, first, chunks)
    return EventStream(HeldFrames(frames, heard.leave))


async def begun(heard: Heard[Said]) -> Sequence[Said]:
    """Wait for the first words; what fails at once is told by its status.

    Raises:
        AgentHostError: It failed before its first word.
    """
    try:
        async with asyncio.timeout(PATIENCE):
            return await heard.next()
    except TimeoutError:
        return ()
    except BaseException:
        # It failed, or the client has left.
        heard.leave()
        raise


async def _frames(
    host: Host, heard: Heard[Said], said: Sequence[Said], chunks: Chunks
) -> AsyncGenerator[bytes, None]:
    try:
        while said or (said := await heard.next()):
            if frame := _written(said, chunks):
                yield frame
            said = ()
    except AgentHostError as error:
        yield failure(host, error)


def _written(said: Sequence[Said], chunks: Chunks) -> bytes:
    pieces = [each for each in said if isinstance(each, TextChunk)]
    words = "".join([each.text for each in pieces])
    scores = [token for each in pieces for token in each.logprobs]
    frame = chunks.words(words, scores) if words or scores else b""
    if isinstance(last := said[-1], Answered):
        frame += chunks.end(result_of(last))
    return frame


def result_of(said: Answered) -> TurnResult:
    """Give what a model's answer comes to, as the end of a turn would be told."""
    completion, spent = said.completion, said.spent
    message = completion.message
    return TurnResult(
        message.text,
        spent.usage,
        iterations=1,
        cost_micro_usd=spent.cost_micro_usd,
        model=f"{spent.provider}/{spent.model}",
        finish=completion.finish,
        calls=message.tool_uses,
        stop=completion.stop,
    )


def _head(call: Call, payer: Payer, model: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{payer.turn_id}",
        "created": int(call.host.clock.time()),
        "model": model,
    }
