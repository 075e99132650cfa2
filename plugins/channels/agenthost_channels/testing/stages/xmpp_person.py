"""Somebody with another program of XMPP: slixmpp as it comes, by its own sockets."""

import asyncio
from io import BytesIO
from typing import Any, Literal, Self

import httpx
from slixmpp import ClientXMPP
from slixmpp.jid import JID

PATIENCE = 20.0
PLUGINS = (
    *("xep_0045", "xep_0066", "xep_0085"),
    *("xep_0199", "xep_0308", "xep_0363"),
)


class Person(ClientXMPP):
    """One account, seen from outside."""

    def __init__(self, port: int, jid: str, password: str, room: str = "") -> None:
        asked = {
            "feature_mechanisms": {"unencrypted_scram": True, "unencrypted_plain": True}
        }
        super().__init__(jid, password, plugin_config=asked)
        for name in PLUGINS:
            self.register_plugin(name)
        self.port = port
        self.room = room
        self.got: list[tuple[str, str, str]] = []
        self.changes: list[tuple[str, str, str]] = []
        self.addresses: list[str] = []
        self.signs: list[str] = []
        self.subscriptions: list[str] = []
        self._changed = asyncio.Event()
        self._started = asyncio.Event()
        self.enable_direct_tls = self.enable_starttls = False
        self.enable_plaintext = True
        self.add_event_handler("session_start", lambda _: self._started.set())
        self.add_event_handler("message", self._heard)
        gone = f"muc::{room}::got_offline"
        self.add_event_handler(gone, lambda _: self._changed.set())
        self.add_event_handler("groupchat_message", self._heard)
        self.add_event_handler("chatstate_composing", self._typing)
        self.add_event_handler("presence_subscribed", self._subscribed)

    def _heard(self, message: Any) -> None:
        if message["body"] and message["type"] != "error":
            told = (str(message["from"]), message["body"], message["id"])
            if self.plugin["xep_0308"].is_correction(message):
                self._replace(told, message["replace"]["id"])
            elif told not in self.got:
                self.got.append(told)
                if message["oob"]["url"]:
                    self.addresses.append(message["oob"]["url"])
        self._changed.set()

    def _replace(self, told: tuple[str, str, str], id_: str) -> None:
        """Show other words in a message's place, or at the end where it has none."""
        if told in self.changes:
            return
        self.changes.append(told)
        sender, text, _ = told
        known = [(who, id_) == (sender, own) for who, _, own in self.got]
        if any(known):
            self.got[known.index(True)] = (sender, text, id_)
        else:
            self.got.append(told)

    def _typing(self, message: Any) -> None:
        self.signs.append(str(message["from"].bare))
        self._changed.set()

    def _subscribed(self, presence: Any) -> None:
        self.subscriptions.append(str(presence["from"].bare))

    async def __aenter__(self) -> Self:
        self.connect("127.0.0.1", self.port)
        async with asyncio.timeout(PATIENCE):
            await self._started.wait()
            self.send_presence()
            if self.room:
                await self.plugin["xep_0045"].join_muc_wait(
                    JID(self.room), self.boundjid.user, maxstanzas=0, timeout=PATIENCE
                )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.disconnect(wait=1.0)
        if (filters := self._run_out_filters) is not None:
            filters.cancel()
            await asyncio.wait([filters])

    def here(self) -> list[str]:
        """Tell who is in the room."""
        return list(self.plugin["xep_0045"].rooms[None].get(JID(self.room)) or {})

    async def settled(self) -> None:
        """Wait until the server has handled what was said."""
        await self.plugin["xep_0199"].send_ping(JID("localhost"), timeout=PATIENCE)

    async def says(
        self,
        to: str,
        text: str,
        kind: Literal["chat", "groupchat"] = "chat",
        id_: str = "",
    ) -> str:
        message = self.make_message(JID(to), mbody=text, mtype=kind)
        if id_:
            message["id"] = id_
        message.send()
        await self.settled()
        self.last = message
        return str(message["id"])

    async def replaces(self, text: str) -> None:
        """Replace the last message."""
        self.plugin["xep_0308"].correct_message(self.last, text)
        await self.settled()

    async def hands_in(self, to: str, name: str, kind: str, data: bytes) -> None:
        """Hand a file in, and say its address, as people's programs do."""
        address = await self.plugin["xep_0363"].upload_file(
            name,
            size=len(data),
            content_type=kind,
            input_file=BytesIO(data),
            timeout=PATIENCE,
        )
        message = self.make_message(JID(to), mbody=address, mtype="chat")
        message["oob"]["url"] = address
        message.send()
        await self.settled()

    async def files(self, count: int) -> list[tuple[str, bytes]]:
        """Fetch the files whose addresses we were told."""
        await self.until(lambda: len(self.addresses) >= count)
        async with httpx.AsyncClient(trust_env=False) as client:
            found = [(each, await client.get(each)) for each in self.addresses]
        assert all(answered.status_code == 200 for _, answered in found)
        return [(each.rpartition("/")[2], got.content) for each, got in found]

    async def until(self, happened: Any) -> None:
        async with asyncio.timeout(PATIENCE):
            while not happened():
                self._changed.clear()
                await self._changed.wait()

    async def seen(self, count: int, sender: str) -> list[str]:
        def found() -> list[str]:
            return [text for who, text, _ in self.got if who.startswith(sender)]

        await self.until(lambda: len(found()) >= count)
        return found()
