"""What people said: kept once, then answered by turns in the order it came."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from agenthost import (
    AgentHostError,
    Cancelled,
    Host,
    Interrupted,
    NotFound,
    RateLimited,
    TurnEnded,
    TurnState,
    Unavailable,
    Waiting,
)

from ..contract import Facts, Inbound, OutFile, Room
from ..rendering import rendered
from . import tables, writes
from .admission import (
    MOST_PENDING,
    Verdict,
    greeting,
    judged,
    may_speak,
    pairing_row,
)
from .answering import APOLOGY, SPENT, Answering, Said
from .binding import Conversation
from .digests import digest
from .drafts import Drafts
from .files import Files, rows_of
from .marks import Marks
from .pace import Pace
from .settings import ChannelSection

if TYPE_CHECKING:
    from .saying import Saying

log = logging.getLogger(__name__)
RETRY_SECONDS = 5.0
TOO_FAST = "That is too fast for me; wait {wait} seconds."
WAITING = TurnState.WAITING.value


def key_of(channel: str, message: Inbound) -> str:
    """Name a message by what its vendor knows it by."""
    place = message.place
    return digest(channel, place.account, place.peer, place.thread, message.message_id)


def row_of(channel: str, message: Inbound, now: float) -> dict[str, Any]:
    """Make the inbox's row of a message."""
    place = message.place
    row: dict[str, Any] = {
        "key": key_of(channel, message),
        "channel": channel,
        "account": place.account,
        "peer": place.peer,
        "thread": place.thread,
        "room": place.room.value,
        "message_id": message.message_id,
        "sender": message.sender.id,
        "text": message.text.strip(),
        "state": "new",
        "received_at": now,
        "owner": f"channel_user:{channel}:{message.sender.id}",
        "labels": "untrusted",
    }
    if message.attachments:
        row["files"] = rows_of(row, message.attachments)
    return row


def says_of(
    row: Mapping[str, Any],
    facts: Facts,
    said: Sequence[Said],
    now: float,
    *,
    threading: bool = True,
) -> list[Any]:
    """Make the outbox's rows of what is said to a message, a row of each file."""
    same = ("channel", "account", "peer", "thread", "room", "owner", "labels")
    from_it = {name: row[name] for name in same}
    begun = {"state": "waiting", "attempts": 0, "due": now, "created_at": now}
    begun |= {"message_id": "", "reason": ""}
    parts: list[dict[str, Any]] = []
    # Where something is said first, nobody knows yet what room it is.
    limit = facts.limit_in(Room(row["room"])) if row["message_id"] else facts.limit
    for each in said:
        pages = rendered(each.text, facts.dialect, limit, facts.unit)
        parts += ({"text": page.text, "plain": page.plain} for page in pages)
        parts += (
            {"text": "", "plain": "", "file": _kept(file, row)} for file in each.files
        )
    return [
        {
            **from_it,
            **begun,
            **part,
            "id": f"{row['key'][:28]}-{number}",
            "reply_to": "" if number or not threading else row["message_id"],
        }
        for number, part in enumerate(parts)
    ]


def _kept(file: OutFile, row: Mapping[str, Any]) -> dict[str, Any]:
    known = {"owner": row["owner"], "labels": row["labels"]}
    return {
        "name": file.name,
        "media_type": file.media_type,
        "data": file.data,
        **known,
    }


class Hearing:
    """Answers what is in the inbox of a channel; a task for each conversation.

    Args:
        host: The daemon.
        channel: The channel's id.
        section: Who may speak, and who answers.
        facts: What the channel's messages look like.
        saying: Sends what is in the outbox.
    """

    def __init__(
        self,
        host: Host,
        channel: str,
        section: ChannelSection,
        facts: Facts,
        saying: Saying,
    ) -> None:
        self._host = host
        self._channel = channel
        self._section = section
        self._facts = facts
        self._answered = saying.more
        self._show_typing = saying.show_typing
        self._marks = Marks(saying, section, facts)
        self.files = Files(host, section, facts, saying.download)
        drafts = Drafts(host, saying, section, facts)
        self._answering = Answering(host, section, self.files, drafts)
        most, now = section.rate_limit_per_user, host.clock.monotonic
        self._pace = Pace(now, most, TOO_FAST) if most else None
        self._told = Pace(now, 1, "")
        self._more = asyncio.Event()
        self._busy: dict[Conversation, str] = {}
        self._blocked: dict[str, Conversation] = {}
        self._stopping: set[str] = set()
        self._may_stop = True

    async def keep(self, messages: tuple[Inbound, ...], cursor: str | None) -> None:
        """Keep what is to be answered, and the cursor, in one commit."""
        now = self._host.clock.time()
        rows, also = [], []
        for each in messages:
            verdict = await self._judged(each)
            row = row_of(self._channel, each, now)
            if verdict is Verdict.ASK_FOR_CODE:
                also.append(self._greet(each, row, now))
            elif verdict is Verdict.ANSWER:
                if (refusal := self._refusal(each.sender.id)) is None:
                    rows.append(row)
                elif refusal:
                    says = self.says(row, [Said(refusal)], now)
                    also.append(partial(writes.say, says=says))
        if not rows and not also and cursor is None:
            return
        taken = partial(
            writes.take,
            messages=rows,
            channel=self._channel,
            account="default",
            cursor=cursor,
        )
        if await self._host.store.write(taken, *also):
            self._may_stop = self._may_stop or any(map(_stops, rows))
            self._more.set()
        if also:
            self._answered()

    def _refusal(self, sender: str) -> str | None:
        """Say that somebody is too fast, once a minute: "" in between; None if not."""
        if self._pace is None:
            return None
        try:
            self._pace.take(sender)
        except RateLimited as error:
            try:
                self._told.take(sender)
            except RateLimited:
                return ""
            return error.message
        return None

    async def _judged(self, message: Inbound) -> Verdict:
        who, channel, section = message.sender.id, self._channel, self._section
        known = await may_speak(self._host, channel, section, who)
        return judged(section, message, known=known)

    def _greet(self, message: Inbound, row: Any, now: float) -> Any:
        pairing = pairing_row(self._channel, message, now)
        [says] = self.says(row, [Said(greeting(pairing))], now)
        return partial(writes.ask_in, pairing=pairing, says=says, most=MOST_PENDING)

    def says(self, row: Any, said: Sequence[Said], now: float) -> list[Any]:
        """Make the outbox's rows of what is said, in the channel's markup."""
        threading = self._section.threading
        return says_of(row, self._facts, said, now, threading=threading)

    async def run(self) -> None:
        """Answer until cancelled, what an earlier process left first."""
        self._busy.clear()
        self._blocked.clear()
        self._may_stop = True
        silent = self._host.events.subscribe(self._ended, TurnEnded)
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    self._more.clear()
                    await self._begin(group)
                    await self._more.wait()
        finally:
            silent()
            await self._marks.stop()

    async def tell(self, pairing: Any, text: str) -> None:
        """Say something to somebody who had a code, which answers no message."""
        names = ("channel", "account", "peer", "thread", "owner", "labels")
        key = digest("paired", *(pairing[name] for name in ("channel", "code", "peer")))
        row = {name: pairing[name] for name in names}
        row |= {"key": key, "room": Room.DIRECT.value, "message_id": ""}
        says = self.says(row, [Said(text)], self._host.clock.time())
        await self._host.store.write(partial(writes.say, says=says))
        self._answered()

    def _ended(self, event: TurnEnded) -> None:
        if event.state != WAITING and event.turn_id in self._blocked:
            self._busy.pop(self._blocked.pop(event.turn_id), None)
            self._more.set()

    async def _begin(self, group: asyncio.TaskGroup) -> None:
        where = {"channel": self._channel}
        for row in await self._host.store.read(tables.OPEN_IN, where):
            place = (row["account"], row["peer"], row["thread"])
            if place not in self._busy:
                self._busy[place] = row["key"]
                group.create_task(self._one(row, place))
        if not self._may_stop:
            return
        self._may_stop = False
        for row in await self._host.store.read(tables.STOPS, where):
            place = (row["account"], row["peer"], row["thread"])
            begun = {*self._stopping, self._busy.get(place, row["key"])}
            if _stops(row) and row["key"] not in begun:
                # It does not wait behind what it is to stop.
                self._stopping.add(row["key"])
                group.create_task(self._stop(row))

    async def _one(self, row: Any, place: Conversation) -> None:
        """Answer the oldest message of a conversation, then look for the next."""
        self._marks.seen(row)
        try:
            async with self._typing(row):
                said = await self._answering.answer(row)
        except Waiting as waiting:
            await self._block(str(waiting.facts["turn_id"]), place)
            return
        except (Interrupted, NotFound, Unavailable) as error:
            # It stays in the inbox: the agent or the daemon may be back later.
            log.warning("channel %s: not answered yet: %s", self._channel, error)
            await self._host.clock.sleep(RETRY_SECONDS)
        except Cancelled:
            await self._settle(row, [])
        except AgentHostError as error:
            log.warning("channel %s: a turn failed: %s", self._channel, error)
            await self._settle(row, [Said(APOLOGY)])
            self._marks.over(row, well=False)
        else:
            await self._settle(row, said)
            well = all(each.text not in (APOLOGY, SPENT) for each in said)
            self._marks.over(row, well=well)
        self._busy.pop(place, None)
        self._more.set()

    @asynccontextmanager
    async def _typing(self, row: Any) -> AsyncIterator[None]:
        """Show that an answer is being made, where the service can."""
        shows = self._section.typing_indicator and self._facts.typing_every
        if not shows or row["text"].startswith("/"):
            yield
            return
        sign = asyncio.create_task(self._show_typing(row))
        try:
            yield
        finally:
            sign.cancel()
            await asyncio.wait([sign])

    async def _stop(self, row: Any) -> None:
        try:
            said = await self._answering.stop(row)
        except AgentHostError as error:
            log.warning("channel %s: /stop failed: %s", self._channel, error)
            said = APOLOGY
        await self._settle(row, [Said(said)])
        self._stopping.discard(row["key"])

    async def _block(self, turn_id: str, place: Conversation) -> None:
        """Let a conversation rest until a person has answered its turn's question."""
        self._blocked[turn_id] = place
        # It may have ended before it was put there.
        turn = await self._host.journal.find(turn_id)
        gone_on = turn is None or turn.state is not TurnState.WAITING
        if gone_on and turn_id in self._blocked:
            del self._blocked[turn_id]
            await self._host.clock.sleep(RETRY_SECONDS)
            self._busy.pop(place, None)
            self._more.set()

    async def _settle(self, row: Any, said: Sequence[Said]) -> None:
        now = self._host.clock.time()
        try:
            says = self.says(row, said, now)
        except Exception:
            # One answer that cannot be written must not hold all the others up.
            log.exception("channel %s: an answer cannot be rendered", self._channel)
            says = self.says(row, [Said(APOLOGY)], now)
        had_files = bool(row["has_files"])
        answer = partial(writes.answer, key=row["key"], says=says, had_files=had_files)
        await self._host.store.write(answer)
        self._answered()


def _stops(row: Any) -> bool:
    text: str = row["text"]
    return text.strip().partition("@")[0].lower() == "/stop"
