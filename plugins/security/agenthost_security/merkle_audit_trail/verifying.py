"""The whole trail walked: once at a time, off the event loop, from the database."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from agenthost import AgentHostError, PluginError

from . import heads as signed
from .checking import Broken, Walk, check_heads, check_mark
from .signing import public_in
from .trail import HEADS_FILE, KEY_FILE, LAST, MARK, NEXT, Trail

PAGE = 500
"""Rows that are checked in one go; the event loop waits for no more."""


async def verify(trail: Trail) -> dict[str, Any]:
    """Walk all entries and heads; who asks meanwhile gets the same answer."""
    if trail.verifying is None or trail.verifying.done():
        trail.verifying = asyncio.create_task(_verified(trail))
        # Whoever asked may be gone when it fails.
        trail.verifying.add_done_callback(lambda t: t.cancelled() or t.exception())
    return await asyncio.shield(trail.verifying)


async def _verified(trail: Trail) -> dict[str, Any]:
    walk, last = Walk(), None
    try:
        try:
            if trail.recording:
                await trail.sign()
        except PluginError:
            # What is wrong is found, and told with its place, below.
            pass
        listed = await _heads(trail)
        walk = Walk(listed)
        last = await trail.host.store.first(LAST)
        await _walked(trail, walk, last["id"] if last else 0)
    except Broken as broken:
        return {
            "status": "broken",
            "chain_length": last["id"] if last else 0,
            "break_at": broken.break_at,
            "error": broken.reason,
        }
    return {
        "status": "valid",
        "chain_length": walk.seen,
        "first_entry": walk.first_at,
        "last_entry": walk.last_at,
        "heads": len(listed),
    }


async def _heads(trail: Trail) -> Sequence[signed.Head]:
    host = trail.host
    row = await host.store.first(MARK, {"node": trail.node})
    mark = (row["heads"], row["digest"]) if row else None
    path, key = host.data_dir / HEADS_FILE, host.home / KEY_FILE

    def checked() -> Sequence[signed.Head]:
        try:
            listed = list(signed.read(path))
            public = public_in(key) or ""
        except (ValueError, AgentHostError) as error:
            raise Broken(
                1, f"audit.heads or audit.key cannot be read: {error}"
            ) from error
        check_heads(listed, public)
        check_mark(listed, mark)
        return listed

    return await asyncio.to_thread(checked)


async def _walked(trail: Trail, walk: Walk, top: int) -> None:
    after = 0
    while after < top:
        page = {"after": after, "limit": PAGE}
        rows = await trail.host.store.read(NEXT, page)
        if not rows:
            break
        await asyncio.to_thread(walk.feed, rows)
        after = rows[-1]["id"]
    walk.end()
