"""The adapter keeps the contract with a real server."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
from agenthost_channels.contract import Place, Room
from agenthost_channels.facts import facts
from agenthost_channels.irc.adapter import Irc, Settings
from agenthost_channels.testing import ChannelContract, Stage
from agenthost_channels.testing.care import CareContract

from ..servers import found, free_port, serving
from .person import Person

pytestmark = pytest.mark.conformance

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
{password}
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

    def __init__(self, port: int, ada: Person, password: str = "") -> None:
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


def configured(folder: Path, port: int, password: str = "") -> Path:
    text = CONFIGURATION.format(
        port=port, user="root", group="root", folder=folder, password=password
    )
    path = folder / "ngircd.conf"
    path.write_text(text + "[Operator]\nName = root\nPassword = secret\n")
    path.chmod(0o600)
    return path


class TestIrcWithNgircd(ChannelContract):
    """All of it."""

    @pytest.fixture
    async def stage(self, tmp_path: Path) -> AsyncIterator[Stage]:
        port = free_port()
        argv = (*found("ngircd"), "-n", "-f", str(configured(tmp_path, port)))
        async with serving(*argv, port=port), Person(port, "Ada", "#room") as ada:
            yield NgircdStage(port, ada)


class PasswordStage(NgircdStage):
    """ngircd with a password of its own."""

    def settings(self) -> Settings:
        return super().settings().model_copy(update={"login": "pass"})

    def secrets(self) -> Mapping[str, str]:
        return {"password": "hunter2-canary"}

    def wrong_secrets(self) -> Mapping[str, str]:
        return {"password": "wrong-canary"}


class TestIrcWithAPassword:
    """What the contract says of secrets, with a server that wants one."""

    @pytest.fixture
    async def stage(self, tmp_path: Path) -> AsyncIterator[Stage]:
        port = free_port()
        file = configured(tmp_path, port, "Password = hunter2-canary")
        async with serving(*found("ngircd"), "-n", "-f", str(file), port=port):
            yield PasswordStage(port, Person(port, "Ada"))

    test_right = CareContract.test_it_tells_that_it_is_connected
    test_wrong = CareContract.test_wrong_secrets_are_told_and_not_shown
