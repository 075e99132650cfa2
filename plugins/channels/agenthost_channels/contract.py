"""The contract of a channel: what an adapter is given, and what it gives back.

An adapter turns a vendor's bytes into :class:`Inbound` and :class:`Outbound` into the
vendor's calls. It never sees a turn, a session or the store: who may speak, which agent
answers, what is kept and what is tried again is the bridge's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from agenthost import NotFound
from pydantic import BaseModel

if TYPE_CHECKING:
    import ssl
    from asyncio import StreamReader, StreamWriter

    import httpx
    from agenthost import Clock, JsonObject, Secret


class Room(StrEnum):
    """Who hears what is said in a place: one person, a closed group, anybody."""

    DIRECT = "direct"
    GROUP = "group"
    PUBLIC = "public"


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is said: a conversation of its own.

    Args:
        account: Which of our accounts with the vendor it is.
        peer: The vendor's id of the person, group, room or channel.
        thread: The vendor's id of the thread in it, "" for none.
        room: Who hears it.
    """

    account: str
    peer: str
    thread: str = ""
    room: Room = Room.DIRECT


@dataclass(frozen=True, slots=True)
class Sender:
    """Who says it: the vendor's id, which never changes, and a name to show."""

    id: str
    name: str = ""
    bot: bool = False


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file somebody sent; ``reference`` is what the adapter needs to fetch it.

    It is kept as JSON before the file is fetched, so it holds no secret and nothing
    that ends with the connection. ``size`` is in bytes, None when not known.
    """

    name: str
    media_type: str
    reference: JsonObject
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Inbound:
    """A message of a person, as it came.

    Args:
        place: Where it was said.
        message_id: The vendor's id of it, the same each time the vendor sends it.
        sender: Who said it.
        text: What was said, as plain text; a mention of us at its start is taken away.
        sent_at: When, with its time zone, by the vendor's clock.
        attachments: The files with it.
        reply_to: The vendor's id of the message it answers, "" for none.
        mentions_us: Whether it speaks to us, by name or as an answer to ours.
        edited: Whether it replaces an earlier one of the same id.
    """

    place: Place
    message_id: str
    sender: Sender
    text: str
    sent_at: datetime
    attachments: tuple[Attachment, ...] = ()
    reply_to: str = ""
    mentions_us: bool = False
    edited: bool = False


@dataclass(frozen=True, slots=True)
class OutFile:
    """A file to send."""

    name: str
    media_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Outbound:
    """Something to say, in one call of the vendor's.

    Args:
        key: Its own id, the same each time it is tried: for vendors that know by it
            what they have already taken. Letters, digits, ``-``; at most 36.
        place: Where.
        text: In the vendor's own markup, within its limit; "" where there is only a
            file, a reaction or a sign of typing.
        plain: The same as plain text, for a vendor that refuses the markup.
        files: At most as many as the channel's facts allow.
        reply_to: The vendor's id of the message that this answers, "" for none.
        edit_of: The vendor's id of our own message that this replaces. While that
            grows, what replaces it has its key; the last has one of its own.
        reaction: An emoji to put on ``reply_to`` instead of saying something.
        typing: Only show that we are about to answer.
    """

    key: str
    place: Place
    text: str = ""
    plain: str = ""
    files: tuple[OutFile, ...] = ()
    reply_to: str = ""
    edit_of: str = ""
    reaction: str = ""
    typing: bool = False


class Fate(StrEnum):
    """What became of a message: there, certainly not there, or nobody knows."""

    DELIVERED = "delivered"
    NOT_SENT = "not_sent"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Sent:
    """What the adapter knows of a message it was to send.

    Args:
        fate: UNKNOWN when the request may have reached the vendor and no answer came.
        message_id: The vendor's id of it, where it was delivered.
        reason: In words for the operator, without a secret; why it was not.
        retry_after: Seconds that the vendor asks for before the next try.
        final: Whether the same message would be refused again: it is not tried again.
    """

    fate: Fate
    message_id: str = ""
    reason: str = ""
    retry_after: float | None = None
    final: bool = False


@dataclass(frozen=True, slots=True)
class Knock:
    """A request to the channel's public path ``/channels/<id>/...``, nothing parsed."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Opened:
    """What the vendor is answered once the messages are on disk, and before any turn.

    ``replay_key`` is what the same request has too when it comes again: the bridge
    answers it alike and takes nothing from it. "" where nothing tells them apart but
    the ids of their messages.
    """

    status: int = 200
    body: bytes = b""
    media_type: str = "text/plain"
    messages: tuple[Inbound, ...] = ()
    replay_key: str = ""


class Line(Protocol):
    """What the bridge gives an adapter: its settings, its ways out, and an ear.

    Attributes:
        account: The name of the account it serves, ``default`` where there is one.
        settings: What the configuration says, an instance of the adapter's model.
        clock: What time it is.
    """

    account: str
    settings: Any
    clock: Clock

    def secret(self, name: str) -> Secret | None:
        """Give a secret by its name in the adapter's ``secrets``; None without one."""

    def http(self) -> httpx.AsyncClient:
        """Give the client for the vendor's API: through egress, its hosts allowed."""

    async def connect(
        self, host: str, port: int, tls: ssl.SSLContext | None = None
    ) -> tuple[StreamReader, StreamWriter]:
        """Open a TCP connection to the vendor through the guards of what goes out.

        Raises:
            Blocked: The host is neither public nor allowed by the configuration.
            Unavailable: Nobody answers there.
        """

    @property
    def cursor(self) -> str:
        """How far the vendor's messages are on disk here; "" at the very first."""

    async def received(self, *messages: Inbound, cursor: str | None = None) -> None:
        """Keep messages, and the new cursor, in one commit.

        They are on disk when it returns: only then may the vendor be told so. A
        message whose id is known is passed over.
        """

    def connected(self) -> None:
        """Tell that messages come in and go out from now on."""

    def troubled(self, reason: str) -> None:
        """Tell what is wrong, in words for the operator, and that it goes on trying."""


class Adapter:
    """One account of a channel. A channel is a class of its own below this.

    One is made when the channel is enabled, and :meth:`run` again after each break,
    with back-off between. What it raises is told as its trouble; Unauthenticated ends
    it until its settings change.

    Attributes:
        settings: The model of ``[channels.<id>]``.
        secrets: What it needs to know, by name: the variable of the environment that
            holds it, unless the vault has it as ``channel.<id>.<name>``.
        needed: The names among ``secrets`` without which it cannot work.
        takes: The content types of webhooks that :meth:`open` is given.
        facts: What is known of the vendor; those of agenthost have theirs as data.
    """

    settings: ClassVar[type[BaseModel]]
    secrets: ClassVar[Mapping[str, str]] = {}
    needed: ClassVar[frozenset[str]] = frozenset()
    takes: ClassVar[frozenset[str]] = frozenset({"application/json"})
    facts: ClassVar[Facts | None] = None

    def __init__(self, line: Line) -> None:
        self.line = line

    @property
    def called(self) -> bool:
        """Whether the vendor calls our public path, as it is configured."""
        return False

    async def run(self) -> None:
        """Stay connected and hand on what comes; return or raise when that breaks.

        A channel that only hears by webhook says that it is connected, and waits.
        """
        raise NotImplementedError

    async def send(self, message: Outbound) -> Sent:
        """Send a message and tell what became of it; it never raises for a refusal."""
        raise NotImplementedError

    async def reconcile(self, message: Outbound) -> Sent:  # noqa: ARG002
        """Look whether a message of unknown fate has arrived, where one can look."""
        return Sent(Fate.UNKNOWN, reason="the vendor does not let one look")

    async def download(self, attachment: Attachment) -> bytes:
        """Fetch a file that somebody sent.

        Raises:
            NotFound: The vendor has it no more.
            TooLarge: It is larger than the client of :meth:`Line.http` lets through.
        """
        raise NotImplementedError

    async def open(self, knock: Knock) -> Opened:
        """Verify a webhook over its raw body, then read it.

        Raises:
            Unauthenticated: Its signature is missing, wrong or too old.
            InvalidInput: It is signed and makes no sense.
        """
        raise NotImplementedError

    async def greet(self, knock: Knock) -> Opened:
        """Answer a GET to the path by which a vendor sees that it is ours.

        Raises:
            NotFound: The vendor sends none.
            Unauthenticated: It does not show what the operator has told the vendor.
        """
        raise NotFound("path", knock.path)

    async def identity(self) -> str:
        """Ask the vendor who we are: what a test of the settings shows."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a vendor, as data; see ``facts/<id>.toml``.

    Args:
        id: The channel's.
        display_name: Its name for people.
        category: For lists.
        docs: The vendor's documentation of the API.
        status: ``alive``, or what became of it.
        dialect: The markup of its messages: a name of ``rendering``.
        limit: The longest message, in ``unit``s, after rendering.
        unit: ``characters``, ``utf16``, ``graphemes`` or ``bytes``.
        limits: Longer ones, by the value of :class:`Room`, where those are taken.
        edits: Whether a message of ours can be changed: an answer can stream.
        edit_every: Seconds between two edits, at least.
        reactions: Whether we can put an emoji on a message.
        typing_every: How long a sign of typing lasts, in seconds; 0 for none.
        threads: Whether a conversation has threads.
        files: How many files a message may carry, 0 for none.
        file_bytes: The largest file, in bytes.
        repeatable: Whether the vendor knows a message it has taken by its key.
        per_second: Messages a second in all, and ``per_peer`` in one conversation.
        untried: Whether it was never tried against the live service.
    """

    id: str
    display_name: str
    category: str
    docs: str
    status: str = "alive"
    dialect: str = "plain"
    limit: int = 4000
    unit: str = "characters"
    limits: Mapping[str, int] = field(default_factory=dict)
    edits: bool = False
    edit_every: float = 1.0
    reactions: bool = False
    typing_every: float = 0.0
    threads: bool = False
    files: int = 0
    file_bytes: int = 0
    repeatable: bool = False
    per_second: float = 20.0
    per_peer: float = 1.0
    untried: bool = True

    def limit_in(self, room: Room) -> int:
        """Tell the longest message that a room takes."""
        return self.limits.get(room.value, self.limit)
