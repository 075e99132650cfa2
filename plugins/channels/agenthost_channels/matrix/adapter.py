"""Matrix by its client-server API.

The cursor is the token of ``/sync``; what a long absence leaves out of it is read back
from the room. A transaction is named by the message's key, so the homeserver takes it
once however often it is sent.

Rooms with end-to-end encryption cannot be read: the log names them, and what is said
there is not heard.
"""

from __future__ import annotations

import json
import logging
import re
from collections import OrderedDict
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any, ClassVar
from urllib.parse import quote

import httpx
from agenthost import (
    Blocked,
    Json,
    JsonObject,
    NotFound,
    NotSent,
    Unauthenticated,
    Unavailable,
    UpstreamUnreachable,
)
from pydantic import BaseModel, Field

from ..contract import (
    Adapter,
    Attachment,
    Fate,
    Inbound,
    Line,
    Outbound,
    OutFile,
    Place,
    Room,
    Sender,
    Sent,
)
from ..transports.addresses import EncryptedUrl
from . import events

log = logging.getLogger(__name__)

POLL_MS = 30_000
CALL_SECONDS = 60.0
BATCH = 100
PAGES = 20
ROOMS = 1_000
JOINS = 10
TYPING_MS = 25_000
CLIENT = "/_matrix/client/v3"
_KINDS = ["m.room.message", "m.room.encrypted", "m.room.member", "m.room.join_rules"]
_NONE: dict[str, Any] = {"types": []}


class Settings(BaseModel, defer_build=True):
    """Settings of ``[channels.matrix]``."""

    homeserver: EncryptedUrl = Field(
        description="Address of the homeserver, https://..."
    )
    invites_from: list[str] = Field(
        [],
        description="Who may invite us, as patterns: @ada:example.org, *:example.org",
    )


class Matrix(Adapter):
    """One user of one homeserver."""

    settings = Settings
    secrets: ClassVar = {"token": "MATRIX_ACCESS_TOKEN"}  # nosec B105 # a name
    needed: ClassVar = frozenset({"token"})

    def __init__(self, line: Line) -> None:
        super().__init__(line)
        self._options: Settings = line.settings
        self._us = ""
        self._name = ""
        self._rooms: OrderedDict[str, Room] = OrderedDict()
        self._encrypted: set[str] = set()

    # Hearing.

    async def run(self) -> None:
        """Ask what is new, again and again."""
        self._us = await self.identity()
        self._name = await self._display_name()
        wait = 0
        while True:
            since = self.line.cursor
            answer = await self._sync(since, wait)
            token = _text(answer, "next_batch")
            if not token:
                raise Unavailable("the homeserver's answer has no next_batch")
            await self._join(answer)
            await self._hand_on(answer, since, token)
            if not wait:
                self.line.connected()
                wait = POLL_MS

    async def _sync(self, since: str, wait: int) -> JsonObject:
        timeline = {"limit": BATCH if since else 0, "types": _KINDS}
        room = {
            "timeline": timeline,
            "state": {"types": ["m.room.member"], "lazy_load_members": True},
            "ephemeral": _NONE,
            "account_data": _NONE,
        }
        wanted = {"room": room, "presence": _NONE, "account_data": _NONE}
        query = {"timeout": str(wait), "filter": json.dumps(wanted)}
        if since:
            query["since"] = since
        return await self._get(f"{CLIENT}/sync", query)

    async def _hand_on(self, answer: JsonObject, since: str, token: str) -> None:
        batch: list[Inbound] = []
        if since:
            async for message in self._messages(answer, since):
                batch.append(message)
                if len(batch) == BATCH:
                    await self.line.received(*batch)
                    batch.clear()
        if batch or token != since:
            await self.line.received(*batch, cursor=token)

    async def _messages(self, answer: JsonObject, since: str) -> AsyncIterator[Inbound]:
        joined = _map(_map(answer.get("rooms")).get("join"))
        for room, news in joined.items():
            if not events.ROOM.fullmatch(room):
                continue
            timeline = _map(_map(news).get("timeline"))
            if timeline.get("limited") is True:
                missed = await self._missed(room, _text(timeline, "prev_batch"), since)
            else:
                missed = []
            everything = [*missed, *_list(timeline.get("events"))]
            for event in self._since_we_came(everything):
                if message := await self._message(room, event):
                    yield message

    def _since_we_came(self, timeline: list[Json]) -> list[Json]:
        """Leave out what was said in a room before we were in it."""
        for at in range(len(timeline) - 1, -1, -1):
            event = _map(timeline[at])
            before = _map(_map(event.get("unsigned")).get("prev_content"))
            came = (
                event.get("type") == "m.room.member"
                and event.get("state_key") == self._us
                and _map(event.get("content")).get("membership") == "join"
                and before.get("membership") != "join"
            )
            if came:
                return timeline[at:]
        return timeline

    async def _missed(self, room: str, start: str, end: str) -> list[Json]:
        """Read back what a sync left out, oldest first."""
        found: list[Json] = []
        for _ in range(PAGES):
            query = {"dir": "b", "from": start, "to": end, "limit": str(BATCH)}
            page = await self._get(f"{CLIENT}/rooms/{_part(room)}/messages", query)
            found += _list(page.get("chunk"))
            start = _text(page, "end")
            if not start or not page.get("chunk"):
                break
        else:
            log.warning("too much was said in %s: the oldest is left out", room)
        return found[::-1]

    async def _message(self, room: str, event: Json) -> Inbound | None:
        kind = _map(event).get("type")
        if kind in {"m.room.member", "m.room.join_rules"}:
            self._rooms.pop(room, None)
        if kind == "m.room.encrypted" and len(self._encrypted) < ROOMS:
            if room not in self._encrypted:
                log.warning("%s is encrypted: what is said is not heard", room)
            self._encrypted.add(room)
        said = events.said(event)
        if said is None or said.sender == self._us:
            return None
        if said.edit_of and await self._sender_of(room, said.edit_of) != said.sender:
            return None
        audience = await self._audience(room)
        addressed, text = self._addressed(said)
        if not addressed and said.reply_to and audience is not Room.DIRECT:
            addressed = await self._sender_of(room, said.reply_to) == self._us
        return Inbound(
            Place(self.line.account, room, said.thread, audience),
            said.edit_of or said.id,
            Sender(said.sender, said.sender.partition(":")[0].lstrip("@"), said.bot),
            text,
            datetime.fromtimestamp(min(said.sent_ms, 253e12) / 1000, UTC),
            (said.attachment,) if said.attachment else (),
            said.reply_to,
            mentions_us=addressed or audience is Room.DIRECT,
            edited=bool(said.edit_of),
        )

    def _addressed(self, said: events.Said) -> tuple[bool, str]:
        local = self._us.partition(":")[0].lstrip("@")
        names = [re.escape(name) for name in (self._us, self._name, local) if name]
        start = re.match(rf"@?(?:{'|'.join(names)})\s*[:,]?\s+", said.text, re.I)
        text = said.text[start.end() :] if start else said.text
        return bool(start) or self._us in said.mentions or self._us in said.text, text

    async def _audience(self, room: str) -> Room:
        """Tell who hears what is said in a room."""
        if (known := self._rooms.get(room)) is None:
            base = f"{CLIENT}/rooms/{_part(room)}"
            members = _map((await self._get(f"{base}/joined_members")).get("joined"))
            try:
                rules = await self._get(f"{base}/state/m.room.join_rules/")
            except NotFound:
                rules = {}
            alone = Room.DIRECT if len(members) <= 2 else Room.GROUP
            known = Room.PUBLIC if rules.get("join_rule") == "public" else alone
            self._rooms[room] = known
            while len(self._rooms) > ROOMS:
                self._rooms.popitem(last=False)
        return known

    async def _sender_of(self, room: str, event: str) -> str:
        path = f"{CLIENT}/rooms/{_part(room)}/event/{_part(event)}"
        try:
            return _text(await self._get(path), "sender")
        except (NotFound, Blocked):
            return ""

    async def _join(self, answer: JsonObject) -> None:
        """Go where somebody who may invites us."""
        invited = _map(_map(answer.get("rooms")).get("invite"))
        for room, state in list(invited.items())[:JOINS]:
            if not events.ROOM.fullmatch(room) or not self._may_invite(state):
                continue
            path = f"{CLIENT}/rooms/{_part(room)}/join"
            answered = await self._call("POST", path, json={})
            if answered.status_code != 200:
                log.warning("cannot join %s: %s", room, _reason(answered))

    def _may_invite(self, state: Json) -> bool:
        shown = _list(_map(_map(state).get("invite_state")).get("events"))
        host = next(
            (
                _text(_map(each), "sender")
                for each in shown
                if _map(each).get("state_key") == self._us
                and _map(_map(each).get("content")).get("membership") == "invite"
            ),
            "",
        )
        patterns = self._options.invites_from
        return bool(host) and any(fnmatchcase(host, pattern) for pattern in patterns)

    # Speaking.

    async def send(self, message: Outbound) -> Sent:
        """Send what it is: a sign of typing, a reaction, or a text and files."""
        if not events.ROOM.fullmatch(message.place.peer):
            reason = "a Matrix message goes to a room, which begins with !"
            return Sent(Fate.NOT_SENT, reason=reason, final=True)
        try:
            return await self._send(message)
        except (httpx.ConnectError, httpx.ConnectTimeout, NotSent, Blocked) as error:
            reason = f"the homeserver cannot be reached: {type(error).__name__}"
            return Sent(Fate.NOT_SENT, reason=reason)
        except (httpx.HTTPError, UpstreamUnreachable) as error:
            reason = f"the homeserver did not answer: {type(error).__name__}"
            return Sent(Fate.UNKNOWN, reason=reason)
        except Unauthenticated as error:
            return Sent(Fate.NOT_SENT, reason=str(error))

    async def _send(self, message: Outbound) -> Sent:
        room = f"{CLIENT}/rooms/{_part(message.place.peer)}"
        if message.typing:
            if not self._us:
                return Sent(Fate.NOT_SENT, reason="not connected")
            typing = {"typing": True, "timeout": TYPING_MS}
            path = f"{room}/typing/{_part(self._us)}"
            return _fate(await self._call("PUT", path, json=typing))
        sending = f"{room}/send/m.room.message/{_part(message.key)}"
        if message.reaction:
            path = f"{room}/send/m.reaction/{_part(message.key)}"
            reaction = events.reaction_event(message)
            return _fate(await self._call("PUT", path, json=reaction))
        sent = Sent(Fate.NOT_SENT, reason="there is nothing in it", final=True)
        if message.text or message.plain:
            content = events.text_event(message)
            sent = _fate(await self._call("PUT", sending, json=content))
            if sent.fate is not Fate.DELIVERED:
                return sent
        first = sent
        for number, file in enumerate(message.files):
            sent = await self._send_file(message, file, f"{sending}-{number}")
            if sent.fate is not Fate.DELIVERED:
                return sent
        return first if first.fate is Fate.DELIVERED else sent

    async def _send_file(self, message: Outbound, file: OutFile, path: str) -> Sent:
        uploaded = await self._call(
            "POST",
            "/_matrix/media/v3/upload",
            params={"filename": file.name},
            content=file.data,
            headers={"Content-Type": file.media_type},
        )
        url = _text(_body(uploaded), "content_uri")
        if uploaded.status_code != 200 or not url:
            # The file alone is with the homeserver: nobody has seen it.
            failed = _fate(uploaded)
            return Sent(
                Fate.NOT_SENT, "", failed.reason, failed.retry_after, failed.final
            )
        kind = "m.image" if file.media_type.startswith("image/") else "m.file"
        info: dict[str, Json] = {"mimetype": file.media_type, "size": len(file.data)}
        content: dict[str, Json] = {
            "msgtype": kind,
            "body": file.name,
            "filename": file.name,
            "url": url,
            "info": info,
        }
        if relation := events.related(message):
            content["m.relates_to"] = relation
        return _fate(await self._call("PUT", path, json=content))

    async def download(self, attachment: Attachment) -> bytes:
        """Fetch a file from the homeserver."""
        media = events.MEDIA.fullmatch(str(attachment.reference.get("mxc", "")))
        if media is None:
            raise NotFound("file", attachment.name)
        path = f"/_matrix/client/v1/media/download/{_part(media[1])}/{_part(media[2])}"
        answered = await self._call("GET", path)
        if answered.status_code != 200:
            raise NotFound("file", attachment.name)
        return answered.content

    async def identity(self) -> str:
        """Ask who the token belongs to."""
        answer = await self._get(f"{CLIENT}/account/whoami")
        if not (user := _text(answer, "user_id")):
            raise Unavailable("the homeserver does not say who we are")
        return user

    async def _display_name(self) -> str:
        path = f"{CLIENT}/profile/{_part(self._us)}/displayname"
        try:
            return _text(await self._get(path), "displayname")
        except (NotFound, Blocked):
            return ""

    # Calling.

    async def _get(self, path: str, query: dict[str, str] | None = None) -> JsonObject:
        """Ask for an object; what is no answer is raised."""
        try:
            answered = await self._call("GET", path, params=query)
        except httpx.HTTPError as error:
            kind = type(error).__name__
            raise Unavailable(f"the homeserver does not answer: {kind}") from None
        match answered.status_code:
            case 200:
                return _body(answered)
            case 403:
                raise Blocked(f"the homeserver refuses: {_reason(answered)}")
            case 404:
                raise NotFound("thing", "of the homeserver")
        raise Unavailable(f"the homeserver answers {_reason(answered)}")

    async def _call(self, method: str, path: str, **given: Any) -> httpx.Response:
        if (token := self.line.secret("token")) is None:
            raise Unauthenticated("matrix needs its token; set MATRIX_ACCESS_TOKEN")
        headers = {"Authorization": f"Bearer {token.reveal()}"}
        headers |= given.pop("headers", {})
        answered = await self.line.http().request(
            method,
            f"{self._options.homeserver}{path}",
            headers=headers,
            timeout=CALL_SECONDS,
            **given,
        )
        if answered.status_code == 401:
            raise Unauthenticated(
                "the homeserver refuses the token; set MATRIX_ACCESS_TOKEN anew"
            )
        return answered


def _fate(answered: httpx.Response) -> Sent:
    body = _body(answered)
    if answered.status_code == 200:
        return Sent(Fate.DELIVERED, _text(body, "event_id"))
    reason = _reason(answered)
    if answered.status_code == 429:
        return Sent(Fate.NOT_SENT, reason=reason, retry_after=_pause(answered, body))
    if answered.status_code >= 500:
        return Sent(Fate.UNKNOWN, reason=reason)
    return Sent(Fate.NOT_SENT, reason=reason, final=True)


def _pause(answered: httpx.Response, body: JsonObject) -> float:
    milliseconds = body.get("retry_after_ms")
    if isinstance(milliseconds, int):
        return max(0.0, milliseconds / 1000)
    header = answered.headers.get("retry-after", "")
    return float(header) if header.isdecimal() else 1.0


def _reason(answered: httpx.Response) -> str:
    body = _body(answered)
    words = f"{answered.status_code} {_text(body, 'errcode')} {_text(body, 'error')}"
    return "".join(sign for sign in words if sign.isprintable())[:200].strip()


def _body(answered: httpx.Response) -> JsonObject:
    try:
        return _map(answered.json())
    except (ValueError, RecursionError):
        return {}


def _map(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _text(value: JsonObject, key: str) -> str:
    found = value.get(key)
    return found if isinstance(found, str) else ""


def _part(text: str) -> str:
    return quote(text, safe="")
