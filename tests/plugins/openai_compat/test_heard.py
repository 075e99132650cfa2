"""What a model says comes as fast as it is taken, and no faster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest
from agenthost import Unavailable
from agenthost_openai_compat.heard import MOST, Heard


async def test_what_is_ready_together_comes_together() -> None:
    go_on = asyncio.Event()

    async def said() -> AsyncGenerator[int, None]:
        yield 1
        yield 2
        await go_on.wait()
        yield 3

    heard = Heard(said())
    assert await heard.next() == [1, 2]
    go_on.set()
    assert await heard.next() == [3]
    assert await heard.next() == []
    assert await heard.next() == []


async def test_who_reads_slowly_holds_up_who_speaks() -> None:
    told = 0

    async def said() -> AsyncGenerator[int, None]:
        nonlocal told
        for number in range(3 * MOST):
            told += 1
            yield number

    heard = Heard(said())
    ready = await heard.next()
    assert told == MOST
    while more := await heard.next():
        assert len(more) <= MOST
        ready += more
    assert ready == [*range(3 * MOST)]


async def test_a_failure_comes_behind_what_was_said() -> None:
    async def said() -> AsyncGenerator[int, None]:
        yield 1
        raise Unavailable("gone")

    heard = Heard(said())
    assert await heard.next() == [1]
    with pytest.raises(Unavailable):
        await heard.next()


async def test_who_leaves_has_the_source_closed() -> None:
    closed = asyncio.Event()

    async def said() -> AsyncGenerator[int, None]:
        try:
            yield 1
            await asyncio.Event().wait()
        finally:
            closed.set()

    heard = Heard(said())
    await heard.next()
    heard.leave()
    async with asyncio.timeout(30):
        await closed.wait()
