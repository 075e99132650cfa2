"""The keys of one daemon: known in memory, gone at once when they are revoked."""

from __future__ import annotations

import asyncio
import hmac
import re
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from agenthost import (
    AgentHostError,
    Authenticator,
    Context,
    Credentials,
    Host,
    Principal,
    Unauthenticated,
    Unavailable,
    telling,
)

from .rows import NEWEST, UNREVOKED, Key, key_of
from .scopes import grants_of
from .tokens import NOBODY, PREFIX, digest_of, id_in

KIND = "named_key"
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
LOOK_AGAIN = 5.0
"""Seconds for which what is known of the keys counts, were they changed elsewhere."""
USED_EVERY = 600.0
"""Seconds that ``last_used_at`` may be behind: few writes, however busy a key is."""
_LONGEST_SLEEP = 30.0
"""Keys expire by the wall clock, which may jump while a wait does not."""
_WRONG = "the key is unknown or was revoked; ask for another"
_EXPIRED = "the key has expired; ask for another"


@dataclass(slots=True)
class Holder:
    """A key that holds, and the principal of whoever shows it."""

    key: Key
    principal: Principal
    last_used_at: float
    ended: bool = False


class Keyring(Authenticator):
    """Tells named keys, makes and revokes them.

    The rows are the truth. Each change of theirs raises a revision, which is looked at
    every few seconds of use; a change made here is known at once.
    """

    name = "named_keys"

    def __init__(self) -> None:
        self._holders: dict[str, Holder] = {}
        self._revision = -1
        self._looked = float("-inf")
        self._changing = asyncio.Lock()
        self._changes: set[asyncio.Task[None]] = set()
        self._expiry: asyncio.Task[None] | None = None

    async def start(self, host: Host) -> None:
        """Read the keys there are."""
        await self._load(host)
        if self._holders and host.config.api_key is None:
            host.warnings.append(
                "api_key is not set: clients on this machine have every right without "
                "one of the named keys; set api_key to make them count"
            )

    async def stop(self) -> None:
        """Finish what is being changed, and watch for keys that expire no more."""
        await asyncio.gather(*self._changes, return_exceptions=True)
        if self._expiry is not None:
            self._expiry.cancel()
            await asyncio.gather(self._expiry, return_exceptions=True)

    async def authenticate(self, host: Host, shown: Credentials) -> Principal | None:
        """Tell whose key it is.

        Raises:
            Unauthenticated: It looks like a key of ours, and is none that holds.
        """
        token = shown.token.reveal()
        if shown.scheme != "bearer" or not token.startswith(PREFIX):
            return None
        await self._look(host)
        holder = self._holders.get(id_in(token))
        # The same work for an id that nobody has: the time tells nothing.
        expected = NOBODY if holder is None else holder.key.hash
        right = hmac.compare_digest(digest_of(token), expected)
        if holder is None or not right:
            raise Unauthenticated(_WRONG)
        now = host.clock.time()
        if holder.key.expires_at is not None and now >= holder.key.expires_at:
            raise Unauthenticated(_EXPIRED)
        if now - holder.last_used_at >= USED_EVERY:
            holder.last_used_at = now
            _note_use(host, holder.key.id, now)
        return holder.principal

    def stored_as(self, principal: Principal) -> str:
        """Give a key's id: another key may come to have its name."""
        key = self.holder(principal)
        return principal.name if key is None else key.id

    async def recall(self, host: Host, kind: str, name: str) -> Principal | None:
        """Give who comes with a key, with its present scopes, while it holds.

        The rows are read anew: work that was stored is not done with a key that was
        revoked elsewhere a moment ago.
        """
        if kind != KIND:
            return None
        await self._load(host)
        now = host.clock.time()
        for holder in self._holders.values():
            end = holder.key.expires_at
            if _is(holder.key, name) and (end is None or now < end):
                return holder.principal
        return None

    async def listed(self, host: Host) -> Sequence[Key]:
        """All keys, the revoked of the last months too, oldest first."""
        from .tables import ALL

        return [key_of(row) for row in await host.store.read(ALL)]

    async def add(self, host: Host, by: Context, key: Key) -> None:
        """Let a key hold from now on.

        Raises:
            Conflict: The name is taken, or there are too many.
        """
        await self._wholly(self._add(host, by, key))

    async def revoke(self, host: Host, by: Context, key_id: str) -> None:
        """Let a key hold no more, and end what is open for it.

        Raises:
            NotFound: There is none that holds.
        """
        await self._wholly(self._revoke(host, by, key_id))

    def holder(self, principal: Principal) -> Key | None:
        """The key that a principal came with, None when it was none of ours."""
        if principal.kind == KIND:
            for holder in self._holders.values():
                if holder.principal.name == principal.name:
                    return holder.key
        return None

    def keys_of(self, person_id: str) -> list[str]:
        """The names of the keys that stand for a person."""
        holders = self._holders.values()
        return [each.key.name for each in holders if each.key.person == person_id]

    async def _wholly(self, change: Coroutine[Any, Any, None]) -> None:
        """Make a change, rows and memory alike, also when who asked for it leaves."""
        task = asyncio.create_task(change)
        self._changes.add(task)
        task.add_done_callback(self._changed)
        # A key that is revoked on disk and still good in memory would be the worst end.
        await asyncio.shield(task)

    def _changed(self, change: asyncio.Task[None]) -> None:
        self._changes.discard(change)
        if not change.cancelled():
            # Whoever asked for it may have left: its failure is nobody's to hear then.
            change.exception()

    async def _add(self, host: Host, by: Context, key: Key) -> None:
        from .events import KeyCreated
        from .tables import add

        told = key.id, key.created_at, key.name, list(key.scopes)
        async with self._changing:
            with telling(host.events, KeyCreated, *told, **by.caused) as keep:
                await host.store.write(partial(add, key=key, keep=keep))
            await self._read(host)

    async def _revoke(self, host: Host, by: Context, key_id: str) -> None:
        from .events import KeyRevoked
        from .tables import revoke

        now = host.clock.time()
        async with self._changing:
            # First of all: while it is written, the key is refused already.
            holder = self._holders.pop(key_id, None)
            if holder is not None:
                host.access.dismiss(holder.principal)
            # What is in memory is no revision that was ever written.
            self._revision = -1
            with telling(host.events, KeyRevoked, key_id, now, **by.caused) as keep:
                writing = partial(revoke, key_id=key_id, now=now, keep=keep)
                await host.store.write(writing)
            await self._read(host)

    async def _look(self, host: Host) -> None:
        """See whether the keys were changed elsewhere."""
        now = host.clock.monotonic()
        if now - self._looked < LOOK_AGAIN:
            return
        row = await host.store.first(NEWEST)
        if row is None or row["revision"] != self._revision:
            await self._load(host)
        self._looked = now

    async def _load(self, host: Host) -> None:
        async with self._changing:
            await self._read(host)

    async def _read(self, host: Host) -> None:
        """Take the rows as they are; what they have no more is dismissed."""
        newest = await host.store.first(NEWEST)
        rows = await host.store.read(UNREVOKED)
        keys = [key_of(row) for row in rows]
        before = self._holders
        self._holders = {
            key.id: before[key.id] if key.id in before else _holder(key) for key in keys
        }
        for gone in before.keys() - self._holders.keys():
            host.access.dismiss(before[gone].principal)
        self._revision = -1 if newest is None else newest["revision"]
        self._watch(host)

    def _watch(self, host: Host) -> None:
        """Wait for the next key to expire, where one does."""
        if self._expiry is not None:
            self._expiry.cancel()
        self._expiry = None
        if self._next_end() is not None:
            self._expiry = asyncio.create_task(self._expire(host))

    async def _expire(self, host: Host) -> None:
        while (due := self._next_end()) is not None:
            wait = min(max(due - host.clock.time(), 0.0), _LONGEST_SLEEP)
            await host.clock.sleep(wait)
            now = host.clock.time()
            for holder in self._holders.values():
                end = holder.key.expires_at
                if end is not None and end <= now and not holder.ended:
                    holder.ended = True
                    host.access.dismiss(holder.principal)

    def _next_end(self) -> float | None:
        ends = [
            holder.key.expires_at
            for holder in self._holders.values()
            if holder.key.expires_at is not None and not holder.ended
        ]
        return min(ends, default=None)


def keyring_of(host: Host) -> Keyring:
    """Find the keyring of a daemon.

    Raises:
        Unavailable: Its plugin has failed.
    """
    for _, authenticator in host.registry.offered(Authenticator):
        if isinstance(authenticator, Keyring):
            return authenticator
    raise Unavailable("named keys are not served: the plugin keys has failed")


def _holder(key: Key) -> Holder:
    grants = grants_of(key.scopes)
    principal = Principal(KIND, key.name, grants, key.person, key.units_per_minute)
    return Holder(key, principal, key.last_used_at or 0.0)


def _is(key: Key, name: str) -> bool:
    """Tell whether a key is the one that is stored under a name.

    Before there were ids in what is stored, that was the key's name; one that reads
    like an id is an id, whoever chooses it as a name.
    """
    return key.id == name or (key.name == name and not _ID.fullmatch(name))


def _note_use(host: Host, key_id: str, now: float) -> None:
    from .tables import mark_used

    # Who asks does not wait for it, and is served also when it cannot be written.
    with suppress(AgentHostError):
        writing = host.store.write(partial(mark_used, key_id=key_id, now=now))
        writing.add_done_callback(lambda done: done.cancelled() or done.exception())
