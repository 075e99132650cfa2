"""Messages of XMPP, read: pure translation of elements.

Sources: RFC 6121, XEP-0045 (rooms), 0066 (files), 0203 (delay), 0308 (corrections),
0313 (archives), 0359 (ids), 0380 (encryption), 0421 (occupants).
"""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ..contract import Sender

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element  # nosec B405 # a type; nothing is parsed

CLIENT = "jabber:client"
SID = "urn:xmpp:sid:0"
MAM = "urn:xmpp:mam:2"
MUC_USER = "http://jabber.org/protocol/muc#user"
DELAY = "urn:xmpp:delay"
CORRECTION = "{urn:xmpp:message-correct:0}replace"
ENCRYPTION = "{urn:xmpp:eme:0}encryption"
OOB = "jabber:x:oob"
OCCUPANT = "{urn:xmpp:occupant-id:0}occupant-id"
SHOWN_ID = re.compile(r"[\x21-\x7e]{1,200}")
_WEB = re.compile("https?://", re.IGNORECASE)
_ID_LETTERS = 32


@dataclass(frozen=True, slots=True)
class Said:
    """A message with words in it, or a file.

    Args:
        sender: The whole address it is from.
        kind: ``chat`` or ``groupchat``.
        id: What its sender calls it, "" for nothing.
        words: Its body.
        xml: All of it.
    """

    sender: str
    kind: str
    id: str
    words: str
    xml: Element

    @property
    def bare(self) -> str:
        """The address without the resource: the person or the room."""
        return self.sender.partition("/")[0]

    @property
    def nick(self) -> str:
        """What stands behind the slash: somebody's nick in a room."""
        return self.sender.partition("/")[2]

    @property
    def files(self) -> tuple[str, ...]:
        """The addresses of the files with it."""
        told = self.xml.iterfind(f"{{{OOB}}}x/{{{OOB}}}url")
        found = [(each.text or "").strip() for each in told]
        return tuple(dict.fromkeys(each for each in found if _WEB.match(each)))

    @property
    def text(self) -> str:
        """What is said: to write a file's address once more is to say nothing."""
        return "" if self.words.strip() in self.files else self.words

    @property
    def replaces(self) -> str | None:
        """What its sender calls the message that it replaces, None for no such."""
        replaced = self.xml.find(CORRECTION)
        return None if replaced is None else replaced.get("id", "")

    @property
    def encrypted(self) -> bool:
        """Whether its words only tell that one cannot read it."""
        return self.xml.find(ENCRYPTION) is not None

    def kept_as(self, archive: str) -> str:
        """Tell the id that an archive has given it, "" for none.

        Servers put it at the end, and Prosody leaves what somebody forged before it.
        """
        for each in reversed(self.xml.findall(f"{{{SID}}}stanza-id")):
            if each.get("by", "").lower() == archive:
                named = each.get("id", "")
                return named if SHOWN_ID.fullmatch(named) else ""
        return ""

    def own_id(self) -> str:
        """Make an id of what its sender calls it, for servers that give none."""
        if not self.id:
            return secrets.token_hex(_ID_LETTERS // 2)
        told = "\0".join((self.sender, self.id, self.words)).encode()
        return hashlib.sha256(told).hexdigest()[:_ID_LETTERS]


def said_of(xml: Element) -> Said | None:
    """Read a message; None for what says nothing or is an error."""
    kind = xml.get("type") or "chat"
    words = xml.findtext(f"{{{CLIENT}}}body") or ""
    if kind not in {"chat", "normal", "groupchat"}:
        return None
    kind = "groupchat" if kind == "groupchat" else "chat"
    origin = xml.find(f"{{{SID}}}origin-id")
    given = "" if origin is None else origin.get("id", "")
    named = xml.get("id", "") or given
    said = Said(xml.get("from", ""), kind, named, words, xml)
    return said if words.strip() or said.files else None


def is_named(xml: Element, key: str) -> bool:
    """Tell whether a message has the id that we give ours."""
    origin = xml.find(f"{{{SID}}}origin-id")
    return key in {xml.get("id"), None if origin is None else origin.get("id")}


def late(xml: Element) -> datetime | None:
    """Tell when a message was said that was kept since; None for one of now."""
    delay = xml.find(f"{{{DELAY}}}delay")
    return None if delay is None else moment(delay.get("stamp", ""))


def delayed_by(xml: Element) -> str:
    """Tell who says that a message is of earlier, "" for nobody."""
    delay = xml.find(f"{{{DELAY}}}delay")
    return "" if delay is None else delay.get("from", "").lower()


def moment(stamp: str) -> datetime | None:
    """Read a time of XEP-0082."""
    try:
        read = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    return (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC)


def archived(result: Element) -> tuple[str, Element, datetime | None] | None:
    """Read a result of an archive: the id it has there, the message, and its time."""
    forwarded = result.find("{urn:xmpp:forward:0}forwarded")
    if forwarded is None or not SHOWN_ID.fullmatch(result.get("id", "")):
        return None
    message = forwarded.find(f"{{{CLIENT}}}message")
    if message is None:
        return None
    return result.get("id", ""), message, late(forwarded)


def in_room(said: Said, real: str) -> Sender:
    """Name somebody in a room: by address, else by what the room knows them by.

    A nick alone is whoever takes it first. The address is what the room tells of an
    occupant (``real``), or has written to a message that it kept.
    """
    item = said.xml.find(f"{{{MUC_USER}}}x/{{{MUC_USER}}}item")
    address = real or (item.get("jid", "") if item is not None else "")
    if address:
        return Sender(address.partition("/")[0].lower(), said.nick)
    occupant = said.xml.find(OCCUPANT)
    known = occupant.get("id", "") if occupant is not None else ""
    if SHOWN_ID.fullmatch(known):
        return Sender(f"{said.bare}#{known}", said.nick)
    return Sender(said.sender, said.nick)


def addressed(text: str, nick: str) -> tuple[bool, str]:
    """Tell whether a text names us, and take the name from its start."""
    name = re.escape(nick)
    if start := re.match(rf"@?{name}\s*[:,]?\s+", text, re.IGNORECASE):
        return True, text[start.end() :]
    return bool(re.search(rf"(?<!\w){name}(?!\w)", text, re.IGNORECASE)), text
