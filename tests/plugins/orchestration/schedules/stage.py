"""Daemons that keep schedules, and a record of what became due."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from typing import Any

from agenthost import Host, NotFound
from agenthost.testing import ManualClock
from agenthost.testing.daemons import RunningDaemon
from agenthost_orchestration.background.errands import Occasion, OccasionState
from agenthost_orchestration.orchestration import Orchestration, orchestration_of
from agenthost_orchestration.schedules.schedules import Schedules
from sqlalchemy import Connection, text

TABLE = "CREATE TABLE IF NOT EXISTS recorded (id TEXT PRIMARY KEY, occasion TEXT)"
INSERT = "INSERT OR IGNORE INTO recorded VALUES (:id, :occasion)"


class Record:
    """Keeps occasions as the real background does, and does nothing of them."""

    def __init__(self) -> None:
        self.host: Host | None = None
        self.written: dict[str, float] = {}
        self._woken = asyncio.Event()

    def write(self, connection: Connection, occasions: Sequence[Occasion]) -> None:
        connection.execute(text(TABLE))
        for each in occasions:
            row = _row(each)
            assert self.host is not None
            self.written.setdefault(each.id, self.host.clock.time())
            connection.execute(
                text(INSERT), {"id": each.id, "occasion": json.dumps(row)}
            )

    def source(self, source: object) -> None:
        """Take a source."""

    async def start(self, host: Host) -> None:
        self.host = host

    async def stop(self) -> None:
        """Nothing runs."""

    def wake(self) -> None:
        self._woken.set()

    @asynccontextmanager
    async def decided(self) -> AsyncIterator[None]:
        """Wait until times have been decided about that come inside."""
        self._woken.clear()
        yield
        async with asyncio.timeout(30):
            await self._woken.wait()

    async def list(
        self, source: str, source_id: str, *, limit: int, after: str
    ) -> Sequence[Occasion]:
        kept = [each for each in await self.all() if each.source_id == source_id]
        return sorted(kept, key=lambda each: -each.at)[:limit]

    async def occasion(self, occasion_id: str) -> Occasion:
        for each in await self.all():
            if each.id == occasion_id:
                return each
        raise NotFound("occasion", occasion_id)

    async def all(self) -> Sequence[Occasion]:
        assert self.host is not None
        await self.host.store.write(lambda connection: connection.execute(text(TABLE)))
        rows = await self.host.store.read(
            "SELECT occasion FROM recorded ORDER BY rowid"
        )
        return [_occasion(json.loads(row["occasion"])) for row in rows]

    async def end(
        self, state: OccasionState = OccasionState.DONE, **said: Any
    ) -> Sequence[Occasion]:
        """End all that is due."""
        assert self.host is not None
        ended = []
        for each in await self.all():
            if each.state is OccasionState.DUE:
                ended.append(replace(each, state=state, **said))
                row = _row(ended[-1])
                values = {"id": each.id, "occasion": json.dumps(row)}
                change = "UPDATE recorded SET occasion = :occasion WHERE id = :id"
                await self.host.store.change(change, values)
        return ended


def _row(occasion: Occasion) -> dict[str, Any]:
    return {**asdict(occasion), "labels": sorted(occasion.labels)}


def _occasion(row: Mapping[str, Any]) -> Occasion:
    state, labels = OccasionState(row["state"]), frozenset(row["labels"])
    return Occasion(**{**row, "state": state, "labels": labels})


def kept(host: Host) -> Schedules:
    return orchestration_of(host).schedules


def recorder(record: Record) -> type[Orchestration]:
    """Have orchestration write occasions there."""

    class Recorded(Orchestration):
        def __init__(self) -> None:
            super().__init__()
            self.background = record  # type: ignore[assignment]  # reason: it stands in

    return Recorded


async def made(daemon: RunningDaemon, **said: Any) -> dict[str, Any]:
    """Make a schedule over the API."""
    body = {
        "name": "report",
        "when": {"cron": "0 9 * * *"},
        "what": {"event": "due", "data": {}},
        **said,
    }
    answer = await daemon.http.post("/api/schedules", json=body)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


async def states(daemon: RunningDaemon, schedule_id: str) -> list[tuple[str, str]]:
    """Tell key and state of each occasion, oldest first."""
    answer = await daemon.http.get(f"/api/schedules/{schedule_id}/occasions")
    assert answer.status_code == 200, answer.text
    rows = answer.json()["occasions"]
    return [(row["key"], row["state"]) for row in reversed(rows)]


async def shows(daemon: RunningDaemon, schedule_id: str, **said: Any) -> None:
    """Wait until a schedule is shown so."""
    async with asyncio.timeout(30):
        while True:
            answer = await daemon.http.get(f"/api/schedules/{schedule_id}")
            if answer.status_code == 200 and said.items() <= answer.json().items():
                return


async def asleep() -> None:
    """Wait until the timer sleeps."""
    async with asyncio.timeout(30):
        while not _sleeps():  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0)
        for _ in range(3):
            await asyncio.sleep(0)


def _sleeps() -> bool:
    return any("_sleep_until" in repr(task) for task in asyncio.all_tasks())


class WallClock(ManualClock):
    """A clock whose wall can be set, as people and NTP do."""

    def set_by(self, seconds: float) -> None:
        self._start += seconds
