"""A background that writes occasions and has nobody do them: a test looks at them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace
from types import SimpleNamespace
from typing import Any

import agenthost_orchestration as area
from agenthost import Host, SchemaSpec, ServiceSpec, hookimpl
from agenthost_orchestration.background.background import Background
from agenthost_orchestration.background.errands import Occasion, OccasionState
from agenthost_orchestration.orchestration import Orchestration
from sqlalchemy import Column, Connection, MetaData, Table, Text, insert, select

CONFIG = '[plugins]\ndisable = ["plugin:orchestration"]\n'

metadata = MetaData()
rehearsed = Table(
    "rehearsed",
    metadata,
    Column("source_id", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("said", Text, nullable=False),
)
ALL = select(rehearsed)
"""Occasions are kept as a background would keep them: one of each key."""


class Rehearsal(Background):
    """Keeps occasions; counts how often it is woken."""

    def __init__(self, host: Host) -> None:
        super().__init__()
        self.rows = host.store
        self.woken = 0

    async def start(self, host: Host) -> None:
        pass

    async def stop(self) -> None:
        pass

    @staticmethod
    def write(
        connection: Connection, occasions: Iterable[Occasion]
    ) -> Sequence[Occasion]:
        written = []
        for each in occasions:
            known = ALL.where(
                rehearsed.c.source_id == each.source_id, rehearsed.c.key == each.key
            )
            if connection.execute(known).first() is None:
                connection.execute(
                    insert(rehearsed).values(
                        source_id=each.source_id, key=each.key, said=_written(each)
                    )
                )
                written.append(each)
        return written

    def wake(self) -> None:
        self.woken += 1

    async def list(
        self,
        source: str | None = None,
        source_id: str | None = None,
        state: OccasionState | None = None,
        *,
        limit: int = 100,
        after: str = "",
    ) -> Sequence[Occasion]:
        found = [_read(row["said"]) for row in await self.rows.read(ALL)]
        mine = [each for each in found if each.source_id == source_id]
        assert all(each.source == source for each in mine)
        return mine[::-1][:limit]


class Rehearsed(Orchestration):
    """The area over a rehearsal."""

    background: Rehearsal

    async def start(self, host: Host) -> None:
        self.background = Rehearsal(host)
        await super().start(host)


def plugin() -> Any:
    """The plugin of the area, with a background that does nothing."""

    @hookimpl
    def register_service() -> Sequence[ServiceSpec]:
        return [Rehearsed.served()]

    @hookimpl
    def register_schema() -> tuple[SchemaSpec, ...]:
        return (*area.register_schema(), SchemaSpec("rehearsed", metadata))

    hooks: dict[str, Callable[..., Any]] = {
        name: getattr(area, name)
        for name in ("register_config", "register_routes", "register_tool")
    }
    return SimpleNamespace(
        __name__="rehearsal",
        register_service=register_service,
        register_schema=register_schema,
        **hooks,
    )


NAMES = tuple(each.name for each in fields(Occasion))


def _written(occasion: Occasion) -> str:
    told = {name: getattr(occasion, name) for name in NAMES}
    told |= {"labels": sorted(occasion.labels), "payload": dict(occasion.payload)}
    return json.dumps(told)


def _read(text: str) -> Occasion:
    told: dict[str, Any] = json.loads(text)
    state, labels = OccasionState(told.pop("state")), frozenset(told.pop("labels"))
    return replace(Occasion(**told), state=state, labels=labels)
