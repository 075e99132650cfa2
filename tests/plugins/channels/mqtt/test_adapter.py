"""What comes again is known again, and any bytes are a packet or none."""

import asyncio
import struct

import pytest
from agenthost import Unauthenticated, Unavailable
from agenthost_channels.contract import Fate, Outbound, Place
from agenthost_channels.mqtt.adapter import Mqtt, Settings
from agenthost_channels.testing import FakeLine
from agenthost_channels.transports.mqtt import (
    Login,
    MqttStream,
    Packet,
    acknowledged,
    published,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

TOPIC = b"agenthost/ada/in"


def options() -> Settings:
    return Settings(host="127.0.0.1", tls=False)


def publication(payload: bytes, packet_id: int, *, again: bool = False) -> Packet:
    body = (
        struct.pack("!H", len(TOPIC)) + TOPIC + struct.pack("!H", packet_id) + payload
    )
    return Packet(3, 0x02 | (0x08 if again else 0), body)


class Sink:
    """A stream's writer that forgets."""

    def is_closing(self) -> bool:
        return True


async def taken(adapter: Mqtt, *packets: Packet) -> list[str]:
    stream = MqttStream(asyncio.StreamReader(), Sink(), 100)  # type: ignore[arg-type]  # only asked whether it is closing
    for packet in packets:
        await adapter._take(stream, packet)
    assert isinstance(adapter.line, FakeLine)
    return [each.message_id for each in adapter.line.heard]


async def test_what_comes_again_has_the_id_it_had() -> None:
    adapter = Mqtt(FakeLine(options()))
    ids = await taken(adapter, publication(b"hi", 5), publication(b"hi", 5, again=True))
    assert len(ids) == 1


async def test_the_same_words_are_another_message() -> None:
    adapter = Mqtt(FakeLine(options()))
    ids = await taken(adapter, publication(b"hi", 5), publication(b"hi", 5))
    assert len(set(ids)) == 2


async def test_what_names_itself_is_known_by_its_name() -> None:
    adapter = Mqtt(FakeLine(options()))
    named = b'{"id": "m1", "text": "hi"}'
    assert await taken(adapter, publication(named, 5), publication(named, 6)) == [
        "id-m1"
    ]


async def test_what_was_kept_for_newcomers_is_not_heard() -> None:
    adapter = Mqtt(FakeLine(options()))
    kept = publication(b"old", 5)
    assert await taken(adapter, Packet(3, kept.flags | 1, kept.body)) == []


@settings(max_examples=40)
@given(st.integers(0, 15), st.integers(0, 15), st.none() | st.binary(max_size=60))
def test_any_bytes_are_a_message_or_none(
    kind: int, flags: int, body: bytes | None
) -> None:
    packet = Packet(kind, flags, body)
    published(packet)
    assert acknowledged(packet) >= 0


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"\x20\x02\x00\x05", Unauthenticated),
        (b"\x20\x02\x00\x02", Unavailable),
        (b"\xff\xff\xff\xff\xff\xff", Unavailable),
        (b"HTTP/1.1 400 Bad\r\n", Unavailable),
        (b"", Unavailable),
    ],
    ids=["password", "client", "length", "http", "nothing"],
)
async def test_what_is_no_welcome_is_told(
    answer: bytes, error: type[Exception]
) -> None:
    reader = asyncio.StreamReader()
    reader.feed_data(answer)
    reader.feed_eof()
    stream = MqttStream(reader, Sink(), 100)  # type: ignore[arg-type]  # only asked whether it is closing
    with pytest.raises(error):
        await stream.log_in(Login("us"))


@pytest.mark.parametrize("peer", ["a/b", "+", "#", "", "a b", "a\0"])
async def test_a_peer_is_one_level_of_a_topic(peer: str) -> None:
    adapter = Mqtt(FakeLine(options()))
    sent = await adapter.send(Outbound("k", Place("default", peer), "hi"))
    assert (sent.fate, sent.final) == (Fate.NOT_SENT, True)


def test_nobody_talks_to_themselves() -> None:
    with pytest.raises(ValidationError, match="speak is among the topics"):
        Settings(host="x", listen="a/{peer}/b", speak="a/{peer}/b")
