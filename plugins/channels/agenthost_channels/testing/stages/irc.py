"""ngircd with Ada in a channel."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from ...contract import Place, Room
from ...facts import facts
from ...irc.adapter import Irc, Settings
from ..servers import found, free_port, serving
from ..stage import Stage
from .irc_person import Person

CONFIGURATION = """\
[Global]
Name = irc.test.local
Info = test
Listen = 127.0.0.1
Ports = {port}
ServerUID = {user}
ServerGID = {group}
PidFile = {folder}/pid
MotdPhrase = hello
{more}
[Options]
DNS = no
Ident = no
PAM = no
[Limits]
MaxConnectionsIP = 0
MaxPenaltyTime = 0
"""


class NgircdStage(Stage):
    """ngircd, with Ada in a channel."""

    channel = Irc
    facts = facts("irc")
    lines = False
    judge = "ngircd"

    def __init__(self, port: int, ada: Person) -> None:
        self._port = port
        self._ada = ada
        self.person = ada.mask.lower()

    def settings(self) -> Settings:
        return Settings(
            server="127.0.0.1",
            port=self._port,
            tls=False,
            nick="bot",
            channels=["#room"],
            burst=100,
        )

    def place(self, room: Room) -> Place:
        if room is Room.DIRECT:
            return Place("default", "ada")
        return Place("default", "#room", room=Room.PUBLIC)

    async def say(self, text: str, room: Room = Room.DIRECT) -> None:
        await self._ada.say("bot" if room is Room.DIRECT else "#room", text)

    async def seen(self, count: int, room: Room = Room.DIRECT) -> list[str]:
        return await self._ada.seen(count, self.place(room).peer)

    def mention(self, text: str) -> str:
        return f"bot: {text}"

    def nowhere(self) -> Place:
        return Place("default", "nobody-at-all")

    async def cut(self) -> None:
        self._ada.write("OPER root secret", "KILL bot :gone")


def configured(folder: Path, port: int, more: str = "") -> Path:
    """Write its configuration."""
    text = CONFIGURATION.format(
        port=port, user="root", group="root", folder=folder, more=more
    )
    path = folder / "ngircd.conf"
    path.write_text(text + "[Operator]\nName = root\nPassword = secret\n")
    path.chmod(0o600)
    return path


@asynccontextmanager
async def ngircd(folder: Path) -> AsyncIterator[NgircdStage]:
    """Open it in a folder."""
    port = free_port()
    argv = (*found("ngircd"), "-n", "-f", str(configured(folder, port)))
    async with serving(*argv, port=port), Person(port, "Ada", "#room") as ada:
        yield NgircdStage(port, ada)


@asynccontextmanager
async def opened() -> AsyncIterator[Stage]:
    """Open it."""
    with TemporaryDirectory() as folder:
        async with ngircd(Path(folder)) as stage:
            yield stage
