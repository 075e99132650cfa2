"""Messages of Discord as ours.

Source: https://docs.discord.com/developers/resources/message and
https://docs.discord.com/developers/reference#message-formatting.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..contract import Attachment, Inbound, Place, Room, Sender

Object = dict[str, Any]
MALFORMED = (KeyError, TypeError, ValueError, AttributeError, OverflowError)
SNOWFLAKE = re.compile(r"[0-9]{1,20}")
# A message, and one that answers another: all others are notices or a program's.
SAID = {0, 19}
REPLY = 0
EPHEMERAL = 1 << 6
DM, GROUP_DM = 1, 3
THREADS = {10, 11, 12}
_MARK = re.compile(r"<(@[!&]?|#|a?:\w{2,32}:)([0-9]{1,20})>")


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """A channel of Discord: what it is to us."""

    peer: str
    thread: str = ""
    room: Room = Room.GROUP

    def place(self, account: str) -> Place:
        """Name it as the bridge does."""
        return Place(account, self.peer, self.thread, self.room)


def whereabouts(channel: Any) -> Whereabouts:
    """Read a channel object.

    Raises:
        ValueError: It is none.
    """
    try:
        name, kind = channel["id"], channel["type"]
        if kind in THREADS:
            return Whereabouts(_snowflake(channel["parent_id"]), _snowflake(name))
        room = Room.DIRECT if kind == DM else Room.GROUP
        return Whereabouts(_snowflake(name), room=room)
    except MALFORMED:
        raise ValueError("that is no channel") from None


def told_where(message: Object) -> Whereabouts | None:
    """Tell where a message was said as far as it tells; None where one has to ask."""
    channel, kind = _snowflake(message["channel_id"]), message.get("channel_type")
    if "guild_id" not in message:
        room = Room.GROUP if kind == GROUP_DM else Room.DIRECT
        return Whereabouts(channel, room=room)
    return None if kind is None or kind in THREADS else Whereabouts(channel)


def is_said(message: Any) -> bool:
    """Tell whether a message is of those that people say, and not for us alone."""
    try:
        _snowflake(message["id"])
        _snowflake(message["channel_id"])
        _snowflake(message["author"]["id"])
        hidden = int(message.get("flags") or 0) & EPHEMERAL
        return message.get("type", 0) in SAID and not hidden
    except MALFORMED:
        return False


def inbound(
    message: Object, place: Place, us: str, *, updated: bool = False
) -> Inbound | None:
    """Read a message; None for one of ours, and for what says nothing."""
    try:
        return _message(message, place, us, updated=updated)
    except MALFORMED:
        return None


def _message(
    message: Object, place: Place, us: str, *, updated: bool
) -> Inbound | None:
    author = message["author"]
    edited = message.get("edited_timestamp")
    # Discord changes messages itself, to show a link: that is nobody's edit.
    if author["id"] == us or (updated and not edited):
        return None
    said = str(message.get("content") or "")
    attachments = tuple(_attachment(each, message) for each in _list(message))
    if not (said or attachments):
        return None
    answered = message.get("referenced_message") or {}
    reference = message.get("message_reference") or {}
    is_reply = reference.get("type", REPLY) == REPLY
    names = {each["id"]: _name(each) for each in message.get("mentions") or ()}
    to_us = is_reply and answered.get("author", {}).get("id") == us
    return Inbound(
        place,
        message["id"],
        _sender(message),
        plain(re.sub(rf"^\s*<@!?{us}>[\s,:]*", "", said), names),
        _time(message["edited_timestamp" if updated else "timestamp"]),
        attachments,
        reply_to=str(reference.get("message_id") or "") if is_reply else "",
        mentions_us=us in names or to_us or place.room is Room.DIRECT,
        edited=updated,
    )


def plain(text: str, names: dict[str, str]) -> str:
    """Take Discord's marks out: ``<@1>`` is the name of who is meant."""

    def seen(found: re.Match[str]) -> str:
        mark, name = found[1], found[2]
        if mark.endswith(":"):
            return mark.removeprefix("a")
        return mark[0] + names.get(name, name)

    return _MARK.sub(seen, text)


def _sender(message: Object) -> Sender:
    author, member = message["author"], message.get("member") or {}
    program = bool(author.get("bot")) or "webhook_id" in message
    return Sender(author["id"], str(member.get("nick") or _name(author)), program)


def _time(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError("that time has no zone")
    return found


def _name(user: Object) -> str:
    return str(user.get("global_name") or user.get("username") or user["id"])


def _list(message: Object) -> list[Object]:
    return list(message.get("attachments") or ())


def _attachment(file: Object, message: Object) -> Attachment:
    reference = {
        "url": str(file["url"]),
        "id": str(file["id"]),
        "channel": message["channel_id"],
        "message": message["id"],
    }
    size = file.get("size")
    return Attachment(
        str(file.get("filename") or "file"),
        str(file.get("content_type") or "application/octet-stream"),
        reference,
        size if isinstance(size, int) else None,
    )


def _snowflake(value: Any) -> str:
    if not isinstance(value, str) or not SNOWFLAKE.fullmatch(value):
        raise ValueError("that is no id")
    return value
