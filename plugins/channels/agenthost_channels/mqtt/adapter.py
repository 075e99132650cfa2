"""MQTT by topics: ``chat/{peer}/in`` is heard, ``chat/{peer}/out`` is spoken to.

MQTT does not say who published something. The conversation, and who speaks in it, is
the ``{peer}`` of the topic: the broker's access list decides who may write there.

The session with the broker outlives a connection: what is said meanwhile comes
afterwards, and again when it was not acknowledged, which is done when it is on disk.
The cursor is what was taken last, to know it when it comes again.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import secrets
from typing import Any, ClassVar

from agenthost import Unavailable
from pydantic import BaseModel, Field, model_validator

from ..contract import (
    Adapter,
    Fate,
    Inbound,
    Line,
    Outbound,
    Place,
    Room,
    Sender,
    Sent,
)
from ..transports.mqtt import (
    ANSWER_SECONDS,
    KEEP_ALIVE,
    Login,
    MqttStream,
    Packet,
    Publication,
    acknowledged,
    published,
)
from ..transports.tls import trusting

CONNECT_SECONDS = 60.0
# Brokers have twenty messages or so on their way at once.
REMEMBERED = 64
MOST_PACKETS = 65_535
_PEER = re.compile(r"[^\s\x00-\x1f\x7f/+#]{1,200}")
_TEMPLATE = r"^[^+#\x00]*\{peer\}[^+#\x00]*$"
_ID = re.compile(r"[\x21-\x7e]{1,200}")


class Settings(BaseModel, defer_build=True):
    """Settings of ``[channels.mqtt]``."""

    host: str = Field(description="Name of the broker")
    port: int = Field(8883, ge=1, le=65535)
    tls: bool = Field(default=True, description="Encrypt; the certificate is checked")
    ca_file: str = Field("", description="Authority of a broker of your own, as PEM")
    user: str = Field("", description="Name to log in with")
    client_id: str = Field("agenthost", min_length=1, description="Of the session")
    listen: str = Field("agenthost/{peer}/in", pattern=_TEMPLATE)
    speak: str = Field("agenthost/{peer}/out", pattern=_TEMPLATE)
    format: str = Field("json", pattern="^(json|text)$", description="What is spoken")
    room: Room = Field(Room.DIRECT, description="Who hears a topic of ours")
    max_bytes: int = Field(
        256_000, ge=65_536, description="Largest message that is read"
    )

    @model_validator(mode="after")
    def _never_to_ourselves(self) -> Settings:
        if _pattern(self.listen).fullmatch(self.speak.replace("{peer}", "x")):
            raise ValueError("speak is among the topics of listen; name another")
        return self


class Mqtt(Adapter):
    """One session with one broker."""

    settings = Settings
    secrets: ClassVar = {"password": "MQTT_PASSWORD"}  # nosec B105 # a name

    def __init__(self, line: Line) -> None:
        super().__init__(line)
        self._options: Settings = line.settings
        self._topics = _pattern(self._options.listen)
        self._stream: MqttStream | None = None
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._last_id = 1

    async def run(self) -> None:
        """Connect, ask for the topics, and read until the connection ends."""
        options = self._options
        tls = trusting(options.ca_file) if options.tls else None
        password = self.line.secret("password")
        login = Login(
            options.client_id, options.user, password.reveal() if password else ""
        )
        async with asyncio.timeout(CONNECT_SECONDS):
            streams = await self.line.connect(options.host, options.port, tls)
        stream = MqttStream(*streams, largest=options.max_bytes)
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await stream.log_in(login)
                topics = options.listen.replace("{peer}", "+")
                early = await stream.subscribe(topics)
            self._stream = stream
            self.line.connected()
            for packet in early:
                await self._take(stream, packet)
            await self._listen(stream)
        finally:
            self._stream = None
            for future in self._waiting.values():
                future.cancel()
            self._waiting.clear()
            stream.close()

    async def _listen(self, stream: MqttStream) -> None:
        quiet = False
        while True:
            try:
                async with asyncio.timeout(KEEP_ALIVE / 2):
                    packet = await stream.read()
            except TimeoutError:
                if quiet:
                    raise Unavailable("the MQTT broker has fallen silent") from None
                quiet = True
                stream.ping()
                continue
            quiet = False
            await self._take(stream, packet)

    async def _take(self, stream: MqttStream, packet: Packet) -> None:
        future = self._waiting.get(acknowledged(packet))
        if future is not None and not future.done():
            future.set_result(None)
        if (publication := published(packet)) is None:
            return
        known = _known(self.line.cursor)
        message, mark = self._message(publication, known)
        if message is not None:
            cursor = json.dumps([*known, mark][-REMEMBERED:])
            await self.line.received(message, cursor=cursor)
        if publication.packet_id:
            stream.acknowledge(publication.packet_id)

    def _message(
        self, publication: Publication, known: list[list[Any]]
    ) -> tuple[Inbound | None, list[Any]]:
        """Read a message, and make the mark by which it is known the next time."""
        digest = hashlib.sha256(
            publication.topic.encode() + b"\0" + publication.payload
        ).hexdigest()[:16]
        peer = self._topics.fullmatch(publication.topic)
        mark = [publication.packet_id, digest, secrets.token_hex(8)]
        # What the broker kept for newcomers was said to somebody else, some time ago.
        if peer is None or publication.retained or not _PEER.fullmatch(peer[1]):
            return None, mark
        if publication.again:
            mark[2] = next((id_ for *by, id_ in known if by == mark[:2]), mark[2])
        said = _said(publication.payload)
        text = str(said.get("text") or "")
        if not text.strip():
            return None, mark
        given, name = said.get("id"), said.get("name")
        named = f"id-{given}" if _ID.fullmatch(str(given or "")) else str(mark[2])
        return (
            Inbound(
                Place(self.line.account, peer[1], "", self._options.room),
                named,
                Sender(peer[1], name[:100] if isinstance(name, str) else ""),
                text,
                self.line.clock.now(),
                mentions_us=True,
            ),
            mark,
        )

    async def send(self, message: Outbound) -> Sent:
        """Publish a text; the broker's acknowledgement is that it arrived."""
        peer = message.place.peer
        if message.typing or message.reaction or message.edit_of:
            return Sent(Fate.NOT_SENT, reason="MQTT has no such thing", final=True)
        if not _PEER.fullmatch(peer):
            reason = "a peer is one level of a topic, without + # /"
            return Sent(Fate.NOT_SENT, reason=reason, final=True)
        if (stream := self._stream) is None:
            return Sent(Fate.NOT_SENT, reason="not connected")
        packet_id = self._next_id()
        answered = asyncio.get_running_loop().create_future()
        self._waiting[packet_id] = answered
        topic = self._options.speak.replace("{peer}", peer)
        stream.publish(topic, self._payload(message), packet_id)
        await asyncio.wait([answered], timeout=ANSWER_SECONDS)
        self._waiting.pop(packet_id, None)
        if answered.done() and not answered.cancelled():
            return Sent(Fate.DELIVERED, message_id=message.key)
        return Sent(Fate.UNKNOWN, reason="the MQTT broker did not acknowledge it")

    def _next_id(self) -> int:
        """Choose a number that no message on its way has; 1 is the subscription's."""
        while True:
            self._last_id = self._last_id % MOST_PACKETS + 1
            if self._last_id > 1 and self._last_id not in self._waiting:
                return self._last_id

    def _payload(self, message: Outbound) -> bytes:
        text = message.plain or message.text
        if self._options.format == "text":
            return text.encode()
        told = {"id": message.key, "text": text}
        if message.reply_to:
            told["reply_to"] = message.reply_to.removeprefix("id-")
        return json.dumps(told, ensure_ascii=False).encode()

    async def identity(self) -> str:
        """Tell the name of our session, once the broker has taken it."""
        if self._stream is None:
            raise Unavailable("not connected to the MQTT broker")
        return f"{self._options.client_id} at {self._options.host}"


def _pattern(template: str) -> re.Pattern[str]:
    before, _, after = template.partition("{peer}")
    return re.compile(f"{re.escape(before)}([^/]+){re.escape(after)}")


def _said(payload: bytes) -> dict[str, Any]:
    """Read JSON with a ``text``; all else is the text itself."""
    text = payload.decode("utf-8", "replace")
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return {"text": text}
    if isinstance(said, dict) and isinstance(said.get("text"), str):
        return said
    return {"text": text}


def _known(cursor: str) -> list[list[Any]]:
    """Read the marks of what was taken last."""
    marks: list[list[Any]] = json.loads(cursor) if cursor else []
    return marks
