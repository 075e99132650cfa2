"""An answer that is shown as it is made: one message, changed until it is whole.

Which message that is stands on disk, so that a daemon that was killed meanwhile goes on
changing the same one. The whole answer goes out by the outbox, as every answer does.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from agenthost import Host

from ..contract import Facts, Fate, Outbound, Place, Room
from ..rendering import rendered
from . import tables, writes

if TYPE_CHECKING:
    from agenthost import Turn

    from .saying import Saying
    from .settings import ChannelSection

MORE = " \N{HORIZONTAL ELLIPSIS}"


class Drafts:
    """Shows the answers of a channel as they are made, where it can.

    Args:
        host: The daemon.
        saying: Sends what is shown.
        section: Whether it is wanted.
        facts: Whether the service lets messages be changed, and how often.
    """

    def __init__(
        self, host: Host, saying: Saying, section: ChannelSection, facts: Facts
    ) -> None:
        self._host = host
        self._saying = saying
        self._facts = facts
        self._wanted = section.streaming and facts.edits
        self._threading = section.threading

    @asynccontextmanager
    async def shown(self, row: Any, turn: Turn) -> AsyncIterator[None]:
        """Show what a turn says until it has ended, or whoever waits for it leaves."""
        if not self._wanted:
            yield
            return
        over = asyncio.Event()
        showing = asyncio.create_task(self._show(row, turn, over))
        try:
            yield
            # What is on its way gets there, and is known: it is to be changed next.
            over.set()
            await asyncio.wait([showing])
        finally:
            showing.cancel()
            await asyncio.wait([showing])

    async def _show(self, row: Any, turn: Turn, over: asyncio.Event) -> None:
        every = max(self._facts.edit_every, 1 / self._facts.per_peer)
        message_id, shown = "", ""
        while not await self._ended_within(every, over):
            text = turn.saying
            if not text.strip() or text == shown:
                continue
            if message_id:
                await self._saying.show(self._message(row, text, edit_of=message_id))
            else:
                message_id = await self._begun(row, text)
            shown = text

    async def _ended_within(self, seconds: float, over: asyncio.Event) -> bool:
        nap = asyncio.ensure_future(self._host.clock.sleep(seconds))
        ending = asyncio.ensure_future(over.wait())
        try:
            await asyncio.wait((nap, ending), return_when=asyncio.FIRST_COMPLETED)
        finally:
            nap.cancel()
            ending.cancel()
        return over.is_set()

    async def _begun(self, row: Any, text: str) -> str:
        """Give the id of the message that is changed, "" while there is none."""
        store = self._host.store
        own = {"id": f"{row['key'][:28]}-0"}
        known = await store.first(tables.DRAFT, own)
        if known is not None:
            return str(known["message_id"])
        sent = await self._saying.show(self._message(row, text))
        if sent.fate is not Fate.DELIVERED or not sent.message_id:
            return ""
        told = {"owner": row["owner"], "labels": row["labels"]}
        draft = {**own, "message_id": sent.message_id, **told}
        await store.write(partial(writes.keep_draft, row=draft))
        return sent.message_id

    def _message(self, row: Any, text: str, edit_of: str = "") -> Outbound:
        facts = self._facts
        place = Place(row["account"], row["peer"], row["thread"], Room(row["room"]))
        limit = facts.limit_in(place.room)
        page = rendered(text.rstrip() + MORE, facts.dialect, limit, facts.unit)[0]
        # Not the key of the answer: a service that knows it would not take that.
        key = f"{row['key'][:28]}-draft"
        reply_to = row["message_id"] if self._threading and not edit_of else ""
        return Outbound(key, place, page.text, page.plain, (), reply_to, edit_of)
