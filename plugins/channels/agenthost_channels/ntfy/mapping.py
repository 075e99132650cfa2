"""Events of a topic as messages. Source: https://docs.ntfy.sh/subscribe/api."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ..contract import Attachment, Inbound, Place, Room, Sender

TOPIC = re.compile(r"[-_A-Za-z0-9]{1,64}")
# What a server names messages by; others name a message that is told of again.
GIVEN_ID = re.compile(r"[A-Za-z0-9]{12}")
SEQUENCE = TOPIC
MALFORMED = (KeyError, TypeError, ValueError, AttributeError, OverflowError, OSError)
RECEIVED_A_FILE = "You received a file: "


@dataclass(frozen=True, slots=True)
class Ours:
    """What is ours: the topics we hear, who hears them, and how we mark what we say."""

    account: str
    topics: frozenset[str]
    room: Room
    tag: str


def event_of(line: bytes) -> dict[str, Any]:
    """Read a line of the stream; {} for what is no event."""
    try:
        event = json.loads(line)
        int(event["time"])
    except (*MALFORMED, RecursionError):
        return {}
    return event if isinstance(event, dict) else {}


def inbound(event: dict[str, Any], ours: Ours) -> Inbound | None:
    """Read an event; None for what is no message, or is one of ours."""
    try:
        return _message(event, ours)
    except MALFORMED:
        return None


def _message(event: dict[str, Any], ours: Ours) -> Inbound | None:
    topic, name = event["topic"], event["id"]
    if event["event"] != "message" or topic not in ours.topics:
        return None
    if not TOPIC.fullmatch(name) or ours.tag in (event.get("tags") or ()):
        return None
    if event.get("encoding"):
        # Bytes for another program, which UnifiedPush sends.
        return None
    file = event.get("attachment")
    attachments = [_attachment(file)] if file else []
    said = str(event.get("message") or "")
    if [said] == [RECEIVED_A_FILE + each.name for each in attachments]:
        said = ""
    text = "\n".join(each for each in (str(event.get("title") or ""), said) if each)
    if not (text or attachments):
        return None
    sequence = str(event.get("sequence_id") or name)
    changed = sequence != name and bool(GIVEN_ID.fullmatch(sequence))
    return Inbound(
        Place(ours.account, topic, room=ours.room),
        sequence if changed else name,
        Sender(topic),
        text,
        datetime.fromtimestamp(int(event["time"]), UTC),
        tuple(attachments),
        mentions_us=True,
        edited=changed,
    )


def _attachment(file: dict[str, Any]) -> Attachment:
    size = file.get("size")
    return Attachment(
        str(file.get("name") or "file"),
        str(file.get("type") or "application/octet-stream"),
        {"url": str(file["url"])},
        size if isinstance(size, int) and size > 0 else None,
    )
