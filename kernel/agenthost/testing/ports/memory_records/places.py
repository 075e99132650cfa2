"""Lines for sessions in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from ....errors import Conflict, Superseded
from ....ports.records import Writer
from .rows import Rows


class MemoryPlace:
    """A place in the line for a session."""

    def __init__(
        self,
        rows: Rows,
        session_id: str,
        work_id: str,
        writer: Writer,
        asked_by: str = "",
    ) -> None:
        self.session_id = session_id
        self.work_id = work_id
        self.writer = writer
        self.asked_by = asked_by
        self.moved = asyncio.Event()
        self._rows = rows
        self._joined = rows.write(self._join)
        self._joined.exception()

    async def reached(self) -> None:
        """Wait until all before it are gone."""
        await self._joined
        while self._line()[:1] != (self,):
            if self not in self._line():
                raise Superseded("the place is gone; another process has started")
            self.moved.clear()
            await self.moved.wait()

    def leave(self) -> None:
        """Let go of it."""
        remove(self._rows, [self])

    def _line(self) -> tuple[MemoryPlace, ...]:
        return self._rows.places.get(self.session_id, ())

    def _join(self) -> None:
        if self._rows.epochs.get(self.writer.node, 0) > self.writer.epoch:
            raise Superseded("another process has started as this node since")
        line = self._line()
        if self.asked_by and self._leads_back(line):
            raise Conflict("the call would wait for itself")
        self._rows.places[self.session_id] = (*line, self)

    def _leads_back(self, line: tuple[MemoryPlace, ...]) -> bool:
        seen: list[MemoryPlace] = []
        left = [*line]
        while left:
            place = left.pop()
            if place.work_id == self.asked_by:
                return True
            if place not in seen:
                seen.append(place)
                left += self._waited_for(place)
        return False

    def _waited_for(self, place: MemoryPlace) -> Iterator[MemoryPlace]:
        line = self._rows.places[place.session_id]
        yield from line[: line.index(place)]
        for each in self._rows.places.values():
            yield from (other for other in each if other.asked_by == place.work_id)


def remove(rows: Rows, gone: list[MemoryPlace]) -> None:
    """Take places out of their lines; who stands behind looks again."""
    for place in gone:
        line = rows.places.get(place.session_id, ())
        rows.places[place.session_id] = tuple(each for each in line if each != place)
        for each in line:
            each.moved.set()


def left_by(rows: Rows, writer: Writer) -> list[MemoryPlace]:
    """Choose what earlier epochs of a node left."""
    return [
        place
        for line in rows.places.values()
        for place in line
        if place.writer.node == writer.node and place.writer.epoch < writer.epoch
    ]
