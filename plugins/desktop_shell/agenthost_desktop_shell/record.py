"""What the bridge decided, kept: each different decision once, and how often."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from agenthost import Host, Unavailable, timestamp

if TYPE_CHECKING:
    from .record_rows import Decided

log = logging.getLogger(__name__)

REMEMBERED = 4096
AT_ONCE = 64
LONGEST = 512


class Record:
    """The decisions of one daemon; nobody waits until they are written.

    One that was not seen before is written at once, with what has been counted by then;
    while a write is on its way the next ones gather. What is only counted waits for one
    of those, for a socket that closes, or for somebody who reads.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._counts: Counter[Decided] = Counter()
        self._known: set[Decided] = set()
        self._due = False
        self._writing = False

    def note(self, decided: Decided) -> None:
        """Count a decision."""
        decided = type(decided)(*map(_cut, decided))
        self._counts[decided] += 1
        if decided not in self._known:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known.add(decided)
            self.flush()

    def flush(self) -> None:
        """Write what was counted; it starts at once, or when the last write is over."""
        self._due = True
        if self._writing or not self._counts:
            return
        try:
            self._write().add_done_callback(self._written)
            self._writing = True
        except Unavailable as error:
            self._lost(error)

    async def listed(self, owner: str, since: float, most: int) -> list[dict[str, Any]]:
        """List decisions, the latest first; "" for everybody's.

        Raises:
            Unavailable: The database cannot be written or read now.
        """
        from .record_rows import LISTED

        # Writes keep their order: behind these also those that are on their way are.
        if self._counts or self._writing:
            for _ in range(len(self._counts) // AT_ONCE + 1):
                await self._write()
        asked = {"owner": owner, "since": since, "most": most}
        return [_shown(row) for row in await self._host.store.read(LISTED, asked)]

    def _write(self) -> asyncio.Future[None]:
        """Write some: a long write would hold up those of everybody else."""
        from .record_rows import keep

        some = {
            each: self._counts.pop(each) for each in [*islice(self._counts, AT_ONCE)]
        }
        self._due = bool(self._counts)
        write = partial(keep, counts=some, at=self._host.clock.time())
        return self._host.store.write(write)

    def _written(self, write: asyncio.Future[None]) -> None:
        self._writing = False
        if write.cancelled():
            return
        if error := write.exception():
            self._lost(error)
        elif self._due:
            self.flush()

    def _lost(self, error: BaseException) -> None:
        """Take what is asked next for new: it is recorded once storage is back."""
        self._known.clear()
        log.warning("decisions were not recorded: %s", type(error).__name__)


def _cut(value: Any) -> Any:
    """What every database takes: no half characters, no NUL, and not for ever."""
    if not isinstance(value, str):
        return value
    whole = value if len(value) <= LONGEST else f"{value[:LONGEST]}…"
    return whole.encode("utf-8", "replace").decode().replace("\0", "�")


def _shown(row: Any) -> dict[str, Any]:
    names = ("window", "webview", "origin", "platform", "command", "program")
    more = ("permission", "capability", "count", "owner")
    return {
        **{name: row[name] for name in (*names, *more)},
        "allowed": bool(row["allowed"]),
        "first_at": timestamp(row["first_at"]),
        "last_at": timestamp(row["last_at"]),
    }
