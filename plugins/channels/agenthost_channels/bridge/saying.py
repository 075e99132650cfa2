"""What is to be sent: in order, and again only where it is certainly not there."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import Any

from agenthost import Host, Keep, telling

from ..contract import (
    Adapter,
    Attachment,
    Facts,
    Fate,
    Outbound,
    OutFile,
    Place,
    Room,
    Sent,
)
from . import tables, writes
from .events import ChannelMessageLost
from .line import AccountLine

log = logging.getLogger(__name__)
SEND_SECONDS = 60.0
ATTEMPTS = 8
LONGEST_PAUSE = 600.0
OVER = frozenset({"delivered", "failed", "unknown"})


def outbound(row: Any, files: tuple[OutFile, ...] = ()) -> Outbound:
    """Make of an outbox's row what an adapter sends."""
    place = Place(row["account"], row["peer"], row["thread"], Room(row["room"]))
    text, plain, draft = row["text"], row["plain"], row["draft"] or ""
    reply_to = "" if draft else row["reply_to"]
    return Outbound(row["id"], place, text, plain, files, reply_to, draft)


def settled(sent: Sent, row: Any, now: float, *, repeatable: bool) -> dict[str, Any]:
    """Tell what is written of a message after a try.

    One that may have arrived is tried again only where the vendor knows it by its key.
    """
    attempts = row["attempts"] + 1
    said = {"attempts": attempts, "reason": sent.reason[:500]}
    if sent.fate is Fate.DELIVERED:
        return {**said, "state": "delivered", "message_id": sent.message_id}
    if sent.fate is Fate.UNKNOWN and not repeatable:
        return {**said, "state": "unknown"}
    if sent.final or attempts >= ATTEMPTS:
        state = "unknown" if sent.fate is Fate.UNKNOWN else "failed"
        return {**said, "state": state}
    pause = min(2.0**attempts, LONGEST_PAUSE)
    return {**said, "state": "waiting", "due": now + max(pause, sent.retry_after or 0)}


class Saying:
    """Sends what is in the outbox of a channel, one message at a time.

    Args:
        host: The daemon.
        adapter: What sends.
        line: Its line: nothing is sent while that is down.
        facts: How fast its messages may go out.
    """

    def __init__(
        self, host: Host, adapter: Adapter, line: AccountLine, facts: Facts
    ) -> None:
        self._host = host
        self._adapter = adapter
        self._line = line
        self._facts = facts
        self._more = asyncio.Event()
        self._free_at: dict[str, float] = {}

    def more(self) -> None:
        """There is more to send."""
        self._more.set()

    async def download(self, attachment: Attachment) -> bytes:
        """Fetch a file that somebody sent; raises as the adapter does."""
        return await self._adapter.download(attachment)

    async def show(self, message: Outbound) -> Sent:
        """Send what is going to be changed again, unless its place takes none now."""
        now, peer = self._host.clock.time(), message.place.peer
        if not self._line.up.is_set() or self._free_at.get(peer, 0.0) > now:
            return Sent(Fate.NOT_SENT, reason="not now")
        sent = await self._asked(self._adapter.send(message))
        if sent.fate is Fate.UNKNOWN:
            sent = await self._asked(self._adapter.reconcile(message))
        self._free_at[peer] = self._host.clock.time() + 1 / self._facts.per_peer
        return sent

    async def react(self, row: Any, key: str, emoji: str) -> None:
        """Put an emoji on a message; it may be lost."""
        place = Place(row["account"], row["peer"], row["thread"], Room(row["room"]))
        if self._line.up.is_set():
            sign = Outbound(key, place, reply_to=row["message_id"], reaction=emoji)
            await self._asked(self._adapter.send(sign))

    async def show_typing(self, row: Any) -> None:
        """Show in a message's place that we are about to answer, until cancelled."""
        place = Place(row["account"], row["peer"], row["thread"], Room(row["room"]))
        sign = Outbound(f"typing-{row['key'][:28]}", place, typing=True)
        while True:
            if self._line.up.is_set():
                await self._asked(self._adapter.send(sign))
            # A little before the sign is gone.
            await self._host.clock.sleep(self._facts.typing_every * 0.8)

    async def run(self) -> None:
        """Send until cancelled, what an earlier process left first."""
        while True:
            self._more.clear()
            await self._line.up.wait()
            pause = await self._pass()
            waiting = asyncio.ensure_future(self._more.wait())
            try:
                if pause is None:
                    await waiting
                elif pause > 0:
                    await self._nap(waiting, pause)
            finally:
                waiting.cancel()

    async def _nap(self, woken: asyncio.Future[Any], seconds: float) -> None:
        nap = asyncio.ensure_future(self._host.clock.sleep(seconds))
        try:
            await asyncio.wait((woken, nap), return_when=asyncio.FIRST_COMPLETED)
        finally:
            nap.cancel()

    async def _pass(self) -> float | None:
        """Send the first of each conversation that is due; tell when to look again."""
        where = {"channel": self._facts.id}
        rows = await self._host.store.read(tables.OPEN_OUT, where)
        heads: dict[tuple[str, str, str], Any] = {}
        for row in rows:
            heads.setdefault((row["account"], row["peer"], row["thread"]), row)
        now = self._host.clock.time()
        self._free_at = {p: at for p, at in self._free_at.items() if at > now}
        waits = []
        for row in heads.values():
            due = max(row["due"], self._free_at.get(row["peer"], 0.0))
            if due > now:
                waits.append(due - now)
                continue
            waits.append(0.0)
            if self._line.up.is_set():
                await self._send(row)
                await self._host.clock.sleep(1 / self._facts.per_second)
        return min(waits) if waits else None

    async def _send(self, row: Any) -> None:
        message = outbound(row, await self._files(row))
        if row["state"] == "sending":
            # A process died in the middle of it: it may be there.
            sent = await self._asked(self._adapter.reconcile(message))
        else:
            await self._settle(row, {"state": "sending"})
            sent = await self._asked(self._adapter.send(message))
            if sent.fate is Fate.UNKNOWN:
                sent = await self._asked(self._adapter.reconcile(message))
        now = self._host.clock.time()
        self._free_at[row["peer"]] = now + 1 / self._facts.per_peer
        if row["draft"] and sent.fate is Fate.NOT_SENT and sent.final:
            # Somebody has taken the draft away: it is said anew.
            again = {"state": "waiting", "due": now}
            drop = partial(writes.drop_draft, outbox_id=row["id"])
            await self._settle(row, again, drop)
            return
        # To change a message twice is to change it once.
        repeatable = self._facts.repeatable or bool(row["draft"])
        values = settled(sent, row, now, repeatable=repeatable)
        if values["state"] in ("failed", "unknown"):
            await self._lose(row, values, now)
        else:
            await self._settle(row, values)

    async def _files(self, row: Any) -> tuple[OutFile, ...]:
        if not row["has_files"]:
            return ()
        file = await self._host.store.first(tables.FILE_OUT, {"id": row["id"]})
        if file is None:
            return ()
        return (OutFile(file["name"], file["media_type"], bytes(file["data"])),)

    async def _asked(self, call: Any) -> Sent:
        """Ask the adapter; what breaks in it leaves the fate unknown."""
        try:
            async with asyncio.timeout(SEND_SECONDS):
                sent: Sent = await call
                return sent
        except TimeoutError:
            return Sent(Fate.UNKNOWN, reason="the service did not answer in time")
        except Exception:
            log.exception("channel %s: its adapter broke", self._facts.id)
            return Sent(Fate.UNKNOWN, reason="the adapter broke; see the log")

    async def _lose(self, row: Any, values: dict[str, Any], now: float) -> None:
        facts = (self._facts.id, now, row["id"], values["state"], values["reason"])
        with telling(self._host.events, ChannelMessageLost, *facts) as keep:
            await self._settle(row, values, *(() if keep is None else (keep,)))

    async def _settle(self, row: Any, values: dict[str, Any], *also: Keep) -> None:
        write = partial(writes.settle, outbox_id=row["id"], values=values)
        if values["state"] in OVER:
            if row["has_files"]:
                also = (*also, partial(writes.drop_file, outbox_id=row["id"]))
            if row["draft"]:
                also = (*also, partial(writes.drop_draft, outbox_id=row["id"]))
        await self._host.store.write(write, *also)
