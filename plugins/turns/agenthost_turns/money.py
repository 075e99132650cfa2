"""Money that a turn has run out of: who may be asked for more, and what comes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agenthost import Blocked, PoolSpent, Waiting

if TYPE_CHECKING:
    from .run import Run


async def more_granted(run: Run, spent: PoolSpent) -> None:
    """Go on with what people let the pool spend beyond its limit, or wait for them.

    A turn that an agent called is refused: the turn that called it asks, when it needs
    more itself.

    Raises:
        PoolSpent: Nobody is asked about it.
        QuotaExceeded: They said no, or nothing in time.
        Waiting: Somebody is asked; that is on disk.
    """
    pool, context = spent.pool, run.turn.context
    if pool.asks is None or len(context.chain) > 1:
        raise spent
    try:
        granted = await run.parts.approvals.granted(context, pool)
    except Waiting as waits:
        await run.wait(waits)
    except Blocked:
        raise spent from None
    limit = pool.asks.limit + granted
    if limit <= pool.limit:
        raise spent
    pool.limit = limit
