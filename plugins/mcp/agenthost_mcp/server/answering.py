"""A request's answer: whole, or a stream where it has something to say before it."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any

from agenthost import (
    AgentHostError,
    Answer,
    EventStream,
    HeldFrames,
    JsonObject,
    RateLimited,
    Reply,
)

from . import rpc
from .methods import Inquiry, Method
from .rpc import RpcError

log = logging.getLogger(__name__)

PATIENCE = 10.0
"""Seconds after which a silent answer becomes a stream, which is kept alive."""
MOST_TOLD = 1_000
Outcome = tuple[int, dict[str, Any]]
"""The status that HTTP has, and the message."""


class Told:
    """What is to be sent before an answer; of a flood the first thousand.

    Args:
        streams: Whether the client takes any of it.

    Attributes:
        ended: Nobody waits for the answer any more.
    """

    def __init__(self, *, streams: bool) -> None:
        self.streams = streams
        self.waiting: deque[JsonObject] = deque()
        self.came = asyncio.Event()
        self.ended = False

    def __call__(self, message: JsonObject) -> None:
        """Take a message."""
        if len(self.waiting) < MOST_TOLD:
            self.waiting.append(message)
            self.came.set()

    def end(self) -> None:
        """Wait for no answer: also a tool that goes on holds nobody up."""
        self.ended = True
        self.came.set()


async def outcome_of(asked: Inquiry, number: rpc.Id, run: Method) -> Outcome:
    """Do what is asked; every failure is an answer.

    Raises:
        RateLimited: That is told as it is everywhere.
    """
    link = asked.link
    try:
        return 200, rpc.result_of(number, await run(asked))
    except RpcError as error:
        failed = error
    except RateLimited:
        raise
    except AgentHostError as error:
        code = rpc.INTERNAL if error.status >= 500 else rpc.INVALID_PARAMS
        failed = link.failure or RpcError(code, error.message)
    except Exception:
        log.exception("an MCP request failed")
        failed = RpcError(rpc.INTERNAL, "internal error; see the log", status=500)
    if failed is link.failure and link.needed is not None:
        return 200, rpc.result_of(number, link.needed)
    return failed.status, rpc.error_of(number, failed)


async def answered(task: asyncio.Task[Outcome], told: Told) -> Answer:
    """Give the answer whole, or as a stream once anything comes before it.

    A client that leaves cancels the task.
    """
    task.add_done_callback(lambda _: told.came.set())
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE if told.streams else None):
                await told.came.wait()
    except asyncio.CancelledError:
        task.cancel()
        raise
    if told.ended or (task.done() and task.cancelled()):
        return Reply(b"", 202)
    if task.done() and not told.waiting:
        status, message = task.result()
        return Reply(message, status)
    return EventStream(HeldFrames(_frames(task, told), task.cancel))


async def _frames(
    task: asyncio.Task[Outcome], told: Told
) -> AsyncGenerator[bytes, None]:
    while True:
        while told.waiting and not told.ended:
            yield frame(told.waiting.popleft())
        if told.ended:
            return
        if task.done():
            break
        told.came.clear()
        await told.came.wait()
    if not task.cancelled():
        yield frame(_message_of(task))


def frame(message: JsonObject) -> bytes:
    """Write a message as an event."""
    return b"event: message\ndata: %s\n\n" % json.dumps(message).encode()


def _message_of(task: asyncio.Task[Outcome]) -> JsonObject:
    try:
        return task.result()[1]
    except RateLimited as error:
        return rpc.error_of(None, RpcError(rpc.INTERNAL, error.message))
