"""Bluesky's notifications and messages as the contract has them.

Sources: the lexicons ``app.bsky.feed.post``, ``app.bsky.richtext.facet``,
``app.bsky.notification.listNotifications`` and ``chat.bsky.convo.defs``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ..contract import Attachment, Inbound, Place, Room, Sender

Object = dict[str, Any]
DID = re.compile(r"did:[a-z]{1,32}:[A-Za-z0-9._:%-]{1,2000}")
POST = re.compile(
    r"at://(did:[a-z]{1,32}:[A-Za-z0-9._:%-]{1,500})/app\.bsky\.feed\.post/"
    r"([A-Za-z0-9._:~-]{1,512})"
)
CID = re.compile(r"[A-Za-z0-9]{1,200}")
POSTS = "posts"
"""The peer of all that is public; each thread of it is a conversation."""
CONVO = "convo:"
"""How the peers of conversations of several people begin."""
GROUP = re.compile(rf"{CONVO}[A-Za-z0-9._~-]{{1,128}}")
Told = dict[str, str]
"""How far everything is on disk: see ``notices`` and ``letters``."""
REASONS = ("mention", "reply")
_FACET = "app.bsky.richtext.facet"
EARLIEST = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True)
class Us:
    """Who we are, and under which name we have our account."""

    account: str
    did: str
    handle: str


def object_in(value: Any, *path: str) -> Object:
    """Find an object below others; an empty one where there is none."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def list_in(value: Object, key: str) -> list[Object]:
    """Find the objects of a list; none where there is no list."""
    found = value.get(key)
    items = found if isinstance(found, list) else []
    return [each for each in items if isinstance(each, dict)]


def text_in(value: Object, key: str) -> str:
    """Find a text; "" where there is none."""
    found = value.get(key)
    return found if isinstance(found, str) else ""


def time_of(text: str) -> datetime:
    """Read a time; a very early one where it is none."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return EARLIEST
    return found if found.tzinfo is not None else EARLIEST


def posted(row: Object, us: Us) -> Inbound | None:
    """Read a notification: a post that mentions us, or answers us."""
    record, author = object_in(row, "record"), object_in(row, "author")
    uri, did = POST.fullmatch(text_in(row, "uri")), text_in(author, "did")
    known = row.get("reason") in REASONS and uri is not None
    if uri is None or not known or did == us.did or did != uri[1]:
        return None
    parent = text_in(object_in(record, "reply", "parent"), "uri")
    root = text_in(object_in(record, "reply", "root"), "uri") or uri[0]
    if not POST.fullmatch(root):
        return None
    ours = (answered := POST.fullmatch(parent)) is not None and answered[1] == us.did
    text, mentioned = _read(text_in(record, "text"), record, us)
    return Inbound(
        Place(us.account, POSTS, root, Room.PUBLIC),
        uri[0],
        Sender(did, _name(author), bot=_is_program(author)),
        text,
        time_of(text_in(row, "indexedAt")),
        tuple(_files(object_in(record, "embed"), did)),
        parent,
        mentions_us=mentioned or ours or row.get("reason") == "mention",
    )


def written(message: Object, place: Place, names: Object, us: Us) -> Inbound | None:
    """Read a direct message; ``names`` are the profiles that came with it, by DID."""
    did, number = text_in(object_in(message, "sender"), "did"), text_in(message, "id")
    if not number or not DID.fullmatch(did) or did == us.did:
        return None
    answered = object_in(message, "replyTo")
    ours = text_in(object_in(answered, "sender"), "did") == us.did
    text, mentioned = _read(text_in(message, "text"), message, us)
    author = object_in(names, did)
    direct = place.room is Room.DIRECT
    return Inbound(
        place,
        number,
        Sender(did, _name(author), bot=_is_program(author)),
        text,
        time_of(text_in(message, "sentAt")),
        reply_to=text_in(answered, "id"),
        mentions_us=direct or mentioned or ours,
    )


def _name(author: Object) -> str:
    return text_in(author, "displayName") or text_in(author, "handle")


def _is_program(author: Object) -> bool:
    """Whether the account says of itself that it is automated."""
    did = text_in(author, "did")
    labels = list_in(author, "labels")
    return any(each.get("val") == "bot" and each.get("src") == did for each in labels)


def _read(text: str, record: Object, us: Us) -> tuple[str, bool]:
    """Read a text: links in full, a mention of us at its start taken away."""
    data = text.encode()
    mentioned = addressed = False
    parts, at = list[bytes](), 0
    for start, end, feature in _facets(record, data):
        if start < at:
            continue
        kind, shown = feature.get("$type"), data[start:end]
        if kind == f"{_FACET}#mention" and feature.get("did") == us.did:
            mentioned = True
            if not data[:start].strip():
                addressed, parts, at = True, [], end
        elif kind == f"{_FACET}#link":
            # People see a shortened address: what it leads to is what was meant.
            uri = text_in(feature, "uri").encode()
            whole = shown if not uri or _leads(shown, uri) else uri
            parts += [data[at:start], whole]
            at = end
    parts.append(data[at:])
    said = b"".join(parts).decode(errors="replace")
    called = f"@{us.handle}".lower()
    if said.lower().startswith(called):
        mentioned, addressed, said = True, True, said[len(called) :]
    return (said.lstrip(" \t:,") if addressed else said), mentioned


def _leads(shown: bytes, uri: bytes) -> bool:
    """Whether an address is shown whole."""
    return shown in {uri, uri.removeprefix(b"https://"), uri.removeprefix(b"http://")}


def _facets(record: Object, data: bytes) -> list[tuple[int, int, Object]]:
    found = []
    for facet in list_in(record, "facets"):
        index = object_in(facet, "index")
        start, end = index.get("byteStart"), index.get("byteEnd")
        if not (isinstance(start, int) and isinstance(end, int)):
            continue
        if 0 <= start < end <= len(data):
            found += [(start, end, each) for each in list_in(facet, "features")]
    return sorted(found, key=lambda each: each[:2])


def _files(embed: Object, did: str) -> Iterator[Attachment]:
    """The pictures and the film of a post."""
    media = object_in(embed, "media") or embed
    pictures = [object_in(each, "image") for each in list_in(media, "images")]
    for number, blob in enumerate([*pictures, object_in(media, "video")], 1):
        cid, kind = text_in(object_in(blob, "ref"), "$link"), text_in(blob, "mimeType")
        if not CID.fullmatch(cid):
            continue
        family, _, form = kind.partition("/")
        name = f"{family or 'file'}-{number}.{re.sub('[^a-z0-9]', '', form) or 'bin'}"
        size = blob.get("size")
        yield Attachment(
            name,
            kind,
            {"did": did, "cid": cid},
            size if isinstance(size, int) and size >= 0 else None,
        )
