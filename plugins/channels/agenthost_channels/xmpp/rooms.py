"""Rooms (XEP-0045): being in them, who else is, and whether we still are (XEP-0410)."""

from __future__ import annotations

import logging
from typing import Any

from agenthost import Unavailable
from slixmpp.exceptions import IqError, IqTimeout, PresenceError
from slixmpp.jid import JID

from ..contract import Room
from .client import PATIENCE, Client
from .config import Settings
from .mapping import MAM

log = logging.getLogger(__name__)
NICKS = 4


class Rooms:
    """The rooms of one account."""

    def __init__(self, options: Settings, client: Client) -> None:
        self._options = options
        self._client = client
        self.named = frozenset(each.lower() for each in options.rooms)
        self._in: dict[str, Room] = {}

    async def join(self) -> list[str]:
        """Join them, and give those that took us; the others are told of."""
        for room in sorted(self.named):
            self._client.add_event_handler(f"muc::{room}::self-presence", self._moved)
            if await self._joined(room):
                self._in[room] = await self._kind(room)
        return list(self._in)

    async def _joined(self, room: str) -> bool:
        nick = self._options.nick
        for _ in range(NICKS):
            try:
                await self._client.plugin["xep_0045"].join_muc_wait(
                    JID(room), nick, maxstanzas=0, timeout=PATIENCE
                )
            except PresenceError as error:
                if error.condition == "conflict":
                    nick += "_"
                    continue
                log.warning("cannot join %s: %s", room, error.condition)
                return False
            except TimeoutError:
                log.warning("cannot join %s: it does not answer", room)
                return False
            return True
        log.warning("cannot join %s: our nick and its like are taken", room)
        return False

    def _moved(self, presence: Any) -> None:
        """Take what becomes of ourselves: 303 is another nick, and no leaving."""
        codes = presence["muc"]["status_codes"]
        room = presence["from"].bare
        if presence["type"] != "unavailable" or 303 in codes or room not in self._in:
            return
        del self._in[room]
        log.warning("put out of %s: %s", room, sorted(codes))
        # 332: it shuts down; it is worth coming back. Who was put out stays out until
        # the next start.
        if 332 in codes:
            self._client.end(Unavailable(f"{room} shuts down"))

    def kind(self, room: str) -> Room | None:
        """Tell who hears a room; None for one that we are not in."""
        return self._in.get(room)

    def nick(self, room: str) -> str:
        """Tell our nick in a room."""
        nicks = self._client.plugin["xep_0045"].our_nicks[None]
        return str(nicks.get(JID(room)) or self._options.nick)

    def ours(self, sender: str) -> bool:
        """Tell whether an address is ours in one of our rooms."""
        room, _, nick = sender.partition("/")
        return room in self.named and nick == self.nick(room)

    def address(self, room: str, nick: str) -> str:
        """Tell the address of an occupant, where the room shows it."""
        occupants = self._client.plugin["xep_0045"].rooms[None].get(JID(room)) or {}
        jid = (occupants.get(nick) or {}).get("jid")
        return str(jid or "").partition("/")[0]

    async def look(self) -> None:
        """Ask the server and the rooms whether they still know us.

        Raises:
            Unavailable: One of them does not.
        """
        pinged = self._client.plugin["xep_0199"]
        for address in (self._client.boundjid.domain, *self._selves()):
            try:
                await pinged.send_ping(JID(address), timeout=PATIENCE)
            except IqError as error:
                # Who is not in a room is told so; another refusal is an occupant's.
                if "/" in address and error.condition == "not-acceptable":
                    raise Unavailable(f"we are no more in {address}") from None
            except IqTimeout:
                if "/" not in address:
                    raise Unavailable("the XMPP server has fallen silent") from None

    def _selves(self) -> list[str]:
        return [f"{room}/{self.nick(room)}" for room in self._in]

    async def has_archive(self, address: str) -> bool:
        """Tell whether what is said in a room, or to an account, is kept."""
        return MAM in await self._features(address)

    async def _kind(self, room: str) -> Room:
        closed = "muc_membersonly" in await self._features(room)
        return Room.GROUP if closed else Room.PUBLIC

    async def _features(self, address: str) -> set[str]:
        try:
            told = await self._client.plugin["xep_0030"].get_info(
                jid=JID(address), timeout=PATIENCE
            )
        except (IqError, IqTimeout):
            return set()
        return set(told["disco_info"]["features"])
