"""MQTT 3.1.1 over a stream that is handed in: what a client of QoS 1 needs.

Source: https://docs.oasis-open.org/mqtt/mqtt/v3.1.1/mqtt-v3.1.1.html. The libraries
there are open their sockets themselves, past the guards of what goes out.
"""

from __future__ import annotations

import asyncio
import struct
from dataclasses import dataclass

from agenthost import Unauthenticated, Unavailable

CONNACK, PUBLISH, PUBACK, SUBACK, PINGRESP = 2, 3, 4, 9, 13
KEEP_ALIVE = 60
ANSWER_SECONDS = 30.0
_CHUNK = 65_536
_REFUSALS = {
    1: "it speaks no MQTT 3.1.1",
    2: "it refuses the client_id; choose another",
    3: "it is not there for us now",
}


@dataclass(frozen=True, slots=True)
class Login:
    """As whom a client connects."""

    client_id: str
    user: str = ""
    password: str = ""


@dataclass(frozen=True, slots=True)
class Packet:
    """What a broker sends; a body that was too large is None."""

    kind: int
    flags: int
    body: bytes | None


@dataclass(frozen=True, slots=True)
class Publication:
    """A message of a topic."""

    topic: str
    payload: bytes
    packet_id: int
    again: bool
    retained: bool


class MqttStream:
    """Packets over a stream."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, largest: int
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._largest = largest

    async def log_in(self, login: Login) -> None:
        """Connect with a session that outlives the connection.

        Raises:
            Unauthenticated: The broker refuses user or password.
            Unavailable: It refuses something else.
        """
        flags = 0
        fields = [login.client_id]
        if login.user:
            flags |= 0x80
            fields.append(login.user)
        if login.password:
            flags |= 0x40
            fields.append(login.password)
        head = _text("MQTT") + struct.pack("!BBH", 4, flags, KEEP_ALIVE)
        self._write(0x10, head + b"".join(map(_text, fields)))
        packet = await self.read()
        if packet.kind != CONNACK or not packet.body or len(packet.body) != 2:
            raise Unavailable("the MQTT broker does not answer as one")
        if (code := packet.body[1]) in {4, 5}:
            raise Unauthenticated("the MQTT broker refuses user or password")
        if code:
            reason = _REFUSALS.get(code, "it says no more")
            raise Unavailable(f"the MQTT broker refuses us: {reason}")

    async def subscribe(self, topics: str) -> list[Packet]:
        """Ask for topics; what else came before the answer is given back.

        Raises:
            Unauthenticated: We may not read them.
        """
        self._write(0x82, struct.pack("!H", 1) + _text(topics) + b"\x01")
        before: list[Packet] = []
        while (packet := await self.read()).kind != SUBACK:
            before.append(packet)
        if not packet.body or packet.body[-1] & 0x80:
            raise Unauthenticated("the MQTT broker does not let us read our topics")
        return before

    def publish(self, topic: str, payload: bytes, packet_id: int) -> None:
        """Send a message that the broker is to acknowledge."""
        self._write(0x32, _text(topic) + struct.pack("!H", packet_id) + payload)

    def acknowledge(self, packet_id: int) -> None:
        """Tell the broker that a message is ours from now on."""
        self._write(0x40, struct.pack("!H", packet_id))

    def ping(self) -> None:
        """Ask for a sign of life."""
        self._write(0xC0, b"")

    def _write(self, head: int, body: bytes) -> None:
        if not self._writer.is_closing():
            self._writer.write(bytes([head]) + _length(len(body)) + body)

    async def read(self) -> Packet:
        """Read the next packet.

        Raises:
            Unavailable: The connection has ended, or this is no MQTT.
        """
        try:
            head = (await self._reader.readexactly(1))[0]
            size = await self._size()
            if size <= self._largest:
                body = await self._reader.readexactly(size)
                return Packet(head >> 4, head & 15, body)
            start = await self._reader.readexactly(_CHUNK)
            size -= _CHUNK
            while size:
                size -= len(await self._reader.readexactly(min(size, _CHUNK)))
        except (asyncio.IncompleteReadError, OSError) as error:
            raise Unavailable("the MQTT broker has hung up") from error
        # Enough of it to tell which message was too large.
        publication = published(Packet(head >> 4, head & 15, start))
        if publication is not None and publication.packet_id:
            self.acknowledge(publication.packet_id)
        return Packet(head >> 4, head & 15, None)

    async def _size(self) -> int:
        size = 0
        for shift in range(0, 28, 7):
            byte = (await self._reader.readexactly(1))[0]
            size |= (byte & 0x7F) << shift
            if byte < 0x80:
                return size
        raise Unavailable("the MQTT broker's packet has no length")

    def close(self) -> None:
        """Say goodbye, where that still goes, and close."""
        self._write(0xE0, b"")
        self._writer.close()


def published(packet: Packet) -> Publication | None:
    """Read a message; None where the packet is another, or makes no sense."""
    body = packet.body
    if packet.kind != PUBLISH or body is None or len(body) < 2:
        return None
    end = 2 + int.from_bytes(body[:2], "big")
    quality = packet.flags >> 1 & 3
    rest = body[end:]
    if end > len(body) or (quality and len(rest) < 2):
        return None
    packet_id = int.from_bytes(rest[:2], "big") if quality else 0
    return Publication(
        body[2:end].decode("utf-8", "replace"),
        rest[2:] if quality else rest,
        packet_id,
        bool(packet.flags & 8),
        bool(packet.flags & 1),
    )


def acknowledged(packet: Packet) -> int:
    """Tell which message of ours the broker has taken, 0 for none."""
    if packet.kind != PUBACK or packet.body is None:
        return 0
    return int.from_bytes(packet.body[:2], "big")


def _text(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("!H", len(raw)) + raw


def _length(size: int) -> bytes:
    out = bytearray()
    while True:
        size, byte = divmod(size, 128)
        out.append(byte | 0x80 if size else byte)
        if not size:
            return bytes(out)
