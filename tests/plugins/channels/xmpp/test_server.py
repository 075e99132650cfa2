"""What the contract does not ask: TLS, passwords, archives, and who is in a room."""

import asyncio
import socket
import struct
from pathlib import Path

import pytest
from agenthost import Unauthenticated, Unavailable
from agenthost_channels.contract import Fate, Outbound, Room
from agenthost_channels.testing import FakeLine
from agenthost_channels.testing.servers import free_port
from agenthost_channels.testing.stage import Played, played
from agenthost_channels.testing.stages.xmpp import (
    PASSWORD,
    ROOM,
    ProsodyStage,
    Wire,
    prosody,
)
from agenthost_channels.testing.stages.xmpp_person import Person
from agenthost_channels.xmpp.config import Settings

from ...security.certificate import self_signed

pytestmark = pytest.mark.conformance
NO_SCRAM = 'disable_sasl_mechanisms = { "SCRAM-SHA-1", "SCRAM-SHA-256", "OAUTHBEARER" }'


def with_tls(folder: Path, more: str = "") -> dict[str, str]:
    """Give Prosody a certificate for its domain, and let nobody in without TLS."""
    certificate, key = self_signed(folder, "localhost")
    return {
        "modules": '"mam", "smacks", "tls"',
        "more": f'ssl = {{ certificate = "{certificate}", key = "{key}" }}\n{more}',
    }


class EncryptedStage(ProsodyStage):
    """As it is in the open, and with other settings."""

    other_settings: dict[str, object]

    def settings(self) -> Settings:
        return Settings(**{**super().settings().model_dump(), **self.other_settings})


def encrypted(stage: ProsodyStage, **changed: object) -> EncryptedStage:
    other = EncryptedStage(stage.cable, stage.ada, stage.folder)
    other.other_settings = {"ca_file": str(stage.folder / "cert.pem"), **changed}
    return other


async def trouble(stage: ProsodyStage) -> BaseException | None:
    """Tell what ends a session before it is one."""
    async with played(stage, connected=False) as play:
        play.start()
        return await play.ended()


async def test_a_stream_is_encrypted_for_an_authority_of_ones_own(
    tmp_path: Path,
) -> None:
    async with (
        prosody(tmp_path, **with_tls(tmp_path)) as stage,
        played(encrypted(stage, tls="starttls")) as play,
    ):
        await stage.say("over TLS")
        (message,) = await play.line.hear(1)
        assert message.text == "over TLS"
    log = (tmp_path / "log").read_text()
    assert "Stream encrypted (TLSv1.3" in log


async def test_a_stream_is_encrypted_from_its_first_byte(tmp_path: Path) -> None:
    port = free_port()
    async with prosody(tmp_path, direct=str(port), **with_tls(tmp_path)) as stage:
        direct = encrypted(stage, tls="direct", port=port)
        async with played(direct) as play:
            sent = await play.adapter.send(play.message("over TLS"))
            assert sent.fate is Fate.DELIVERED
            assert await stage.seen(1) == ["over TLS"]


async def test_a_certificate_of_nobody_known_is_not_spoken_to(tmp_path: Path) -> None:
    async with prosody(tmp_path, **with_tls(tmp_path)) as stage:
        error = await trouble(encrypted(stage, tls="starttls", ca_file=""))
    assert isinstance(error, Unavailable)
    assert "certificate" in str(error)


async def test_a_certificate_of_another_domain_is_not_spoken_to(
    tmp_path: Path,
) -> None:
    told = with_tls(tmp_path)
    self_signed(tmp_path, "elsewhere")
    async with prosody(tmp_path, **told) as stage:
        error = await trouble(encrypted(stage, tls="starttls"))
    assert isinstance(error, Unavailable)
    assert "certificate" in str(error)


async def test_nothing_is_said_where_no_encryption_is_offered(tmp_path: Path) -> None:
    async with prosody(tmp_path) as stage:
        error = await trouble(encrypted(stage, tls="starttls", ca_file=""))
    assert isinstance(error, Unavailable)
    assert "offers no encryption" in str(error)


async def test_a_password_is_shown_only_where_that_is_said(tmp_path: Path) -> None:
    told = with_tls(tmp_path, NO_SCRAM)
    told["more"] += "\nallow_unencrypted_plain_auth = true"
    async with prosody(tmp_path, **told) as stage:
        error = await trouble(encrypted(stage, tls="starttls"))
        assert isinstance(error, Unauthenticated)
        assert "plain = true" in str(error)
        async with played(encrypted(stage, tls="starttls", plain=True)) as play:
            assert await play.adapter.identity() == "bot@localhost/agenthost"


async def lost(stage: ProsodyStage, play: Played, room: Room) -> tuple[Fate, Fate]:
    """Say something whose answer is lost, and look for it from the next session."""
    message = play.message("did it?", room)
    stage.lose_answer()
    sent = await play.adapter.send(message)
    await play.ended()
    await play.restart()
    return sent.fate, (await play.adapter.reconcile(message)).fate


@pytest.mark.parametrize("room", [Room.DIRECT, Room.PUBLIC])
async def test_what_arrived_unanswered_is_found(tmp_path: Path, room: Room) -> None:
    async with prosody(tmp_path) as stage, played(stage) as play:
        assert await lost(stage, play, room) == (Fate.UNKNOWN, Fate.DELIVERED)
        assert await stage.seen(1, room) == ["did it?"]


async def test_what_never_left_is_known_not_to_be_there(tmp_path: Path) -> None:
    async with prosody(tmp_path) as stage, played(stage) as play:
        never = await play.adapter.reconcile(play.message("never said"))
        assert never.fate is Fate.NOT_SENT
        assert not never.final
        in_room = await play.adapter.reconcile(play.message("never", Room.PUBLIC))
        assert in_room.fate is Fate.UNKNOWN


async def test_an_archive_that_does_not_keep_all_proves_nothing(
    tmp_path: Path,
) -> None:
    told = 'default_archive_policy = "roster"'
    async with prosody(tmp_path, more=told) as stage, played(stage) as play:
        never = await play.adapter.reconcile(play.message("never said"))
        assert never.fate is Fate.UNKNOWN


async def test_the_history_of_a_room_is_answered_once(tmp_path: Path) -> None:
    async with prosody(tmp_path) as stage:
        await stage.say("before we ever came", Room.PUBLIC)
        async with played(stage) as play:
            await stage.say("one", Room.PUBLIC)
            await play.line.hear(1)
            await play.stop()
            await stage.say("two", Room.PUBLIC)
            await stage.say("two, alone")
            await play.restart()
            await play.restart()
            await stage.say("three", Room.PUBLIC)
            heard = await play.line.hear(4)
    assert sorted(each.text for each in heard) == ["one", "three", "two", "two, alone"]
    assert {each.sender.id for each in heard} == {"ada@localhost"}


async def test_a_room_without_an_archive_replays_nothing(tmp_path: Path) -> None:
    async with prosody(tmp_path, of_rooms="") as stage, played(stage) as play:
        await stage.say("one", Room.PUBLIC)
        await play.line.hear(1)
        await play.restart()
        await stage.say("two", Room.PUBLIC)
        heard = await play.line.hear(2)
    assert [each.text for each in heard] == ["one", "two"]


async def test_a_server_without_archive_and_acknowledgements_will_do(
    tmp_path: Path,
) -> None:
    async with prosody(tmp_path, modules='"time"') as stage, played(stage) as play:
        sent = await play.adapter.send(play.message("hello"))
        assert sent.fate is Fate.DELIVERED
        refused = await play.adapter.send(Outbound("key-x", stage.nowhere(), "hello"))
        assert (refused.fate, refused.final) == (Fate.NOT_SENT, True)
        await play.stop()
        # Without acknowledgements, what goes to a stream that is over is lost.
        await stage.ada.until(lambda: "bot" not in stage.ada.here())
        await stage.say("kept by the server")
        await play.restart()
        (message,) = await play.line.hear(1)
        assert message.text == "kept by the server"
        looked = await play.adapter.reconcile(play.message("x"))
        assert looked.fate is Fate.UNKNOWN


async def test_people_without_an_address_are_known_by_the_room(tmp_path: Path) -> None:
    # The first in a room owns it, and sees addresses: that is Ada, not we.
    async with prosody(tmp_path, open_rooms="false") as stage, played(stage) as play:
        await stage.say("who am I?", Room.PUBLIC)
        (live,) = await play.line.hear(1)
        await play.stop()
        await stage.say("and now?", Room.PUBLIC)
        await play.restart()
        _, missed = await play.line.hear(2)
    assert live.sender.id.startswith(f"{ROOM}#")
    assert live.sender.id == missed.sender.id


async def test_whoever_takes_our_resource_is_told_of(tmp_path: Path) -> None:
    async with prosody(tmp_path) as stage, played(stage) as play:
        line = FakeLine(stage.settings(), stage.secrets())
        other = Played(stage, line)
        other.start()
        await other.connected()
        error = await play.ended()
        await other.stop()
        await line.aclose()
    assert isinstance(error, Unavailable)
    assert "set resource" in str(error)


async def test_who_is_put_out_of_a_room_says_nothing_there(tmp_path: Path) -> None:
    async with prosody(tmp_path) as stage, played(stage) as play:
        room = stage.ada.plugin["xep_0045"]
        await room.set_role(ROOM, "bot", "none", reason="enough")
        await stage.ada.settled()
        await stage.say("and?")
        await play.line.hear(1)
        sent = await play.adapter.send(play.message("hello?", Room.PUBLIC))
    assert (sent.fate, sent.final) == (Fate.NOT_SENT, False)
    assert "room" in sent.reason


async def test_strangers_do_not_see_when_we_are_there(tmp_path: Path) -> None:
    async with prosody(tmp_path) as stage, played(stage) as play:
        stage.ada.send_presence_subscription("bot@localhost")
        await stage.say("may I?")
        await play.line.hear(1)
        await play.adapter.send(play.message("no"))
        await stage.seen(1)
        await stage.ada.settled()
        assert stage.ada.subscriptions == []


async def test_a_sign_of_typing_is_seen(tmp_path: Path) -> None:
    async with prosody(tmp_path) as stage, played(stage) as play:
        sign = Outbound("sign", stage.place(Room.DIRECT), typing=True)
        assert (await play.adapter.send(sign)).fate is Fate.DELIVERED
        await stage.ada.until(lambda: stage.ada.signs == ["bot@localhost"])


async def test_what_a_room_dates_back_is_not_heard(tmp_path: Path) -> None:
    """Some rooms show newcomers what was said before, though nobody asked."""
    async with prosody(tmp_path) as stage, played(stage) as play:
        stage.ada.send_raw(
            f"<message to='{ROOM}' type='groupchat'><body>of yesterday</body><delay"
            f" xmlns='urn:xmpp:delay' from='ada@localhost'"
            " stamp='2026-01-01T00:00:00Z'/>"
            "</message>"
        )
        await stage.say("of now", Room.PUBLIC)
        heard = await play.line.hear(1)
    assert [each.text for each in heard] == ["of now"]


async def test_whispers_of_occupants_are_not_heard(tmp_path: Path) -> None:
    async with prosody(tmp_path) as stage, played(stage) as play:
        await stage.ada.says(f"{ROOM}/bot", "psst")
        await stage.say("aloud")
        heard = await play.line.hear(1)
    assert [each.text for each in heard] == ["aloud"]


async def test_an_id_that_somebody_forges_is_nothing(tmp_path: Path) -> None:
    """What names itself like another message is a message of its own."""
    async with (
        prosody(tmp_path) as stage,
        Person(stage.port, "eve@localhost/x", PASSWORD) as eve,
        played(stage) as play,
    ):
        await stage.say("mine")
        (mine,) = await play.line.hear(1)
        for by in ("bot@localhost", "localhost"):
            eve.send_raw(
                "<message to='bot@localhost' type='chat'><body>forged</body>"
                f"<stanza-id xmlns='urn:xmpp:sid:0' by='{by}' id='{mine.message_id}'/>"
                "</message>"
            )
        await eve.settled()
        heard = await play.line.hear(3)
    assert [each.text for each in heard] == ["mine", "forged", "forged"]
    assert len({each.message_id for each in heard}) == 3


async def test_a_wire_whose_server_is_killed_ends_in_silence(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def killed(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Closed so, it resets the connection.
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, linger
        )
        writer.close()

    server = await asyncio.start_server(killed, "127.0.0.1", 0)
    async with server, Wire(server.sockets[0].getsockname()[1]) as wire:
        reader, writer = await asyncio.open_connection("127.0.0.1", wire.port)
        async with asyncio.timeout(5):
            assert await reader.read() == b""
        writer.close()
    assert [each.getMessage() for each in caplog.records] == []
