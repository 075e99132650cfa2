"""What people said: kept once, then answered by turns in the order it came."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from functools import partial
from hashlib import sha256
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from agenthost import (
    UNTRUSTED,
    AgentHostError,
    Cancelled,
    Context,
    Grants,
    Host,
    Interrupted,
    NotFound,
    Principal,
    TurnEnded,
    TurnOptions,
    TurnState,
    Unavailable,
    Waiting,
    user_message,
)

from ..contract import Facts, Inbound, Room
from ..rendering import rendered
from . import tables, writes
from .settings import ChannelSection

log = logging.getLogger(__name__)
APOLOGY = "I could not answer that."
RETRY_SECONDS = 5.0
WAITING = TurnState.WAITING.value

Conversation = tuple[str, str, str]


def key_of(channel: str, message: Inbound) -> str:
    """Name a message by what its vendor knows it by."""
    place = message.place
    return _digest(channel, place.account, place.peer, place.thread, message.message_id)


def admitted(section: ChannelSection, message: Inbound) -> bool:
    """Tell whether a message is to be answered."""
    sender = message.sender
    if message.edited or sender.bot or sender.id not in section.allow_from:
        return False
    if message.place.room is Room.DIRECT or section.group_policy == "all":
        return True
    return section.group_policy == "mention_only" and message.mentions_us


def row_of(channel: str, message: Inbound, now: float) -> dict[str, Any]:
    """Make the inbox's row of a message."""
    place = message.place
    files = [f"(attached and not read: {each.name})" for each in message.attachments]
    return {
        "key": key_of(channel, message),
        "channel": channel,
        "account": place.account,
        "peer": place.peer,
        "thread": place.thread,
        "room": place.room.value,
        "message_id": message.message_id,
        "sender": message.sender.id,
        "text": "\n".join([message.text, *files]).strip(),
        "state": "new",
        "received_at": now,
        "owner": f"channel_user:{channel}:{message.sender.id}",
        "labels": "untrusted",
    }


def says_of(row: Mapping[str, Any], facts: Facts, text: str, now: float) -> list[Any]:
    """Make the outbox's rows of an answer."""
    pages = rendered(text, facts.dialect, facts.limit, facts.unit)
    same = ("channel", "account", "peer", "thread", "room", "owner", "labels")
    return [
        {
            **{name: row[name] for name in same},
            "id": f"{row['key'][:28]}-{number}",
            "text": page.text,
            "plain": page.plain,
            "reply_to": "" if number else row["message_id"],
            "state": "waiting",
            "attempts": 0,
            "due": now,
            "message_id": "",
            "reason": "",
            "created_at": now,
        }
        for number, page in enumerate(pages)
    ]


class Hearing:
    """Answers what is in the inbox of a channel; a task for each conversation.

    Args:
        host: The daemon.
        channel: The channel's id.
        section: Who may speak, and who answers.
        facts: What the channel's messages look like.
        answered: Called when there is more in the outbox.
    """

    def __init__(
        self,
        host: Host,
        channel: str,
        section: ChannelSection,
        facts: Facts,
        answered: Callable[[], None],
    ) -> None:
        self._host = host
        self._channel = channel
        self._section = section
        self._facts = facts
        self._answered = answered
        self._more = asyncio.Event()
        self._busy: set[Conversation] = set()
        self._blocked: dict[str, Conversation] = {}

    async def keep(self, messages: tuple[Inbound, ...], cursor: str | None) -> None:
        """Keep what is to be answered, and the cursor, in one commit."""
        now = self._host.clock.time()
        rows = [
            row_of(self._channel, each, now)
            for each in messages
            if admitted(self._section, each)
        ]
        if not rows and cursor is None:
            return
        channel, account = self._channel, "default"
        new = await self._host.store.write(
            partial(
                writes.take,
                messages=rows,
                channel=channel,
                account=account,
                cursor=cursor,
            )
        )
        if new:
            self._more.set()

    async def run(self) -> None:
        """Answer until cancelled, what an earlier process left first."""
        self._busy.clear()
        self._blocked.clear()
        silent = self._host.events.subscribe(self._ended, TurnEnded)
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    self._more.clear()
                    await self._begin(group)
                    await self._more.wait()
        finally:
            silent()

    def _ended(self, event: TurnEnded) -> None:
        if event.state != WAITING and event.turn_id in self._blocked:
            self._busy.discard(self._blocked.pop(event.turn_id))
            self._more.set()

    async def _begin(self, group: asyncio.TaskGroup) -> None:
        rows = await self._host.store.read(tables.OPEN_IN, {"channel": self._channel})
        for row in rows:
            place = (row["account"], row["peer"], row["thread"])
            if place not in self._busy:
                self._busy.add(place)
                group.create_task(self._one(row, place))

    async def _one(self, row: Any, place: Conversation) -> None:
        """Answer the oldest message of a conversation, then look for the next."""
        try:
            text = await self._answer(row)
        except Waiting as waiting:
            await self._block(str(waiting.facts["turn_id"]), place)
            return
        except (Interrupted, NotFound, Unavailable) as error:
            # It stays in the inbox: the agent or the daemon may be back later.
            log.warning("channel %s: not answered yet: %s", self._channel, error)
            await self._host.clock.sleep(RETRY_SECONDS)
        except Cancelled:
            await self._settle(row, "")
        except AgentHostError as error:
            log.warning("channel %s: a turn failed: %s", self._channel, error)
            await self._settle(row, APOLOGY)
        else:
            await self._settle(row, text)
        self._busy.discard(place)
        self._more.set()

    async def _block(self, turn_id: str, place: Conversation) -> None:
        """Let a conversation rest until a person has answered its turn's question."""
        self._blocked[turn_id] = place
        # It may have ended before it was put there.
        turn = await self._host.journal.find(turn_id)
        gone_on = turn is None or turn.state is not TurnState.WAITING
        if gone_on and turn_id in self._blocked:
            del self._blocked[turn_id]
            await self._host.clock.sleep(RETRY_SECONDS)
            self._busy.discard(place)
            self._more.set()

    async def _answer(self, row: Any) -> str:
        host = self._host
        agent = host.agents.find(self._section.agent)
        place = _digest(row["channel"], row["account"], row["peer"], row["thread"])
        session = await host.sessions.open(agent.id, f"channel:{place}")
        who = Principal(
            "channel_user",
            f"{row['channel']}:{row['sender']}",
            Grants({"agent_message": (agent.id, agent.name)}),
        )
        context = Context(who, labels=UNTRUSTED)
        # The same message is the same turn, whenever and however often it is started.
        turn_id = str(uuid5(NAMESPACE_URL, f"agenthost:{agent.id}:{row['key']}"))
        options = TurnOptions(turn_id=turn_id, digest=row["key"], session_id=session.id)
        turn = host.turns.start(context, agent, user_message(row["text"]), options)
        try:
            return (await turn.result()).text
        except Interrupted:
            watcher = await host.turns.resume(context, agent, turn_id)
            return (await watcher.turn.result()).text

    async def _settle(self, row: Any, text: str) -> None:
        now = self._host.clock.time()
        try:
            says = says_of(row, self._facts, text, now)
        except Exception:
            # One answer that cannot be written must not hold all the others up.
            log.exception("channel %s: an answer cannot be rendered", self._channel)
            says = says_of(row, self._facts, APOLOGY, now)
        key = row["key"]
        await self._host.store.write(partial(writes.answer, key=key, says=says))
        self._answered()


def _digest(*parts: str) -> str:
    return sha256(json.dumps(parts).encode()).hexdigest()
