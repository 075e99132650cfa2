"""Mumble's own server with Ada."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from ...contract import Place, Room
from ...facts import facts
from ...mumble.adapter import Mumble, Settings
from ..servers import found, free_port, serving
from ..stage import Stage
from .mumble_person import Person

OPERATOR = "operator-secret"
CONFIGURATION = """\
database={folder}/db.sqlite
logfile={folder}/log
host=127.0.0.1
port={port}
users=20
messagelimit=1000
messageburst=1000
bonjour=false
uname=root
serverpassword={password}
"""


class MurmurStage(Stage):
    """Mumble's own server, with Ada."""

    channel = Mumble
    facts = facts("mumble")
    judge = "Mumble's own server"

    def __init__(self, port: int, ada: Person) -> None:
        self.port = port
        self.ada = ada
        self.person = f"name:{ada.name}"

    def settings(self) -> Settings:
        certificate = ssl.get_server_certificate(("127.0.0.1", self.port))
        raw = ssl.PEM_cert_to_DER_cert(certificate)
        return Settings(
            server="127.0.0.1",
            port=self.port,
            username="bot",
            fingerprint=hashlib.sha256(raw).hexdigest(),
            burst=1000,
        )

    def place(self, room: Room) -> Place:
        if room is Room.DIRECT:
            return Place("default", self.person)
        return Place("default", "channel:0", room=Room.PUBLIC)

    async def say(self, text: str, room: Room = Room.DIRECT) -> None:
        await self.ada.say(text, "bot" if room is Room.DIRECT else "")

    async def seen(self, count: int, room: Room = Room.DIRECT) -> list[str]:
        return await self.ada.seen(count, direct=room is Room.DIRECT)

    async def cut(self) -> None:
        operator = Person(self.port, "SuperUser", password=OPERATOR)
        async with operator:
            await operator.put_out("bot")

    def mention(self, text: str) -> str:
        return f"bot: {text}"

    def nowhere(self) -> Place:
        return Place("default", "user:404")

    async def hostile(self) -> None:
        for raw in ("<", "<br/>", "&#0;", "<style>x</style>", "<p" * 500, "&#xd800;"):
            await self.ada.say("", "bot", raw)


def configured(folder: Path, port: int, password: str = "") -> Path:  # nosec B107 # none
    """Write its configuration."""
    text = CONFIGURATION.format(folder=folder, port=port, password=password)
    path = folder / "murmur.ini"
    path.write_text(text)
    return path


async def with_operator(folder: Path) -> Path:
    """Make a database with an operator in it: it takes a run of its own."""
    argv = (*found("murmurd"), "-ini", str(configured(folder, 1)), "-supw", OPERATOR)
    null = asyncio.subprocess.DEVNULL
    make = await asyncio.create_subprocess_exec(*argv, stdout=null, stderr=null)
    await make.wait()
    database = folder / "db.sqlite"
    assert database.exists(), "the server has made no database"
    return database


@asynccontextmanager
async def server(  # nosec B107 # none
    folder: Path, database: Path, password: str = ""
) -> AsyncIterator[int]:
    """Run it in a folder, from a database."""
    port = free_port()
    shutil.copy(database, folder)
    path = configured(folder, port, password)
    async with serving(*found("murmurd"), "-fg", "-ini", str(path), port=port):
        yield port


@asynccontextmanager
async def opened() -> AsyncIterator[Stage]:
    """Open it."""
    with TemporaryDirectory() as first, TemporaryDirectory() as folder:
        database = await with_operator(Path(first))
        async with (
            server(Path(folder), database) as port,
            Person(port, "Ada") as ada,
        ):
            yield MurmurStage(port, ada)
