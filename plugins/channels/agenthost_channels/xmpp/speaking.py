"""Saying something, and learning what became of it."""

from __future__ import annotations

import asyncio
import re
import secrets
from dataclasses import replace
from typing import Any
from xml.etree.ElementTree import Element  # nosec B405 # written, nothing is parsed

from slixmpp.jid import JID, InvalidJID

from ..contract import Fate, Outbound, Sent
from .client import PATIENCE, Client
from .corrections import is_passing
from .files import told
from .mapping import SHOWN_ID

# None of them may stand in XML.
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
STANZAS = "{urn:ietf:params:xml:ns:xmpp-stanzas}"
ERROR = "{jabber:client}error"
NO_STORE = "{urn:xmpp:hints}no-store"


class Speaker:
    """What is on its way, by its id."""

    def __init__(self, client: Client) -> None:
        self._client = client
        client.add_event_handler(
            "stanza_acked", lambda stanza: self._taken(str(stanza["id"]))
        )
        self._waiting: dict[str, tuple[bool, asyncio.Future[Sent]]] = {}
        self._tried: set[str] = set()

    def forget(self) -> None:
        """End the waiting: the stream is over."""
        lost = Sent(Fate.UNKNOWN, reason="the stream ended before the answer")
        for _, future in self._waiting.values():
            if not future.done():
                future.set_result(lost)

    def was_tried_here(self, key: str) -> bool:
        """Tell whether this very stream may still have a message on its way."""
        return key in self._tried

    def refuses(self, message: Outbound) -> Sent | None:
        """Tell what is wrong with a message before anything is said."""
        peer = message.place.peer
        try:
            right = JID(peer).bare == peer and "@" in peer
        except InvalidJID:
            right = False
        if not right or message.place.thread:
            return _never("a message goes to name@domain, and to no thread in it")
        if message.reaction:
            return _never("reactions are not said over XMPP")
        if message.edit_of and not SHOWN_ID.fullmatch(message.edit_of):
            return _never("what it is to replace is no message of ours")
        if len(message.files) > 1:
            return _never("a message carries one file")
        if not message.typing and not message.files and not _words(message):
            return _never("there is no text in it")
        return None

    async def say(self, message: Outbound, file: str, *, in_room: bool) -> Sent:
        """Send a message, and wait for what becomes of it.

        Args:
            message: It.
            file: The address of the file that goes with it, "" for none.
            in_room: Whether it goes to a room.
        """
        stanza = self._client.make_message(
            JID(message.place.peer), mtype="groupchat" if in_room else "chat"
        )
        stanza["chat_state"] = "composing" if message.typing else "active"
        if message.typing:
            stanza.send()
            return Sent(Fate.DELIVERED)
        # Programs show a file where its address is all that is said.
        stanza["body"] = "\n".join(filter(None, (_words(message), file)))
        if file:
            stanza.append(told(file))
        key = _named(stanza, message)
        answered: asyncio.Future[Sent] = asyncio.get_running_loop().create_future()
        self._waiting[key] = (in_room, answered)
        self._tried.add(key)
        asking = asyncio.ensure_future(self._asked(stanza))
        try:
            async with asyncio.timeout(PATIENCE):
                sent = await answered
        except TimeoutError:
            sent = Sent(Fate.UNKNOWN, reason="the XMPP server did not answer in time")
        finally:
            asking.cancel()
            del self._waiting[key]
        if sent.fate is not Fate.UNKNOWN:
            self._tried.discard(key)
        # What is replaced is named by its first id, however often it is.
        changed = message.edit_of and sent.fate is Fate.DELIVERED
        return replace(sent, message_id=message.edit_of) if changed else sent

    async def _asked(self, stanza: Any) -> None:
        """Send it, and something behind it that is answered when it was taken."""
        key = stanza["id"]
        if self._client.acknowledges:
            stanza.send()
            self._client.ask_acknowledgement()
            return
        stanza.send()
        await self._client.plugin["xep_0199"].ping(timeout=PATIENCE)
        self._taken(key)

    def _taken(self, key: str) -> None:
        """The server has it: a person's is delivered, a room is still to show it."""
        in_room, future = self._waiting.get(key, (True, None))
        if not in_room and future is not None and not future.done():
            future.set_result(Sent(Fate.DELIVERED, message_id=key))

    def noted(self, xml: Element, *, ours: bool) -> bool:
        """Take what is an answer to a message of ours; tell whether it was one."""
        in_room, future = self._waiting.get(xml.get("id", ""), (False, None))
        if xml.get("type") == "error":
            if future is not None and not future.done():
                future.set_result(_refusal(xml))
            return True
        if xml.get("type") == "groupchat" and ours:
            if in_room and future is not None and not future.done():
                key = xml.get("id", "")
                future.set_result(Sent(Fate.DELIVERED, message_id=key))
            return True
        return False


def _named(stanza: Any, message: Outbound) -> str:
    """Give a message its id, and say what it replaces; give the id."""
    key = message.key
    if message.edit_of:
        stanza["replace"]["id"] = message.edit_of
    if is_passing(message):
        key = secrets.token_hex(16)
        stanza.append(Element(NO_STORE))
    stanza["id"] = stanza["origin_id"]["id"] = key
    return key


def _words(message: Outbound) -> str:
    return CONTROLS.sub("", message.text or message.plain)


def _refusal(xml: Element) -> Sent:
    """Read an error: one of the kind ``wait`` says that it may go another time."""
    error = xml.find(ERROR)
    if error is None:
        return _never("the XMPP server refuses it")
    text = error.findtext(f"{STANZAS}text") or ""
    names = [each.tag for each in error if each.tag != f"{STANZAS}text"]
    named = names[0].rpartition("}")[2] if names else "refused"
    reason = CONTROLS.sub("", f"{named}: {text}" if text else named)[:200]
    return Sent(Fate.NOT_SENT, reason=reason, final=error.get("type") != "wait")


def _never(reason: str) -> Sent:
    return Sent(Fate.NOT_SENT, reason=reason, final=True)
