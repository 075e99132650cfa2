"""A turn takes one place while it runs, and none while it waits."""

from __future__ import annotations

import asyncio

from agenthost_turns.slots import Slot


async def test_a_wait_that_begins_while_the_place_is_awaited_takes_no_second() -> None:
    free = asyncio.Semaphore(1)
    async with asyncio.timeout(30), Slot(free, 0.0, lambda: None) as slot:
        first = slot.aside()
        await first.__aenter__()
        await free.acquire()
        back = asyncio.create_task(first.__aexit__(None, None, None))
        await asyncio.sleep(0)
        async with slot.aside():
            free.release()
            await back
            assert not free.locked()
        assert free.locked()
    assert not free.locked()
