"""Answers of models themselves under an ``Idempotency-Key``: each is made once.

It is made for all who give the key, in a task of its own: who leaves does not end it.
It is kept for a day. One that failed is not, and the next with the key asks anew.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial

from agenthost import (
    NO_OPTIONS,
    AgentHostError,
    Answered,
    Call,
    Delta,
    Host,
    Interrupted,
    Mismatch,
    Target,
    TurnFailed,
    TurnOptions,
    Unavailable,
)
from pydantic import BaseModel

MISMATCH = "this Idempotency-Key was given before with another body; use a new one"
MOST = 256
"""Answers that are made at once, of all who gave a key."""
ENDED = "the daemon ended before the answer; ask again with the same key"
FAULT = "it failed for an internal reason; the log says more"
Said = Delta | Answered
Saying = AsyncGenerator[Said, None]

log = logging.getLogger(__name__)


def keyed_of(call: Call, face: str, target: Target, body: BaseModel) -> TurnOptions:
    """Give the id of an answer and what that is for, where the request has a key.

    Args:
        call: The request.
        face: How it is asked: what answers in one way is not told in another.
        target: The model; the same key of another model is another.
        body: What is asked.

    Raises:
        InvalidInput: The key is empty or too long.
    """
    key = call.headers.get("idempotency-key")
    if key is None:
        return NO_OPTIONS
    place = f"{face}:{call.context.owner}:{'/'.join(target.names)}"
    told = body.model_dump(mode="json", exclude_none=True)
    return NO_OPTIONS.repeatable(key, place, told)


class Once:
    """Makes answers under keys, as long as the daemon runs.

    Args:
        host: The daemon.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._making: dict[str, _Making] = {}

    async def said(self, keyed: TurnOptions, owner: str, saying: Saying) -> Saying:
        """Give what is said under a key: what was, what is being, or what will be.

        Args:
            keyed: Its id, and what that is for.
            owner: Whose it is.
            saying: Asks the model; it is begun only where nobody has yet.

        Raises:
            Mismatch: The key was given for something else.
            Unavailable: Too many are made now.
        """
        made = self._found(keyed)
        if made is None and (kept := await self._kept(keyed)) is not None:
            return _again(kept)
        # Another may have begun while the store was asked.
        made = made or self._found(keyed) or self._begin(keyed, owner, saying)
        return made.told()

    async def stop(self) -> None:
        """End what is being made; who listens is told to ask again."""
        tasks = [each.task for each in self._making.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _found(self, keyed: TurnOptions) -> _Making | None:
        made = self._making.get(keyed.turn_id or "")
        if made is not None and made.digest != keyed.digest:
            raise Mismatch(MISMATCH)
        return made

    async def _kept(self, keyed: TurnOptions) -> Answered | None:
        from .answers import ONE, read

        row = await self._host.store.first(ONE, {"id": keyed.turn_id})
        if row is None:
            return None
        if row["digest"] != keyed.digest:
            raise Mismatch(MISMATCH)
        return read(row["answer"])

    def _begin(self, keyed: TurnOptions, owner: str, saying: Saying) -> _Making:
        if len(self._making) >= MOST:
            full = Unavailable(f"{MOST} answers with a key are made; try again soon")
            full.retry_in = 1
            raise full
        made = _Making(keyed)
        known = made.id
        self._making[known] = made
        made.task = asyncio.create_task(self._make(made, owner, saying), name=known)
        made.task.add_done_callback(lambda _: self._making.pop(known))
        return made

    async def _make(self, made: _Making, owner: str, saying: Saying) -> None:
        try:
            async with aclosing(saying) as pieces:
                async for piece in pieces:
                    if isinstance(piece, Answered):
                        await self._keep(made, owner, piece)
                    made.put(piece)
            made.end(None)
        except AgentHostError as error:
            made.end(error)
        except asyncio.CancelledError:
            made.end(Interrupted(ENDED, made.id))
            raise
        except Exception:
            log.exception("the answer %s failed", made.id)
            made.end(TurnFailed(FAULT))

    async def _keep(self, made: _Making, owner: str, last: Answered) -> None:
        from .answers import keep, row_of

        head = {"id": made.id, "owner": owner, "digest": made.digest}
        row = {**head, "created_at": self._host.clock.time(), **row_of(last)}
        try:
            await self._host.store.write(partial(keep, row=row))
        except AgentHostError as error:
            # Who waits for it is told in any case.
            log.warning("an answer is not kept for its key: %s", error.message)


class _Making:
    """An answer on its way, told from its beginning to everybody who listens."""

    task: asyncio.Task[None]

    def __init__(self, keyed: TurnOptions) -> None:
        self.id = keyed.turn_id or ""
        self.digest = keyed.digest
        self._pieces: list[Said] = []
        self._over = False
        self._error: AgentHostError | None = None
        self._more = asyncio.Event()

    def put(self, piece: Said) -> None:
        """Tell more."""
        self._pieces.append(piece)
        self._wake()

    def end(self, error: AgentHostError | None) -> None:
        """Tell that this was all, or why there is no more."""
        self._over, self._error = True, error
        self._wake()

    def _wake(self) -> None:
        more, self._more = self._more, asyncio.Event()
        more.set()

    async def told(self) -> Saying:
        """Tell all of it."""
        at = 0
        while True:
            while at < len(self._pieces):
                yield self._pieces[at]
                at += 1
            if self._over:
                break
            await self._more.wait()
        if self._error is not None:
            raise self._error


async def _again(kept: Answered) -> Saying:
    """Tell an answer as if it came now."""
    from .answers import pieces_of

    for piece in pieces_of(kept):
        yield piece
    yield kept
