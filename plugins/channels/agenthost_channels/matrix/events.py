"""Events of Matrix: what a person says in one, and those that say something of ours.

Source: https://spec.matrix.org/v1.15/client-server-api/ (instant messaging, rich
replies, threading, event replacements, event annotations, mentions).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from agenthost import Json, JsonObject

from ..contract import Attachment, Outbound

ROOM = re.compile(r"![^\s\x00-\x1f/?#]{1,250}")
EVENT = re.compile(r"\$[^\s\x00-\x1f?#]{1,250}")
MEDIA = re.compile(r"mxc://([A-Za-z0-9.:\[\]-]{1,250})/([A-Za-z0-9_-]{1,250})")

_FILES = {"m.file", "m.image", "m.audio", "m.video"}
_TEXTS = {"m.text", "m.emote", "m.notice"}
_QUOTE = re.compile(r"\A(?:> [^\n]*\n)+\n?")


@dataclass(frozen=True, slots=True)
class Said:
    """What an event says."""

    id: str
    sender: str
    text: str
    sent_ms: int
    thread: str = ""
    reply_to: str = ""
    edit_of: str = ""
    attachment: Attachment | None = None
    mentions: frozenset[str] = frozenset()
    bot: bool = False


def said(event: Json) -> Said | None:
    """Read an event; None for one that says nothing, or nothing that makes sense."""
    top = _object(event)
    content = _object(top.get("content"))
    relation = _object(content.get("m.relates_to"))
    edit_of = _edited(relation)
    body = _object(content.get("m.new_content")) if edit_of else content
    kind, text = _string(body, "msgtype"), _string(body, "body")
    own, sender = _string(top, "event_id"), _string(top, "sender")
    if top.get("type") != "m.room.message" or not (own and sender):
        return None
    attachment = _attachment(body) if kind in _FILES else None
    if kind not in _TEXTS and attachment is None:
        return None
    thread = _id(relation) if relation.get("rel_type") == "m.thread" else ""
    reply_to = _id(_object(relation.get("m.in_reply_to")))
    if thread and relation.get("is_falling_back") is True:
        reply_to = ""
    if attachment is not None:
        text = _string(body, "body") if _string(body, "filename") != text else ""
        text = "" if text == attachment.name else text
    mentions = _object(content.get("m.mentions")).get("user_ids")
    sent_ms = top.get("origin_server_ts")
    return Said(
        own,
        sender,
        _QUOTE.sub("", text) if reply_to else text,
        sent_ms if isinstance(sent_ms, int) else 0,
        thread,
        reply_to,
        edit_of,
        attachment,
        frozenset(_strings(mentions)),
        kind == "m.notice",
    )


def _edited(relation: JsonObject) -> str:
    return _id(relation) if relation.get("rel_type") == "m.replace" else ""


def _attachment(body: JsonObject) -> Attachment | None:
    url = _string(body, "url")
    if not MEDIA.fullmatch(url):
        return None
    info = _object(body.get("info"))
    size = info.get("size")
    return Attachment(
        _string(body, "filename") or _string(body, "body") or "file",
        _string(info, "mimetype") or "application/octet-stream",
        {"mxc": url},
        size if isinstance(size, int) else None,
    )


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _string(value: JsonObject, key: str) -> str:
    found = value.get(key)
    return found if isinstance(found, str) else ""


def _strings(value: Json) -> list[str]:
    items = value if isinstance(value, list) else []
    return [each for each in items if isinstance(each, str)]


def _id(value: JsonObject) -> str:
    found = _string(value, "event_id")
    return found if EVENT.fullmatch(found) else ""


def text_event(message: Outbound) -> JsonObject:
    """Write a text of ours; HTML where it has markup."""
    plain = message.plain or message.text
    content: dict[str, Json] = {"msgtype": "m.text", "body": plain}
    if message.text != plain:
        content["format"] = "org.matrix.custom.html"
        content["formatted_body"] = message.text
    # Nobody is rung by a name that a model happens to write.
    content["m.mentions"] = {}
    if message.edit_of:
        whole = dict(content)
        content |= {"m.new_content": whole, "body": f"* {plain}"}
        content["m.relates_to"] = {"rel_type": "m.replace", "event_id": message.edit_of}
    elif relation := related(message):
        content["m.relates_to"] = relation
    return content


def related(message: Outbound) -> dict[str, Json]:
    """Say what a message of ours answers."""
    answered: dict[str, Json] = {"event_id": message.reply_to or message.place.thread}
    if message.place.thread:
        return {
            "rel_type": "m.thread",
            "event_id": message.place.thread,
            "is_falling_back": not message.reply_to,
            "m.in_reply_to": answered,
        }
    return {"m.in_reply_to": answered} if message.reply_to else {}


def reaction_event(message: Outbound) -> JsonObject:
    """Write an emoji on a message."""
    return {
        "m.relates_to": {
            "rel_type": "m.annotation",
            "event_id": message.reply_to,
            "key": message.reaction,
        }
    }
