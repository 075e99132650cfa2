"""Updates of the Bot API as messages. Source: https://core.telegram.org/bots/api."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, NamedTuple

from ..contract import Attachment, Inbound, Place, Room, Sender

Object = dict[str, Any]
ROOMS = {"private": Room.DIRECT, "group": Room.GROUP, "supergroup": Room.GROUP}
MEDIA = ("document", "audio", "voice", "video", "video_note", "animation", "sticker")
NAMES = {"voice": "voice.ogg", "video_note": "video.mp4", "sticker": "sticker.webp"}
MALFORMED = (KeyError, TypeError, ValueError, AttributeError, OverflowError, OSError)


class Us(NamedTuple):
    """Who we are there."""

    id: str
    name: str


def inbound(update: Any, account: str, us: Us) -> Inbound | None:
    """Read an update; None for what is no message of anybody's, or makes no sense."""
    try:
        edited = "edited_message" in update
        message = update["edited_message" if edited else "message"]
        return _message(message, account, us, edited=edited)
    except MALFORMED:
        return None


def _message(message: Object, account: str, us: Us, *, edited: bool) -> Inbound | None:
    sender, chat = message["from"], message["chat"]
    said = message.get("text") or message.get("caption") or ""
    attachments = tuple(_attachments(message))
    if str(sender["id"]) == us.id or not (said or attachments):
        return None
    place = _place(message, chat, account)
    answered = message.get("reply_to_message") or {}
    to_us = str(answered.get("from", {}).get("id", "")) == us.id
    named = _names(message, said, us)
    return Inbound(
        place,
        str(int(message["message_id"])),
        _sender(sender),
        _unaddressed(said, us),
        datetime.fromtimestamp(message.get("edit_date") or message["date"], UTC),
        attachments,
        reply_to=str(answered.get("message_id", "")),
        mentions_us=to_us or named or place.room is Room.DIRECT,
        edited=edited,
    )


def _place(message: Object, chat: Object, account: str) -> Place:
    room = ROOMS.get(chat["type"], Room.PUBLIC)
    if room is Room.GROUP and chat.get("username"):
        room = Room.PUBLIC
    topic = message.get("is_topic_message") and message.get("message_thread_id")
    return Place(account, str(int(chat["id"])), str(topic or ""), room)


def _sender(sender: Object) -> Sender:
    names = (sender.get("first_name"), sender.get("last_name"))
    shown = " ".join(name for name in names if name)
    return Sender(str(int(sender["id"])), shown, bool(sender.get("is_bot")))


def _names(message: Object, said: str, us: Us) -> bool:
    """Tell whether a text names us: by our name, or by a link to us without one."""
    entities = message.get("entities") or message.get("caption_entities") or []
    linked = any(str(each.get("user", {}).get("id", "")) == us.id for each in entities)
    return linked or bool(re.search(rf"@{re.escape(us.name)}\b", said, re.IGNORECASE))


def _unaddressed(said: str, us: Us) -> str:
    """Take our name from the start, and from a command: ``/new@us`` is ``/new``."""
    name = re.escape(us.name)
    command = rf"^(/\w+)@{name}\b"
    said = re.sub(command, r"\1", said, flags=re.IGNORECASE)
    return re.sub(rf"^@{name}\b[\s,:]*", "", said, flags=re.IGNORECASE)


def _attachments(message: Object) -> list[Attachment]:
    found = []
    if photos := message.get("photo"):
        found.append(_attachment(photos[-1], "photo.jpg", "image/jpeg"))
    for kind in MEDIA:
        if file := message.get(kind):
            name = file.get("file_name") or NAMES.get(kind, kind)
            media_type = file.get("mime_type") or "application/octet-stream"
            found.append(_attachment(file, name, media_type))
    # An animation comes as a document too: one file, one attachment.
    unique = {each.reference["file_id"]: each for each in reversed(found)}
    return list(reversed(unique.values()))


def _attachment(file: Object, name: str, media_type: str) -> Attachment:
    size = file.get("file_size")
    reference = {"file_id": str(file["file_id"])}
    return Attachment(name, media_type, reference, int(size) if size else None)
