"""Prosody with two people and a room."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from ...contract import Place, Room
from ...facts import facts
from ...xmpp.adapter import Xmpp
from ...xmpp.config import Settings
from ..servers import Cable, found, free_port, serving
from ..stage import Stage
from .xmpp_person import Person

PASSWORD = "canary-of-prosody"  # noqa: S105 # nosec B105 # opens nothing
FORGED = (
    "<result xmlns='urn:xmpp:mam:2' queryid='x' id='y'>"
    "<forwarded xmlns='urn:xmpp:forward:0'><message xmlns='jabber:client'"
    " from='eve@localhost'><body>forged</body></message></forwarded></result>"
)
ROOM = "room@conference.localhost"
CONFIGURATION = """\
pidfile = "{folder}/pid"
data_path = "{folder}/data"
run_as_root = true
log = {{ {level} = "{folder}/log" }}
interfaces = {{ "127.0.0.1" }}
c2s_ports = {{ {port} }}
c2s_direct_tls_ports = {{ {direct} }}
s2s_ports = {{}}
http_ports = {{ {http} }}
http_interfaces = {{ "127.0.0.1" }}
http_default_host = "upload.localhost"
https_ports = {{}}
modules_enabled = {{ "roster", "saslauth", "disco", "ping", "message", "presence",
  "iq", "offline", {modules} }}
modules_disabled = {{ "s2s" }}
c2s_require_encryption = {encrypted}
authentication = "internal_plain"
storage = "internal"
archive_expires_after = "never"
{more}
VirtualHost "localhost"
Component "conference.localhost" "muc"
modules_enabled = {{ {of_rooms} }}
muc_room_locking = false
muc_room_default_public_jids = {open_rooms}
{uploads}
"""
UPLOADS = """\
Component "upload.localhost" "http_file_share"
http_external_url = "http://127.0.0.1:{http}/"
http_file_share_size_limit = 100000
"""


class Wire(Cable):
    """A cable that can carry one way only, and breaks then."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self._deaf = False

    def deafen(self) -> None:
        """Keep back what the server says, and break when it answers a message."""
        self._deaf = True

    async def _copy(  # type: ignore[override]  # it looks at what it carries
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                if not self._deaf or writer not in self._writers[::2]:
                    writer.write(data)
                # The acknowledgement, or what the room shows: the server has it now.
                elif any(sign in data for sign in (b"<a ", b"<body")):
                    self._deaf = False
                    self.pull()
                    return
        writer.close()


class ProsodyStage(Stage):
    """Prosody, with Ada in a room."""

    channel = Xmpp
    facts = facts("xmpp")
    keeps = True
    judge = "Prosody"
    person = "ada@localhost"

    def __init__(self, cable: Wire, ada: Person, folder: Path, http: int = 0) -> None:
        self.cable = cable
        self.files_at = f"http://127.0.0.1:{http}/file_share/"
        self.ada = ada
        self.folder = folder
        self.port = ada.port

    def settings(self) -> Settings:
        return Settings(
            jid="bot@localhost",
            server="127.0.0.1",
            port=self.cable.port,
            tls="none",
            rooms=[ROOM],
            nick="bot",
            files_at=self.files_at,
        )

    def secrets(self) -> Mapping[str, str]:
        return {"password": PASSWORD}

    def wrong_secrets(self) -> Mapping[str, str]:
        return {"password": "canary-that-is-wrong"}  # nosec B105 # opens nothing

    def place(self, room: Room) -> Place:
        if room is Room.DIRECT:
            return Place("default", self.person)
        return Place("default", ROOM, room=Room.PUBLIC)

    async def say(self, text: str, room: Room = Room.DIRECT) -> None:
        if room is Room.DIRECT:
            await self.ada.says("bot@localhost", text)
        else:
            await self.ada.says(ROOM, text, "groupchat")

    async def seen(self, count: int, room: Room = Room.DIRECT) -> list[str]:
        sender = "bot@localhost/" if room is Room.DIRECT else f"{ROOM}/bot"
        return await self.ada.seen(count, sender)

    def mention(self, text: str) -> str:
        return f"bot: {text}"

    def nowhere(self) -> Place:
        return Place("default", "nobody@localhost")

    async def change(self, text: str) -> None:
        await self.ada.replaces(text)

    async def changed(self, text: str) -> None:
        await self.ada.until(lambda: text in [said for _, said, _ in self.ada.changes])

    async def attach(self, name: str, media_type: str, data: bytes) -> None:
        await self.ada.hands_in("bot@localhost", name, media_type, data)

    async def files_seen(self, count: int) -> list[tuple[str, bytes]]:
        return await self.ada.files(count)

    async def cut(self) -> None:
        self.cable.pull()

    def lose_answer(self) -> None:
        self.cable.deafen()

    async def hostile(self) -> None:
        to = "to='bot@localhost'"
        for raw in (
            f"<message {to} type='chat'><body/></message>",
            f"<message {to} type='headline'><body>news</body></message>",
            f"<message {to} type='error'><body>bounced</body></message>",
            f"<message {to}>{FORGED}</message>",
            f"<message {to}><stanza-id xmlns='urn:xmpp:sid:0' by='x'/></message>",
            f"<message {to}><delay xmlns='urn:xmpp:delay' stamp='never'/></message>",
            f"<iq {to} type='get' id='q'><query xmlns='no:such:thing'/></iq>",
            f"<presence {to} type='subscribe'/>",
        ):
            self.ada.send_raw(raw)
        await self.ada.settled()


def _account(name: str, password: str = PASSWORD) -> tuple[str, str]:
    return f"{name}.dat", f'return {{ ["password"] = "{password}" }};\n'


@asynccontextmanager
async def prosody(folder: Path, **told: str) -> AsyncIterator[ProsodyStage]:
    """Open it in a folder, with other values of its configuration."""
    port, http = free_port(), free_port()
    values = {
        "modules": '"mam", "smacks"',
        "of_rooms": '"muc_mam"',
        "open_rooms": "true",
        "encrypted": "false",
        "direct": "",
        "more": "",
        "level": "info",
        "http": str(http),
        "uploads": UPLOADS.format(http=http),
        **told,
    }
    path = folder / "prosody.cfg.lua"
    path.write_text(CONFIGURATION.format(folder=folder, port=port, **values))
    accounts = folder / "data/localhost/accounts"
    accounts.mkdir(parents=True)
    for file, text in map(_account, ("ada", "bot", "eve")):
        (accounts / file).write_text(text)
    argv = (*found("prosody"), "--config", str(path), "-F")
    person = Person(port, "ada@localhost/desk", PASSWORD, ROOM)
    async with serving(*argv, port=port), Wire(port) as cable, person as ada:
        yield ProsodyStage(cable, ada, folder, http)


@asynccontextmanager
async def opened() -> AsyncIterator[Stage]:
    """Open it."""
    with TemporaryDirectory() as folder:
        async with prosody(Path(folder)) as stage:
            yield stage
