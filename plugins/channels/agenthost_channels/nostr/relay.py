"""One relay: what it has kept for us, what comes now, and what it takes of ours.

Sources: NIP-01, NIP-42 (https://github.com/nostr-protocol/nips).
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from agenthost import Unavailable

from ..contract import Fate, Line, Sent
from ..transports.websocket import WebSocket
from .keys import Event, Identity

log = logging.getLogger(__name__)

AUTH = 22242
PAGE = 500
PAGES = 20
OPENING_SECONDS = 60.0
QUIET_SECONDS = 60.0
ANSWER_SECONDS = 20.0
LIVE, OLDER = "live", "older"
WANTS_AUTH = "auth-required:"
# The same event would be refused again; the rest may pass.
FOR_GOOD = ("invalid:", "blocked:", "pow:", "restricted:", "mute:")


@dataclass(frozen=True, slots=True)
class Hearing:
    """What to ask a relay for, and who takes it.

    Args:
        kinds: The kinds of events.
        since: Asked for the time from which on what is kept is wanted.
        kept: Takes what the relay had kept, all of it.
        live: Takes each event that comes then.
    """

    kinds: tuple[int, ...]
    since: Callable[[], int]
    kept: Callable[[list[Event]], Awaitable[None]]
    live: Callable[[Event], Awaitable[None]]


class Relay:
    """A connection to a relay; one task reads it, any may publish."""

    def __init__(self, line: Line, url: str, us: Identity, hearing: Hearing) -> None:
        self.url = url
        self._line, self._us, self._hearing = line, us, hearing
        self._socket: WebSocket | None = None
        self._begin()

    def _begin(self) -> None:
        self._waiting: dict[str, asyncio.Future[tuple[bool, str]]] = {}
        self._kept: dict[str, Event] = {}
        self._pages = 0
        self._new = False
        self._caught_up = False
        self._challenge = ""
        self._auth = ""
        self._authenticated = asyncio.Event()
        self._shut: set[str] = set()

    @property
    def is_open(self) -> bool:
        """Whether it can take something."""
        return self._socket is not None

    async def listen(self, greeting: Event | None) -> None:
        """Stay connected and hand on what comes; raise when that breaks.

        Raises:
            Unavailable: The relay cannot be reached, went away, or refuses us.
        """
        self._begin()
        try:
            socket = await WebSocket.connect(self._line, self.url)
        except TimeoutError:
            raise Unavailable("the relay does not answer") from None
        try:
            self._socket = socket
            await self._ask(LIVE)
            if greeting is not None:
                await self._say("EVENT", greeting.as_json())
            async with asyncio.timeout(OPENING_SECONDS) as opening:
                while True:
                    await self._take(await socket.receive(QUIET_SECONDS))
                    if self._caught_up:
                        opening.reschedule(None)
        except TimeoutError:
            raise Unavailable("the relay does not say what it has kept") from None
        finally:
            self._socket = None
            for future in self._waiting.values():
                future.cancel()
            self._waiting.clear()
            socket.close()

    # Hearing.

    async def _ask(self, name: str) -> None:
        wanted: dict[str, Any] = {
            "kinds": list(self._hearing.kinds),
            "#p": [self._us.pubkey],
            "since": self._hearing.since(),
            "limit": PAGE,
        }
        if name == OLDER:
            wanted["until"] = min(each.created_at for each in self._kept.values())
        await self._say("REQ", name, wanted)

    async def _take(self, text: str) -> None:
        try:
            kind, *rest = json.loads(text)
        except (ValueError, TypeError, RecursionError):
            return
        if kind == "EVENT" and len(rest) > 1:
            await self._event(rest[1])
        elif kind == "EOSE" and rest:
            await self._all_kept(rest[0])
        elif kind == "OK" and len(rest) > 1:
            reason = _text(rest[2:])
            await self._answered(rest[0], accepted=rest[1] is True, reason=reason)
        elif kind == "AUTH" and rest and isinstance(rest[0], str):
            await self._authenticate(rest[0])
        elif kind == "CLOSED" and rest:
            await self._closed(rest[0], _text(rest[1:]))
        elif kind == "NOTICE":
            log.info("%s says: %s", self.url, _text(rest))

    async def _event(self, found: Any) -> None:
        try:
            event = Event.read(found)
        except ValueError as error:
            log.info("%s sent an event that is none: %s", self.url, error)
            return
        if event.kind not in self._hearing.kinds:
            return
        if self._caught_up:
            await self._hearing.live(event)
        elif event.id not in self._kept:
            self._new = True
            self._kept[event.id] = event

    async def _all_kept(self, name: Any) -> None:
        """Ask for what is older, until there is no more: a relay gives newest first."""
        if self._caught_up or name not in {LIVE, OLDER}:
            return
        if self._new and self._pages < PAGES:
            self._new = False
            self._pages += 1
            await self._ask(OLDER)
            return
        if self._new:
            log.warning("%s has more for us than we read: the oldest is lost", self.url)
        if name == OLDER:
            await self._say("CLOSE", OLDER)
        kept = sorted(self._kept.values(), key=lambda each: each.created_at)
        self._kept = {}
        await self._hearing.kept(kept)
        self._caught_up = True

    async def _closed(self, name: Any, reason: str) -> None:
        if name not in {LIVE, OLDER}:
            return
        if not reason.startswith(WANTS_AUTH) or self._authenticated.is_set():
            raise Unavailable(f"the relay tells us nothing: {reason or 'no reason'}")
        self._shut.add(name)

    # Who we are.

    async def _authenticate(self, challenge: str) -> None:
        tags = [["relay", self.url], ["challenge", challenge[:500]]]
        now = int(self._line.clock.now().timestamp())
        event = self._us.event(AUTH, "", tags, now)
        self._auth = event.id
        await self._say("AUTH", event.as_json())

    async def _answered(self, name: Any, *, accepted: bool, reason: str) -> None:
        if name == self._auth:
            if not accepted:
                raise Unavailable(f"the relay does not let us in: {reason}")
            self._authenticated.set()
            for each in sorted(self._shut):
                await self._ask(each)
            self._shut.clear()
            return
        future = self._waiting.get(name) if isinstance(name, str) else None
        if future is not None and not future.done():
            future.set_result((accepted, reason))

    # Saying.

    async def publish(self, event: Event) -> Sent:
        """Give an event to the relay, and tell whether it took it."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                taken, reason = await self._offer(event)
                if not taken and reason.startswith(WANTS_AUTH):
                    await self._authenticated.wait()
                    taken, reason = await self._offer(event)
        except TimeoutError:
            return Sent(Fate.UNKNOWN, reason="the relay did not answer in time")
        except Unavailable as error:
            return Sent(Fate.UNKNOWN, reason=str(error))
        if taken or reason.startswith("duplicate:"):
            return Sent(Fate.DELIVERED, event.id)
        final = reason.startswith(FOR_GOOD)
        return Sent(
            Fate.NOT_SENT, reason=f"the relay refuses it: {reason}", final=final
        )

    async def _offer(self, event: Event) -> tuple[bool, str]:
        answered = asyncio.get_running_loop().create_future()
        self._waiting[event.id] = answered
        try:
            await self._say("EVENT", event.as_json())
            # Cancelled when the connection ends, which is no cancel of ours.
            await asyncio.wait([answered])
        finally:
            self._waiting.pop(event.id, None)
        if answered.cancelled():
            raise Unavailable("the connection ended before the relay answered")
        found: tuple[bool, str] = answered.result()
        return found

    async def _say(self, *words: Any) -> None:
        if self._socket is None:
            raise Unavailable("the relay is not connected")
        await self._socket.send(json.dumps(words, ensure_ascii=False))


def _text(words: list[Any]) -> str:
    """Give what a relay says as one short line."""
    said = words[0] if words and isinstance(words[0], str) else ""
    return " ".join("".join(c if c.isprintable() else " " for c in said).split())[:200]
