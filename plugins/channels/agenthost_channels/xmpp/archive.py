"""What a server keeps (XEP-0313): of the account, and of each room.

The cursor tells of each archive what was taken last: its id there, and its time, for an
archive that has thrown that away. "" is an archive in which there was nothing.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from agenthost import Unavailable
from slixmpp import Iq
from slixmpp.exceptions import IqError, IqTimeout

from .client import Client
from .mapping import MAM, archived

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element  # nosec B405 # a type; nothing is parsed

PAGE = 50
LOOK_BACK_PAGES = 20


@dataclass(frozen=True, slots=True)
class Kept:
    """A message in an archive."""

    id: str
    message: Element
    at: datetime | None


@dataclass(frozen=True, slots=True)
class Page:
    """Some of them, the oldest first; ``last`` where there are no more of them."""

    kept: list[Kept]
    last: bool


@dataclass(slots=True)
class Marks:
    """How far each archive was taken."""

    reached: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, cursor: str) -> Marks:
        """Read a cursor."""
        return cls(json.loads(cursor) if cursor else {})

    def moved(self, archive: str, id_: str, at: datetime | None) -> str:
        """Move one of them, and write the cursor; it counts once it is kept."""
        before = self.reached.get(archive, ["", ""])
        to = [id_, at.isoformat() if at else before[1]] if id_ else before
        return json.dumps({**self.reached, archive: to})


class Archives:
    """The archives that one stream can look into."""

    def __init__(self, client: Client, account: str) -> None:
        self._client = client
        self._account = account
        self._open: dict[str, tuple[str, list[Kept]]] = {}

    def take(self, message: Element) -> bool:
        """Take a message if an archive sends it; those of nobody's asking are dropped.

        Anybody can send what looks like a result: only the archive that was asked
        counts, under the name that the question had.
        """
        result = message.find(f"{{{MAM}}}result")
        if result is None:
            return False
        archive, kept = self._open.get(result.get("queryid", ""), (None, []))
        sender = message.get("from", "") or self._account
        if sender == archive and (read := archived(result)) is not None:
            kept.append(Kept(*read))
        return True

    async def since(self, archive: str, mark: list[str]) -> AsyncIterator[Page]:
        """Give what came after a mark, page by page."""
        after, at = mark
        while True:
            asked = {"after": after} if after else {"start": at}
            try:
                page = await self._page(archive, asked)
            except IqError as error:
                if error.condition != "item-not-found" or not after:
                    raise Unavailable(_refused(archive, error)) from None
                after = ""
                continue
            yield page
            if page.last or not page.kept:
                return
            after = page.kept[-1].id

    async def back(self, archive: str, who: str = "") -> AsyncIterator[Page]:
        """Give what is newest, and then what was before it."""
        before = ""
        for _ in range(LOOK_BACK_PAGES):
            try:
                page = await self._page(archive, {"before": before, "with": who})
            except IqError as error:
                raise Unavailable(_refused(archive, error)) from None
            yield page
            if page.last or not page.kept:
                return
            before = page.kept[0].id

    async def newest(self, archive: str) -> Kept | None:
        """Give the newest message of all."""
        try:
            page = await self._page(archive, {"before": ""}, most=1)
        except IqError as error:
            raise Unavailable(_refused(archive, error)) from None
        return page.kept[-1] if page.kept else None

    async def keeps_all(self, who: str) -> bool:
        """Tell whether the account's archive keeps all that is said to somebody."""
        query = self._client.make_iq_get()
        query.enable("mam_prefs")
        try:
            prefs = (await self._client.ask(query)).xml.find(f"{{{MAM}}}prefs")
        except (IqError, IqTimeout):
            return False
        if prefs is None:
            return False
        never = [each.text for each in prefs.iterfind(f"{{{MAM}}}never/{{{MAM}}}jid")]
        return prefs.get("default") == "always" and who not in never

    async def _page(
        self, archive: str, asked: dict[str, str], most: int = PAGE
    ) -> Page:
        query = self._client.make_iq_set(
            ito=None if archive == self._account else archive
        )
        name = secrets.token_hex(16)
        mam = query["mam"]
        mam["queryid"] = name
        if start := asked.get("start"):
            mam["start"] = datetime.fromisoformat(start)
        if who := asked.get("with"):
            mam["with"] = who
        mam["rsm"]["max"] = str(most)
        if "before" in asked:
            mam["rsm"]["before"] = asked["before"] or True
        if after := asked.get("after"):
            mam["rsm"]["after"] = after
        kept: list[Kept] = []
        self._open[name] = (archive, kept)
        try:
            done = await self._client.ask(query)
        except IqTimeout:
            raise Unavailable(f"the archive of {archive} does not answer") from None
        finally:
            del self._open[name]
        return Page(kept, _is_last(done))


def _is_last(done: Iq) -> bool:
    fin = done.xml.find(f"{{{MAM}}}fin")
    return fin is None or fin.get("complete") in {"true", "1"}


def _refused(archive: str, error: IqError) -> str:
    return f"the archive of {archive} refuses: {error.condition}"
