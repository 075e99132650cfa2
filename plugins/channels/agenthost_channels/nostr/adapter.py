"""Nostr: letters to one key, over several relays.

Sources: NIP-01, NIP-17, NIP-19, NIP-42, NIP-44, NIP-59, and NIP-04 of old
(https://github.com/nostr-protocol/nips).

The same letter comes from every relay: the id of its event tells them apart. The time
of a wrap is up to two days too early on purpose, so relays are asked for what is kept
from two days before we last heard of them; what is known already is passed over.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections import OrderedDict
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, ClassVar
from urllib.parse import urlsplit

from agenthost import AgentHostError, Unauthenticated, Unavailable
from pydantic import AfterValidator, BaseModel, Field

from ..contract import (
    Adapter,
    Fate,
    Inbound,
    Line,
    Outbound,
    Place,
    Sender,
    Sent,
)
from ..transports.addresses import LOOPBACK

if TYPE_CHECKING:
    from .keys import Event, Identity
    from .letters import Letter, Written
    from .relay import Relay

log = logging.getLogger(__name__)

MAILBOXES = 10050
BACKWARDS = 2 * 24 * 3600 + 3600
CLOCKS_APART = 300
BATCH = 100
KNOWN = 20_000
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 300.0
# Of a letter of the old kind, so that it is answered in kind.
OLD = "nip04:"
PEER = re.compile(rf"(?:{OLD})?npub1[02-9ac-hj-np-z]{{58}}")
NAME = re.compile(r"[0-9a-f]{64}")
MISSING = "Nostr needs: pip install 'agenthost[nostr]'"


def _not_in_the_clear(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in {"wss", "ws"} or not parts.hostname:
        raise ValueError("name the relay as wss://...")
    if parts.scheme == "ws" and parts.hostname not in LOOPBACK:
        raise ValueError("everybody on the way would see who we are; name it as wss://")
    return url


class Settings(BaseModel, defer_build=True):
    """Settings of ``[channels.nostr]``."""

    relays: list[Annotated[str, AfterValidator(_not_in_the_clear)]] = Field(
        min_length=1, max_length=20, description="Relays that we hear and write to"
    )
    announce: bool = Field(
        default=True,
        description="Publish these relays as those where we are written to",
    )
    nip04: bool = Field(
        default=False, description="Hear and answer old letters too (NIP-04)"
    )


class Nostr(Adapter):
    """One key."""

    settings = Settings
    secrets: ClassVar = {"private_key": "NOSTR_PRIVATE_KEY"}  # nosec B105 # a name
    needed: ClassVar = frozenset({"private_key"})

    def __init__(self, line: Line) -> None:
        super().__init__(line)
        self._options: Settings = line.settings
        self._relays: list[Relay] = []
        self._known: OrderedDict[str, None] = OrderedDict()
        self._first = 0
        self._heard_until: dict[str, int] = {}
        self._away: set[str] = set()
        self._told = False

    def _us(self) -> Identity:
        secret = self.line.secret("private_key")
        if secret is None:
            raise Unauthenticated("Nostr needs private_key: set NOSTR_PRIVATE_KEY")
        try:
            from .keys import Identity
        except ModuleNotFoundError:
            raise Unavailable(MISSING) from None
        try:
            return Identity.read(secret.reveal())
        except ValueError:
            raise Unauthenticated(
                "NOSTR_PRIVATE_KEY is no private key; give it as nsec1... or as 64"
                " hexadecimal digits"
            ) from None

    async def identity(self) -> str:
        """Give our public key: what people write to."""
        us = self._us()
        from .keys import npub

        return npub(us.pubkey)

    def _now(self) -> int:
        return int(self.line.clock.now().timestamp())

    # Relays.

    async def run(self) -> None:
        """Stay connected to all relays; end when none of them is left."""
        us = self._us()
        self._read_cursor()
        self._relays = [self._relay(url, us) for url in dict.fromkeys(self._urls())]
        greeting = self._mailboxes(us) if self._options.announce else None
        self._away, self._told = set(), False
        staying = [asyncio.create_task(self._stay(r, greeting)) for r in self._relays]
        try:
            # The first to end found that no other relay is connected.
            done, _ = await asyncio.wait(staying, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in staying:
                task.cancel()
            await asyncio.wait(staying)
            self._relays = []

    def _urls(self) -> list[str]:
        return [url.rstrip("/") for url in self._options.relays]

    def _relay(self, url: str, us: Identity) -> Relay:
        from .relay import Hearing, Relay

        async def kept(events: list[Event]) -> None:
            await self._take_kept(url, events, us)

        async def live(event: Event) -> None:
            await self._take(url, event, us)

        kinds = (1059, 4) if self._options.nip04 else (1059,)
        hearing = Hearing(kinds, lambda: self._since(url), kept, live)
        return Relay(self.line, url, us, hearing)

    def _mailboxes(self, us: Identity) -> Event:
        tags = [["relay", url] for url in self._urls()]
        return us.event(MAILBOXES, "", tags, self._now())

    async def _stay(self, relay: Relay, greeting: Event | None) -> None:
        """Connect again and again, as long as another relay is not away too."""
        pause = FIRST_PAUSE
        while True:
            began = self._now()
            try:
                await relay.listen(greeting)
            except AgentHostError as error:
                self._away.add(relay.url)
                if len(self._away) == len(self._relays):
                    raise
                log.warning("%s: %s", relay.url, error)
            if self._now() - began > LONGEST_PAUSE:
                pause = FIRST_PAUSE
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    # How far we are.

    def _read_cursor(self) -> None:
        found = {}
        with suppress(ValueError):
            found = json.loads(self.line.cursor or "{}")
        self._first = int(found.get("first") or self._now())
        self._heard_until = dict(found.get("relays") or {})

    def _since(self, url: str) -> int:
        return max(0, self._heard_until.get(url, self._first) - BACKWARDS)

    async def _keep(self, url: str, messages: list[Inbound]) -> None:
        """Put messages on disk, and that we heard a relay until now."""
        until = {**self._heard_until, url: self._now()}
        cursor = json.dumps({"first": self._first, "relays": until})
        await self.line.received(*messages, cursor=cursor)
        self._heard_until[url] = until[url]

    # Hearing.

    async def _take_kept(self, url: str, events: list[Event], us: Identity) -> None:
        """Take what a relay kept, in the order in which it was written."""
        found = [each for each in events if each.id not in self._known]
        letters = filter(None, (self._letter(each, us) for each in found))
        inbound = [self._inbound(each) for each in sorted(letters, key=lambda e: e.at)]
        for at in range(0, max(0, len(inbound) - BATCH), BATCH):
            await self.line.received(*inbound[at : at + BATCH])
        last = (len(inbound) - 1) // BATCH * BATCH if inbound else 0
        await self._keep(url, inbound[last:])
        self._remember(*found)
        self._away.discard(url)
        if not self._told:
            self._told = True
            self.line.connected()

    async def _take(self, url: str, event: Event, us: Identity) -> None:
        if event.id in self._known:
            return
        letter = self._letter(event, us)
        if letter is not None:
            await self._keep(url, [self._inbound(letter)])
        self._remember(event)

    def _remember(self, *events: Event) -> None:
        self._known.update((each.id, None) for each in events)
        while len(self._known) > KNOWN:
            self._known.popitem(last=False)

    def _letter(self, event: Event, us: Identity) -> Letter | None:
        """Open an event; what is no letter to us, or older than we are, is none."""
        from .letters import opened

        try:
            letter = opened(event, us)
        except ValueError as error:
            log.info("an event is passed over: %s", error)
            return None
        return letter if letter.at >= self._first - CLOCKS_APART else None

    def _inbound(self, letter: Letter) -> Inbound:
        from .keys import npub

        name = npub(letter.pubkey)
        peer = f"{OLD}{name}" if letter.old else name
        return Inbound(
            Place(self.line.account, peer),
            letter.id,
            Sender(name),
            letter.text,
            datetime.fromtimestamp(min(letter.at, self._now()), UTC),
            reply_to=letter.answers,
            mentions_us=True,
        )

    # Saying.

    async def send(self, message: Outbound) -> Sent:
        """Write a letter, and give it to every relay until one has taken it."""
        if message.typing or message.reaction:
            return _never("we send no such thing over Nostr")
        if not PEER.fullmatch(message.place.peer):
            return _never("a Nostr letter goes to one key, npub1...")
        relays = [each for each in self._relays if each.is_open]
        if not relays:
            return Sent(Fate.NOT_SENT, reason="not connected")
        try:
            letter = self._written(message)
        except ValueError as error:
            return _never(f"it cannot be written: {error}")
        except AgentHostError as error:
            return Sent(Fate.NOT_SENT, reason=str(error))
        return await _published(letter.event, letter.id, relays)

    def _written(self, message: Outbound) -> Written:
        from .keys import pubkey_of
        from .letters import written, written_of_old

        peer, answers = message.place.peer, message.reply_to.partition("/")[0]
        write = written_of_old if peer.startswith(OLD) else written
        return write(
            self._us(),
            pubkey_of(peer.removeprefix(OLD)),
            message.text or message.plain,
            self._now(),
            answers if NAME.fullmatch(answers) else "",
        )


async def _published(event: Event, name: str, relays: list[Relay]) -> Sent:
    """Give an event to all relays at once; one that takes it is enough."""
    offers = {asyncio.create_task(each.publish(event)) for each in relays}
    answers: list[Sent] = []
    try:
        for answer in asyncio.as_completed(offers):
            sent = await answer
            if sent.fate is Fate.DELIVERED:
                return Sent(Fate.DELIVERED, name)
            answers.append(sent)
    finally:
        for task in offers:
            task.cancel()
    unknown = [each for each in answers if each.fate is Fate.UNKNOWN]
    if unknown:
        return unknown[0]
    reason = "; ".join(dict.fromkeys(each.reason for each in answers))
    final = all(each.final for each in answers)
    return Sent(Fate.NOT_SENT, reason=reason, final=final)


def _never(reason: str) -> Sent:
    return Sent(Fate.NOT_SENT, reason=reason, final=True)
