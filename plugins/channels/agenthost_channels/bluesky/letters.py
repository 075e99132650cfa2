"""Direct messages, by the service that Bluesky has for them.

Source: the lexicons ``chat.bsky.convo``. The account's host hands the calls on; it
needs an app password that may read direct messages.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

from agenthost import Unauthenticated, Unavailable

from ..contract import Fate, Inbound, Line, Outbound, Place, Room, Sent
from .client import CHAT, UNAUTHORIZED, Answer, Client
from .mapping import (
    CONVO,
    DID,
    GROUP,
    Object,
    Told,
    Us,
    list_in,
    object_in,
    text_in,
    time_of,
    written,
)
from .posts import facets

CREATED = "chat.bsky.convo.defs#logCreateMessage"
PAGES = 20
CONVOS = 1_000
REMEMBERED = 1_000
LOOKED_AT = 100
RECENT_SECONDS = 600.0
FORBIDDEN = {"InvalidToken", "AuthMissing", "Forbidden", "InsufficientScope"}


class Letters:
    """The direct messages of one account."""

    def __init__(self, client: Client, line: Line) -> None:
        self._client = client
        self._line = line
        self._places: OrderedDict[str, Place] = OrderedDict()
        self._convos: OrderedDict[str, str] = OrderedDict()
        self._sent: OrderedDict[str, None] = OrderedDict()

    # Hearing.

    async def newest(self) -> str:
        """Name the place in the log after all that is there."""
        told = await self._get("listConvos", limit=1)
        convos = list_in(told, "convos")
        return text_in(convos[0], "rev") if convos else ""

    async def news(self, us: Us, told: Told) -> AsyncIterator[list[Inbound]]:
        """Give what is new in the log, in its order; ``told`` goes on with each."""
        for _ in range(PAGES):
            since = told["log"]
            page = await self._get("getLog", **({"cursor": since} if since else {}))
            logs = list_in(page, "logs")
            created = [each for each in logs if each.get("$type") == CREATED]
            created.sort(key=lambda each: text_in(each, "rev"))
            read = [await self._read(each, us) for each in created]
            after = text_in(page, "cursor")
            if not logs or not after or after == since:
                return
            told["log"] = after
            yield [each for each in read if each is not None]

    async def _read(self, entry: Object, us: Us) -> Inbound | None:
        if (place := await self._place(text_in(entry, "convoId"), us)) is None:
            return None
        profiles = list_in(entry, "relatedProfiles")
        names = {text_in(each, "did"): each for each in profiles}
        return written(object_in(entry, "message"), place, names, us)

    async def _place(self, convo: str, us: Us) -> Place | None:
        """Tell who else is in a conversation."""
        if not GROUP.fullmatch(f"{CONVO}{convo}"):
            return None
        if convo not in self._places:
            told = await self._get("getConvo", convoId=convo)
            members = list_in(object_in(told, "convo"), "members")
            others = [text_in(each, "did") for each in members]
            others = [each for each in others if each != us.did]
            if len(others) == 1 and DID.fullmatch(others[0]):
                place = Place(us.account, others[0])
                _keep(self._convos, others[0], convo, CONVOS)
            else:
                place = Place(us.account, f"{CONVO}{convo}", room=Room.GROUP)
            _keep(self._places, convo, place, CONVOS)
        return self._places.get(convo)

    # Saying.

    async def send(self, message: Outbound, us: Us) -> Sent:  # noqa: ARG002
        """Write to a person or a conversation, or put an emoji on a message."""
        convo = await self._convo(message.place.peer)
        if isinstance(convo, Sent):
            return convo
        if message.reaction:
            given = {
                "convoId": convo,
                "messageId": message.reply_to,
                "value": message.reaction,
            }
            answer = await self._said("addReaction", given)
            return answer if isinstance(answer, Sent) else Sent(Fate.DELIVERED)
        text = message.plain or message.text
        said: dict[str, Any] = {"text": text}
        if marks := facets(text):
            said["facets"] = marks
        if message.reply_to and message.place.room is not Room.DIRECT:
            said["replyTo"] = {"messageId": message.reply_to}
        answer = await self._said("sendMessage", {"convoId": convo, "message": said})
        if isinstance(answer, Sent):
            return answer
        number = text_in(answer.body, "id")
        _keep(self._sent, number, None, REMEMBERED)
        return Sent(Fate.DELIVERED, number)

    async def _convo(self, peer: str) -> str | Sent:
        if peer.startswith(CONVO):
            return peer.removeprefix(CONVO)
        if peer not in self._convos:
            answer = await self._client.asked(
                "chat.bsky.convo.getConvoForMembers", {"members": [peer]}, CHAT
            )
            if not answer.ok:
                # Nothing has been said yet, whatever went wrong.
                failed = answer.as_failure()
                return replace(failed, fate=Fate.NOT_SENT)
            convo = text_in(object_in(answer.body, "convo"), "id")
            if not convo:
                return Sent(Fate.NOT_SENT, reason="Bluesky names no conversation")
            _keep(self._convos, peer, convo, CONVOS)
        return self._convos[peer]

    async def _said(self, name: str, given: Any) -> Answer | Sent:
        return await self._client.said(f"chat.bsky.convo.{name}", given, CHAT)

    async def reconcile(self, message: Outbound, us: Us) -> Sent:
        """Look for a message of ours with these words, after the one that it answers.

        What is not there may come yet: there is no key by which it is known.
        """
        convo = await self._convo(message.place.peer)
        if isinstance(convo, Sent):
            return Sent(Fate.UNKNOWN, reason=convo.reason)
        told = await self._get("getMessages", convoId=convo, limit=LOOKED_AT)
        rows = list_in(told, "messages")
        ids = [text_in(each, "id") for each in rows]
        earliest = self._line.clock.time() - RECENT_SECONDS
        if message.reply_to in ids:
            # The newest comes first.
            rows, earliest = rows[: ids.index(message.reply_to)], 0.0
        for each in reversed(rows):
            number, ours = text_in(each, "id"), object_in(each, "sender")
            same = text_in(each, "text") == (message.plain or message.text)
            late = time_of(text_in(each, "sentAt")).timestamp() >= earliest
            new = number not in self._sent
            if text_in(ours, "did") == us.did and same and late and new:
                _keep(self._sent, number, None, REMEMBERED)
                return Sent(Fate.DELIVERED, number)
        return Sent(Fate.UNKNOWN, reason="Bluesky does not show it among the latest")

    async def _get(self, name: str, **query: Any) -> Object:
        answer = await self._client.asked(f"chat.bsky.convo.{name}", query, CHAT)
        if answer.status in (UNAUTHORIZED, 403) or answer.error in FORBIDDEN:
            raise Unauthenticated(
                f"{answer.reason}: the app password may not read direct messages; make "
                "one that may, or set messages = false"
            )
        if not answer.ok:
            raise Unavailable(answer.reason)
        return answer.body


def _keep(kept: OrderedDict[str, Any], key: str, value: Any, most: int) -> None:
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > most:
        kept.popitem(last=False)
