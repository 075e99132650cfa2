"""Posts that mention us or answer us, by the list of notifications.

Bluesky lists them by the time at which it learned of each. It may learn of two in
another order than it lists them, so what is a few minutes old is looked at again; what
comes twice is known by its address.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta

from ..contract import Inbound
from .client import Client
from .mapping import (
    EARLIEST,
    REASONS,
    Object,
    Told,
    Us,
    list_in,
    posted,
    text_in,
    time_of,
)

log = logging.getLogger(__name__)

LIST = "app.bsky.notification.listNotifications"
PAGE, PAGES, BATCH = 100, 20, 100
REMEMBERED = 5_000
OVERLAP = timedelta(minutes=5)


class Notices:
    """What is listed for one account.

    ``told`` holds when the newest was listed that was there before the account was
    first heard (``begun``), and that is on disk (``heard``).
    """

    def __init__(self, client: Client, us: Us) -> None:
        self._client = client
        self._us = us
        self._known: OrderedDict[str, None] = OrderedDict()

    async def news(self, told: Told) -> AsyncIterator[list[Inbound]]:
        """Give what is new, oldest first; ``told`` goes on once all of it was given."""
        found = sorted(await self._fresh(told), key=_listed)
        new = [row for row in found if text_in(row, "uri") not in self._known]
        messages = [said for row in new if (said := posted(row, self._us)) is not None]
        for start in range(0, len(messages), BATCH):
            batch = messages[start : start + BATCH]
            if start + BATCH >= len(messages):
                told["heard"] = text_in(found[-1], "indexedAt")
            yield batch
            self._keep(batch)

    async def _fresh(self, told: Told) -> list[Object]:
        begun, heard = time_of(told.get("begun", "")), time_of(told.get("heard", ""))
        found: list[Object] = []
        query: dict[str, object] = {"reasons": [*REASONS], "limit": PAGE}
        for _ in range(PAGES):
            page = await self._client.get(LIST, **query)
            listed = list_in(page, "notifications")
            rows = [row for row in listed if _listed(row) > EARLIEST]
            fresh = [
                row
                for row in rows
                if _listed(row) > begun and _listed(row) >= heard - OVERLAP
            ]
            found += fresh
            query["cursor"] = text_in(page, "cursor")
            if not (query["cursor"] and listed) or len(fresh) < len(rows):
                return found
        log.warning("more came than is listed: the oldest is left out")
        return found

    def _keep(self, messages: Sequence[Inbound]) -> None:
        for each in messages:
            self._known[each.message_id] = None
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)


async def newest(client: Client) -> str:
    """Tell when the newest was listed, of whatever kind; "" where there is none."""
    rows = list_in(await client.get(LIST, limit=1), "notifications")
    return text_in(rows[0], "indexedAt") if rows else ""


def _listed(row: Object) -> datetime:
    return time_of(text_in(row, "indexedAt"))
