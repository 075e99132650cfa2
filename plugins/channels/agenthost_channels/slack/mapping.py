"""Events of Slack as messages.

Source: https://docs.slack.dev/reference/events/message and
https://docs.slack.dev/messaging/formatting-message-text.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from ..contract import Attachment, Inbound, Place, Room, Sender

Object = dict[str, Any]
SAID = {"", "file_share", "thread_broadcast", "me_message", "bot_message"}
MALFORMED = (KeyError, TypeError, ValueError, AttributeError, OverflowError, OSError)
STAMP = re.compile(r"\d{1,12}\.\d{1,9}")
CHANNEL = re.compile(r"[A-Z][A-Z0-9]{1,31}")


def inbound(payload: Any, account: str, us: str) -> Inbound | None:
    """Read the payload of an event; None for what is no message of anybody's."""
    try:
        event = payload["event"]
        if event["type"] != "message":
            return None
        if event.get("subtype") != "message_changed":
            return _message(event, event, account, us)
        changed = event["message"]
        # Slack changes messages itself, to show a link: that is nobody's edit.
        return _message(event, changed, account, us) if "edited" in changed else None
    except MALFORMED:
        return None


def _message(event: Object, said: Object, account: str, us: str) -> Inbound | None:
    sender = str(said.get("user") or said.get("bot_id") or "")
    stamp, text = said["ts"], str(said.get("text") or "")
    attachments = tuple(map(_attachment, said.get("files") or ()))
    if said.get("subtype") not in SAID | {None} or not STAMP.fullmatch(stamp):
        return None
    if sender in {"", us} or not (text or attachments):
        return None
    peer = event["channel"]
    room = Room.DIRECT if peer.startswith("D") else Room.GROUP
    thread = str(said.get("thread_ts") or "")
    answers = thread if thread != stamp else ""
    named = f"<@{us}" in text or said.get("parent_user_id") == us
    return Inbound(
        Place(account, peer, answers, room),
        stamp,
        Sender(sender, bot=bool(said.get("bot_id"))),
        plain(re.sub(rf"^\s*<@{re.escape(us)}(\|[^<>]*)?>[\s,:]*", "", text)),
        datetime.fromtimestamp(float(stamp), UTC),
        attachments,
        reply_to=answers,
        mentions_us=named or room is Room.DIRECT,
        edited=said is not event,
    )


def plain(text: str) -> str:
    """Take Slack's markup out: ``<url|words>`` is words, ``&lt;`` a sign."""
    text = re.sub(r"<([^<>]*)>", _seen, text)
    for entity, sign in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        text = text.replace(entity, sign)
    return text


def _seen(found: re.Match[str]) -> str:
    what, _, words = found[1].partition("|")
    if what.startswith(("@", "#")):
        return what[0] + (words or what[1:])
    if what.startswith("!"):
        return words or f"@{what[1:]}"
    return f"{words} ({what})" if words and words != what else what


def _attachment(file: Object) -> Attachment:
    size = file.get("size")
    return Attachment(
        str(file.get("name") or "file"),
        str(file.get("mimetype") or "application/octet-stream"),
        {"id": str(file["id"]), "url": str(file["url_private"])},
        int(size) if size else None,
    )
